"""Policies with their parameters in random order: mean returns, and how many trials are stuck."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gibo_studies.algorithm.study import AlgorithmStudy, Row
from gibo_studies.algorithm.tasks import Shuffled, policy
from gibo_studies.leaderboard.environments import Environment
from gibo_studies.leaderboard.task import Task
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


def _locomotion(id: str, inputs: int, outputs: int, best: float, marks: tuple[int, ...]) -> Task:
    start = np.zeros(inputs * outputs)
    make = Shuffled(Environment(id, best, 8), start)
    needs = ("gymnasium", "mujoco")
    return Task(id, start, inputs**-0.5, marks[-1], make, "own", marks, trials=8, needs=needs)


@dataclass(frozen=True)
class OrderStudy(AlgorithmStudy):
    """Linear policies with 4, 4, 16, 33 and 102 parameters; nothing is normalised."""

    def tasks(self) -> Mapping[str, Task]:
        found = [
            replace(policy(Environment("CartPole-v1", 500.0), (32, 64)), trials=80),
            replace(policy(Environment("InvertedPendulum-v5", 1000.0, 10), (50, 100)), trials=24),
            replace(policy(Environment("Swimmer-v5", 360.0, 10), (50, 100, 150)), trials=8),
            _locomotion("Hopper-v5", 11, 3, 3300.0, (75, 150, 300)),
            _locomotion("HalfCheetah-v5", 17, 6, 5000.0, (50, 100, 200)),
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
                    lines.append(
                        [
                            name,
                            mark,
                            len(seen),
                            f"{returns.mean():.0f} ± {error:.0f}",
                            former,
                            f"{stuck} of {len(seen)}",
                        ]
                    )
        text = "Mean return ± standard error of the recommended point, with the parameters in random order.\n"
        text += (
            f"Stuck: less than {100 * STUCK:g} % of the possible improvement. The former default (commit 9c8dfdf) had\n"
        )
        text += "other orders and seeds on the first three environments.\n\n"
        return text + table(["environment", "episodes", "trials", "mean return", "former default", "stuck"], lines)
