"""The paper's synthetic studies: which methods, with which settings, on which functions (Müller et al. 2021, 4.1, A.5).

A cell is one method on one function. Its result is the regret curve: after each evaluation, the lowest normalised
regret, without noise, of the points that the method had returned as its guess after an update, the start included.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np

from gibo.errors import InputError
from gibo.optimizers.ars import ARS
from gibo.optimizers.base import Optimizer
from gibo.optimizers.cma import CMAES
from gibo.optimizers.gibo import GIBO
from gibo.optimizers.random_search import RandomSearch
from gibo.optimizers.settings import Settings, lengthscale_distribution, mean_distance, out_of_model, within_model
from gibo.optimizers.vanilla_bo import VanillaBO
from gibo.priors import Uniform
from gibo.studies.engine import Record
from gibo.studies.problems import NOISE_SD, GPFunction, gp_function

DIMENSIONS = (4, 8, 12, 16, 20, 24, 28, 32, 36)
BOUNDS = (0.0, 1.0)
# Functions of one seed of a study do not meet those of the next.
FUNCTIONS_PER_SEED = 1000

Maker = Callable[[GPFunction], Optimizer]


def _gibo(settings: Callable[[GPFunction], Settings]) -> Maker:
    return lambda f: GIBO(f.start, bounds=BOUNDS, seed=f.seed, settings=settings(f))


def _known(f: GPFunction) -> Settings:
    return within_model(f.lengthscale)


def _fitted(f: GPFunction) -> Settings:
    return out_of_model(f.d)


def _ars(f: GPFunction, noise: float) -> ARS:
    return ARS(f.start, bounds=BOUNDS, seed=f.seed, step_size=0.02, noise=noise, directions=1 + f.d // 8)


def _default_gibo(f: GPFunction) -> GIBO:
    return GIBO(f.start, scale=0.1, bounds=BOUNDS, seed=f.seed)


def _random(f: GPFunction) -> RandomSearch:
    return RandomSearch(f.start, bounds=BOUNDS, seed=f.seed)


# The paper's table 1. The true hyperparameters are known, and the other methods get the lengthscales' mean.
WITHIN_MODEL: dict[str, Maker] = {
    "GIBO": _gibo(_known),
    "ARS": lambda f: _ars(f, noise=0.1 * 2.0 * mean_distance(f.d)),
    "CMA-ES": lambda f: CMAES(f.start, bounds=BOUNDS, seed=f.seed, sigma0=0.3 * mean_distance(f.d)),
    "Vanilla BO": lambda f: VanillaBO(
        f.start, bounds=BOUNDS, seed=f.seed, lengthscale=f.lengthscale, variance=1.0, noise=NOISE_SD**2, mean=0.0
    ),
    "Random search": _random,
}

# Hyperparameters are fitted under the paper's hyperpriors, and the other methods are not scaled.
OUT_OF_MODEL: dict[str, Maker] = {
    "GIBO": _gibo(_fitted),
    "ARS": lambda f: _ars(f, noise=0.01),
    "CMA-ES": lambda f: CMAES(f.start, bounds=BOUNDS, seed=f.seed, sigma0=0.5),
    "Vanilla BO": lambda f: VanillaBO(
        f.start,
        bounds=BOUNDS,
        seed=f.seed,
        lengthscale=lengthscale_distribution(f.d),
        variance=Uniform(0.1, 5.0),
        noise=NOISE_SD**2,
        mean=0.0,
        # With fewer values the fit settles on the lowest variance, and expected improvement on one corner of the cube.
        fit_from=5 * f.d,
    ),
    "GIBO, our defaults": _default_gibo,
    "Random search": _random,
}

NORMALISATION: dict[str, Maker] = {
    "paper": _gibo(_known),
    "published": _gibo(lambda f: replace(_known(f), normalization="published")),
    "invariant": _gibo(lambda f: replace(_known(f), normalization="invariant")),
    "off": _gibo(lambda f: replace(_known(f), normalization="off")),
}

SAMPLING: dict[str, Maker] = {
    "active": _gibo(_known),
    "random": _gibo(lambda f: replace(_known(f), sampling="random")),
}

STUDIES: dict[str, dict[str, Maker]] = {
    "within-model": WITHIN_MODEL,
    "out-of-model": OUT_OF_MODEL,
    "ablation-normalisation": NORMALISATION,
    "ablation-sampling": SAMPLING,
}


@dataclass(frozen=True)
class SyntheticStudy:
    """A study by name, its methods on `functions` functions in each of the dimensions, `budget` noisy values each."""

    name: str
    dimensions: tuple[int, ...] = DIMENSIONS
    functions: int = 40
    budget: int = 300
    methods: tuple[str, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        known = STUDIES.get(self.name)
        if known is None:
            raise InputError(f"study: expected one of {', '.join(STUDIES)}, got {self.name!r}")
        methods = tuple(self.methods) or tuple(known)
        unknown = [method for method in methods if method not in known]
        if unknown:
            raise InputError(f"methods: {unknown[0]!r} is not in {self.name}; there are {', '.join(known)}")
        for name, least in (("functions", 1), ("budget", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise InputError(f"{name}: must be at least {least}, got {getattr(self, name)}")
        if min(self.dimensions) < 1:
            raise InputError(f"dimensions: must be at least 1, got {min(self.dimensions)}")
        if self.functions > FUNCTIONS_PER_SEED:
            raise InputError(
                f"functions: at most {FUNCTIONS_PER_SEED} per seed, got {self.functions}; use another seed"
            )
        object.__setattr__(self, "methods", tuple(method for method in known if method in methods))
        object.__setattr__(self, "dimensions", tuple(sorted(set(self.dimensions))))

    def definition(self) -> dict[str, Any]:
        """The options, and the version of the code: cells of two versions do not belong in one study."""
        return {**asdict(self), "gibo": version("gibo")}

    def cells(self) -> list[dict[str, Any]]:
        """Function by function, so that the time left can be told from the first ones."""
        return [
            {"method": method, "d": d, "function": i}
            for i in range(self.functions)
            for d in self.dimensions
            for method in self.methods
        ]

    def run_cell(self, cell: Mapping[str, Any]) -> Record:
        function = _function(cell["d"], FUNCTIONS_PER_SEED * self.seed + cell["function"])
        started = time.perf_counter()
        curve = regret_curve(STUDIES[self.name][cell["method"]](function), function, self.budget)
        return {"cell": dict(cell), "regret": curve, "seconds": round(time.perf_counter() - started, 3)}


def regret_curve(optimizer: Optimizer, function: GPFunction, budget: int) -> list[float]:
    """Lowest regret of the method's guesses after each of `budget` evaluations, rounded to 6 digits."""
    rng = np.random.default_rng((function.d, function.seed, 1))
    best = function.regret(optimizer.iterate)
    curve: list[float] = []
    while len(curve) < budget:
        for query in optimizer.ask():
            iteration = optimizer.iteration
            optimizer.tell(query, function.observe(query.x, rng))
            if optimizer.iteration > iteration:
                best = min(best, function.regret(optimizer.iterate))
            curve.append(round(best, 6))
            if len(curve) == budget:
                break
    return curve


@functools.lru_cache(maxsize=64)
def _function(d: int, seed: int) -> GPFunction:
    return gp_function(d, seed)


def curves(records: Sequence[Record]) -> dict[tuple[str, int], np.ndarray[Any, np.dtype[np.float64]]]:
    """Regret curves (functions, budget) by method and dimension, in the order of the functions."""
    grouped: dict[tuple[str, int], list[tuple[int, list[float]]]] = {}
    for record in records:
        cell = record["cell"]
        grouped.setdefault((cell["method"], cell["d"]), []).append((cell["function"], record["regret"]))
    return {key: np.array([regret for _, regret in sorted(rows)]) for key, rows in grouped.items()}
