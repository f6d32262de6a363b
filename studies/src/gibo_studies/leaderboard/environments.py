"""Policy search as tasks: linear policies in Gymnasium's environments.

A value is one episode's return; judged is the mean of many episodes with seeds of their own, the same for all.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

from gibo._linalg import Array
from gibo.outcome import Outcome
from gibo.policies import task as policy_tasks
from gibo_studies.leaderboard.task import Problem

JUDGING_SEED = 77


@dataclass(frozen=True)
class Environment:
    """A linear policy in an environment.

    Attributes:
        id: Gymnasium's name.
        reference: the best known return, about.
        episodes: by which a policy is judged.
    """

    id: str
    reference: float
    episodes: int = 20

    def __call__(self, number: int) -> Problem:
        def evaluate(x: Array, seed: int) -> Outcome:
            return _policy_task(self.id)(x, seed=seed)

        def truth(x: Array) -> float:
            played = _policy_task(self.id).evaluate(x, self.episodes, seed=JUDGING_SEED)
            return math.fsum(episode.value for episode in played) / len(played)

        return Problem(evaluate, truth, self.reference)


@functools.lru_cache(maxsize=32)
def _policy_task(id: str) -> policy_tasks.Task:
    """One per process, which keeps its environment."""
    return policy_tasks.Task(id, "linear")
