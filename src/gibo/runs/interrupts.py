"""Ctrl-C during a run: the first one ends the run with its result, a second one goes to the program's own handler.

The journal makes a stop at any moment harmless, so nothing has to be protected from the second one, which by default
raises KeyboardInterrupt.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any


class Interrupts:
    """Remembers the first Ctrl-C while it is entered, in the main thread; it has no effect in other threads.

    The same goes for SIGTERM if the program handles it. Of runs within runs, the first Ctrl-C ends all.

    Args:
        notice: written to standard error at the first one.

    Attributes:
        received: the number of the signal that came first; None if none did.
    """

    def __init__(self, notice: str = "") -> None:
        self.notice = notice
        self.received: int | None = None
        self._before: dict[int, Callable[[int, FrameType | None], Any]] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                handler = signal.getsignal(number)
                if callable(handler):
                    self._before[number] = handler
                    signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        before, first = self._before[number], self.received is None
        self.received = number
        if not first or isinstance(getattr(before, "__self__", None), Interrupts):
            before(number, frame)
        elif self.notice:
            with suppress(Exception):  # standard error may be closed, or in the middle of a line
                sys.stderr.write(self.notice)


@contextmanager
def defer_interrupts() -> Iterator[None]:
    """Ctrl-C, and SIGTERM where the program handles it, wait until the block is done; a second one does not."""
    with Interrupts() as interrupts:
        yield
    if interrupts.received is not None:
        signal.raise_signal(interrupts.received)
