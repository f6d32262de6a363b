"""One method on one instance of a task, spending its budget, and what it recommended on the way.

Looking takes no part in a run, and the method does not learn of it. What it recommended is judged when the run is over.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gibo._linalg import Array, single_thread
from gibo.errors import InputError
from gibo.optimizers.base import Optimizer
from gibo.outcome import Best, Outcome
from gibo.runs.api import run
from gibo_studies.leaderboard.task import Problem, Task

CANDIDATES = 5  # points with the highest values that are evaluated again, off the budget,
REPEATS = 5  # so many times each
REEVALUATION = 10**6  # where the seeds of these evaluations begin


@dataclass(frozen=True)
class Look:
    """A recommended point.

    Attributes:
        spent: evaluations before it.
        truth: its value without noise.
        mean: the mean of what an evaluation gives there; None where there is none.
        believed: the value that the method reports.
        interval: the 90 % interval that it reports.
        at_start: whether it is the start.
    """

    spent: int
    truth: float
    mean: float | None
    believed: float | None
    interval: tuple[float, float] | None
    at_start: bool

    @property
    def interval_held(self) -> bool | None:
        """Whether the mean lies in the interval; None without either of them."""
        if self.interval is None or self.mean is None:
            return None
        return bool(self.interval[0] <= self.mean <= self.interval[1])


@dataclass(frozen=True, eq=False)
class Looked:
    """A run as it was looked at.

    Attributes:
        looks: in their order; the first is at the start, after no evaluation.
        reevaluated: looks at the best of `CANDIDATES` points by the mean of new evaluations, if asked for.
        reference: the best known value.
        own_seconds: the method's own.
    """

    looks: list[Look]
    reevaluated: list[Look]
    reference: float
    own_seconds: float


@dataclass(frozen=True, eq=False)
class _Recommended:
    spent: int
    best: Best
    candidates: list[Array]


def prepared(task: Task, number: int) -> tuple[Task, Problem]:
    """The instance of a number, and the task with that instance's start."""
    problem = task.make(number)
    return (task if problem.start is None else replace(task, start=problem.start)), problem


def look_at_a_run(
    task: Task, problem: Problem, optimizer: Optimizer, looks: Sequence[int], reevaluate: bool = False
) -> Looked:
    """Spend a budget, the last of the looks, and judge what is recommended at each look.

    With `reevaluate`, also the points with the highest values seen are evaluated again at each look, with seeds of
    their own and off the budget, and the one with the highest mean is judged.
    """
    recommended: list[_Recommended] = []
    outside = 0.0

    def look(spent: int) -> None:
        best = optimizer.best or Best(task.start, np.nan)
        recommended.append(_Recommended(spent, best, _highest(optimizer) if reevaluate else []))

    def objective(x: Array, *, seed: int) -> float | Outcome:
        nonlocal outside
        started = time.perf_counter()
        # All before this one are told: without workers, a value is told before the next one is asked for.
        if len(optimizer.evaluations) in looks:
            look(len(optimizer.evaluations))
        value = problem.evaluate(x, seed=seed)
        outside += time.perf_counter() - started
        return value

    started = time.perf_counter()
    with single_thread():
        result = run(optimizer, objective, budget=looks[-1])
        own = time.perf_counter() - started - outside
        if result.evaluations < looks[-1]:
            raise InputError(f"the run ended early: {result.reason}")
        look(looks[-1])
        problem.finish()
        again = [_reevaluated(problem, each) for each in recommended] if reevaluate else []
        judged = [_judged(task, problem, each) for each in recommended]
        judged_again = [_judged(task, problem, each) for each in again]
    return Looked(judged, judged_again, problem.reference, own)


def _judged(task: Task, problem: Problem, recommended: _Recommended) -> Look:
    best = recommended.best
    truth = problem.truth(best.x)
    mean = truth if problem.told_mean is None else problem.told_mean(best.x)
    believed = None if np.isnan(best.value) else best.value
    return Look(recommended.spent, truth, mean, believed, best.interval, np.array_equal(best.x, task.start))


def _highest(optimizer: Optimizer) -> list[Array]:
    valued = sorted((e for e in optimizer.evaluations if e.value is not None), key=lambda e: -float(e.value or 0.0))
    return [optimizer.clip(e.x) for e in valued[:CANDIDATES]]


def _reevaluated(problem: Problem, recommended: _Recommended) -> _Recommended:
    """What the new evaluations recommend; the start, as before, where nothing was evaluated yet."""
    means = [_mean(problem, x) for x in recommended.candidates]
    if not means:
        return recommended
    best = Best(recommended.candidates[int(np.argmax(means))], max(means))
    return replace(recommended, best=best)


def _mean(problem: Problem, x: Array) -> float:
    outcomes = [problem.evaluate(x, seed=REEVALUATION + i) for i in range(REPEATS)]
    values = [each.value if isinstance(each, Outcome) else each for each in outcomes]
    return float(np.mean([-np.inf if value is None else value for value in values]))
