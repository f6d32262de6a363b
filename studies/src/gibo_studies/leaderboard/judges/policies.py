"""Policies with 4 to 110 parameters in Gymnasium's environments, the parameters in a random order.

The list is all of Gymnasium's classic control and MuJoCo environments, with a linear policy and with a perceptron of
four hidden units: each that has 4 to 110 parameters. An instance draws the order in which a method sees the parameters,
so a method that asks for the first ones first cannot gain from how the environment's authors ordered them; and a
perceptron's hidden weights at the start.

The scale is 1/√k for k inputs, the usual size of a weight; a run is looked at after 50, 100 and 200 episodes. Nothing
is normalised. The best known returns only set the unit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gibo_studies.leaderboard.environments import Environment
from gibo_studies.leaderboard.task import Task

LOOKS = (50, 100, 200)
FEWEST, MOST = 4, 110  # parameters
HIDDEN = 4

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


def tasks() -> tuple[Task, ...]:
    return with_policies(GYMNASIUM)


def with_policies(
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
