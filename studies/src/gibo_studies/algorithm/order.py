"""Policies with their parameters in random order: mean returns, and how many trials are stuck."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gibo_studies.algorithm.study import AlgorithmStudy, Row
from gibo_studies.leaderboard.environments import Environment
from gibo_studies.leaderboard.task import Task
from gibo_studies.leaderboard.tasks import policy
from gibo_studies.report import table

STUCK = 0.1  # a trial is stuck that ends with less than this share of the possible improvement
# Mean returns of the former default (commit 9c8dfdf) in random order; on the first three environments with other orders
# and seeds.
FORMER: Mapping[str, tuple[int, ...]] = {
    "CartPole-v1": (348, 448),
    "InvertedPendulum-v5": (625, 929),
    "Swimmer-v5": (181, 219, 244),
    "Hopper-v5": (400, 497, 833),
    "HalfCheetah-v5": (534, 466, 543),
}


@dataclass(frozen=True)
class OrderStudy(AlgorithmStudy):
    """Linear policies with 4, 4, 16, 33 and 102 parameters; nothing is normalised."""

    def needs(self) -> tuple[str, ...]:
        return ("gymnasium", "mujoco")

    def tasks(self) -> Mapping[str, Task]:
        found = [
            policy(Environment("CartPole-v1", 500.0), 4, 0.1, (32, 64), trials=80),
            policy(Environment("InvertedPendulum-v5", 1000.0, 10), 4, 1.0, (50, 100), trials=24),
            policy(Environment("Swimmer-v5", 360.0, 10), 16, 0.1, (50, 100, 150), trials=8),
            policy(Environment("Hopper-v5", 3300.0, 8), 33, 11**-0.5, (75, 150, 300), trials=8),
            policy(Environment("HalfCheetah-v5", 5000.0, 8), 102, 17**-0.5, (50, 100, 200), trials=8),
        ]
        return {task.name: task for task in found}

    def table(self, rows: Sequence[Row]) -> str:
        lines = []
        for name, task in self.tasks().items():
            for mark, former in zip(task.marks, FORMER[name], strict=True):
                seen = [row for row in rows if row["task"] == name and row["look"] == str(mark)]
                returns = np.array([float(row["true"]) for row in seen])
                if len(seen) > 1:
                    error = returns.std(ddof=1) / len(seen) ** 0.5
                    stuck = sum(float(row["share"]) < STUCK for row in seen)
                    mean = f"{returns.mean():.0f} ± {error:.0f}"
                    lines.append([name, mark, len(seen), mean, former, f"{stuck} of {len(seen)}"])
        text = (
            "Mean return ± standard error of the recommended point, with the parameters in random order.\n"
            f"Stuck: less than {100 * STUCK:g} % of the possible improvement. The former default (commit 9c8dfdf) had\n"
            "other orders and seeds on the first three environments.\n\n"
        )
        return text + table(["environment", "episodes", "trials", "mean return", "former default", "stuck"], lines)
