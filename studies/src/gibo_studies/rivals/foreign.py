"""Optimisers of other packages behind the face that every optimiser has; for comparison only.

Each package is imported when its optimiser is made. A replay asks and tells afresh, as for CMA-ES. Optimisers without
a model of their own for noise recommend the best value that they saw, as their packages do.

Some packages have no `ask`: they call the objective. Such a search runs in a thread that waits for each value. Its
class derives from `Calling`.
"""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from gibo._linalg import Array
from gibo.errors import RunError
from gibo.optimizers.base import Optimizer
from gibo.outcome import QUERY, Best, Evaluation

Cost: TypeAlias = Callable[[Array], float]  # of a point in units of the scale; lower is better
Box: TypeAlias = tuple[Array, Array] | None  # in units of the scale


class Foreign(Optimizer):
    """Base of optimisers that ask for one point after the other and recommend the best one they saw."""

    changes_in_place = True

    @property
    def best(self) -> Best | None:
        """The highest value told, as it was told."""
        return self.best_seen

    def _update(self, batch: list[Evaluation]) -> None:
        self._iteration += 1
        value = batch[0].value
        self._told(batch[0].x, self._worst() if value is None else value)
        seen = self.best_seen
        self._iterate = self.x0.copy() if seen is None else self.clip(seen.x)

    def _worst(self) -> float:
        """For a failure."""
        return min((e.value for e in self.log.valued if e.value is not None), default=0.0)

    def _told(self, x: Array, value: float) -> None:
        raise NotImplementedError


class Calling(Foreign):
    """Base of searches that call the objective, in a thread; once one ends it starts again from the best point."""

    def __init__(
        self, x0: npt.ArrayLike, *, scale: npt.ArrayLike = 1.0, bounds: npt.ArrayLike | None = None, seed: int = 0
    ) -> None:
        super().__init__(x0, scale=scale, bounds=bounds, seed=seed)
        self._points: queue.SimpleQueue[Array | Exception] = queue.SimpleQueue()
        self._costs: queue.SimpleQueue[float | None] = queue.SimpleQueue()
        self._shared: dict[str, Array] = {"start": self.x0 / self.scale}
        box = None if self.bounds is None else (self.bounds[0] / self.scale, self.bounds[1] / self.scale)
        arguments = (self.search, self._points, self._costs, self._shared, box, self.seed % 2**32)
        threading.Thread(target=_search, args=arguments, daemon=True).start()
        weakref.finalize(self, self._costs.put, None)  # the thread holds no reference to this object, and ends with it

    @staticmethod
    def search(cost: Cost, shared: dict[str, Array], box: Box, seed: int) -> None:
        """Minimise the cost from ``shared["start"]``; what it puts into ``shared["favourite"]`` is recommended."""
        raise NotImplementedError

    @property
    def best(self) -> Best | None:
        """The search's favourite, if it has one, with the highest value seen, because it says none."""
        seen, favourite = self.best_seen, self._shared.get("favourite")
        return seen if seen is None or favourite is None else Best(self.clip(favourite * self.scale), seen.value)

    def _propose(self) -> list[tuple[Array, str]]:
        point = self._points.get()
        if isinstance(point, Exception):
            raise RunError(f"{type(self).__name__} ended: {point!r:.200}")
        return [(point * self.scale, QUERY)]

    def _told(self, x: Array, value: float) -> None:
        seen = self.best_seen
        if seen is not None:
            self._shared["start"] = self.clip(seen.x) / self.scale
        self._costs.put(-value)


class _EndedError(BaseException):
    """Nobody answers any more, or another search has begun; not an error that a package may pass over."""


def _search(
    search: Callable[..., None], points: Any, costs: Any, shared: dict[str, Array], box: Box, seed: int
) -> None:
    def cost(z: Array) -> float:
        points.put(np.array(z, dtype=np.float64).ravel())
        answer = costs.get()
        if answer is None:
            raise _EndedError
        return float(answer)

    try:
        for number in range(2**31):
            search(cost, shared, box, (seed + number) % 2**31)
    except _EndedError:
        return
    except Exception as error:  # who waits for the next point must hear of it
        points.put(error)
