"""What observations of the gradient are worth (Müller et al. 2021, algorithm 1, line 10).

Two problems, and on each GIBO with the settings of its study, with and without gradients at the iterates:

lqr          The linear quadratic regulator. A gradient is the exact one of the expected return, with noise, or the
             likelihood-ratio estimate from episodes with noise on the actions, whose episodes count like all others.
synthetic    Functions of the within-model comparison in 20 dimensions, with their exact gradient and noise.

M queries per iteration are the study's own, or fewer: with a gradient for nothing there is less to ask. A cell is one
trial, or one function. Its result is a curve: episodes or values spent, and the relative cost of the gain that the
method held then (infinite if it is unstable), or the lowest normalised regret of its guesses so far.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from typing import Any, TypeAlias

import numpy as np

from gibo._linalg import single_thread
from gibo.control.lqr import LQR
from gibo.control.oracle import LQRObjective
from gibo.errors import InputError
from gibo.optimizers.gibo import GIBO
from gibo.optimizers.settings import within_model
from gibo.outcome import Outcome
from gibo.studies.engine import Record
from gibo.studies.lqr import PUBLISHED
from gibo.studies.problems import GPFunction
from gibo.studies.synthetic import BOUNDS, FUNCTIONS_PER_SEED, _function

NONE, LIKELIHOOD_RATIO = "none", "likelihood ratio"

# Standard deviations of the noise on each entry of a gradient. A gradient of the regulator's return has entries of
# about 100 where steps are made and 10 near the optimum, one of the synthetic functions entries of about 1.
LQR_NOISES = (1.0, 10.0, 100.0)
SYNTHETIC_NOISES = (0.001, 0.5, 5.0, 1000.0)  # exact, worth many queries, worth little, worth nothing

# Likelihood ratio: of the noise on the actions, and episodes per gradient.
ACTION_NOISE, EPISODES = 0.3, 8

D = 20
TARGET = 0.05  # relative cost
TRIALS_PER_SEED = 1000

Curve: TypeAlias = list[tuple[int, float]]


def noise_name(sd: float) -> str:
    """How tables and figures name gradients with this noise."""
    return f"noise {sd:g}"


# By problem: the gradients that are told, by the number M of queries.
ARMS: dict[str, dict[int, tuple[str, ...]]] = {
    "lqr": {
        9: (NONE, *map(noise_name, LQR_NOISES), LIKELIHOOD_RATIO),
        3: (NONE, *map(noise_name, LQR_NOISES), LIKELIHOOD_RATIO),
    },
    "synthetic": {
        D: (NONE, *map(noise_name, SYNTHETIC_NOISES)),
        5: (NONE, *map(noise_name, SYNTHETIC_NOISES)),
    },
}


@dataclass(frozen=True)
class GradientStudy:
    """Each arm of `ARMS`, `trials` trials of the regulator and `functions` functions.

    Attributes:
        trials: of the regulator.
        episodes: per trial.
        functions: of the within-model comparison.
        budget: values per function.
        seed: of trials and functions.
    """

    trials: int = 20
    episodes: int = 130
    functions: int = 20
    budget: int = 300
    seed: int = 0
    name: str = "gradients"

    def __post_init__(self) -> None:
        for name, least in (("trials", 1), ("episodes", 1), ("functions", 1), ("budget", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise InputError(f"{name}: must be at least {least}, got {getattr(self, name)}")
        for name in ("trials", "functions"):
            if getattr(self, name) > TRIALS_PER_SEED:
                raise InputError(f"{name}: at most {TRIALS_PER_SEED} per seed, got {getattr(self, name)}")

    def definition(self) -> dict[str, Any]:
        """The options, and the version of the code."""
        return {**asdict(self), "gibo": version("gibo")}

    def count(self, problem: str) -> int:
        """How many trials or functions."""
        return self.trials if problem == "lqr" else self.functions

    def cells(self) -> list[dict[str, Any]]:
        """Trial by trial."""
        return [
            {"problem": problem, "M": M, "gradients": gradients, "trial": trial}
            for trial in range(max(self.trials, self.functions))
            for problem, arms in ARMS.items()
            for M, each in arms.items()
            for gradients in each
            if trial < self.count(problem)
        ]

    def run_cell(self, cell: Mapping[str, Any]) -> Record:
        started = time.perf_counter()
        if cell["problem"] == "lqr":
            trial = TRIALS_PER_SEED * self.seed + cell["trial"]
            curve = lqr_curve(cell["M"], cell["gradients"], trial, self.episodes)
        else:
            function = _function(D, FUNCTIONS_PER_SEED * self.seed + cell["trial"])
            curve = regret_curve(cell["M"], cell["gradients"], function, self.budget)
        plain = [(spent, round(value, 6) if math.isfinite(value) else None) for spent, value in curve]
        return {"cell": dict(cell), "curve": plain, "seconds": round(time.perf_counter() - started, 3)}


def lqr_curve(M: int, gradients: str, trial: int, budget: int) -> Curve:
    """Episodes spent, and the relative cost of the gain then.

    The episode that is run after so many others has the same seed in every arm of a trial.
    """
    lqr = LQR.paper()
    own, *seeds = (int(state) for state in np.random.SeedSequence((trial, 4)).generate_state(budget + 1))
    optimizer = GIBO(np.zeros(lqr.p * lqr.n), seed=own, settings=replace(PUBLISHED, M=M))
    curve = [(0, lqr.relative_cost(optimizer.iterate))]
    spent = 0
    with closing(_objective(lqr, gradients)) as objective, single_thread():
        while spent < budget:
            iteration = optimizer.iteration
            for query in optimizer.ask():
                if spent >= budget:
                    break
                outcome = objective(query.x, seed=seeds[spent], kind=query.kind)
                spent += outcome.info.get("episodes", 1)
                _tell(optimizer, query, outcome)
            if optimizer.iteration > iteration and spent <= budget:
                curve.append((spent, lqr.relative_cost(optimizer.iterate)))
    return curve


class _Closable(LQRObjective):
    def close(self) -> None:
        """There is nothing to close."""


def _objective(lqr: LQR, gradients: str) -> Any:
    if gradients == LIKELIHOOD_RATIO:
        from gibo.policies.policy_gradient import PolicyGradient
        from gibo.policies.task import Task

        task = Task("gibo.control.lqr_env:gibo/LQR-v0", policy="linear")
        return PolicyGradient(task, noise=ACTION_NOISE, episodes=EPISODES)
    return _Closable(lqr, _noise(gradients))


def regret_curve(M: int, gradients: str, function: GPFunction, budget: int) -> Curve:
    """Values spent, and the lowest regret of the guesses until then; the values' noise is the same in all arms."""
    settings = replace(within_model(function.lengthscale), M=M)
    optimizer = GIBO(function.start, bounds=BOUNDS, seed=function.seed, settings=settings)
    values, slopes = (np.random.default_rng((function.d, function.seed, stream)) for stream in (1, 3))
    sd = _noise(gradients)
    curve = [(0, function.regret(optimizer.iterate))]
    spent = 0
    with single_thread():
        while spent < budget:
            iteration = optimizer.iteration
            for query in optimizer.ask():
                if spent >= budget:
                    break
                outcome = Outcome(function.observe(query.x, values))
                if sd is not None and query.kind == "iterate":
                    gradient = function.gradient(query.x) + sd * slopes.standard_normal(function.d)
                    outcome = replace(outcome, gradient=gradient, gradient_noise=sd**2)
                spent += 1
                _tell(optimizer, query, outcome)
            if optimizer.iteration > iteration:
                curve.append((spent, min(curve[-1][1], function.regret(optimizer.iterate))))
    return curve


def _noise(gradients: str) -> float | None:
    return None if gradients == NONE else float(gradients.removeprefix("noise "))


def _tell(optimizer: GIBO, query: Any, outcome: Outcome) -> None:
    optimizer.tell(query, outcome.value, gradient=outcome.gradient, gradient_noise=outcome.gradient_noise)


def at(curve: Sequence[tuple[int, float]], spent: int) -> float:
    """What the method had after so many episodes or values."""
    return [value for n, value in curve if n <= spent][-1]
