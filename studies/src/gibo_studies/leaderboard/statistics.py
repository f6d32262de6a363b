"""Ranks with intervals and evaluations needed: what is read off the runs' curves.

A run is what one method recommended along one trial of a task: when it was looked at, and the shares of the possible
improvement that its recommended points had then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gibo._linalg import Array

SAMPLES = 2000  # of the bootstrap
LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Run:
    """See the module's text; `seconds` are the method's own, without the evaluations."""

    task: str
    scale: float
    method: str
    trial: int
    spent: Array
    share: Array
    seconds: float


class Interval(NamedTuple):
    """A mean over tasks and a confidence interval of it."""

    mean: float
    low: float
    high: float


def of(runs: Iterable[Run], **entries: object) -> list[Run]:
    """The runs with these entries."""
    return [run for run in runs if all(getattr(run, name) == value for name, value in entries.items())]


def mean_curve(runs: Sequence[Run]) -> tuple[Array, Array]:
    """When they were looked at, and their mean share then."""
    return runs[0].spent, np.mean([run.share for run in runs], axis=0)


def average_ranks(values: Sequence[float]) -> Array:
    """1 for the highest; equal ones share the mean of their ranks."""
    v = np.round(np.asarray(values, dtype=np.float64), 6)
    above, equal = (v[None] > v[:, None]).sum(axis=1), (v[None] == v[:, None]).sum(axis=1)
    ranks: Array = above + 0.5 * (equal + 1.0)
    return ranks


def task_ranks(runs: Sequence[Run], methods: Sequence[str]) -> dict[str, Array]:
    """By task: the mean rank (methods,) over the trials that all of these methods ran; tasks without any are left out.

    The rank is that of the last recommended point.
    """
    ranks: dict[str, Array] = {}
    for task in dict.fromkeys(run.task for run in runs):
        last = {(run.trial, run.method): float(run.share[-1]) for run in runs if run.task == task}
        trials = [i for i in dict.fromkeys(trial for trial, _ in last) if all((i, m) in last for m in methods)]
        if trials:
            ranks[task] = np.mean([average_ranks([last[i, m] for m in methods]) for i in trials], axis=0)
    return ranks


def mean_ranks(ranks: Mapping[str, Array], methods: Sequence[str]) -> dict[str, Interval]:
    """The mean over the tasks, and a bootstrap interval over them."""
    if not ranks:
        return {}
    R = np.array(list(ranks.values()))
    drawn = np.random.default_rng(0).integers(len(R), size=(SAMPLES, len(R)))
    means = R[drawn].mean(axis=1)
    low, high = np.quantile(means, [0.5 - LEVEL / 2, 0.5 + LEVEL / 2], axis=0)
    return {m: Interval(float(R[:, i].mean()), float(low[i]), float(high[i])) for i, m in enumerate(methods)}


def evaluations_to_reach(runs: Sequence[Run], rival: Sequence[Run]) -> float:
    """When the mean curve of runs first is where the rival's ends; infinite: it never is."""
    goal = mean_curve(rival)[1][-1]
    spent, share = mean_curve(runs)
    reached = np.flatnonzero(share >= goal - 1e-9)
    return float(spent[reached[0]]) if len(reached) else np.inf
