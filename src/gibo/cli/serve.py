"""`gibo serve`: ask and tell for programs, over HTTP or over standard input and output."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from gibo.cli import complain, say
from gibo.cli.train import like_ctrl_c
from gibo.errors import InputError


def add_commands(commands: Any) -> None:
    """Add this command to the command line."""
    serve = commands.add_parser(
        "serve",
        help="let programs ask and tell, over HTTP on this machine or over standard input and output",
        description="Serve a run that gibo init has begun to any program: ask, tell, status, best and export as JSON. "
        "See docs/serve.md for examples.",
    )
    serve.set_defaults(run=_serve)
    serve.add_argument("folder", type=Path, metavar="RUN")
    serve.add_argument(
        "--port", type=int, metavar="N", default=8643, help="where to listen (default: 8643; 0: a free one)"
    )
    serve.add_argument(
        "--stdio", action="store_true", help="a JSON object per line on standard input and output instead"
    )
    serve.add_argument(
        "--token",
        action="store_true",
        help="answer only requests with the printed token as X-Gibo-Token; without it, every user of this machine can "
        "tell values",
    )


def _serve(arguments: argparse.Namespace) -> int:
    from gibo.web.bench import ManualBench
    from gibo.web.loopback import noted_signals
    from gibo.web.serve import Serve, serve_lines

    if not 0 <= arguments.port < 1 << 16:
        raise InputError(f"--port: expected a number below 65536, got {arguments.port}")
    if arguments.stdio and arguments.token:
        raise InputError("--token: it is for HTTP; with --stdio nobody but the parent process can speak to it")
    held = f"{arguments.folder}: this process holds the run; other programs can read it, and ask and tell through it"
    with (
        like_ctrl_c(),
        ManualBench(arguments.folder, lambda: complain(f"{arguments.folder}: in use, waiting for it")) as bench,
    ):
        complain(held)
        if arguments.stdio:
            with suppress(KeyboardInterrupt):
                serve_lines(bench, sys.stdin.buffer, sys.stdout.buffer)
            return 0
        with noted_signals() as is_over:  # before the port is open
            server = Serve(bench, arguments.port, arguments.token)
            try:
                say(f"{arguments.folder}: {server.public_address}", flush=True)
                server.serve_until(is_over)
            finally:
                server.stop()
    return 0
