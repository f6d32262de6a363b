"""Policy search as tasks: linear policies in Gymnasium's environments, and a heuristic controller of the lander.

A value is one episode's return; judged is the mean of many episodes with seeds of their own, the same for all. Where
states are normalised, it is done as in `gibo.training`: statistics change between a method's iterations, and what it
was told moves with them.
"""

from __future__ import annotations

import functools
import importlib
import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibo._linalg import Array
from gibo.outcome import Outcome
from gibo.policies import gym_adapter
from gibo.policies import task as policy_tasks
from gibo.policies.normalizer import Normalization
from gibo.training.training import StateNormalizer
from gibo_studies.leaderboard.task import Problem

JUDGING_SEED = 77
LANDER, WALKER = "LunarLander-v3", "BipedalWalker-v3"  # of Box2D


@dataclass(frozen=True)
class Environment:
    """A linear or affine policy in an environment.

    Attributes:
        id: Gymnasium's name.
        reference: the best known return, about.
        episodes: by which a policy is judged.
        policy: "linear" or "affine".
        normalize: whether states are normalised.
        reward_shift, action_noise: of what a method is told, see `gibo.policies.Task`; judged is the return itself.
    """

    id: str
    reference: float
    episodes: int = 20
    policy: str = "linear"
    normalize: bool = False
    reward_shift: float = 0.0
    action_noise: float = 0.0

    def __call__(self, number: int) -> Problem:
        def evaluate(x: Array, seed: int, normalization: Normalization | None = None) -> Outcome:
            self._forget()
            return self._task(x, seed=seed, normalization=normalization)

        def truth(x: Array, normalization: Normalization | None = None) -> float:
            self._forget()
            played = self._task.evaluate(x, self.episodes, seed=JUDGING_SEED, normalization=normalization)
            return math.fsum(episode.value for episode in played) / len(played)

        def normalizer(reexpressed: str) -> StateNormalizer | None:
            return StateNormalizer(self._task.architecture, reexpressed) if self.normalize else None

        return Problem(evaluate, truth, self.reference, normalizer=normalizer)

    def _forget(self) -> None:
        """The walker's world keeps something of the episodes before; a new one does not."""
        if self.id == WALKER:
            self._task.close()

    @property
    def _task(self) -> policy_tasks.Task:
        return _policy_task(self.id, self.policy, self.normalize, self.reward_shift, self.action_noise)


@functools.lru_cache(maxsize=32)
def _policy_task(id: str, policy: str, normalize: bool, shift: float, noise: float) -> policy_tasks.Task:
    """One per process, which keeps its environment."""
    _load_box2d(id)
    return policy_tasks.Task(id, policy, normalize_states=normalize, reward_shift=shift, action_noise=noise)


# -- the lander's heuristic controller --------------------------------------------------------------------------------

LANDER_REFERENCE = 290.0
LANDER_EPISODES = 20


def lander(number: int) -> Problem:
    """LunarLander with a hand-made controller of 12 parameters, see `lander_action`."""

    def evaluate(x: Array, seed: int) -> float:
        return _land(x, int(np.random.SeedSequence((seed, 0)).generate_state(1)[0]))

    def truth(x: Array) -> float:
        seeds = np.random.SeedSequence((JUDGING_SEED, 1)).generate_state(LANDER_EPISODES)
        return math.fsum(_land(x, int(seed)) for seed in seeds) / LANDER_EPISODES

    return Problem(evaluate, truth, LANDER_REFERENCE)


def lander_action(w: Any, state: Any) -> int:
    """0 nothing, 1 left engine, 2 main engine, 3 right engine.

    The lander should lean towards the pad, by w0 per distance and w1 per speed, but by at most w2; it should be as high
    as w3 times its distance from the pad's axis. It turns by w4 times what is left of the angle, less w5 times its
    turning rate; it climbs by w6 times what is left of the height, less w7 times its speed. With a leg on the ground it
    turns by w8 of that only and brakes by w9 times its speed. Engines fire beyond the thresholds w10 and w11.
    """
    x, y, vx, vy, angle, turning, left_leg, right_leg = state
    lean = min(max(x * w[0] + vx * w[1], -w[2]), w[2])
    turn = (lean - angle) * w[4] - turning * w[5]
    climb = (w[3] * abs(x) - y) * w[6] - vy * w[7]
    if left_leg or right_leg:
        turn, climb = (w[8] - 0.5) * turn, -vy * w[9]  # at 0.5, where the search starts, not at all
    if climb > abs(turn) and climb > w[10]:
        return 2
    if turn < -w[11]:
        return 3
    return 1 if turn > w[11] else 0


def _land(x: Array, seed: int) -> float:
    environment, w = _lander(), x.tolist()
    state, _ = environment.reset(seed=seed)
    total, over = 0.0, False
    while not over:
        state, reward, terminated, truncated, _ = environment.step(lander_action(w, state.tolist()))
        total, over = total + float(reward), terminated or truncated
    return total


def _load_box2d(id: str) -> None:
    """Where warnings are errors, one that Box2D gives while it is loaded would end the process."""
    if id in (LANDER, WALKER):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module("Box2D")


@functools.lru_cache(maxsize=1)
def _lander() -> Any:
    _load_box2d(LANDER)
    return gym_adapter.make(LANDER, {})
