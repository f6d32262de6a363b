"""The tasks by which the default is chosen: functions, plants and policies. What it is judged by is in `judges`.

Instances flip the signs or draw the order of the parameters, so that nothing can be gained from how a task's authors
ordered them. None is a task of a judge, except that the judge of policies has the environments CartPole-v1 and
InvertedPendulum-v5 as well, with orders of its own.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibo._linalg import Array
from gibo_studies.leaderboard import functions as f
from gibo_studies.leaderboard import plants
from gibo_studies.leaderboard.environments import Environment
from gibo_studies.leaderboard.task import Problem, Task

FIRST, FIRST_GP = 50, 20  # the numbers of the first instances


@dataclass(frozen=True)
class Shuffled:
    """Instances with the parameters in a random order, random signs, or both: x is given, the problem sees theta."""

    make: Callable[[int], Problem]
    start: Array  # (d,) of theta
    first: int = 0  # the number of the first instance
    order: bool = True
    signs: bool = False

    def __call__(self, number: int) -> Problem:
        d, rng = len(self.start), np.random.default_rng((991, number))
        order = rng.permutation(d) if self.order else np.arange(d)
        signs = rng.choice([-1.0, 1.0], d) if self.signs else np.ones(d)
        problem = self.make(number + self.first)

        def theta(x: Array) -> Array:
            found = np.empty(d)
            found[order] = signs * x
            return found

        return Problem(
            evaluate=lambda x, seed: problem.evaluate(theta(x), seed),
            truth=lambda x: problem.truth(theta(x)),
            reference=problem.reference,
            start=signs * self.start[order],
        )


def quarters(budget: int) -> tuple[int, ...]:
    return math.ceil(budget / 4), budget // 2, budget


def policy(environment: Environment, d: int, scale: float, marks: tuple[int, ...], trials: int = 20) -> Task:
    """A policy's parameters in random order."""
    start = np.zeros(d)
    return Task(environment.id, start, scale, Shuffled(environment, start), marks, trials=trials)


def _function(budget: int, name: str, function: f.Function, d: int, noise: str, **options: Any) -> Task:
    start = np.zeros(d)
    make = Shuffled(f.Shifted(name, function, d, noise, **options), start, FIRST, order=False, signs=True)
    return Task(name, start, 1.0, make, quarters(budget))


def _in_the_cube(name: str, d: int, scale: float, budget: int, make: Callable[[int], Problem]) -> Task:
    return Task(name, np.full(d, 0.5), scale, make, quarters(budget), bounds=(0.0, 1.0))


def _plants(d: int) -> Task:
    make = functools.partial(plants.random_plant, d)
    return Task(f"plants{d}", np.full(d, 0.3), 0.2, make, (10, 20, 40), (0.0, 1.0), len(plants.BEST[d]))


_MIDDLE = np.full(9, 0.5)
_ELLIPSOID = functools.partial(f.ellipsoid, condition=100.0)
_ALL = [
    _in_the_cube("gp8", 8, 0.1, 80, Shuffled(f.Paper(8), _MIDDLE[:8], FIRST_GP, order=False)),
    _function(120, "sphere20", f.sphere, 20, "middle"),
    _function(100, "ackley10", f.ackley, 10, "small"),
    _function(120, "l1-12", f.l1, 12, "large"),
    _function(60, "plateau6", f.plateau, 6, "large", best=1.0),
    _in_the_cube("hyper9", 9, 0.15, 90, Shuffled(f.Hyperparameters("hyper9", 9, 5, "middle"), _MIDDLE, FIRST)),
    Task("skewed6", np.zeros(6), 1.0, f.skewed, quarters(60)),
    Task("chain8", np.zeros(8), 1.0, plants.chain, quarters(80)),
    *(_in_the_cube(name, len(make.lower), 0.12, 40, make) for name, make in plants.GAINS.items()),
    *map(_plants, plants.BEST),
    policy(Environment("CartPole-v1", 500.0, 20), 4, 0.1, quarters(64)),
    policy(Environment("InvertedPendulum-v5", 1000.0, 8), 4, 1.0, quarters(60)),
    _function(150, "rotated-ellipsoid10", _ELLIPSOID, 10, "small", rotated=True),
    _function(160, "saturating16", f.saturating, 16, "middle", best=1.0),
]
TASKS: dict[str, Task] = {task.name: task for task in _ALL}
