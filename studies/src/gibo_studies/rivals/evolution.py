"""Variants of CMA-ES in other packages: lq-CMA-ES, which has a surrogate model, and LRA-CMA-ES, made for noise."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from gibo._linalg import Array
from gibo.outcome import QUERY, Best
from gibo_studies.rivals.foreign import Box, Calling, Cost, Foreign


class LqCMAES(Calling):
    """lq-CMA-ES (Hansen 2019) of the package `cma`: a quadratic model decides how many of a population are evaluated.

    The loop is that of `cma.fmin_lq_surr2`. Sigma is the scale; recommended is the distribution's mean.
    """

    title = "lq-CMA-ES"

    @staticmethod
    def search(cost: Cost, shared: dict[str, Array], box: Box, seed: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cma = importlib.import_module("cma")
            surrogates = importlib.import_module("cma.fitness_models")
            rng = np.random.default_rng(seed)
            options = {"verbose": -9, "seed": np.nan, "randn": lambda *size: rng.standard_normal(size)}
            if box is not None:
                options["bounds"] = [box[0].tolist(), box[1].tolist()]
            strategy = cma.CMAEvolutionStrategy(shared["start"], 1.0, options)
            surrogate = surrogates.SurrogatePopulation(cost)
            while not strategy.stop():
                points = strategy.ask()
                strategy.tell(points, surrogate(points))
                strategy.countevals = surrogate.evaluations
                shared["favourite"] = np.array(strategy.result.xfavorite)
                strategy.inject([surrogate.model.xopt])


class LRACMAES(Foreign):
    """CMA-ES with learning rate adaptation (Nomura et al. 2023) of the package `cmaes`, by the same authors.

    Sigma is the scale; recommended is the distribution's mean.
    """

    title = "LRA-CMA-ES"

    def __init__(
        self, x0: npt.ArrayLike, *, scale: npt.ArrayLike = 1.0, bounds: npt.ArrayLike | None = None, seed: int = 0
    ) -> None:
        super().__init__(x0, scale=scale, bounds=bounds, seed=seed)
        box = None if self.bounds is None else np.transpose([bound / self.scale for bound in self.bounds])
        strategy = importlib.import_module("cmaes").CMA
        self._strategy: Any = strategy(self.x0 / self.scale, 1.0, bounds=box, seed=self.seed % 2**32, lr_adapt=True)
        self._population: list[tuple[Array, float]] = []
        self._asked: Array = self.x0

    @property
    def best(self) -> Best | None:
        """The mean, with the highest value seen, because it says none."""
        seen = self.best_seen
        return None if seen is None else Best(self.clip(self._strategy.mean * self.scale), seen.value)

    def _propose(self) -> list[tuple[Array, str]]:
        self._asked = self._strategy.ask()
        return [(self._asked * self.scale, QUERY)]

    def _told(self, x: Array, value: float) -> None:
        self._population.append((self._asked, -value))
        if len(self._population) == self._strategy.population_size:
            self._strategy.tell(self._population)
            self._population = []
