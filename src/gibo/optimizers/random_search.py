"""Random search: the baseline that every other method must beat."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gibo._checks import batch_size
from gibo._linalg import Array
from gibo.optimizers.base import Optimizer
from gibo.outcome import QUERY, Best, Evaluation


class RandomSearch(Optimizer):
    """Independent random points; the best one seen is the guess. It maximises.

    A parameter with two finite bounds is drawn uniformly between them. Any other parameter is drawn from a normal
    distribution around x0 with standard deviation `scale` and clipped to its bound, if any. Failures are skipped.
    Points that it did not ask for count if they lie within the bounds.

    Args:
        x0: (d,) the guess before the first value, and the centre for parameters without bounds.
        scale: positive; the standard deviation for parameters without bounds: one number or one per parameter.
        bounds: None, or (lower, upper); no query leaves them.
        seed: of all random choices.
        batch: queries per iteration.

    Example:
        >>> from gibo import RandomSearch
        >>> opt = RandomSearch([0.5, 0.5], bounds=(0.0, 1.0), batch=100)
        >>> for query in opt.ask():
        ...     opt.tell(query, -float(((query.x - 0.2) ** 2).sum()))
        >>> bool(abs(opt.best.x - 0.2).max() < 0.2)
        True
    """

    most_parameters = None
    method = "random-search"
    title = "Random search"
    uses_late_values = True

    def __init__(
        self,
        x0: npt.ArrayLike,
        *,
        scale: npt.ArrayLike = 1.0,
        bounds: npt.ArrayLike | None = None,
        seed: int = 0,
        batch: int = 1,
    ) -> None:
        super().__init__(x0, scale=scale, bounds=bounds, seed=seed)
        self.batch = batch_size("batch", batch)

    @property
    def iterate(self) -> Array:
        """The best point seen within the bounds; x0 before the first value."""
        best = self.best
        return self.x0.copy() if best is None else best.x

    @property
    def best(self) -> Best | None:
        """The highest value of a point within the bounds, with its noise."""
        best: Best | None = None
        for e in self.evaluations:
            if e.value is not None and (best is None or e.value > best.value) and (self.clip(e.x) == e.x).all():
                best = Best(e.x, e.value)
        return None if best is None else Best(best.x.copy(), best.value)

    def _propose(self) -> list[tuple[Array, str]]:
        X = self.x0 + self.scale * self._rng.standard_normal((self.batch, self.d))
        uniform = self._rng.random((self.batch, self.d))
        if self.bounds is not None:
            lower, upper = self.bounds
            j = np.flatnonzero(np.isfinite(lower) & np.isfinite(upper))
            X[:, j] = lower[j] + (upper[j] - lower[j]) * uniform[:, j]
        return [(x, QUERY) for x in X]

    def _update(self, batch: list[Evaluation]) -> None:
        self._iteration += 1
