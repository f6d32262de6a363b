"""One method on one instance of a task, spending its budget, and what it recommended on the way.

Looking takes no part in a run, and the method does not learn of it. What it recommended is judged when the run is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

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
    spent: int  # evaluations before it
    truth: float  # its value without noise
    share: float  # that value as a share of the way from the start's to the best known one
    mean: float | None  # of what an evaluation gives there; None where there is none
    believed: float | None  # the value that the method reports
    interval: tuple[float, float] | None  # the 90 % interval that it reports
    at_start: bool  # whether it is the start


class Looked(NamedTuple):
    looks: list[Look]
    reevaluated: list[Look]  # at the best of `CANDIDATES` points by the mean of new evaluations, if asked for


def look_at_a_run(
    task: Task, problem: Problem, optimizer: Optimizer, looks: Sequence[int], reevaluate: bool = False
) -> Looked:
    """Spend a budget, the last of the looks, and judge what is recommended at each look.

    With `reevaluate`, also the points with the highest values seen are evaluated again at each look, with seeds of
    their own and off the budget, and the one with the highest mean is judged.
    """
    recommended: list[tuple[int, Best]] = []
    highest: list[list[Array]] = []

    def look(spent: int) -> None:
        recommended.append((spent, optimizer.best or Best(task.start, np.nan)))
        highest.append(_highest(optimizer) if reevaluate else [])

    def objective(x: Array, *, seed: int) -> float | Outcome:
        # All before this one are told: without workers, a value is told before the next one is asked for.
        if len(optimizer.evaluations) in looks:
            look(len(optimizer.evaluations))
        return problem.evaluate(x, seed=seed)

    with single_thread():
        result = run(optimizer, objective, budget=looks[-1])
        if result.evaluations < looks[-1]:
            raise InputError(f"the run ended early: {result.reason}")
        look(looks[-1])
        problem.finish()
        again = [
            (spent, _best_of(problem, points) if points else best)
            for (spent, best), points in zip(recommended, highest, strict=True)
            if reevaluate
        ]
        start = problem.truth(task.start)
        return Looked(*([_judged(task, problem, start, *each) for each in found] for found in (recommended, again)))


def _judged(task: Task, problem: Problem, start: float, spent: int, best: Best) -> Look:
    truth = problem.truth(best.x)
    share = (truth - start) / (problem.reference - start)
    mean = truth if problem.told_mean is None else problem.told_mean(best.x)
    believed = None if np.isnan(best.value) else best.value
    return Look(spent, truth, share, mean, believed, best.interval, np.array_equal(best.x, task.start))


def _highest(optimizer: Optimizer) -> list[Array]:
    valued = sorted((e for e in optimizer.evaluations if e.value is not None), key=lambda e: -float(e.value or 0.0))
    return [optimizer.clip(e.x) for e in valued[:CANDIDATES]]


def _best_of(problem: Problem, points: Sequence[Array]) -> Best:
    """The point with the highest mean of new evaluations, and that mean."""
    means = [_mean(problem, x) for x in points]
    return Best(points[int(np.argmax(means))], max(means))


def _mean(problem: Problem, x: Array) -> float:
    outcomes = [problem.evaluate(x, seed=REEVALUATION + i) for i in range(REPEATS)]
    values = [each.value if isinstance(each, Outcome) else each for each in outcomes]
    return float(np.mean([-np.inf if value is None else value for value in values]))
