"""Problems of `simoptlib` (Eckman et al. 2023), the library of stochastic simulations, as tasks.

The list is every problem with one objective, two or more continuous variables and no constraints but bounds. A value is
one replication of its simulation; judged is the mean of `JUDGING_REPLICATIONS` with streams of their own.

All variables are searched in [0, 1], between the problem's bounds. Where a bound is infinite, it is `FAR` times the
size of the start's value away from zero, and that size counts as at least 1. The scale is a fifth of the box.
"""

from __future__ import annotations

import functools
import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibo._linalg import Array
from gibo_studies.leaderboard.task import Problem, Task

LOOKS = (5, 10, 30)  # evaluations per dimension
FAR = 4.0
JUDGING_REPLICATIONS = 30

# Number of variables, and the best mean known over the judging replications, about: found by CMA-ES on it in 40 s each.
PROBLEMS: dict[str, tuple[int, float]] = {
    "AMBULANCE-1": (4, -8.6),
    "DYNAMNEWS-1": (10, 161.3),
    "EXAMPLE-1": (2, -0.1246),
    "FIXEDSAN-1": (13, -18.317),
    "IRONORECONT-1": (3, 249000.0),
    "PARAMESTI-1": (2, -4.8226),
    "SAN-1": (13, -18.317),
    "SSCONT-1": (2, -497.4),
}


def tasks() -> tuple[Task, ...]:
    return tuple(_task(name, d, best) for name, (d, best) in PROBLEMS.items())


def _task(name: str, d: int, best: float) -> Task:
    marks = tuple(factor * d for factor in LOOKS)
    return Task(name, np.full(d, 0.5), 0.2, Simulation(name, best), marks, bounds=(0.0, 1.0))


@dataclass(frozen=True)
class Simulation:
    """A problem of the library, by its short name; instances differ in their noise only."""

    name: str
    best: float

    def __call__(self, number: int) -> Problem:
        lower, upper, start = _box(self.name)

        def evaluate(x: Array, seed: int) -> float:
            return _value(self.name, x, np.random.SeedSequence((seed, number, 1)), 1)

        def truth(x: Array) -> float:
            return _value(self.name, x, np.random.SeedSequence((0, 2)), JUDGING_REPLICATIONS)

        return Problem(evaluate, truth, self.best, start=(start - lower) / (upper - lower))


def _value(name: str, x: Array, seed: np.random.SeedSequence, replications: int) -> float:
    """The mean of so many replications, to be maximised."""
    problem, (lower, upper, _) = _problem(name), _box(name)
    streams = importlib.import_module("mrg32k3a.mrg32k3a")
    solution = importlib.import_module("simopt.base").Solution(tuple((lower + x * (upper - lower)).tolist()), problem)
    stream, substream = (int(word) for word in seed.generate_state(2))
    places = [[stream, substream + i, 0] for i in range(problem.model.n_rngs)]
    solution.attach_rngs([streams.MRG32k3a(s_ss_sss_index=place) for place in places], copy=False)
    problem.simulate(solution, replications)
    return float(solution.objectives_mean[0] * problem.minmax[0])


def _box(name: str) -> tuple[Array, Array, Array]:
    """Bounds and the start."""
    problem = _problem(name)
    start = np.array(problem.factors["initial_solution"], dtype=np.float64)
    reach = FAR * np.maximum(np.abs(start), 1.0)
    lower, upper = (np.array(bounds, dtype=np.float64) for bounds in (problem.lower_bounds, problem.upper_bounds))
    return np.where(np.isinf(lower), -reach, lower), np.where(np.isinf(upper), reach, upper), start


@functools.cache
def _problem(name: str) -> Any:
    return importlib.import_module("simopt.directory").problem_directory[name]()
