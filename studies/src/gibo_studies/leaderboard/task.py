"""What a task of the leaderboard is, and what one instance of it gives.

A task fixes what every method is told: where to start, the scale, the bounds, the budget. An instance, one for each
trial and the same for all methods, is the objective itself.

Noise of a value, as a share of the distance between the start's value and the best known one (standard deviation):

    small 0.01     middle 0.05     large 0.2     own: what the task itself is noisy by: an episode, BBOB's
    multiplied noise, the paper's 0.1 (2 to 5 % of what there is to gain)
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from gibo._linalg import Array
from gibo.errors import InputError
from gibo.outcome import Outcome

NOISE: Mapping[str, float] = {"small": 0.01, "middle": 0.05, "large": 0.2}
Noise: TypeAlias = Literal["small", "middle", "large", "own"]


@dataclass(frozen=True, eq=False)
class Problem:
    """An instance of a task.

    Attributes:
        evaluate: one noisy value of x (d,), from ``(x, seed)``; the same for the same arguments.
        truth: the value of x without noise, or the mean of many episodes with seeds of their own.
        reference: the best known value.
        optimum: (d,) a point that has it, where one is known.
        told_mean: the mean of what `evaluate` gives, from x, where that is not the truth; None where there is no mean.
        start: (d,) where this instance starts, if not where the task does.
        finish: called when a run is over, before its recommended points are judged.
        observe: from a new folder and the name of a method: have the run written there in the format of the suite.
    """

    evaluate: Callable[..., float | Outcome]
    truth: Callable[..., float]
    reference: float
    optimum: Array | None = None
    told_mean: Callable[[Array], float | None] | None = None
    start: Array | None = None
    finish: Callable[[], None] = field(default=lambda: None)
    observe: Callable[[Path, str], None] | None = None


@dataclass(frozen=True, eq=False)
class Task:
    """A task; see the module's text.

    Attributes:
        name: of the task.
        start: (d,) where every method starts.
        scale: by how much a parameter must change to matter, roughly: the right one, for all parameters.
        budget: evaluations.
        make: the instance of a number.
        noise: "small", "middle", "large" or "own".
        marks: the evaluations after which the recommended point is judged.
        bounds: None, or (lower, upper) for all parameters.
        trials: by default.
        needs: modules that it needs.
    """

    name: str
    start: Array
    scale: float
    budget: int
    make: Callable[[int], Problem]
    noise: Noise
    marks: tuple[int, ...]
    bounds: tuple[float, float] | None = None
    trials: int = 20
    needs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if max(self.marks) > self.budget:
            raise InputError(f"{self.name}: expected marks up to the budget of {self.budget}, got {self.marks}")

    @property
    def d(self) -> int:
        """Number of parameters."""
        return len(self.start)


def generator(name: str, *numbers: int) -> np.random.Generator:
    """Of a task's instance, or of a value's noise: the same on every machine."""
    return np.random.default_rng((zlib.crc32(name.encode()), *numbers))


def noisy(name: str, level: str, truth: Callable[[Array], float], start: Array, reference: float) -> Any:
    """A function of (x, seed): the truth and Gaussian noise of a level."""
    sd = NOISE[level] * (reference - truth(start))

    def evaluate(x: Array, seed: int) -> float:
        return truth(x) + sd * float(generator(name, seed, 1).standard_normal())

    return evaluate
