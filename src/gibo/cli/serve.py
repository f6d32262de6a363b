"""`gibo serve`: ask and tell for programs, over HTTP or standard input and output."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from gibo.cli import complain, like_ctrl_c, noted_signals, say
from gibo.errors import InputError


def add_commands(commands: Any) -> None:
    """Add this command to the command line."""
    serve = commands.add_parser(
        "serve",
        help="let programs ask and tell over HTTP on this machine or over standard input and output",
        description="Serve a run of gibo init to any program: ask, tell, status, best and export as JSON. "
        "See docs/serve.md for examples.",
    )
    serve.set_defaults(run=_serve)
    serve.add_argument("folder", type=Path, metavar="RUN")
    serve.add_argument(
        "--port", type=int, metavar="N", default=8643, help="port to listen on (default: 8643; 0: a free port)"
    )
    serve.add_argument(
        "--stdio", action="store_true", help="use one JSON object per line on standard input and output instead of HTTP"
    )
    serve.add_argument(
        "--token",
        action="store_true",
        help="answer only requests with the printed token as X-Gibo-Token; without it, every user of this machine can "
        "tell values",
    )


def _serve(arguments: argparse.Namespace) -> int:
    from gibo.web.bench import ManualBench
    from gibo.web.serve import Serve, serve_lines

    if arguments.stdio and arguments.token:
        raise InputError("--token: only for HTTP; with --stdio only the parent process can connect")
    with (
        like_ctrl_c(quietly=True),
        ManualBench(arguments.folder, lambda: complain(f"{arguments.folder}: in use, waiting for it")) as bench,
    ):
        complain(
            f"{arguments.folder}: this process holds the run; other programs can read it, and ask and tell through it"
        )
        if arguments.stdio:
            serve_lines(bench, sys.stdin.buffer, sys.stdout.buffer)
            return 0
        with noted_signals() as wait, Serve(bench, arguments.port, arguments.token) as server:
            say(f"{arguments.folder}: {server.address_with_token}", flush=True)
            wait()
    return 0
