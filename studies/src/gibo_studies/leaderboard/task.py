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
from typing import Any, Final, Literal

import numpy as np

from gibo._linalg import Array
from gibo.errors import InputError
from gibo.outcome import Outcome
from gibo.training.training import StateNormalizer

NOISE: Mapping[str, float] = {"small": 0.01, "middle": 0.05, "large": 0.2}
CHOOSE: Final = "choose"
JUDGE: Final = "judge"
BBOB: Final = "bbob"
TRAINED: Final = "trained"
Half = Literal["choose", "judge", "bbob", "trained"]
# Looks along a run, about; fewer where a look takes many episodes.
LOOKS, DEAR_LOOKS = 40, 10


@dataclass(frozen=True, eq=False)
class Problem:
    """An instance of a task.

    Attributes:
        evaluate: one noisy value of x (d,), from ``(x, seed, **options)``; the same for the same arguments.
        truth: the value of x without noise, or the mean of many episodes with seeds of their own, from
            ``(x, **options)``.
        reference: the best known value.
        optimum: (d,) a point that has it, where one is known.
        normalizer: a fresh one of what is learnt of the states between iterations, given what is re-expressed, or None;
            its options are those of `evaluate` and `truth`.
        truth_is_the_value: whether `truth` is the mean of what `evaluate` gives, or another measure of it.
    """

    evaluate: Callable[..., float | Outcome]
    truth: Callable[..., float]
    reference: float
    optimum: Array | None = None
    normalizer: Callable[[str], StateNormalizer | None] = field(default=lambda reexpressed: None)
    truth_is_the_value: bool = True


@dataclass(frozen=True, eq=False)
class Task:
    """A task; see the module's text.

    Attributes:
        name: of the task.
        half: "choose", what a default may be chosen by, "judge", what it is judged by; "bbob", "trained": see `TASKS`.
        start: (d,) where every method starts.
        scale: by how much a parameter must change to matter, roughly: the right one, for all parameters.
        budget: evaluations.
        make: the instance of a number.
        noise: "small", "middle", "large" or "own".
        marks: the evaluations at which the table looks.
        solved: the share of the improvement from the start to the best known value from which it counts as solved.
        bounds: None, or (lower, upper) for all parameters.
        dear: an evaluation takes long: fewer looks, and only the methods that run everywhere.
        trials: by default.
        needs: modules that it needs.
    """

    name: str
    half: Half
    start: Array
    scale: float
    budget: int
    make: Callable[[int], Problem]
    noise: Literal["small", "middle", "large", "own"]
    marks: tuple[int, ...]
    solved: float = 0.95
    bounds: tuple[float, float] | None = None
    dear: bool = False
    trials: int = 20
    needs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 20 <= self.budget <= 1000 or max(self.marks) > self.budget:
            raise InputError(f"{self.name}: expected a budget of 20 to 1000 and marks up to it, got {self.budget}")

    @property
    def d(self) -> int:
        """Number of parameters."""
        return len(self.start)

    def looks(self, budget: int | None = None) -> list[int]:
        """When a run's recommended point is looked at: at its start, evenly, at the marks and at its end."""
        most = self.budget if budget is None else min(self.budget, budget)
        slow = self.dear or "gymnasium" in self.needs
        step = max(1, most // (DEAR_LOOKS if slow else LOOKS))
        marks = {mark for mark in self.marks if mark <= most}
        return sorted({*range(0, most + 1, step), *marks, most})

    def table_marks(self, budget: int | None = None) -> list[int]:
        """The marks that a budget reaches, and its end."""
        most = self.budget if budget is None else min(self.budget, budget)
        return sorted({*(mark for mark in self.marks if mark < most), most})


def generator(name: str, *numbers: int) -> np.random.Generator:
    """Of a task's instance, or of a value's noise: the same on every machine."""
    return np.random.default_rng((zlib.crc32(name.encode()), *numbers))


def noisy(name: str, level: str, truth: Callable[[Array], float], start: Array, reference: float) -> Any:
    """A function of (x, seed): the truth and Gaussian noise of a level."""
    sd = NOISE[level] * (reference - truth(start))

    def evaluate(x: Array, seed: int) -> float:
        return truth(x) + sd * float(generator(name, seed, 1).standard_normal())

    return evaluate
