"""A progress bar on standard error, for runs that take longer than a moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from gibo.errors import MissingExtraError


class Progress(Protocol):
    """Something that shows how far a run is."""

    def update(self, spent: int, best: float | None, failures: int) -> None: ...


@contextmanager
def progress_bar(budget: int) -> Iterator[Progress]:
    """A bar over the evaluations with the best value so far, the failures and the time left."""
    try:
        from rich import progress
        from rich.console import Console
    except ImportError:
        message = "progress=True needs rich, which is not installed: pip install 'gibo[progress]'"
        raise MissingExtraError(message) from None
    columns = (
        progress.TextColumn("evaluations"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[best]}"),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left"),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("run", total=budget, best="")

        class Bar:
            def update(self, spent: int, best: float | None, failures: int) -> None:
                text = "" if best is None else f"best seen {best:.4g}"
                bar.update(task, completed=spent, best=text + (f", {failures} failed" if failures else ""))

        yield Bar()
