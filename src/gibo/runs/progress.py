"""How far something is: a line on standard error that a terminal shows in one place, or a bar in a notebook.

The count, the value and the time that is left are always there; the rest is as far as the width goes. Where nobody
looks at a terminal, such as in a log file, there is a line every 10 seconds or 10 %.
"""

from __future__ import annotations

import html
import importlib
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

from gibo.errors import printable
from gibo.optimizers.base import Optimizer
from gibo.outcome import Evaluation

SECONDS, SHARE = 10.0, 0.1  # between two lines that stay
BLINK = 0.1  # seconds between two looks of one that does not
BAR = 20  # characters


class Progress(Protocol):
    """Something that shows how far a run is."""

    def update(self, standing: Standing) -> None: ...


@dataclass(frozen=True)
class Standing:
    """How far a run is.

    Attributes:
        spent: evaluations so far.
        best: the best value seen, in the objective's own sign; None before the first.
        failures: how many of them failed.
        arrived: what has just arrived, in the objective's own sign.
        optimizer: as it is now.
        paused: whether it waits for a person to continue it.
    """

    spent: int
    best: float | None
    failures: int
    arrived: Sequence[Evaluation]
    optimizer: Optimizer
    paused: bool = False


@contextmanager
def progress_bar(budget: int, text: Callable[[Standing], Sequence[str]] | None = None) -> Iterator[Progress]:
    """A bar over the evaluations, with parts of a text, the most important one first: by default the best value."""

    class Bar:
        def update(self, standing: Standing) -> None:
            paused = ["paused"] if standing.paused else []
            bar.show(standing.spent, [*paused, *(text or _best_and_failures)(standing)])

    with bar_over(budget, "evaluations") as bar:
        yield Bar()


def _best_and_failures(standing: Standing) -> list[str]:
    text = [] if standing.best is None else [f"best seen {standing.best:.4g}"]
    return text + ([f"{standing.failures} failed"] if standing.failures else [])


@contextmanager
def bar_over(total: int, unit: str) -> Iterator[Line]:
    """A bar that is closed in the end, whatever happens."""
    bar = NotebookBar(total, unit) if _display() is not None else Line(total, unit)
    try:
        yield bar
    finally:
        bar.close()


class Line:
    """One line on standard error.

    Args:
        total: how much there is to do.
        unit: of it, such as "evaluations".
    """

    def __init__(self, total: int, unit: str) -> None:
        self.total, self.unit = total, unit
        self.stays = not sys.stderr.isatty()
        self._began: tuple[float, int] | None = None  # when, and what was done before: that says nothing of the speed
        self._written = (-float("inf"), -float("inf"))  # when, and what was done then
        self._last: tuple[int, list[str]] | None = None  # what is not written yet
        self._open = False  # a line that has no end yet

    def show(self, done: int, parts: Sequence[str] = ()) -> None:
        """So much is done; parts of a text, the most important one first."""
        now = time.monotonic()
        if self._began is None:
            self._began = (now, done)
            self._written = self._began if self.stays else self._written
        self._last = (done, [printable(part) for part in parts])
        since, more = now - self._written[0], done - self._written[1]
        due = since >= SECONDS or more >= max(1.0, SHARE * self.total) if self.stays else since >= BLINK
        if due or done >= self.total:
            self._flush()

    def above(self, text: str) -> None:
        """A line of its own, above this one."""
        if self._open:
            self._write("\r\x1b[2K")
            self._open = False
        self._write(f"{text}\n")

    def close(self) -> None:
        """Nothing more will be shown."""
        self._flush()
        if self._open:
            self._write("\n")

    def _flush(self) -> None:
        if self._last is None or self._began is None:
            return
        (done, parts), self._last = self._last, None
        self._written = (time.monotonic(), done)
        self._put(done, parts, _left(self._began, done, self.total))

    def _put(self, done: int, parts: list[str], left: str) -> None:
        if self.stays:
            self._write(_line(done, self.total, self.unit, parts, left, 1 << 20, bar=False) + "\n")
            return
        width = shutil.get_terminal_size().columns - 1  # the last column would begin another line
        self._write(f"\r\x1b[2K{_line(done, self.total, self.unit, parts, left, width)}")
        self._open = True

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError, AttributeError):  # a run does not depend on who looks
            sys.stderr.write(text)
            sys.stderr.flush()


class NotebookBar(Line):
    """The same as HTML in the cell that runs; nothing but IPython itself is needed."""

    def __init__(self, total: int, unit: str) -> None:
        super().__init__(total, unit)
        self.stays, self._handle = False, None

    def above(self, text: str) -> None:
        self._write(f"{text}\n")

    def _put(self, done: int, parts: list[str], left: str) -> None:
        text = html.escape(_line(done, self.total, self.unit, parts, left, 1 << 20, bar=False))
        bar = f'<progress value="{done}" max="{self.total}" style="width:12em"></progress>'
        content = {"text/html": f'<span style="font:13px sans-serif">{bar} {text}</span>', "text/plain": text}
        if self._handle is None:
            self._handle = _display()(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)


def _display() -> Any:
    """IPython's way to show something in a notebook, if this is one."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or getattr(shell, "kernel", None) is None:
        return None
    return importlib.import_module("IPython.display").display


def _line(done: int, total: int, unit: str, parts: list[str], left: str, width: int, bar: bool = True) -> str:
    """The count, the first part and the time left; then, as far as they fit, the other parts and a bar."""
    full = min(BAR, round(BAR * done / max(1, total)))
    shown = "━" * full + "─" * (BAR - full) + " " if bar else ""
    for beside, kept in ((shown, len(parts)), *(("", n) for n in range(len(parts), 0, -1))):
        line = " · ".join([f"{beside}{done}/{total} {unit}", *parts[:kept], *([left] if left else [])])
        if len(line) <= width:
            return line
    return " · ".join([f"{done}/{total}", *parts[:1], *([left] if left else [])])[:width]


def _left(began: tuple[float, int], done: int, total: int) -> str:
    at, before = began
    if done <= before or done >= total:
        return ""
    seconds = round((time.monotonic() - at) / (done - before) * (total - done))
    hours, rest = divmod(seconds, 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d} left" if hours else f"{rest // 60}:{rest % 60:02d} left"
