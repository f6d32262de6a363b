"""The tasks by which a default may be chosen. What it is judged by is in `judges`."""

from __future__ import annotations

import functools
import importlib.util
from typing import Any

import numpy as np

from gibo_studies.leaderboard import functions as f
from gibo_studies.leaderboard.environments import Environment
from gibo_studies.leaderboard.task import Noise, Task


def _function(name: str, function: f.Function, d: int, noise: Noise, budget: int, **options: Any) -> Task:
    make = f.Shifted(name, function, d, noise, **options)
    marks = tuple(mark for mark in (20, 50, 100, 200, 300) if mark <= budget)
    return Task(name, np.zeros(d), make.scale, budget, make, noise, marks)


_ALL = [
    # The noise of 0.1 is 2 to 5 % of what there is to gain.
    Task("gp8", np.full(8, 0.5), 0.1, 300, f.Paper(8), "own", (50, 100, 200, 300), bounds=(0.0, 1.0)),
    _function("sphere20", f.sphere, 20, "middle", 200),
    _function("rotated-ellipsoid10", functools.partial(f.ellipsoid, condition=100.0), 10, "small", 300, rotated=True),
    _function("ackley10", f.ackley, 10, "small", 300),
    _function("saturating16", f.saturating, 16, "middle", 300, best=1.0),
    _function("l1-12", f.l1, 12, "large", 200),
    _function("plateau6", f.plateau, 6, "large", 100, best=1.0),
    Task(
        "hyper9", np.full(9, 0.5), 0.15, 100, f.Hyperparameters("hyper9", 9, 5, "middle"), "middle",
        (20, 50, 100), bounds=(0.0, 1.0),
    ),
    Task(
        "CartPole-v1", np.zeros(4), 0.1, 100, Environment("CartPole-v1", 500.0), "own", (16, 32, 48, 64, 100),
        needs=("gymnasium",),
    ),
    Task(
        "InvertedPendulum-v5", np.zeros(4), 1.0, 100, Environment("InvertedPendulum-v5", 1000.0), "own",
        (20, 50, 100), trials=5, needs=("gymnasium", "mujoco"),
    ),
    Task(
        "Swimmer-v5", np.zeros(16), 0.1, 300, Environment("Swimmer-v5", 360.0, 10), "own", (50, 100, 150, 300),
        trials=10, needs=("gymnasium", "mujoco"),
    ),
]  # fmt: skip

TASKS: dict[str, Task] = {task.name: task for task in _ALL}


def missing(needs: tuple[str, ...]) -> list[str]:
    """Which of these modules are not installed."""
    return [module for module in needs if importlib.util.find_spec(module) is None]
