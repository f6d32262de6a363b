"""A progress bar on standard error, for runs that take longer than a moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from gibo._checks import printable
from gibo.errors import missing_extra
from gibo.optimizers.base import Optimizer
from gibo.outcome import Evaluation


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
def progress_bar(budget: int, text: Callable[[Standing], str] | None = None) -> Iterator[Progress]:
    """A bar over the evaluations with a text and the time left; by default the best value so far and the failures."""
    try:
        from rich import progress
        from rich.console import Console
    except ImportError:
        raise missing_extra("progress=True needs rich", "progress") from None
    columns = (
        progress.TextColumn("evaluations"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[text]}", markup=False),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left"),
        progress.TimeRemainingColumn(),
    )
    bar = progress.Progress(*columns, console=Console(stderr=True))

    class Bar:
        def __init__(self) -> None:
            self.task: progress.TaskID | None = None

        def update(self, standing: Standing) -> None:
            said = printable(("paused · " if standing.paused else "") + (text or _best_and_failures)(standing))
            if self.task is None:  # not before the run has begun; earlier evaluations say nothing of the speed
                bar.start()
                self.task = bar.add_task("run", total=budget, completed=standing.spent, text=said)
            bar.update(self.task, completed=standing.spent, text=said)

    try:
        yield Bar()
    finally:
        if bar.live.is_started:  # or it would leave an empty line
            bar.stop()


def _best_and_failures(standing: Standing) -> str:
    text = "" if standing.best is None else f"best seen {standing.best:.4g}"
    return text + (f", {standing.failures} failed" if standing.failures else "")
