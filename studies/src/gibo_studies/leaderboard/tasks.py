"""All tasks of the leaderboard, in two halves that are fixed: one to choose a default by, one to judge it by.

A new task is one more entry; one of a user's own, a `Task`, is named by ``module:Name``. The halves must not be changed
once a default has been chosen. Beside them stand the rest of the noisy BBOB suite, a choice that others made, and
policies that are trained in another way, with noise on their actions or without the bonus for being alive; they are run
when they are named.
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
from gibo_studies.leaderboard.bbob import Bbob
from gibo_studies.leaderboard.environments import Environment, lander
from gibo_studies.leaderboard.task import BBOB, CHOOSE, JUDGE, TRAINED, Half, Problem, Task

GYM, MUJOCO, BOX2D = ("gymnasium",), ("gymnasium", "mujoco"), ("gymnasium", "Box2D")


def _paper(d: int) -> Task:
    marks = (50, 100, 200, 300)
    start = np.full(d, 0.5)
    # The noise of 0.1 is 2 to 5 % of what there is to gain.
    return Task(f"gp{d}", CHOOSE, start, 0.1, 300, f.Paper(d), "own", marks, solved=0.9, bounds=(0.0, 1.0), trials=20)


def _function(
    name: str, half: Half, function: f.Function, d: int, noise: Any, budget: int, solved: float = 0.95, **options: Any
) -> Task:
    make = f.Shifted(name, function, d, noise, **options)
    return Task(name, half, np.zeros(d), make.scale, budget, make, noise, _marks(budget), solved=solved)


def _marks(budget: int) -> tuple[int, ...]:
    return tuple(mark for mark in (20, 50, 100, 200, 300, 400, 600, 1000) if mark <= budget)


def _environment(
    half: Half, make: Environment, d: int, scale: float, budget: int, marks: tuple[int, ...], solved: float, **more: Any
) -> Task:
    name = more.pop("name", make.id)
    return Task(name, half, np.zeros(d), scale, budget, make, "own", marks, solved=solved, **more)


def _ellipsoid(condition: float) -> f.Function:
    return functools.partial(f.ellipsoid, condition=condition)


def _bbob(number: int, d: int, name: str, half: Half = JUDGE) -> Task:
    """Start in the middle of the suite's box; its best points are within 4 of it in every parameter."""
    bounds, needs = (-5.0, 5.0), ("cma",)
    return Task(
        f"bbob-{number} {name}", half, np.zeros(d), 1.5, 300, Bbob(number, d), "own", _marks(300), 0.95, bounds,
        needs=needs,
    )  # fmt: skip


def _rover(number: int) -> Problem:
    return plants.rover("rover60", "small")


_DEAR: dict[str, Any] = {"dear": True, "trials": 5, "needs": MUJOCO}
_CLASSIC: dict[str, Any] = {"needs": GYM}

_ALL = [
    # -- to choose by
    _paper(8),
    _paper(20),
    _paper(36),
    _function("sphere20", CHOOSE, f.sphere, 20, "middle", 200),
    _function("rotated-ellipsoid10", CHOOSE, _ellipsoid(100.0), 10, "small", 300, rotated=True),
    Task(
        "rosenbrock8", CHOOSE, np.zeros(8), 0.3, 400, f.Rosenbrock("rosenbrock8", 8, "small"), "small", _marks(400),
        solved=0.8,
    ),
    _function("ackley10", CHOOSE, f.ackley, 10, "small", 300, solved=0.8),
    _function("saturating16", CHOOSE, f.saturating, 16, "middle", 300, best=1.0),
    Task("cliff12", CHOOSE, np.zeros(12), 1.0, 200, f.Cliff("cliff12", 12, "middle"), "middle", _marks(200), 0.9),
    _function("l1-12", CHOOSE, f.l1, 12, "large", 200, solved=0.8),
    Task(
        "lqr", CHOOSE, np.zeros(9), 0.1, 130, plants.regulator, "own", (30, 60, 100, 130),
        solved=0.77,  # a relative cost of 0.05
    ),
    _environment(CHOOSE, Environment("CartPole-v1", 500.0), 4, 0.1, 100, (16, 32, 48, 64, 100), 0.95, **_CLASSIC),
    _environment(CHOOSE, Environment("Reacher-v5", -4.0, 40), 20, 0.1, 300, (100, 200, 300), 0.5, **_DEAR),
    _environment(CHOOSE, Environment("InvertedPendulum-v5", 1000.0), 4, 1.0, 100, (20, 50, 100), 0.95, **_DEAR),
    _environment(
        CHOOSE, Environment("Swimmer-v5", 360.0, 10), 16, 0.1, 300, (50, 100, 150, 300), 0.94, **{**_DEAR, "trials": 10}
    ),
    _environment(
        CHOOSE, Environment("HalfCheetah-v5", 5000.0, 10, normalize=True), 102, 0.1, 600,
        (100, 200, 300, 400, 500, 600), 0.4, **{**_DEAR, "trials": 10},
    ),
    # -- to judge by
    _function("axis-ellipsoid20", JUDGE, _ellipsoid(1000.0), 20, "small", 400),
    _function("levy10", JUDGE, f.levy, 10, "middle", 300, solved=0.9, scale=2.0),
    _function("sphere60", JUDGE, f.sphere, 60, "middle", 400, solved=0.9),
    _function("griewank24", JUDGE, f.griewank, 24, "middle", 400, solved=0.9),
    _function("sharp-ridge10", JUDGE, f.sharp_ridge, 10, "small", 300, solved=0.9, rotated=True),
    _function("plateau6", JUDGE, f.plateau, 6, "large", 100, best=1.0),
    Task(
        "hyper5", JUDGE, np.full(5, 0.5), 0.15, 60, plants.Hyperparameters("hyper5", 5, 4, "small"), "small",
        (20, 40, 60), solved=0.8, bounds=(0.0, 1.0),
    ),
    Task(
        "hyper9", JUDGE, np.full(9, 0.5), 0.15, 100, plants.Hyperparameters("hyper9", 9, 5, "middle"), "middle",
        (20, 50, 100), solved=0.8, bounds=(0.0, 1.0),
    ),
    Task(
        "rotated-rosenbrock12", JUDGE, np.zeros(12), 0.3, 500,
        f.Rosenbrock("rotated-rosenbrock12", 12, "small", rotated=True), "small", (50, 100, 200, 300, 500), solved=0.7,
    ),
    _bbob(101, 10, "sphere"),
    _bbob(107, 10, "sphere"),
    _bbob(110, 8, "rosenbrock"),
    _bbob(116, 10, "ellipsoid"),
    Task("pid", JUDGE, plants.PID_START, 0.5, 60, plants.pid, "own", (20, 40, 60), solved=0.9),
    Task("rover60", JUDGE, plants.rover_start(), 0.03, 500, _rover, "small", (100, 200, 300, 500), solved=0.8),
    _environment(JUDGE, Environment("Acrobot-v1", -75.0), 18, 0.3, 100, (20, 50, 100), 0.95, **_CLASSIC),
    _environment(
        JUDGE, Environment("Pendulum-v1", -750.0, 40, "affine"), 4, 1.0, 200, (50, 100, 200), 0.6, **_CLASSIC
    ),
    _environment(
        JUDGE, Environment("MountainCarContinuous-v0", 95.0, normalize=True), 2, 1.0, 150, (50, 100, 150), 0.94,
        **_CLASSIC,
    ),
    _environment(
        JUDGE, Environment("InvertedDoublePendulum-v5", 9350.0), 9, 0.3, 200, (50, 100, 200), 0.95, **_DEAR
    ),
    Task(
        "LunarLander-v3 heuristic", JUDGE, np.full(12, 0.5), 0.2, 240, lander, "own", (60, 120, 240), solved=0.8,
        dear=True, trials=5, needs=BOX2D,
    ),
    _environment(
        JUDGE, Environment("LunarLander-v3", 280.0), 32, 0.2, 300, (100, 200, 300), 0.7,
        **{**_DEAR, "needs": BOX2D, "name": "LunarLander-v3 linear"},
    ),
    _environment(
        JUDGE, Environment("BipedalWalker-v3", 300.0, 10, normalize=True), 96, 0.1, 500, (100, 200, 300, 500), 0.3,
        **{**_DEAR, "needs": BOX2D},
    ),
    _environment(
        JUDGE, Environment("Hopper-v5", 3300.0, 10, normalize=True), 33, 0.1, 1000, (200, 400, 600, 1000), 0.75,
        **{**_DEAR, "trials": 10},
    ),
    _environment(
        JUDGE, Environment("Walker2d-v5", 4000.0, 10, normalize=True), 102, 0.1, 1000, (200, 400, 600, 1000), 0.25,
        **_DEAR,
    ),
    _environment(
        JUDGE, Environment("Ant-v5", 3500.0, 10, normalize=True), 840, 0.1, 600, (100, 200, 300, 600), 0.2, **_DEAR
    ),
    # -- beside them
    _environment(
        TRAINED, Environment("Hopper-v5", 3300.0, 10, "affine", normalize=True, reward_shift=1.0), 36, 0.1, 1000,
        (200, 400, 600, 1000), 0.75, **{**_DEAR, "trials": 10, "name": "Hopper-v5 affine without bonus"},
    ),
    _environment(
        TRAINED, Environment("Swimmer-v5", 360.0, 10, action_noise=0.5), 16, 0.1, 150, (50, 100, 150), 0.94,
        **{**_DEAR, "trials": 10, "name": "Swimmer-v5 action noise 0.5"},
    ),
]  # fmt: skip

# The suite's functions from 101 on, each with normal, uniform and Cauchy noise; the first six with little of it.
_SUITE = [
    *("sphere", "sphere", "sphere", "rosenbrock", "rosenbrock", "rosenbrock"),
    *(name for name in ("sphere", "rosenbrock", "step-ellipsoid", "ellipsoid", "powers") for _ in range(3)),
    *(name for name in ("schaffer", "griewank-rosenbrock", "gallagher") for _ in range(3)),
]
_JUDGED = (101, 107, 110, 116)
_ALL += [_bbob(i, 10, name, BBOB) for i, name in enumerate(_SUITE, start=101) if i not in _JUDGED]

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
    """Tasks by names in any case, or by halves, in the order of the table; both halves if none is named."""
    halves = [name for name, task in TASKS.items() if task.half in (CHOOSE, JUDGE)]
    wanted = []
    for name in names:
        lower = name.lower()
        if is_place(name):
            task_of(name)
        found = [task.name for task in TASKS.values() if lower in (task.name.lower(), task.half)]
        if lower == "cheap":
            found = [each for each in halves if not TASKS[each].dear]
        if not found:
            raise InputError(
                f"tasks: {name!r} is not known; there are choose, judge, bbob, trained, cheap, {', '.join(TASKS)}"
            )
        wanted += found
    return tuple(name for name in TASKS if name in wanted) if names else tuple(halves)


def missing(needs: tuple[str, ...]) -> list[str]:
    """Which of these modules are not installed."""
    return [module for module in needs if importlib.util.find_spec(module) is None]
