"""What a task is, and what one instance of it gives.

A task fixes what every method is told: where to start, the scale, the bounds, the budget. An instance, one for each
trial and the same for all methods, is the objective itself.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from gibo._linalg import Array
from gibo.outcome import Outcome

# Standard deviation of a value, as a share of the distance between the start's value and the best known one.
NOISE: Mapping[str, float] = {"small": 0.01, "middle": 0.05, "large": 0.2}


@dataclass(frozen=True, eq=False)
class Problem:
    # One noisy value of x (d,), from ``(x, seed)``; the same for the same arguments.
    evaluate: Callable[..., float | Outcome]
    truth: Callable[..., float]  # the value without noise, or the mean of many episodes with seeds of their own
    reference: float  # the best known value
    optimum: Array | None = None  # (d,) a point that has it, where one is known
    # The mean of what `evaluate` gives, where that is not the truth; None where there is no mean.
    told_mean: Callable[[Array], float | None] | None = None
    start: Array | None = None  # (d,) where this instance starts, if not where the task does
    finish: Callable[[], None] = field(default=lambda: None)  # called before recommended points are judged
    # From a new folder and the name of a method: have the run written there in the format of the suite.
    observe: Callable[[Path, str], None] | None = None


@dataclass(frozen=True, eq=False)
class Task:
    name: str
    start: Array  # (d,) where every method starts
    scale: float  # by how much a parameter must change to matter, roughly: the right one, for all parameters
    make: Callable[[int], Problem]  # the instance of a number
    marks: tuple[int, ...]  # evaluations after which the recommended point is judged; the last is the budget
    bounds: tuple[float, float] | None = None  # of all parameters
    trials: int = 20

    @property
    def d(self) -> int:
        return len(self.start)

    @property
    def budget(self) -> int:
        return self.marks[-1]


def prepared(task: Task, number: int) -> tuple[Task, Problem]:
    """The instance of a number, and the task with that instance's start."""
    problem = task.make(number)
    return (task if problem.start is None else replace(task, start=problem.start)), problem


def generator(name: str, *numbers: int) -> np.random.Generator:
    """Of a task's instance, or of a value's noise: the same on every machine."""
    return np.random.default_rng((zlib.crc32(name.encode()), *numbers))


def noisy(
    name: str, level: str, truth: Callable[[Array], float], start: Array, reference: float
) -> Callable[[Array, int], float]:
    """A function of (x, seed): the truth and Gaussian noise of a level."""
    sd = NOISE[level] * (reference - truth(start))

    def evaluate(x: Array, seed: int) -> float:
        return truth(x) + sd * float(generator(name, seed, 1).standard_normal())

    return evaluate
