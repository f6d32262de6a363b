"""The progress of a run: tqdm's bar on a terminal or in a notebook, a line every 10 seconds in a log file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
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


def best_and_failures(standing: Standing) -> list[str]:
    """The best value and the number of failures."""
    text = [] if standing.best is None else [f"best seen {standing.best:.4g}"]
    return text + ([f"{standing.failures} failed"] if standing.failures else [])


class Bar:
    """tqdm's bar on a terminal or in a notebook; elsewhere lines, at most one every 10 seconds and one at the end.

    What was done before the first call does not count for its speed. As a context, it is always closed at the end.

    Args:
        total: what there is to do.
        text: gives parts of a text for a run's progress, the most important one first.
        unit: of the total.
    """

    def __init__(
        self, total: int, text: Callable[[Standing], Sequence[str]] = best_and_failures, unit: str = "evaluations"
    ) -> None:
        self.total, self.text, self.unit = total, text, unit
        self.as_lines = not (getattr(sys.stderr, "isatty", bool)() or "ipykernel" in sys.modules)
        self._bar: Any = None

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            with _whoever_looks():
                self._bar.refresh()
            with _whoever_looks():
                self._bar.close()

    def update(self, standing: Standing) -> None:
        """Show a run's progress."""
        paused = ["paused"] if standing.paused else []
        self.show(standing.spent, [*paused, *self.text(standing)], refresh=standing.paused)

    def show(self, done: int, parts: Sequence[str] = (), refresh: bool = False) -> None:
        """So much is done; parts of a text, the most important one first."""
        from tqdm.auto import tqdm

        with _whoever_looks():
            if self._bar is None:
                own: dict[str, Any] = {"monitor_interval": 0}  # without a thread: workers may be forked later
                options: dict[str, Any] = {"bar_format": f"{_FORMAT} {{bar}}", "dynamic_ncols": True}
                if self.as_lines:
                    own["display"] = _write_line
                    options = {"bar_format": _FORMAT, "mininterval": LOG_INTERVAL, "miniters": 1, "smoothing": 0.0}
                    options |= {"leave": False, "delay": 1e-9}  # no line at the beginning, and none by tqdm at the end
                self._bar = type("Bar", (tqdm,), own)(total=self.total, initial=done, unit=self.unit, **options)
            text = "".join(f" · {printable(part)}" for part in parts)
            self._bar.set_description_str(text, refresh=False)
            self._bar.update(done - self._bar.n)
            if refresh:
                self._bar.refresh()

    def above(self, text: str) -> None:
        """Print a line above the bar."""
        from tqdm.auto import tqdm

        with _whoever_looks():
            if self.as_lines:
                sys.stderr.write(f"{text}\n")
            else:
                tqdm.write(text, file=sys.stderr)


def _write_line(bar: Any, msg: str | None = None, pos: int | None = None) -> None:
    """In place of `tqdm.display`: a line, if it says something new."""
    if msg is None and (bar.n, bar.desc) != getattr(bar, "written", (bar.initial, "")):
        bar.written = (bar.n, bar.desc)
        bar.fp.write(f"{bar}\n")


def _whoever_looks() -> suppress:
    """Ignore errors of the output, because standard error may be closed or on a full disk."""
    return suppress(OSError, ValueError, AttributeError)
