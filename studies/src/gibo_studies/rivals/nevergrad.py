"""nevergrad's wizard."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from gibo._linalg import Array
from gibo.outcome import QUERY, Best
from gibo_studies.rivals.foreign import Foreign


class Nevergrad(Foreign):
    """nevergrad's default wizard, NGOpt, told that values are noisy; it recommends by its own rule."""

    title = "nevergrad"

    def __init__(
        self,
        x0: npt.ArrayLike,
        *,
        scale: npt.ArrayLike = 1.0,
        bounds: npt.ArrayLike | None = None,
        seed: int = 0,
        budget: int = 1000,
    ) -> None:
        super().__init__(x0, scale=scale, bounds=bounds, seed=seed)
        self.budget = budget
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ng = importlib.import_module("nevergrad")
            parameter = ng.p.Array(init=self.x0 / self.scale).set_mutation(sigma=1.0)
            if self.bounds is not None:
                parameter = parameter.set_bounds(*(bound / self.scale for bound in self.bounds))
            parameter.function.deterministic = False
            parameter.random_state.seed(self.seed % 2**32)
            self._wizard = ng.optimizers.NGOpt(parametrization=parameter, budget=budget)
        self._candidate: Any = None

    @property
    def best(self) -> Best | None:
        """Its recommendation, with the highest value seen, because it says none."""
        seen = self.best_seen
        if seen is None:
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x = np.asarray(self._wizard.provide_recommendation().value) * self.scale
        return Best(self.clip(x), seen.value)

    def _propose(self) -> list[tuple[Array, str]]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._candidate = self._wizard.ask()
        return [(np.asarray(self._candidate.value) * self.scale, QUERY)]

    def _told(self, x: Array, value: float) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._wizard.tell(self._candidate, -value)
