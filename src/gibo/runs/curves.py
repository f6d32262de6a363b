"""A run's learning curve: the values of its iterates and the best value so far over the number of evaluations."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean
from typing import NamedTuple

from gibo.outcome import BASELINE, ITERATE, SIMULATED

Points = list[tuple[int, float]]  # number of evaluations, and a value at that time


class Row(NamedTuple):
    """A query with its value: the return for an episode, None for a failure."""

    iteration: int
    kind: str
    is_told: bool
    value: float | None


class Curve(NamedTuple):
    """A learning curve.

    Attributes:
        of_iterates: False if the method never evaluates its iterate; then a value is the mean of a batch around it.
        points: at the iterates, or after each complete batch.
        best: the values that were better than all before.
        spent: number of evaluations so far.
    """

    of_iterates: bool
    points: Points
    best: Points
    spent: int


def learning_curve(queries: Iterable[Row], sign: float) -> Curve:
    """The curve of a run's queries, in the order of their ids; the sign is 1 if large values are good, else −1."""
    rows = [(n, row) for n, row in enumerate(queries, start=1) if row.kind != SIMULATED]
    told = [(n, row) for n, row in rows if row.is_told]
    valued = [(n, row, row.value) for n, row in told if row.value is not None]
    of_iterates = any(row.kind == ITERATE for _, row in told)
    best: Points = []
    for n, _, value in valued:
        if not best or sign * value > sign * best[-1][1]:
            best.append((n, value))
    points: Points = [(n, value) for n, row, value in valued if row.kind == ITERATE]
    if not of_iterates:
        open_iterations = {row.iteration for _, row in rows if not row.is_told}
        batches: dict[int, Points] = {}
        for n, row, value in valued:
            if row.kind == BASELINE:  # the start, wherever the search is
                continue
            batches.setdefault(row.iteration, []).append((n, value))
        ends = {row.iteration: n for n, row in told}
        points = [
            (ends[iteration], fmean(value for _, value in batch))
            for iteration, batch in batches.items()
            if iteration not in open_iterations
        ]
    return Curve(of_iterates, points, best, max((n for n, _ in told), default=0))
