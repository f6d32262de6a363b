"""What is reached, and how often limits are violated, where limits lie between the start and the maximum.

    python -m gibo_studies.machines.limits --kinds coco pid quadrotor --seeds 8 --out limits.csv
    python -m gibo_studies.machines.limits --kinds pid quadrotor --seeds 8 --ways gp --out limits-gp.csv

The problems are those of `gibo_studies.machines.limited`. Ways: ``gibo``, ``careful`` (queries keep to the limits too),
``penalty`` (gibo with 10 times the excess taken off the value, both in standard deviations of the problem near the
start, which this way is told), ``tpe`` and ``gp`` (Optuna with `constraints_func`; ``gp`` needs PyTorch), ``cma``
(CMA-ES with augmented Lagrangians, `cma.ConstrainedFitnessAL`). A search has 10 evaluations per parameter. Optuna and
cma recommend their best value among the points that were measured to be within the limits.

A row has whether the recommended point truly satisfies the limits, by how much its value is above the start's, both
without noise, and the share of evaluations that truly violate a limit. docs/outputs.py makes the table of these rows.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from gibo import GIBO, Limits, Outcome
from gibo._linalg import Array
from gibo_studies.machines.common import arguments, queries, write
from gibo_studies.machines.limited import Coco, Limited, Pid, Quadratic, Quadrotor

PENALTY, NEAR = 10.0, 50
BASES, LIMITS = 9, 6  # COCO's functions: 6 numbers of limits, of which the first three are 1, 3 and 9, for each of 9
WAYS = ("gibo", "careful", "penalty", "tpe", "cma")


def problems(kind: str, dims: list[int], seeds: int) -> Iterator[tuple[int, Callable[[], Limited]]]:
    """The problems of a kind with a number for each; of those with a free number of parameters these dimensions."""
    if kind == "quadratic":
        yield from ((seed, partial(Quadratic, d, seed)) for d in (4, 12) if d in dims for seed in range(seeds))
    elif kind == "coco":  # each function in one dimension, each number of limits in each dimension equally often
        for base in range(BASES):
            for k, d in enumerate(np.roll([5, 10, 20], base).tolist()):
                number = LIMITS * base + k + 1
                if d in dims:
                    yield number, partial(Coco, number, d, 1)
    else:
        plant = {"pid": Pid, "quadrotor": Quadrotor}[kind]
        yield from ((seed, partial(plant, seed)) for seed in range(seeds))


def by_gibo(problem: Limited, budget: int, seed: int, way: str) -> Array:
    """The recommended point."""
    weight, units = typical(problem) if way == "penalty" else (0.0, np.zeros(1))
    names = [f"c{j}" for j in range(len(problem.truth(problem.x0)[1]))]
    limits = None if way == "penalty" else Limits(dict.fromkeys(names, (None, 0.0)), careful=way == "careful")
    optimizer = GIBO(problem.x0, scale=problem.scale, seed=seed, bounds=problem.bounds, limits=limits)
    for _, query in queries(optimizer, budget):
        value, c = problem(query.x)
        if way == "penalty":
            value -= weight * float((np.maximum(c, 0.0) / units).sum())
        optimizer.tell(query, Outcome(value, measured=dict(zip(names, c.tolist(), strict=True))))
    return problem.x0 if optimizer.best is None else optimizer.best.x


def typical(problem: Limited) -> tuple[float, Array]:
    """The weight of the penalty, and standard deviations of the quantities near the start."""
    rng = np.random.default_rng(0)
    X = np.clip(problem.x0 + problem.scale * rng.standard_normal((NEAR, len(problem.x0))), *problem.bounds)
    values, quantities = zip(*(problem.truth(x) for x in X), strict=True)
    return PENALTY * float(np.std(values)), np.maximum(np.std(quantities, axis=0), 1e-12)


def by_optuna(problem: Limited, budget: int, seed: int, way: str) -> Array:
    """The best of the trials that were measured to be within the limits; the first is the start."""
    optuna: Any = importlib.import_module("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    names = [f"x{i}" for i in range(len(problem.x0))]

    def objective(trial: Any) -> float:
        value, c = problem(np.array([trial.suggest_float(name, *problem.bounds) for name in names]))
        trial.set_user_attr("c", c.tolist())
        return value

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of experimental arguments
        samplers = {"tpe": optuna.samplers.TPESampler, "gp": optuna.samplers.GPSampler}
        sampler = samplers[way](seed=seed, constraints_func=lambda trial: trial.user_attrs["c"])
        study = optuna.create_study(direction="maximize", sampler=sampler)
        study.enqueue_trial(dict(zip(names, problem.x0.tolist(), strict=True)))
        study.optimize(objective, n_trials=budget)
    within = [trial for trial in study.trials if max(trial.user_attrs["c"]) <= 0.0]
    best = max(within, key=lambda trial: trial.value, default=study.trials[0])
    return np.array([best.params[name] for name in names])


def by_cma(problem: Limited, budget: int, seed: int, _: str) -> Array:
    """The best of the points that were measured to be within the limits, or the start."""
    cma: Any = importlib.import_module("cma")
    rng, told, last = np.random.default_rng(seed), 0, (0.0, np.zeros(1))

    def constraints(x: Array) -> list[float]:
        nonlocal told, last
        told += 1
        last = problem(np.array(x))
        return [float(c) for c in last[1]]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        augmented = cma.ConstrainedFitnessAL(lambda _: -last[0], constraints, logging=0)  # constraints come first
        options = {"verbose": -9, "verb_log": 0, "seed": np.nan, "randn": lambda *size: rng.standard_normal(size)}
        options["bounds"] = [list(bound) for bound in zip(*[problem.bounds] * len(problem.x0), strict=True)]
        strategy = cma.CMAEvolutionStrategy(problem.x0, problem.scale, options)
        while told < budget and not strategy.stop():
            points = strategy.ask()
            if told + len(points) > budget:
                for x in points[: budget - told]:
                    augmented(x)
                break
            strategy.tell(points, [augmented(x) for x in points])
            augmented.update(strategy)
    return problem.x0 if augmented.best_feas.x is None else np.array(augmented.best_feas.x)


BY = {"gibo": by_gibo, "careful": by_gibo, "penalty": by_gibo, "tpe": by_optuna, "gp": by_optuna, "cma": by_cma}


def row(problem: Limited, seed: int, way: str) -> dict[str, Any]:
    """One search."""
    d, (start, c) = len(problem.x0), problem.truth(problem.x0)
    x = BY[way](problem, 10 * d, seed, way)
    violations, (value, _) = problem.violated / (10 * d), problem.truth(x)
    found = {"satisfies": int(problem.satisfies(x)), "gain": value - start, "violations": violations}
    return {"d": d, "limits": len(c), "seed": seed, "way": way, **found}


def rows(kinds: list[str], dims: list[int], seeds: int, ways: list[str]) -> Iterator[dict[str, Any]]:
    for kind in kinds:
        for seed, make in problems(kind, dims, seeds):
            yield from ({"kind": kind, **row(make(), seed, way)} for way in ways)


if __name__ == "__main__":
    given = arguments(__doc__ or "", seeds=8, dims=[4, 5, 10, 12, 20], kinds=["quadratic"], ways=list(WAYS))
    write(given.out, rows(given.kinds, given.dims, given.seeds, given.ways), by=("kind", "way"))
