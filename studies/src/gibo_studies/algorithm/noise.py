"""Pure noise: how often another point than the start is recommended, though none is better."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gibo._linalg import Array
from gibo_studies.algorithm.study import AlgorithmStudy, Row
from gibo_studies.leaderboard.task import Problem, Task
from gibo_studies.report import table

DIMENSIONS, LOOKS, TRIALS = (2, 4, 8, 12, 20), (10, 25, 50, 100), 30
BOUNDS = (-1.5, 1.5)
NOISE: Mapping[str, Callable[[np.random.Generator], float]] = {
    "normal": lambda rng: float(rng.standard_normal()),
    "skewed": lambda rng: -float(rng.exponential()),
}


@dataclass(frozen=True)
class PureNoise:
    """Values that tell nothing; see `Task.make`."""

    noise: str
    d: int

    def __call__(self, number: int) -> Problem:
        def evaluate(x: Array, seed: int) -> float:
            return NOISE[self.noise](np.random.default_rng((number, self.d, seed)))

        return Problem(evaluate, lambda x: 0.0, 1.0)


@dataclass(frozen=True)
class NoiseStudy(AlgorithmStudy):
    """Runs of 100 values, between bounds, so that they begin with a survey."""

    def tasks(self) -> Mapping[str, Task]:
        found = [
            Task(f"{noise} {d}", np.zeros(d), 0.3, PureNoise(noise, d), LOOKS, BOUNDS, TRIALS)
            for noise in NOISE
            for d in DIMENSIONS
        ]
        return {task.name: task for task in found}

    def table(self, rows: Sequence[Row]) -> str:
        groups = {noise: [row for row in rows if row["task"].startswith(noise)] for noise in NOISE}
        groups |= {f"d = {d}": [row for row in rows if row["task"].endswith(f" {d}")] for d in DIMENSIONS}
        lines = []
        for name, group in {**groups, "all": rows}.items():
            if not group:
                continue
            runs = len({(row["task"], row["trial"]) for row in group})
            once = len({(row["task"], row["trial"]) for row in group if row["at_start"] == "0"})
            lines.append(
                [name, runs, *(f"{100 * left(group, look):.1f}" for look in LOOKS), f"{100 * once / runs:.1f}"]
            )
        text = "Values are noise alone. How many runs recommend another point than the start:\n\n"
        return text + table(["noise", "runs", *(f"after {look}, %" for look in LOOKS), "at any of these, %"], lines)


def left(rows: Sequence[Row], look: int) -> float:
    """The share of runs that recommend another point than the start."""
    at_start = [int(row["at_start"]) for row in rows if row["look"] == str(look)]
    return 1.0 - sum(at_start) / len(at_start)
