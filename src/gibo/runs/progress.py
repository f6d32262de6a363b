"""The progress of a run: tqdm's bar on a terminal or in a notebook, a line every 10 seconds in a log file."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

from gibo.errors import printable
from gibo.optimizers.base import Optimizer
from gibo.outcome import Evaluation

LOG_INTERVAL = 10.0  # seconds between two lines in a log file
_FORMAT = "{n_fmt}/{total_fmt} {unit} · {remaining} left{desc}"


class Progress(Protocol):
    """The interface of objects that show progress."""

    def update(self, standing: Standing) -> None: ...


@dataclass(frozen=True)
class Standing:
    """The progress of a run.

    Attributes:
        spent: evaluations so far.
        best: the best value seen, in the objective's sign; None before the first.
        failures: number of failures among them.
        arrived: the evaluations that have just arrived, in the objective's sign.
        optimizer: the optimiser.
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
    """A bar over the evaluations with parts of a text, the most important one first; by default the best value."""

    class Bar:
        def update(self, standing: Standing) -> None:
            paused = ["paused"] if standing.paused else []
            bar.show(standing.spent, [*paused, *(text or _best_and_failures)(standing)], refresh=standing.paused)

    with bar_over(budget, "evaluations") as bar:
        yield Bar()


def _best_and_failures(standing: Standing) -> list[str]:
    text = [] if standing.best is None else [f"best seen {standing.best:.4g}"]
    return text + ([f"{standing.failures} failed"] if standing.failures else [])


@contextmanager
def bar_over(total: int, unit: str) -> Iterator[TqdmBar | LogLines]:
    """A bar that is always closed at the end."""
    shown = getattr(sys.stderr, "isatty", bool)() or "ipykernel" in sys.modules
    bar = TqdmBar(total, unit) if shown else LogLines(total, unit)
    try:
        yield bar
    finally:
        bar.close()


class TqdmBar:
    """A bar of tqdm; evaluations before the first call do not count for its speed."""

    def __init__(self, total: int, unit: str) -> None:
        self.total, self.unit = total, unit
        self._bar: Any = None

    def show(self, done: int, parts: Sequence[str] = (), refresh: bool = False) -> None:
        """So much is done; parts of a text, the most important one first."""
        from tqdm.auto import tqdm

        with _whoever_looks():
            if self._bar is None:
                bar = type("Bar", (tqdm,), {"monitor_interval": 0})  # without a thread: workers may be forked later
                form = f"{_FORMAT} {{bar}}"
                self._bar = bar(total=self.total, initial=done, unit=self.unit, bar_format=form, dynamic_ncols=True)
            self._bar.set_description_str(_text(parts), refresh=False)
            self._bar.update(done - self._bar.n)
            if refresh:
                self._bar.refresh()

    def above(self, text: str) -> None:
        """Print a line above the bar."""
        from tqdm.auto import tqdm

        with _whoever_looks():
            tqdm.write(text, file=sys.stderr)

    def close(self) -> None:
        """Show the end."""
        with _whoever_looks():
            if self._bar is not None:
                self._bar.close()


class LogLines:
    """Progress as lines, at most one every 10 seconds and one at the end; tqdm would write one long line."""

    def __init__(self, total: int, unit: str) -> None:
        self.total, self.unit = total, unit
        self._began: tuple[float, int] | None = None
        self._written = 0.0
        self._last: tuple[int, str] | None = None  # not written yet

    def show(self, done: int, parts: Sequence[str] = (), refresh: bool = False) -> None:
        """So much is done; parts of a text, the most important one first."""
        now = time.monotonic()
        if self._began is None:
            self._began, self._written = (now, done), now
        self._last = (done, _text(parts))
        if refresh or now - self._written >= LOG_INTERVAL:
            self.close()

    def above(self, text: str) -> None:
        """Print a line."""
        with _whoever_looks():
            sys.stderr.write(f"{text}\n")

    def close(self) -> None:
        """Write the last line if it is not written yet."""
        if self._last is None or self._began is None:
            return
        from tqdm import tqdm

        (done, text), self._last, self._written = self._last, None, time.monotonic()
        began, before = self._began
        line = {"unit": self.unit, "prefix": text, "bar_format": _FORMAT}
        self.above(tqdm.format_meter(done, self.total, self._written - began, initial=before, **line))


def _text(parts: Sequence[str]) -> str:
    return "".join(f" · {printable(part)}" for part in parts)


def _whoever_looks() -> suppress:
    """Ignore errors of the output, because standard error may be closed or on a full disk."""
    return suppress(OSError, ValueError, AttributeError)
