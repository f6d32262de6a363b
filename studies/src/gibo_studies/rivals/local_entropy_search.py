"""Local entropy search: queries that tell most about where an ascent from the best point leads (Stenger et al. 2026).

ask    at first x0; then: fit the hyperparameters  →  ascents on functions drawn from the posterior
       →  the points on their ways that tell most about these ways                          `_queries`
tell   …values…; the last one:  the iterate is the evaluated point with the highest mean    `_move`
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gibo._checks import batch_size, positive_int
from gibo._linalg import Array
from gibo.errors import InputError
from gibo.means import Mean
from gibo.optimizers.model import Model
from gibo.optimizers.settings import Settings
from gibo.outcome import QUERY
from gibo_studies.rivals.local_entropy import STEPS, Paths, ascents, plan
from gibo_studies.rivals.local_model import STANDARD, LocalModelSearch


class LocalEntropySearch(LocalModelSearch):
    """Local search by what queries tell about the way of an ascent from the best point. It maximises.

    Args:
        x0, scale, bounds, seed, settings: see `LocalModelSearch`; here by default with a window of 1000 values. The
            kernel must be the squared exponential, and the mean no function.
        batch: queries per iteration.
        ways: how many functions are drawn, and ascended. The paper has 250.
        points: on each way, 100 at most, of which the values are taken for known. The paper has 8.

    Reference: Stenger, Lindicke, von Rohr, Trimpe: Local entropy search over descent sequences for Bayesian
    optimization, ICLR 2026.
    """

    method = "local-entropy-search"
    title = "Local entropy search"

    def __init__(
        self,
        x0: npt.ArrayLike,
        *,
        batch: int = 1,
        ways: int = 64,
        points: int = 8,
        **search: Any,
    ) -> None:
        super().__init__(x0, **search)
        s = self.settings
        if s.kernel != "squared_exponential" or isinstance(s.mean, Mean):
            raise InputError(
                "settings: functions can be drawn for the squared exponential kernel alone, with a mean that is "
                "no function"
            )
        self.batch = batch_size("batch", batch)
        self.ways, self.points = positive_int("ways", ways), positive_int("points", points)
        if self.points > STEPS:
            raise InputError(f"points: expected at most {STEPS}, the steps of an ascent, got {self.points}")

    def default_settings(self) -> Settings:
        return replace(STANDARD, N_m=1000)  # the method itself has no window, but time grows with the cube of it

    def _propose(self) -> list[tuple[Array, str]]:
        if self._iteration == 0:
            return [(self._iterate, QUERY)]
        self._surrogate = self._fitted()
        unbounded = np.full(self.d, np.inf)
        Z = self._queries(self._model(), self._inside(-unbounded), self._inside(unbounded))
        return [(z * self.scale, QUERY) for z in Z]

    def _queries(self, model: Model, lower: Array, upper: Array) -> Array:
        paths = Paths.draw(model.gp, self.d, self.ways, self._rng)
        return plan(model.gp, ascents(paths, self._iterate / self.scale, lower, upper, self.points), self.batch)

    def _move(self, model: Model) -> Array:
        best = self.best
        return (self._iterate if best is None else best.x) / self.scale
