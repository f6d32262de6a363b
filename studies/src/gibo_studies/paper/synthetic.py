"""The paper's synthetic studies: which methods, with which settings, on which functions (Müller et al. 2021, 4.1, A.5).

A cell is one method on one function. Its result is the regret curve: after each evaluation, the lowest normalised
regret, without noise, of the points that the method had returned as its guess after an update, the start included.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gibo.errors import InputError
from gibo.optimizers.ars import ARS
from gibo.optimizers.base import Optimizer
from gibo.optimizers.cma import CMAES
from gibo.optimizers.gibo import GIBO
from gibo.optimizers.moves import GradientStep
from gibo.optimizers.paper import lengthscale_distribution, mean_distance, out_of_model, within_model
from gibo.optimizers.queries import Informative, RandomQueries
from gibo.optimizers.random_search import RandomSearch
from gibo.optimizers.settings import Settings
from gibo.optimizers.vanilla_bo import VanillaBO
from gibo.outcome import Outcome
from gibo.priors import Uniform
from gibo.steps import GradientAscent, GradientScaling
from gibo_studies.engine import Record
from gibo_studies.options import PER_SEED, Options, choose
from gibo_studies.paper.problems import NOISE_SD, GPFunction, gp_function
from gibo_studies.report import Columns, Curves, Report, after, reached, sample, spread_text, table
from gibo_studies.search import iterates

DIMENSIONS = (4, 8, 12, 16, 20, 24, 28, 32, 36)
BOUNDS = (0.0, 1.0)
MARKS = (100, 200, 300)
COLUMNS = Columns(arm=("method", "d"), repeat="function", spent="evaluation", value="regret")

Maker = Callable[[GPFunction], Optimizer]


def _nothing(f: GPFunction) -> dict[str, Any]:
    return {}


def _maker(kind: Callable[..., Optimizer], options: Callable[[GPFunction], dict[str, Any]] = _nothing) -> Maker:
    return lambda f: kind(f.start, bounds=BOUNDS, seed=f.seed, **options(f))


def _ars(f: GPFunction, noise: float, step_size: float = 0.02) -> dict[str, Any]:
    return {"step_size": step_size, "noise": noise, "directions": 1 + f.d // 8}


def _known(**changes: Any) -> Maker:
    """GIBO with the paper's settings for known hyperparameters."""
    return _maker(GIBO, lambda f: {"settings": replace(within_model(f.lengthscale), **changes)})


_VALUES = {"noise": NOISE_SD**2, "mean": 0.0}

# The paper's table 1. The true hyperparameters are known, and the other methods get the lengthscales' mean.
WITHIN_MODEL: dict[str, Maker] = {
    "GIBO": _known(),
    "ARS": _maker(ARS, lambda f: _ars(f, noise=0.1 * 2.0 * mean_distance(f.d))),
    # The best of 50 settings on ten other functions in each of 4, 12, 20 and 36 dimensions, by the mean regret after
    # 100, 200 and 300 values. Of 11 for CMA-ES the paper's was the best that is scaled by the lengthscales.
    "ARS (tuned)": _maker(ARS, lambda f: _ars(f, noise=0.4 * mean_distance(f.d), step_size=0.05)),
    "CMA-ES": _maker(CMAES, lambda f: {"sigma0": 0.3 * mean_distance(f.d)}),
    "Vanilla BO": _maker(VanillaBO, lambda f: {"lengthscale": f.lengthscale, "variance": 1.0, **_VALUES}),
    "Random search": _maker(RandomSearch),
}

# Hyperparameters are fitted under the paper's hyperpriors, and the other methods are not scaled.
OUT_OF_MODEL: dict[str, Maker] = {
    "GIBO": _maker(GIBO, lambda f: {"settings": out_of_model(f.d)}),
    "ARS": _maker(ARS, lambda f: _ars(f, noise=0.01)),
    "ARS (tuned)": _maker(ARS, lambda f: _ars(f, noise=0.1, step_size=0.05)),  # as above, of those not scaled
    "CMA-ES": _maker(CMAES, lambda f: {"sigma0": 0.5, "cap": None}),
    "CMA-ES (tuned)": _maker(CMAES, lambda f: {"sigma0": 0.1}),
    "Vanilla BO": _maker(
        VanillaBO,
        lambda f: {
            "lengthscale": lengthscale_distribution(f.d),
            "variance": Uniform(0.1, 5.0),
            **_VALUES,
            # With fewer values the fit settles on the lowest variance, and expected improvement on one corner.
            "fit_from": 5 * f.d,
        },
    ),
    "GIBO, our defaults": _maker(GIBO, lambda f: {"scale": 0.1, "settings": Settings.paper()}),
    "Random search": _maker(RandomSearch),
}

_SCALINGS: tuple[GradientScaling, ...] = ("paper", "published", "invariant", "off")
_AXES = Informative(plan_steps=60, basis="axes")
NORMALIZATION: dict[str, Maker] = {
    name: _known(move=GradientStep(GradientAscent(eta=0.25), name)) for name in _SCALINGS
}
SAMPLING = {"active": _known(), "random": _known(queries=RandomQueries())}
# With hyperparameters that are not known, as in the out-of-model study.
SAMPLING["our defaults, active"] = _maker(GIBO, lambda f: {"scale": 0.1, "settings": Settings.paper()})
SAMPLING["our defaults, random"] = _maker(
    GIBO, lambda f: {"scale": 0.1, "settings": Settings.paper(queries=RandomQueries())}
)

# When an iteration ends: after M = d queries, or when the next one would say, or the last one said, little.
STOPPING = {
    "M = d": _known(),
    "least gain 0.1": _known(queries=replace(_AXES, least_gain=0.1)),
    "least share 0.02": _known(queries=replace(_AXES, least_share=0.02)),
    "least share 0.05": _known(queries=replace(_AXES, least_share=0.05)),
    "M = d/2": _maker(GIBO, lambda f: {"settings": replace(within_model(f.lengthscale), M=max(1, f.d // 2))}),
}

STUDIES: dict[str, dict[str, Maker]] = {
    "within-model": WITHIN_MODEL,
    "out-of-model": OUT_OF_MODEL,
    "ablation-normalisation": NORMALIZATION,
    "ablation-sampling": SAMPLING,
    "stopping": STOPPING,
}


@dataclass(frozen=True)
class SyntheticStudy(Options):
    """A study by name, its methods on `functions` functions in each of the dimensions, `budget` noisy values each."""

    name: str
    dimensions: tuple[int, ...] = DIMENSIONS
    functions: int = 40
    budget: int = 300
    methods: tuple[str, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        if self.name not in STUDIES:
            raise InputError(f"study: expected one of {', '.join(STUDIES)}, got {self.name!r}")
        super().__post_init__()
        if min(self.dimensions) < 1:
            raise InputError(f"dimensions: must be at least 1, got {min(self.dimensions)}")
        object.__setattr__(self, "methods", choose(self.methods, STUDIES[self.name], self.name))
        object.__setattr__(self, "dimensions", tuple(sorted(set(self.dimensions))))

    def cells(self) -> list[dict[str, Any]]:
        """Function by function, so that the time left can be told from the first ones."""
        return [
            {"method": method, "d": d, "function": i}
            for i in range(self.functions)
            for d in self.dimensions
            for method in self.methods
        ]

    def run_cell(self, cell: Mapping[str, Any]) -> Record:
        """The lowest regret so far after each evaluation, rounded to 6 digits."""
        function = function_of(cell["d"], PER_SEED * self.seed + cell["function"])
        curve = regret_curve(STUDIES[self.name][cell["method"]](function), function, self.budget)
        return {"cell": dict(cell), "regret": curve}

    def report(self) -> Report:
        """All regrets, and those at the marks for box plots."""
        return Report(
            "regret.csv",
            COLUMNS,
            grid=lambda arm: range(1, self.budget + 1),
            summary=self._summary,
            curve=lambda record: list(enumerate(record["regret"], start=1)),
            marks=reached(MARKS, self.budget),
        )

    def _summary(self, curves: Curves) -> str:
        head = f"Normalised regret (f* − f)/f*, {self.functions} functions per dimension"
        marks = reached(MARKS, self.budget)
        rows = [(d, method, *(spread_text(v, 3) for v in sample(each, marks))) for (method, d), each in curves.items()]
        return f"{head}: mean ± standard deviation (median).\n\n" + table(("d", "method", *after(marks)), rows)


def regret_curve(optimizer: Optimizer, function: GPFunction, budget: int) -> list[float]:
    """Lowest regret of the method's guesses after each of `budget` evaluations, rounded to 6 digits."""
    rng = np.random.default_rng((function.d, function.seed, 1))
    observed = iterates(optimizer, lambda query, _: Outcome(function.observe(query.x, rng)), budget)
    regrets = {spent: function.regret(x) for spent, x in observed}
    best = regrets[0]
    curve = []
    for n in range(1, budget + 1):
        best = min(best, regrets.get(n, best))
        curve.append(round(best, 6))
    return curve


@functools.lru_cache(maxsize=64)
def function_of(d: int, seed: int) -> GPFunction:
    """The function given by (d, seed), which several cells of a process share."""
    return gp_function(d, seed)
