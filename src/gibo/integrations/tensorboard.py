"""Curves of a run in TensorBoard, written by tensorboardX: ``gibo.maximize(..., callback=TensorBoard("logs/run"))``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Self

from gibo._checks import as_path
from gibo.errors import InputError, missing_extra
from gibo.integrations.events import Event, events

if TYPE_CHECKING:
    from gibo.runs.result import Result


class TensorBoard:
    """Writes the curves of a run for ``tensorboard --logdir logs``; needs the extra ``tensorboard``.

    As a callback it writes, after each iteration, the numbers of `gibo.integrations.events.Event` over the number of
    evaluations, such as ``gibo/value`` and ``gibo/probability_of_ascent``. Write curves of your own with `writer`, a
    ``tensorboardX.SummaryWriter``.

    Args:
        folder: folder of the event file; created if missing. Each object writes a separate file.

    Example:
        >>> import gibo, tempfile
        >>> with tempfile.TemporaryDirectory() as folder, TensorBoard(folder) as board:
        ...     result = gibo.maximize(lambda x: -float(x @ x), [1.0, 1.0], budget=10, callback=board)
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        folder = as_path("folder", folder)
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            raise missing_extra("TensorBoard needs tensorboardX", "tensorboard") from None
        try:
            self.writer: Any = SummaryWriter(str(folder))
        except OSError as error:
            raise InputError(f"{folder}: cannot be written: {error.strerror}") from None
        self._events = events(self._write)

    def __call__(self, result: Result) -> None:
        """Write the events since the last call."""
        self._events(result)
        self.writer.flush()

    def _write(self, event: Event) -> None:
        for name, number in event.numbers.items():
            self.writer.add_scalar(f"gibo/{name}", number, event.step)

    def close(self) -> None:
        """Write the remaining events and close the file."""
        self.writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
