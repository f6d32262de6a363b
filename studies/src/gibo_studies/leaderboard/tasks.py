"""The tasks of the leaderboard, by which a default may be chosen. What it is judged by is in `judges`.

A new task is one more entry; one of a user's own, a `Task`, is named by ``module:Name``.
"""

from __future__ import annotations

import functools
import importlib.util
from dataclasses import replace
from typing import Any

import numpy as np

from gibo._plugins import is_place, load
from gibo.errors import InputError
from gibo_studies.leaderboard import functions as f
from gibo_studies.leaderboard import plants
from gibo_studies.leaderboard.environments import Environment, lander
from gibo_studies.leaderboard.task import Noise, Problem, Task

GYM, MUJOCO, BOX2D = ("gymnasium",), ("gymnasium", "mujoco"), ("gymnasium", "Box2D")


def _paper(d: int) -> Task:
    marks = (50, 100, 200, 300)
    start = np.full(d, 0.5)
    # The noise of 0.1 is 2 to 5 % of what there is to gain.
    return Task(f"gp{d}", start, 0.1, 300, f.Paper(d), "own", marks, bounds=(0.0, 1.0), trials=20)


def _function(name: str, function: f.Function, d: int, noise: Noise, budget: int, **options: Any) -> Task:
    make = f.Shifted(name, function, d, noise, **options)
    return Task(name, np.zeros(d), make.scale, budget, make, noise, _marks(budget))


def _marks(budget: int) -> tuple[int, ...]:
    return tuple(mark for mark in (20, 50, 100, 200, 300, 400, 600, 1000) if mark <= budget)


def _environment(make: Environment, d: int, scale: float, budget: int, marks: tuple[int, ...], **more: Any) -> Task:
    name = more.pop("name", make.id)
    return Task(name, np.zeros(d), scale, budget, make, "own", marks, **more)


def _ellipsoid(condition: float) -> f.Function:
    return functools.partial(f.ellipsoid, condition=condition)


def _rover(number: int) -> Problem:
    return plants.rover("rover60", "small")


_EXPENSIVE: dict[str, Any] = {"expensive": True, "trials": 5, "needs": MUJOCO}
_CLASSIC: dict[str, Any] = {"needs": GYM}

_ALL = [
    _paper(8),
    _paper(20),
    _paper(36),
    _function("sphere20", f.sphere, 20, "middle", 200),
    _function("rotated-ellipsoid10", _ellipsoid(100.0), 10, "small", 300, rotated=True),
    Task(
        "rosenbrock8", np.zeros(8), 0.3, 400, f.Rosenbrock("rosenbrock8", 8, "small"), "small", _marks(400)
    ),
    _function("ackley10", f.ackley, 10, "small", 300),
    _function("saturating16", f.saturating, 16, "middle", 300, best=1.0),
    Task("cliff12", np.zeros(12), 1.0, 200, f.Cliff("cliff12", 12, "middle"), "middle", _marks(200)),
    _function("l1-12", f.l1, 12, "large", 200),
    Task(
        "lqr", np.zeros(9), 0.1, 130, plants.regulator, "own", (30, 60, 100, 130)
    ),
    _environment(Environment("CartPole-v1", 500.0), 4, 0.1, 100, (16, 32, 48, 64, 100), **_CLASSIC),
    _environment(Environment("Reacher-v5", -4.0, 40), 20, 0.1, 300, (100, 200, 300), **_EXPENSIVE),
    _environment(Environment("InvertedPendulum-v5", 1000.0), 4, 1.0, 100, (20, 50, 100), **_EXPENSIVE),
    _environment(
        Environment("Swimmer-v5", 360.0, 10), 16, 0.1, 300, (50, 100, 150, 300), **{**_EXPENSIVE, "trials": 10}
    ),
    _environment(
        Environment("HalfCheetah-v5", 5000.0, 10, normalize=True), 102, 0.1, 600,
        (100, 200, 300, 400, 500, 600), **{**_EXPENSIVE, "trials": 10},
    ),
    _function("axis-ellipsoid20", _ellipsoid(1000.0), 20, "small", 400),
    _function("levy10", f.levy, 10, "middle", 300, scale=2.0),
    _function("sphere60", f.sphere, 60, "middle", 400),
    _function("griewank24", f.griewank, 24, "middle", 400),
    _function("sharp-ridge10", f.sharp_ridge, 10, "small", 300, rotated=True),
    _function("plateau6", f.plateau, 6, "large", 100, best=1.0),
    Task(
        "hyper5", np.full(5, 0.5), 0.15, 60, plants.Hyperparameters("hyper5", 5, 4, "small"), "small",
        (20, 40, 60), bounds=(0.0, 1.0),
    ),
    Task(
        "hyper9", np.full(9, 0.5), 0.15, 100, plants.Hyperparameters("hyper9", 9, 5, "middle"), "middle",
        (20, 50, 100), bounds=(0.0, 1.0),
    ),
    Task(
        "rotated-rosenbrock12", np.zeros(12), 0.3, 500,
        f.Rosenbrock("rotated-rosenbrock12", 12, "small", rotated=True), "small", (50, 100, 200, 300, 500),
    ),
    Task("pid", plants.PID_START, 0.5, 60, plants.pid, "own", (20, 40, 60)),
    Task("rover60", plants.rover_start(), 0.03, 500, _rover, "small", (100, 200, 300, 500)),
    _environment(Environment("Acrobot-v1", -75.0), 18, 0.3, 100, (20, 50, 100), **_CLASSIC),
    _environment(
        Environment("Pendulum-v1", -750.0, 40, "affine"), 4, 1.0, 200, (50, 100, 200), **_CLASSIC
    ),
    _environment(
        Environment("MountainCarContinuous-v0", 95.0, normalize=True), 2, 1.0, 150, (50, 100, 150),
        **_CLASSIC,
    ),
    _environment(
        Environment("InvertedDoublePendulum-v5", 9350.0), 9, 0.3, 200, (50, 100, 200), **_EXPENSIVE
    ),
    Task(
        "LunarLander-v3 heuristic", np.full(12, 0.5), 0.2, 240, lander, "own", (60, 120, 240),
        expensive=True, trials=5, needs=BOX2D,
    ),
    _environment(
        Environment("LunarLander-v3", 280.0), 32, 0.2, 300, (100, 200, 300),
        **{**_EXPENSIVE, "needs": BOX2D, "name": "LunarLander-v3 linear"},
    ),
    _environment(
        Environment("BipedalWalker-v3", 300.0, 10, normalize=True), 96, 0.1, 500, (100, 200, 300, 500),
        **{**_EXPENSIVE, "needs": BOX2D},
    ),
    _environment(
        Environment("Hopper-v5", 3300.0, 10, normalize=True), 33, 0.1, 1000, (200, 400, 600, 1000),
        **{**_EXPENSIVE, "trials": 10},
    ),
    _environment(
        Environment("Walker2d-v5", 4000.0, 10, normalize=True), 102, 0.1, 1000, (200, 400, 600, 1000),
        **_EXPENSIVE,
    ),
    _environment(
        Environment("Ant-v5", 3500.0, 10, normalize=True), 840, 0.1, 600, (100, 200, 300, 600), **_EXPENSIVE
    ),
    _environment(
        Environment("Hopper-v5", 3300.0, 10, "affine", normalize=True, reward_shift=1.0), 36, 0.1, 1000,
        (200, 400, 600, 1000), **{**_EXPENSIVE, "trials": 10, "name": "Hopper-v5 affine without bonus"},
    ),
    _environment(
        Environment("Swimmer-v5", 360.0, 10, action_noise=0.5), 16, 0.1, 150, (50, 100, 150),
        **{**_EXPENSIVE, "trials": 10, "name": "Swimmer-v5 action noise 0.5"},
    ),
]  # fmt: skip

TASKS: dict[str, Task] = {task.name: task for task in _ALL}


def task_of(name: str) -> Task:
    """A task by its name, or by ``module:Name``, which is entered so."""
    if name not in TASKS and is_place(name):
        found = load("tasks", name)
        if not isinstance(found, Task):
            raise InputError(f"tasks: expected the place of a Task, got {name!r}")
        TASKS[name] = replace(found, name=name)
    return TASKS[name]


def chosen_tasks(names: tuple[str, ...]) -> tuple[str, ...]:
    """Tasks by names in any case, or by "cheap", in the order of the table; all if none is named."""
    wanted = []
    for name in names:
        lower = name.lower()
        if is_place(name):
            task_of(name)
        found = [task.name for task in TASKS.values() if lower == task.name.lower()]
        if lower == "cheap":
            found = [task.name for task in TASKS.values() if not task.expensive]
        if not found:
            raise InputError(f"tasks: {name!r} is not known; there are cheap, {', '.join(TASKS)}")
        wanted += found
    return tuple(name for name in TASKS if name in wanted or not names)


def missing(needs: tuple[str, ...]) -> list[str]:
    """Which of these modules are not installed."""
    return [module for module in needs if importlib.util.find_spec(module) is None]
