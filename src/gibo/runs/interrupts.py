"""Ctrl-C at a better moment.

While a run is going on, Ctrl-C (and SIGTERM, where that is wanted) interrupts only what can be interrupted: an
evaluation in this process, waiting for others, planning, a callback. Anywhere else it is remembered until such a moment
comes. So what belongs together is never torn apart, what an evaluation returned is recorded, and the result so far is
returned whenever it comes.

    one                       the run ends with its result
    two within a second       the same, and then KeyboardInterrupt is raised instead of returning the result
    three, each within one    at once, wherever it is: for a run that hangs in somebody else's code
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import wraps
from types import FrameType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

# The next Ctrl-C within this many seconds means it.
URGENT = 1.0
# So many in a row, each within that time, do not wait for a better moment.
AT_ONCE = 3

# Those that are entered, the innermost last: an objective may run something itself.
_entered: list[Interrupts] = []


class Interrupts:
    """Counts Ctrl-C while it is entered, in the main thread; a no-op elsewhere.

    Attributes:
        count: how often Ctrl-C was pressed so far.
        allowed: a block that Ctrl-C may interrupt; one that came before the block interrupts it at once.
    """

    def __init__(self) -> None:
        self.count, self.allowed = 0, _Allowed(self)
        self._row = 0  # of those that came within a second of each other
        self._last = -1e9
        self._open = False  # whether the moment is good
        self._taken = 0  # how many of them have interrupted something
        self.is_used = False  # whether the one run that it is for has begun; see `for_run`
        self._urgent = self._has_begun = self._raised_at_once = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                handler = signal.getsignal(number)
                if callable(handler):  # SIGTERM only where somebody wants it to be like Ctrl-C
                    self._before[number] = handler
                    signal.signal(number, self._come)
            _entered.append(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self in _entered:
            _entered.remove(self)
        # Ctrl-C last: from then on it is the caller's, to whom it comes as if this had returned.
        for number, handler in reversed(self._before.items()):
            signal.signal(number, handler)
        if self.count and _entered:  # the run around this one ends, too
            _entered[-1]._forwarded()
        if self._urgent and kind is None:
            raise KeyboardInterrupt

    def check(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was ever pressed; also if what it interrupted had just returned."""
        if self.count:
            self._taken = self.count
            raise KeyboardInterrupt

    def _come(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        self._row = self._row + 1 if now - self._last < URGENT else 1
        self._last = now
        self.count += 1
        self._urgent = self._urgent or self._row > 1
        if self._open:
            self._interrupt()
        if self._row >= AT_ONCE and self._has_begun and not self._raised_at_once and not _is_leaving(frame):
            self._raised_at_once = True  # once: what it raises in cleans up in peace
            self._interrupt()

    def _forwarded(self) -> None:
        self.count += 1
        if self._open:
            self._interrupt()

    def _interrupt(self) -> None:
        # Whatever catches it, or comes before that, is not interrupted again: the block may not get to close the door.
        self._open, self._taken = False, self.count
        raise KeyboardInterrupt


def _is_leaving(frame: FrameType | None) -> bool:
    """Whether a run is being closed and the handlers are put back: if not, workers would wait for ever."""
    while frame is not None and frame.f_code not in (Interrupts.__exit__.__code__, ExitStack.__exit__.__code__):
        frame = frame.f_back
    return frame is not None


class _Allowed:
    """Not a generator: one that Ctrl-C hits between its lines is finished some time later, by the garbage collector."""

    def __init__(self, interrupts: Interrupts) -> None:
        self._interrupts = interrupts

    def __enter__(self) -> None:
        interrupts = self._interrupts
        interrupts._open = interrupts._has_begun = True
        if interrupts.count > interrupts._taken:
            interrupts._interrupt()

    def __exit__(self, *_: object) -> None:
        self._interrupts._open = False


def preparing(function: Callable[P, R]) -> Callable[P, R]:
    """For a function that prepares a run and then runs it: also while it prepares, Ctrl-C waits."""

    @wraps(function)
    def prepared(*args: P.args, **kwargs: P.kwargs) -> R:
        with Interrupts():
            return function(*args, **kwargs)

    return prepared


def for_run() -> AbstractContextManager[Interrupts]:
    """What a run is entered with: what the function that prepared it has entered already, or a new one."""
    here = bool(_entered) and not _entered[-1].is_used and threading.current_thread() is threading.main_thread()
    interrupts = _entered[-1] if here else Interrupts()
    interrupts.is_used = True
    return nullcontext(interrupts) if here else interrupts


@contextmanager
def defer_interrupts() -> Iterator[None]:
    """Ctrl-C, and SIGTERM where it is caught, wait until the block is done; for those that are in no run."""
    if _entered or threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before: dict[int, Callable[..., Any]] = {n: handler for n, handler in handlers.items() if callable(handler)}
    came: list[tuple[int, Any]] = []
    for number in before:
        signal.signal(number, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            number, frame = came[0]
            before[number](number, frame)
