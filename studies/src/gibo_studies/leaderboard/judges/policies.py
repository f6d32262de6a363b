"""Policies with 4 to 110 parameters in Gymnasium's and in dm_control's environments, the parameters in a random order.

The lists are all of Gymnasium's classic control and MuJoCo environments, and the first task of each domain in the order
of dm_control's benchmarking suite; with a linear policy and with a perceptron of four hidden units: each that has 4 to
110 parameters. An instance draws the order in which a method sees the parameters, so a method that asks for the first
ones first cannot gain from how the environment's authors ordered them; and a perceptron's hidden weights at the start.

The scale is 1/√k for k inputs, the usual size of a weight; a run is looked at after 50, 100 and 200 episodes. Nothing
is normalised. The best known returns only set the unit.

An episode of dm_control has `STEPS` control steps, a quarter of its own, so that a run takes less than a minute; a
step's reward is at most 1. dm_control 1.0.50 needs MuJoCo 3, so this judge has a Python environment of its own.
"""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gibo._linalg import Array
from gibo_studies.leaderboard.environments import Environment
from gibo_studies.leaderboard.task import Task

LOOKS = (50, 100, 200)
FEWEST, MOST = 4, 110  # parameters
HIDDEN = 4
STEPS = 250

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
DM_CONTROL = {
    "acrobot swingup": (6, 1, float(STEPS)),
    "ball_in_cup catch": (8, 2, float(STEPS)),
    "cartpole balance": (5, 1, float(STEPS)),
    "cheetah run": (17, 6, float(STEPS)),
    "finger spin": (9, 2, float(STEPS)),
    "fish upright": (21, 5, float(STEPS)),
    "hopper stand": (15, 4, float(STEPS)),
    "humanoid stand": (67, 21, float(STEPS)),
    "manipulator bring_ball": (44, 5, float(STEPS)),
    "pendulum swingup": (3, 1, float(STEPS)),
    "point_mass easy": (4, 2, float(STEPS)),
    "reacher easy": (6, 2, float(STEPS)),
    "swimmer swimmer6": (25, 5, float(STEPS)),
    "walker stand": (24, 6, float(STEPS)),
}


def tasks(
    environments: Mapping[str, tuple[int, int, float]], make: Callable[[str], Any] | None = None
) -> tuple[Task, ...]:
    """All environments with a linear policy, then with a perceptron, of those with `FEWEST` to `MOST` parameters.

    An environment has the numbers in a state, the outputs of a policy, and the best known return.
    """

    def task(name: str, policy: str, d: int) -> Task:
        inputs, _, best = environments[name]
        search = Environment(name, best, policy=policy, make=make, shuffled=True)
        return Task(f"{name} {policy}", np.zeros(d), 1.0 / math.sqrt(inputs), search, LOOKS)

    sizes = environments.items()
    linear = [task(name, "linear", k * m) for name, (k, m, _) in sizes]
    perceptrons = [task(name, f"mlp:{HIDDEN}", (k + 1) * HIDDEN + (HIDDEN + 1) * m) for name, (k, m, _) in sizes]
    return tuple(each for each in (*linear, *perceptrons) if FEWEST <= each.d <= MOST)


def from_dm_control(name: str) -> Any:
    """A task of dm_control's suite, such as "cheetah run", as a Gymnasium environment; its state is flat."""
    os.environ.setdefault("MUJOCO_GL", "off")  # nothing is drawn, and without a display its import warns
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
            self.steps = 0

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Array, dict[str, Any]]:
            if seed is not None:
                source.task._random = np.random.RandomState(seed % 2**32)
            self.steps = 0
            return flat(source.reset()), {}

        def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
            step = source.step(action)
            self.steps += 1
            terminated = step.last() and step.discount == 0.0
            truncated = self.steps == STEPS or (step.last() and not terminated)
            return flat(step), float(step.reward), terminated, truncated, {}

    return FromDmControl()
