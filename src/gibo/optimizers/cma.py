"""CMA-ES through the `cma` package, with the interface of every optimiser.

The package minimises, keeps its own state and has its own random numbers. This module changes the sign and draws the
random numbers from the optimiser's generator; NumPy's global generator is not used. The package's state is never
stored: a replay runs a new strategy with the same seed and the same values. That takes one or two milliseconds per
iteration and gives the same strategy bit for bit.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from gibo._checks import as_flag, batch_size, positive
from gibo._linalg import Array
from gibo.errors import InputError, missing_extra
from gibo.optimizers.base import Optimizer
from gibo.outcome import QUERY, Best, Evaluation

# A smaller population has fewer than two parents, or nothing to discard.
LEAST_POPULATION = 4
LEAST_SIGMA = 1e-100
# Points of a population that are evaluated twice to measure the noise, as in the package for small populations.
TWICE = 2


class CMAES(Optimizer):
    """Covariance Matrix Adaptation Evolution Strategy; the iterate is the distribution's mean. It maximises.

    Each iteration draws a population from ``N(m, σ²C)`` as one batch of queries and moves m, σ and C towards the better
    ones. It runs in units of `scale`, and within bounds through the package's smooth transformation into the box. The
    package's stopping rules are not used: the caller decides when to end.

    A failed query counts as the worst value of its batch. If a whole batch fails, a new one is drawn. Points that it
    did not ask for are kept in `evaluations` without influence.

    Args:
        x0: (d,) the start: the first mean.
        scale: positive; the change of a parameter that has a clear effect, roughly: one number or one per parameter.
        bounds: None, or (lower, upper); no query and no iterate leaves them.
        seed: of all random choices.
        sigma0: the first standard deviation, in units of `scale`.
        cap: with bounds, the largest standard deviation as a share of a parameter's range; a third by default, as in
            the package; None for no cap.
        population: queries per iteration, at least 4; by default the package's ``4 + ⌊3·log d⌋`` (6 for d = 1).
        noise_handling: evaluate the first 2 points of each population twice. If their ranks change much, the package's
            rule for noise lets σ grow (Hansen et al. 2009).

    Raises:
        MissingExtraError: the package `cma` is not installed.

    Example:
        >>> from gibo import CMAES
        >>> opt = CMAES([0.0, 0.0], scale=0.3, seed=1)
        >>> for _ in range(40):
        ...     for query in opt.ask():
        ...         opt.tell(query, -float(((query.x - 1.0) ** 2).sum()))
        >>> bool(abs(opt.iterate - 1.0).max() < 0.05)
        True

    Reference: Hansen, Ostermeier: Completely derandomized self-adaptation in evolution strategies, Evolutionary
    Computation 2001; Hansen, Akimoto, Baudis: CMA-ES/pycma, doi:10.5281/zenodo.2559634.
    """

    method = "cma-es"
    title = "CMA-ES"

    def __init__(
        self,
        x0: npt.ArrayLike,
        *,
        scale: npt.ArrayLike = 1.0,
        bounds: npt.ArrayLike | None = None,
        seed: int = 0,
        sigma0: float = 1.0,
        cap: float | None = 1 / 3,
        population: int | None = None,
        noise_handling: bool = False,
    ) -> None:
        super().__init__(x0, scale=scale, bounds=bounds, seed=seed)
        self.sigma0 = positive("sigma0", sigma0)
        if not LEAST_SIGMA <= self.sigma0 <= 1.0 / LEAST_SIGMA:
            raise InputError(f"sigma0: expected about 1, in units of the scale, got {sigma0!r}")
        self.cap = None if cap is None else positive("cap", cap)
        if population is not None and batch_size("population", population) < LEAST_POPULATION:
            raise InputError(f"population: expected at least {LEAST_POPULATION}, got {population}")
        self._strategy = self._new_strategy(population)
        self.population = int(self._strategy.popsize)
        self.noise_handling = as_flag("noise_handling", noise_handling)
        self._noise = _cma().NoiseHandler(self.d, maxevals=[1, 1, 1], reevals=TWICE) if self.noise_handling else None
        self._asked: list[Array] = []
        self._value: float | None = None

    @property
    def best(self) -> Best | None:
        """The mean of the distribution, with the mean of the last batch's values as its value.

        These values are from points around the mean before the last update; the mean itself is never evaluated.
        """
        return None if self._value is None else Best(self.iterate, self._value)

    def _propose(self) -> list[tuple[Array, str]]:
        with _quiet():
            self._asked = self._strategy.ask()
        again = self._asked[:TWICE] if self.noise_handling else []
        return [(z[: self.d] * self.scale, QUERY) for z in [*self._asked, *again]]

    def _update(self, batch: list[Evaluation]) -> None:
        self._iteration += 1
        values = [e.value for e in batch if e.value is not None]
        if not values:
            return
        worst = min(values)
        costs = [-(worst if e.value is None else e.value) for e in batch]
        with _quiet():
            self._strategy.tell(self._asked, costs[: self.population])
            if self._noise is not None:
                self._noise.fit, self._noise.idx = costs[: self.population], np.arange(TWICE)
                self._noise.fitre = costs[self.population :] + costs[TWICE : self.population]
                self._noise.update_measure()
                self._strategy.sigma *= self._noise.treat()
            mean: Array = self._strategy.result.xfavorite
        self._iterate = self.clip(mean[: self.d] * self.scale)
        self._value = float(np.mean(values))

    def _new_strategy(self, population: int | None) -> Any:
        options: dict[str, Any] = {
            "randn": lambda *shape: self._rng.standard_normal(shape),
            "seed": np.nan,  # do not use NumPy's global generator
            "CMA_mirrors": 0,  # small populations would mirror a number of points drawn from the global generator
            "verbose": -10,  # print nothing, and read no file with signals
            "verb_log": 0,
        }
        if population is not None:
            options["popsize"] = population
        # The package does not support one dimension, so it gets a second one without effect.
        idle = [0.0] if self.d == 1 else []
        if self.bounds is not None:
            lower, upper = (bound / self.scale for bound in self.bounds)
            options["maxstd_boundrange"] = np.inf if self.cap is None else self.cap
            options["bounds"] = [[*lower, *(-np.inf for _ in idle)], [*upper, *(np.inf for _ in idle)]]
        cma = _cma()
        with _quiet():
            return cma.CMAEvolutionStrategy(np.append(self.x0 / self.scale, idle), self.sigma0, options)


def _cma() -> Any:
    """Import the package only here: it is optional, and the import takes a second."""
    try:
        with _quiet():
            return importlib.import_module("cma")
    except ImportError as error:
        raise missing_extra("CMA-ES needs the package cma", "cma") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the package's warnings (options, step sizes), which users of this class cannot act on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
