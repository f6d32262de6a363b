"""Policies with 4 to 110 parameters in Gymnasium's and dm_control's environments, the parameters in a random order.

The list is all of Gymnasium's classic control and MuJoCo environments, with a linear policy and with a perceptron of
four hidden units, and all of dm_control's benchmarking suite with a linear policy: each that has 4 to 110 parameters.
An instance draws the order in which a method sees the parameters, so a method that asks for the first ones first cannot
gain from how the environment's authors ordered them; and a perceptron's hidden weights at the start.

The scale is 1/√k for k inputs, the usual size of a weight; a run is looked at after 50, 100 and 200 episodes. Nothing
is normalised. The best known returns only set the unit.
"""

from __future__ import annotations

import functools
import importlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibo._linalg import Array
from gibo.outcome import Outcome
from gibo.policies import task as policy_tasks
from gibo_studies.leaderboard.task import Problem, Task, generator

LOOKS = (50, 100, 200)
FEWEST, MOST = 4, 110  # parameters
HIDDEN = 4
JUDGING_EPISODES, JUDGING_SEED = 20, 77

# Numbers in a state, outputs of a policy, and the best known return, about.
GYMNASIUM = {
    "CartPole-v1": (4, 1, 500.0),
    "MountainCar-v0": (2, 3, -100.0),
    "MountainCarContinuous-v0": (2, 1, 95.0),
    "Pendulum-v1": (3, 1, -150.0),
    "Acrobot-v1": (6, 3, -75.0),
    "Ant-v5": (105, 8, 3500.0),
    "HalfCheetah-v5": (17, 6, 5000.0),
    "Hopper-v5": (11, 3, 3300.0),
    "Humanoid-v5": (348, 17, 5000.0),
    "HumanoidStandup-v5": (348, 17, 1e5),
    "InvertedDoublePendulum-v5": (9, 1, 9350.0),
    "InvertedPendulum-v5": (4, 1, 1000.0),
    "Pusher-v5": (23, 7, -25.0),
    "Reacher-v5": (10, 2, -4.0),
    "Swimmer-v5": (8, 2, 360.0),
    "Walker2d-v5": (17, 6, 4000.0),
}
# Of dm_control; an episode's return is at most 1000.
DM_CONTROL = {
    "acrobot swingup": (6, 1),
    "acrobot swingup_sparse": (6, 1),
    "ball_in_cup catch": (8, 2),
    "cartpole balance": (5, 1),
    "cartpole balance_sparse": (5, 1),
    "cartpole swingup": (5, 1),
    "cartpole swingup_sparse": (5, 1),
    "cheetah run": (17, 6),
    "finger spin": (9, 2),
    "finger turn_easy": (12, 2),
    "finger turn_hard": (12, 2),
    "fish upright": (21, 5),
    "fish swim": (24, 5),
    "hopper stand": (15, 4),
    "hopper hop": (15, 4),
    "humanoid stand": (67, 21),
    "humanoid walk": (67, 21),
    "humanoid run": (67, 21),
    "manipulator bring_ball": (44, 5),
    "pendulum swingup": (3, 1),
    "point_mass easy": (4, 2),
    "reacher easy": (6, 2),
    "reacher hard": (6, 2),
    "swimmer swimmer6": (25, 5),
    "swimmer swimmer15": (61, 14),
    "walker stand": (24, 6),
    "walker walk": (24, 6),
    "walker run": (24, 6),
}
DM_BEST = 1000.0


def tasks() -> tuple[Task, ...]:
    """The list; see the module's text."""
    perceptron = f"mlp:{HIDDEN}"
    found = [
        *(_task(id, "linear", k, k * m, best) for id, (k, m, best) in GYMNASIUM.items()),
        *(
            _task(id, perceptron, k, (k + 1) * HIDDEN + (HIDDEN + 1) * m, best)
            for id, (k, m, best) in GYMNASIUM.items()
        ),
        *(_task(f"dm {name}", "linear", k, k * m, DM_BEST) for name, (k, m) in DM_CONTROL.items()),
    ]
    return tuple(task for task in found if FEWEST <= task.d <= MOST)


def _task(environment: str, policy: str, inputs: int, d: int, best: float) -> Task:
    needs: tuple[str, ...] = ("gymnasium",)
    if environment.startswith("dm "):
        needs = ("gymnasium", "dm_control")
    elif environment.endswith("-v5"):
        needs = ("gymnasium", "mujoco")
    make = PolicySearch(environment, policy, best)
    return Task(
        f"{environment} {policy}", np.zeros(d), 1.0 / math.sqrt(inputs), LOOKS[-1], make, "own", LOOKS,
        needs=needs,
    )  # fmt: skip


@dataclass(frozen=True)
class PolicySearch:
    """A policy in an environment; `order` of an instance says where in the policy's parameters each of x belongs."""

    environment: str
    policy: str
    best: float

    def __call__(self, number: int) -> Problem:
        task = _policy_task(self.environment, self.policy)
        order = generator(f"{self.environment} {self.policy}", number).permutation(task.d)

        def ordered(x: Array) -> Array:
            theta = np.empty(task.d)
            theta[order] = x
            return theta

        def evaluate(x: Array, seed: int) -> Outcome:
            return task(ordered(x), seed=seed)

        def truth(x: Array) -> float:
            played = task.evaluate(ordered(x), JUDGING_EPISODES, seed=JUDGING_SEED)
            return math.fsum(episode.value for episode in played) / len(played)

        return Problem(evaluate, truth, self.best, start=task.x0(number)[order])


@functools.lru_cache(maxsize=64)
def _policy_task(environment: str, policy: str) -> policy_tasks.Task:
    """One per process, which keeps its environment."""
    if environment.startswith("dm "):
        return policy_tasks.Task(functools.partial(dm_environment, environment.removeprefix("dm ")), policy)
    return policy_tasks.Task(environment, policy)


def dm_environment(name: str) -> Any:
    """A task of dm_control's suite, such as "cheetah run", as a Gymnasium environment; its state is flat."""
    gymnasium = importlib.import_module("gymnasium")
    suite = importlib.import_module("dm_control.suite")
    source = suite.load(*name.split())

    def flat(step: Any) -> Array:
        return np.concatenate([np.ravel(part) for part in step.observation.values()]).astype(np.float64)

    class FromDmControl(gymnasium.Env):  # type: ignore[name-defined, misc]  # the base class is loaded late
        def __init__(self) -> None:
            limits, size = source.action_spec(), len(flat(source.reset()))
            self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float64)
            self.action_space = gymnasium.spaces.Box(limits.minimum, limits.maximum, dtype=np.float64)

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Array, dict[str, Any]]:
            if seed is not None:
                source.task._random = np.random.RandomState(seed % 2**32)
            return flat(source.reset()), {}

        def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
            step = source.step(action)
            terminated = step.last() and step.discount == 0.0
            return flat(step), float(step.reward), terminated, step.last() and not terminated, {}

    return FromDmControl()
