"""Comparisons of methods over several tasks with intervals, as `rliable` makes them (Agarwal et al. 2021).

Scores of a method are, by task, those of its trials (n,). Intervals hold 95 %. They are of a stratified bootstrap: the
tasks are taken as given, and trials are drawn within each task. Where a task has one trial only, tasks are drawn
instead; so they are for the paired differences, which are said of tasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from gibo._linalg import Array

Scores: TypeAlias = Mapping[str, Array]
SAMPLES = 2000  # of the bootstrap
LEVEL = 0.95
LEAST = -1.0  # shares of the improvement count as no less: a few failures must not decide a mean


class Interval(NamedTuple):
    """A mean over tasks and a confidence interval of it."""

    mean: float
    low: float
    high: float


def interquartile_mean(scores: Scores) -> Interval:
    """The mean of the middle half of all runs."""
    values = list(scores.values())
    drawn = np.concatenate(_drawn(values), axis=1) if _has_trials(values) else _drawn([np.concatenate(values)])[0]
    return _interval(float(_middle_mean(np.concatenate(values)[None])[0]), _middle_mean(drawn))


def _middle_mean(rows: Array) -> Array:
    """The mean of each row (m, n) without a quarter of its values at either end."""
    n = rows.shape[1]
    cut = n // 4
    means: Array = np.sort(rows, axis=1)[:, cut : n - cut].mean(axis=1)
    return means


def probability_of_improvement(a: Scores, b: Scores) -> Interval:
    """The probability that a run of a is better than one of b on the same task; equal ones count half.

    The mean over the tasks that both ran.
    """
    tasks = _shared(a, b)
    better = [(a[t][:, None] > b[t]) + 0.5 * (a[t][:, None] == b[t]) for t in tasks]
    means = np.array([each.mean() for each in better])
    if not _has_trials([a[t] for t in tasks]) or not _has_trials([b[t] for t in tasks]):
        return _interval(float(means.mean()), _drawn([means])[0].mean(axis=1))
    rng, total = np.random.default_rng(0), np.zeros(SAMPLES)
    for each in better:
        rows, columns = (rng.integers(n, size=(SAMPLES, n)) for n in each.shape)
        total += each[rows[:, :, None], columns[:, None, :]].mean(axis=(1, 2))
    return _interval(float(means.mean()), total / len(tasks))


def paired_difference(a: Mapping[tuple[str, int], float], b: Mapping[tuple[str, int], float]) -> Interval:
    """The mean of a − b over tasks, each of them the mean over the trials that both ran; scores by (task, trial)."""
    differences: dict[str, list[float]] = {}
    for task, trial in sorted(set(a) & set(b)):
        differences.setdefault(task, []).append(a[task, trial] - b[task, trial])
    means = np.array([np.mean(values) for values in differences.values()])
    return _interval(float(means.mean()), _drawn([means])[0].mean(axis=1))


def average_ranks(values: Sequence[float]) -> Array:
    """1 for the highest; equal ones share the mean of their ranks."""
    v = np.round(np.asarray(values, dtype=np.float64), 6)
    above, equal = (v[None] > v[:, None]).sum(axis=1), (v[None] == v[:, None]).sum(axis=1)
    ranks: Array = above + 0.5 * (equal + 1.0)
    return ranks


def _shared(a: Scores, b: Scores) -> list[str]:
    return [task for task in a if task in b]


def _has_trials(values: Sequence[Array]) -> bool:
    return all(len(each) > 1 for each in values)


def _drawn(values: Sequence[Array]) -> list[Array]:
    """(SAMPLES, n) of each, drawn with replacement."""
    rng = np.random.default_rng(0)
    return [each[rng.integers(len(each), size=(SAMPLES, len(each)))] for each in values]


def _interval(mean: float, drawn: Array) -> Interval:
    low, high = np.quantile(drawn, [0.5 - LEVEL / 2, 0.5 + LEVEL / 2])
    return Interval(mean, float(low), float(high))
