"""Policies with 4 to 110 parameters in dm_control's benchmarking suite, the parameters in a random order.

The list is the first task of each domain in the order of the suite, with a linear policy and with a perceptron of four
hidden units: each that has 4 to 110 parameters. An episode has `STEPS` control steps, a quarter of dm_control's own, so
that a run takes less than a minute; a step's reward is at most 1. All else is as in `policies`.

dm_control 1.0.50 needs MuJoCo 3, so this judge has an environment of its own.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

import numpy as np

from gibo._linalg import Array
from gibo_studies.leaderboard.judges.policies import with_policies
from gibo_studies.leaderboard.task import Task

STEPS = 250

# Numbers in a state and outputs of a policy.
FIRST_OF_EACH_DOMAIN = {
    "acrobot swingup": (6, 1),
    "ball_in_cup catch": (8, 2),
    "cartpole balance": (5, 1),
    "cheetah run": (17, 6),
    "finger spin": (9, 2),
    "fish upright": (21, 5),
    "hopper stand": (15, 4),
    "humanoid stand": (67, 21),
    "manipulator bring_ball": (44, 5),
    "pendulum swingup": (3, 1),
    "point_mass easy": (4, 2),
    "reacher easy": (6, 2),
    "swimmer swimmer6": (25, 5),
    "walker stand": (24, 6),
}


def tasks() -> tuple[Task, ...]:
    environments = {name: (*sizes, float(STEPS)) for name, sizes in FIRST_OF_EACH_DOMAIN.items()}
    return with_policies(environments, environment)


def environment(name: str) -> Any:
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
