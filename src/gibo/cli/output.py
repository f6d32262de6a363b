"""What the commands print: a terminal shows it and does not obey it, whoever wrote the run that it comes from."""

from __future__ import annotations

import sys

from gibo._checks import printable


def say(text: object, flush: bool = False) -> None:
    """A line, or several, on standard output."""
    print(printable(str(text), lines=True), flush=flush)


def complain(text: object) -> None:
    """One line on standard error."""
    print(f"gibo: {printable(str(text))}", file=sys.stderr)
