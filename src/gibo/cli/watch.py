"""`gibo watch` and `gibo report`: a page that shows a run, live or as a file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from gibo.cli import ALLOW_MODULE, noted_signals, say


def add_commands(commands: Any) -> None:
    """Add these commands to the command line."""
    watch = commands.add_parser(
        "watch",
        help="show a run in the browser",
        description="Serve a page that shows a run, running or ended, on this machine only. RUN "
        "may also be a folder of runs: the page lists them and can compare two or more. The journal "
        "is not changed.",
    )
    watch.set_defaults(run=_watch)
    watch.add_argument("folder", type=Path, metavar="RUN")
    watch.add_argument("--port", type=int, metavar="N", help="port to listen on (default: 8642, or a free port)")
    watch.add_argument("--open", action="store_true", help="open the page in the browser")
    watch.add_argument(
        "--control",
        action="store_true",
        help="let the page act on the run, or on each trial; whoever has the printed address can do so",
    )
    watch.add_argument("--allow-module", **ALLOW_MODULE)
    report = commands.add_parser(
        "report",
        help="write the page of a run as one file",
        description="Write the page of gibo watch as one HTML file that needs no other file.",
    )
    report.set_defaults(run=_report)
    report.add_argument("folder", type=Path, metavar="RUN")
    report.add_argument("-o", "--out", type=Path, metavar="FILE", default=Path("report.html"))
    report.add_argument(
        "--replay",
        action="store_true",
        help="include the last episode of a training as an animated picture of up to 4 MB",
    )
    report.add_argument("--allow-module", **ALLOW_MODULE)


def _watch(arguments: argparse.Namespace) -> int:
    from gibo._linalg import single_thread
    from gibo.runs.control import control_of
    from gibo.runs.journal import has_journal
    from gibo.web.watch import Watch

    if arguments.control and has_journal(arguments.folder):
        control_of(arguments.folder)  # raises, and names the other process that holds the run
    acts = control_of if arguments.control else None
    with (
        noted_signals() as wait,
        single_thread(),
        Watch(arguments.folder, arguments.port, acts, allow_module=arguments.allow_module) as server,
    ):
        say(f"{arguments.folder}: {server.address_with_token}", flush=True)
        if arguments.open:
            import webbrowser

            webbrowser.open(server.address_with_token)
        wait()
    return 0


def _report(arguments: argparse.Namespace) -> int:
    from gibo.web.watch import report

    html = report(arguments.folder, arguments.replay, arguments.allow_module)
    arguments.out.write_text(html, encoding="utf-8")
    say(arguments.out)
    return 0
