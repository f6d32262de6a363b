"""What the commands print: a terminal shows it and does not obey it, whoever wrote the run that it comes from."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from gibo._checks import printable


def say(text: object, flush: bool = False) -> None:
    """A line, or several, on standard output."""
    print(printable(str(text), lines=True), flush=flush)


def complain(text: object) -> None:
    """One line on standard error."""
    print(f"gibo: {printable(str(text))}", file=sys.stderr)


def columns(rows: Sequence[Sequence[object]]) -> None:
    """A table on standard output, columns flush right."""
    texts = [[f"{item:.10g}" if isinstance(item, float) else printable(str(item)) for item in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for row in texts:
        say("  ".join(item.rjust(width) for item, width in zip(row, widths, strict=True)))
