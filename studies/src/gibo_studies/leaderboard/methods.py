"""The methods of the leaderboard. A new one is one more entry; one of a user's own is named by ``module:Name``.

All get the same start, scale and bounds. Those that search a box get one of `REACH` scales around the start where a
task has no bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibo._linalg import Array
from gibo._plugins import is_place, load
from gibo.errors import InputError
from gibo.optimizers.ars import ARS
from gibo.optimizers.base import Optimizer
from gibo.optimizers.cma import CMAES
from gibo.optimizers.gibo import GIBO
from gibo.optimizers.random_search import RandomSearch
from gibo.optimizers.settings import Settings
from gibo.optimizers.vanilla_bo import VanillaBO
from gibo_studies.leaderboard.task import Task
from gibo_studies.rivals import MPD, BestPracticeBO, LocalEntropySearch, MinUCB, TrustRegionBO
from gibo_studies.rivals.foreign import COBYQA, LRACMAES, LqCMAES, OptunaGP, OptunaTPE, PyBADS, PyBOBYQA
from gibo_studies.study import choose

REACH = 5.0
DEFAULT = "GIBO with bound step"
REEVALUATED = " (re-evaluated)"
OUR_READING = " (our reading)"  # of a paper whose own code did not run here

# From a task, the scale that the method is told, and a seed.
Maker = Callable[[Task, float, int], Optimizer]


@dataclass(frozen=True)
class Method:
    """A method as the leaderboard knows it."""

    make: Maker
    needs: tuple[str, ...] = ()  # modules
    # It recommends the point with the highest value seen. Before a judge it is then also shown with the best of a few
    # such points by the mean of new evaluations, under its name and `REEVALUATED`.
    luckiest: bool = False


def _plain(kind: Callable[..., Optimizer], **options: Any) -> Maker:
    return lambda task, scale, seed: kind(task.start, scale=scale, bounds=task.bounds, seed=seed, **options)


def _in_a_box(kind: Callable[..., Optimizer], **options: Any) -> Maker:
    def make(task: Task, scale: float, seed: int) -> Optimizer:
        return kind(task.start, scale=scale, bounds=box(task, scale), seed=seed, **options)

    return make


def box(task: Task, scale: float) -> tuple[Array, Array]:
    """The task's bounds, or what is within `REACH` scales of its start."""
    if task.bounds is not None:
        lower, upper = task.bounds
        return np.full(task.d, lower), np.full(task.d, upper)
    return task.start - REACH * scale, task.start + REACH * scale


def _best_practice(task: Task, scale: float, seed: int) -> Optimizer:
    return BestPracticeBO.on_the_unit_cube(task.start, *box(task, scale), seed)


METHODS: dict[str, Method] = {
    DEFAULT: Method(_plain(GIBO)),
    "GIBO (paper)": Method(_plain(GIBO, settings=Settings.paper())),
    "CMA-ES": Method(_plain(CMAES), needs=("cma",)),
    "CMA-ES (noise handling)": Method(_plain(CMAES, noise_handling=True), needs=("cma",)),
    "ARS": Method(_plain(ARS)),
    "Vanilla BO": Method(_in_a_box(VanillaBO)),
    "Vanilla BO (best practice)": Method(_best_practice),
    f"Trust region BO{OUR_READING}": Method(_plain(TrustRegionBO)),
    f"MPD{OUR_READING}": Method(_plain(MPD)),
    f"MinUCB{OUR_READING}": Method(_plain(MinUCB)),
    f"Local entropy search{OUR_READING}": Method(_plain(LocalEntropySearch)),
    "Random search": Method(_plain(RandomSearch)),
    "CMA-ES (half sigma)": Method(_plain(CMAES, sigma0=0.5), needs=("cma",)),
    "lq-CMA-ES": Method(_plain(LqCMAES), needs=("cma",)),
    "LRA-CMA-ES": Method(_plain(LRACMAES), needs=("cmaes",)),
    "Optuna TPE": Method(_in_a_box(OptunaTPE), needs=("optuna",), luckiest=True),
    "Optuna GP": Method(_in_a_box(OptunaGP), needs=("optuna", "torch"), luckiest=True),
    "COBYQA": Method(_plain(COBYQA), luckiest=True),
    "Py-BOBYQA": Method(_plain(PyBOBYQA), needs=("pybobyqa",), luckiest=True),
    "PyBADS": Method(_plain(PyBADS), needs=("pybads",)),
}


def method_of(name: str) -> Method:
    """A method by its name, or by ``module:Name`` of an `Optimizer` class or a `Method`, which is entered so."""
    if name not in METHODS and is_place(name):
        found = load("methods", name)
        if isinstance(found, type) and issubclass(found, Optimizer):
            found = Method(_plain(found))
        if not isinstance(found, Method):
            raise InputError(f"methods: expected the place of an Optimizer class or of a Method, got {name!r}")
        METHODS[name] = found
    return METHODS[name]


def chosen_methods(names: Sequence[str]) -> tuple[str, ...]:
    """Methods by their names in any case, with or without `OUR_READING`, or by places, in the order of the table."""
    for place in filter(is_place, names):
        method_of(place)
    ours = {name.removesuffix(OUR_READING).lower(): name for name in METHODS if name.endswith(OUR_READING)}
    return choose([ours.get(name.lower(), name) for name in names], METHODS, "the leaderboard")
