"""A computation that happens as a whole or not at all."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, ClassVar, Protocol

import numpy as np

from gibo._linalg import single_thread
from gibo.optimizers.log import Log


class Changing(Protocol):
    """What `AllOrNothing` needs of an optimiser."""

    changes_in_place: ClassVar[bool]
    _rng: np.random.Generator
    _log: Log
    _broken: bool


class AllOrNothing:
    """A computation that is interrupted, by Ctrl-C say, leaves the optimiser as it was and can be repeated.

    For this, optimisers replace their attributes and never change what is in them; those that cannot say so
    (`Optimizer.changes_in_place`).

    No generator stands behind this context: one that is interrupted just after it was entered is closed whenever the
    traceback is let go of, and would take back then what was done since.
    """

    def __init__(self, optimizer: Changing) -> None:
        self._optimizer = optimizer
        self._attributes: dict[str, Any] = dict(optimizer.__dict__)
        self._generator = optimizer._rng.bit_generator.state
        self._mark = optimizer._log.mark()
        self._threads: AbstractContextManager[None] = single_thread()

    def __enter__(self) -> None:
        self._threads.__enter__()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None:
            optimizer = self._optimizer
            for name in optimizer.__dict__.keys() - self._attributes.keys():
                delattr(optimizer, name)
            optimizer.__dict__.update(self._attributes)
            optimizer._rng.bit_generator.state = self._generator
            optimizer._log.rewind(self._mark)
            optimizer._broken = optimizer.changes_in_place
        self._threads.__exit__(None, None, None)
