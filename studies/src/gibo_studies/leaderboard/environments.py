"""Policy search as tasks: policies in Gymnasium's environments.

A value is one episode's return; judged is the mean of many episodes with seeds of their own, the same for all.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibo._linalg import Array
from gibo.outcome import Outcome
from gibo.policies.task import Task
from gibo_studies.leaderboard.task import Problem, generator

JUDGING_SEED = 77


@dataclass(frozen=True)
class Environment:
    """A policy in an environment."""

    id: str  # Gymnasium's name
    reference: float  # the best known return, about
    episodes: int = 20  # by which a policy is judged
    policy: str = "linear"
    make: Callable[[str], Any] | None = None  # the environment from its name; Gymnasium's own if None
    shuffled: bool = False  # an instance draws the order in which a method sees the parameters, and its start

    def __call__(self, number: int) -> Problem:
        task = policy_task(self.id, self.policy, self.make)
        rng = generator(f"{self.id} {self.policy}", number)
        order = rng.permutation(task.d) if self.shuffled else np.arange(task.d)

        def ordered(x: Array) -> Array:
            theta = np.empty(task.d)
            theta[order] = x
            return theta

        def evaluate(x: Array, seed: int) -> Outcome:
            return task(ordered(x), seed=seed)

        def truth(x: Array) -> float:
            played = task.evaluate(ordered(x), self.episodes, seed=JUDGING_SEED)
            return math.fsum(episode.value for episode in played) / len(played)

        return Problem(evaluate, truth, self.reference, start=task.x0(number)[order] if self.shuffled else None)


@functools.lru_cache(maxsize=64)
def policy_task(name: str, policy: str, make: Callable[[str], Any] | None) -> Task:
    """One per process, which keeps its environment."""
    return Task(name if make is None else functools.partial(make, name), policy)
