"""COCO's suites `bbob` and `bbob-noisy` (Hansen et al. 2021) as tasks, through the official package `coco-experiment`.

Values are turned: COCO minimises. A run starts where COCO's `initial_solution` is, at the origin, and may use the box
[−5, 5]; the scale is a fifth of the box's width. The number of an instance is COCO's own, from 1.

**What is judged on bbob-noisy.** COCO has no call for the value without noise, but each of its functions exists with
Gaussian, uniform and Cauchy noise (Gaussian 101, uniform 102 and Cauchy 103 are one function, and so on). Cauchy noise
is an outlier with probability p, and otherwise adds exactly 1000·α + 1.01·10⁻⁸. So the value without noise is the value
that repeats itself when the function with Cauchy noise is evaluated several times, less that constant. The best value
is that of the noise-free function of the suite `bbob` with the same seed (`SAME_SEED`), which COCO gives.

**The mean of what a method is told.** With Gaussian noise the distance f to the best value is multiplied by exp(β·N),
whose mean is exp(β²/2); with uniform noise by U₁^β·max(1, (10⁹/f)^(α·U₂)), whose mean is below; Cauchy noise has none.

**Noise that can be repeated.** COCO draws noise from a counter of its own in the process, which a new suite sets back.
So every run makes a new suite, and then draws a number of values that depends on the task and the instance.
"""

from __future__ import annotations

import importlib
import math
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gibo._linalg import Array
from gibo.errors import InputError
from gibo_studies.leaderboard.task import Problem, Task

DIMENSIONS = (5, 10, 20)
LOOKS = (5, 10, 30)  # evaluations per dimension
SCALE = 2.0

# The function of `bbob` with the best point and value of each three functions of `bbob-noisy`.
SAME_SEED = {101: 1, 104: 8, 107: 1, 110: 8, 113: 7, 116: 10, 119: 14, 122: 17, 125: 19, 128: 21}
LAST_MODERATE = 106  # functions with moderate noise end here
TOLERANCE = 1.01e-8  # COCO adds it to every noisy value
ASKED = 25  # values drawn to find the one that repeats itself
SKIPPED = 10_000  # noise that may be skipped, so that instances differ


def tasks(suite: str) -> tuple[Task, ...]:
    """All functions of a suite, `bbob` or `bbob-noisy`, in all `DIMENSIONS`."""
    numbers = range(1, 25) if suite == "bbob" else range(101, 131)
    return tuple(
        Task(
            f"{suite} f{number} d{d}", np.zeros(d), SCALE, Function(suite, number, d),
            tuple(factor * d for factor in LOOKS), bounds=(-5.0, 5.0),
        )
        for d in DIMENSIONS
        for number in numbers
    )  # fmt: skip


@dataclass(frozen=True)
class Function:
    """Function `number` of a suite in d dimensions; its instances are made by their number, from 0."""

    suite: str
    number: int
    d: int

    def __call__(self, number: int) -> Problem:
        instance = number + 1
        run = _Run(self, instance)
        noise_free = self.number if self.suite == "bbob" else SAME_SEED[_first(self.number)]
        best = _bare(noise_free, self.d, instance)[1]
        told_mean = None if self.suite == "bbob" else self._told_mean(run.truth, best)
        return Problem(run.evaluate, run.truth, -best, told_mean=told_mean, finish=run.finish, observe=run.observe)

    def _told_mean(self, truth: Callable[[Array], float], best: float) -> Callable[[Array], float | None]:
        kind, moderate = self.number - _first(self.number), self.number <= LAST_MODERATE
        beta = 0.01 if moderate else 1.0
        alpha = beta * (0.49 + 1.0 / self.d)

        def mean(x: Array) -> float | None:
            f = -truth(x) - best
            if kind == 0:
                return -(best + f * math.exp(0.5 * beta**2) + TOLERANCE)
            return -(best + f * _uniform_mean(f, alpha, beta) + TOLERANCE) if kind == 1 else None

        return mean


def _uniform_mean(f: float, alpha: float, beta: float) -> float:
    """The mean of U₁^β·max(1, (10⁹/f)^(α·U₂))."""
    power = alpha * math.log(1e9 / (f + 1e-99))
    return (math.expm1(power) / power if power > 0.0 else 1.0) / (1.0 + beta)


class _Run:
    """COCO's problem of one run; it is made when the first value is drawn, and once more for what is judged."""

    def __init__(self, function: Function, instance: int) -> None:
        self.function, self.instance = function, instance
        self._problem: Any = None
        self._observed: tuple[Path, str] | None = None
        self._observer: Any = None
        self._opened = 0
        self._open_suite: Any = None  # COCO's files name the suite, so it must outlive the run

    def observe(self, folder: Path, method: str) -> None:
        if " " in str(folder):
            raise InputError(f"{folder}: COCO cannot write to a folder with a space in its path; choose another --out")
        self._observed = (folder, method)

    def evaluate(self, x: Array, seed: int) -> float:
        """Its noise is COCO's own; see the module's text."""
        if self._problem is None:
            self._problem = self._open()
        return -float(self._problem(x))

    def finish(self) -> None:
        """End COCO's files; later values are not written."""
        if self._problem is not None:
            self._problem.free()
        self._problem = self._observer = self._observed = None

    def truth(self, x: Array) -> float:
        function = self.function
        if function.suite == "bbob":
            return -float(_bare(function.number, function.d, self.instance)[0](x))
        cauchy = _first(function.number) + 2
        alpha = 0.01 if cauchy <= LAST_MODERATE else 1.0
        suite = self._suite()
        problem = self._problem_of(suite, cauchy)
        values = Counter(float(problem(x)) for _ in range(ASKED))
        problem.free()
        return -(values.most_common(1)[0][0] - 1000.0 * alpha - TOLERANCE)

    def _open(self) -> Any:
        function, suite = self.function, self._suite()
        self._open_suite = suite
        if function.suite == "bbob-noisy":
            skipped = self._problem_of(suite, _first(function.number) + 2)
            self._opened += 1
            name = f"{function.number} {function.d} {self.instance} {self._opened}"
            for _ in range(zlib.crc32(name.encode()) % SKIPPED):
                skipped(np.zeros(function.d))
            skipped.free()
        problem = self._problem_of(suite, function.number)
        if self._observed is not None:
            folder, method = self._observed
            place = f"outer_folder: {folder.parent} result_folder: {folder.name}"
            options = f"{place} algorithm_name: {method.replace(' ', '-')}"
            self._observer = importlib.import_module("cocoex").Observer(function.suite, options)
            problem.observe_with(self._observer)
        return problem

    def _problem_of(self, suite: Any, number: int) -> Any:
        return suite.get_problem_by_function_dimension_instance(number, self.function.d, self.instance)

    def _suite(self) -> Any:
        cocoex = importlib.import_module("cocoex")
        cocoex.log_level("warning")
        return cocoex.Suite(self.function.suite, f"instances: {self.instance}", f"dimensions: {self.function.d}")


def _bare(number: int, d: int, instance: int) -> tuple[Callable[[Array], float], float]:
    """A function of `bbob` and its best value."""
    bare = importlib.import_module("cocoex").BareProblem("bbob", number, d, instance)
    return bare, float(bare.best_value())


def _first(number: int) -> int:
    """The function of `bbob-noisy` that is the same with Gaussian noise."""
    return number - (number - 101) % 3
