"""What is reached, and how often limits are violated, where a limit lies between the start and the maximum.

    python -m gibo_studies.machines.limits --dims 4 12 24 --seeds 5 --out studies/results/machines/limits.csv

Functions: quadratics in d parameters, started 2 from their maximum; a load that is nearly linear has an upper limit
half-way to it. Ways: ``gibo``, ``careful`` (queries keep to the limit, too), ``penalty`` (gibo with 10 times the excess
taken off the value) and, where Optuna is installed, ``tpe`` with its ``constraints_func``.
Regret is against the best point within the limit, as a share of the start's, for recommended points that truly satisfy
the limit, and 1 for others; violations are the share of evaluations that truly violate it. TPE recommends its best
value among the trials whose measured load was within the limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

from gibo import GIBO, Limits, Outcome
from gibo._linalg import Array
from gibo_studies.machines.common import arguments, write

NOISE, LOAD_NOISE = 0.05, 0.01
WAYS = ("gibo", "careful", "penalty", "tpe")


class Machine:
    """A quadratic with a load; it counts evaluations that violate the limit."""

    def __init__(self, d: int, seed: int) -> None:
        rng = np.random.default_rng([d, seed])
        normal, towards = rng.standard_normal((2, d))
        self.normal = normal / np.linalg.norm(normal)
        self.maximum = 2.0 * towards / np.linalg.norm(towards)
        self.normal *= np.sign(self.normal @ self.maximum)
        self.curvature = rng.uniform(0.5, 2.0, d)
        self.limit = 0.5 * float(self.normal @ self.maximum)
        self.rng, self.violated = np.random.default_rng(seed + 1000), 0

    def value(self, x: Array) -> float:
        return -float(self.curvature @ (x - self.maximum) ** 2)

    def load(self, x: Array) -> float:
        return float(self.normal @ x + 0.15 * np.sin(2.0 * x).sum() / np.sqrt(len(x)))

    def __call__(self, x: Array) -> tuple[float, float]:
        """Value and load, with noise."""
        self.violated += self.load(x) > self.limit
        noise = self.rng.standard_normal(2)
        return self.value(x) + NOISE * noise[0], self.load(x) + LOAD_NOISE * noise[1]

    def best(self) -> float:
        """The highest value within the limit."""
        from scipy.optimize import minimize

        def loss(x: Any) -> float:
            return -self.value(x)

        within: Any = {"type": "ineq", "fun": lambda x: self.limit - self.load(x)}
        starts = [t * self.maximum for t in (0.0, 0.3)]
        return -min(float(minimize(loss, x0, method="SLSQP", constraints=within).fun) for x0 in starts)


def by_gibo(machine: Machine, d: int, seed: int, way: str) -> Array:
    """The recommended point after 10·d evaluations."""
    limits = None if way == "penalty" else Limits({"load": (None, machine.limit)}, careful=way == "careful")
    optimizer, told = GIBO(np.zeros(d), scale=0.3, seed=seed, bounds=(-3.0, 3.0), limits=limits), 0
    while told < 10 * d:
        for query in optimizer.ask():
            value, load = machine(query.x)
            if way == "penalty":
                value -= 10.0 * max(0.0, load - machine.limit)
            optimizer.tell(query, Outcome(value, measured={"load": load}))
            told += 1
    best = optimizer.best
    return np.zeros(d) if best is None else best.x


def by_tpe(machine: Machine, d: int, seed: int, _: str) -> Array:
    """The best of the trials whose load was measured below the limit; the first is the start."""
    import warnings

    import optuna

    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    names = [f"x{i}" for i in range(d)]

    def objective(trial: Any) -> float:
        value, load = machine(np.array([trial.suggest_float(name, -3.0, 3.0) for name in names]))
        trial.set_user_attr("excess", load - machine.limit)
        return value

    sampler = optuna.samplers.TPESampler(seed=seed, constraints_func=lambda trial: (trial.user_attrs["excess"],))
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.enqueue_trial(dict.fromkeys(names, 0.0))
    study.optimize(objective, n_trials=10 * d)
    feasible = [trial for trial in study.trials if trial.user_attrs["excess"] <= 0.0]
    best = max(feasible, key=lambda trial: trial.value or -np.inf, default=study.trials[0])
    return np.array([best.params[name] for name in names])


def run(d: int, way: str, seed: int) -> dict[str, Any]:
    """One search with 10·d evaluations."""
    search: Callable[..., Array] = by_tpe if way == "tpe" else by_gibo
    machine = Machine(d, seed)
    x = search(machine, d, seed, way)
    satisfies, best, start = machine.load(x) <= machine.limit, machine.best(), machine.value(np.zeros(d))
    regret = (best - machine.value(x)) / (best - start) if satisfies else 1.0
    violations = machine.violated / (10 * d)
    return {"d": d, "way": way, "seed": seed, "satisfies": int(satisfies), "regret": regret, "violations": violations}


def rows(dims: list[int], seeds: int) -> Iterator[dict[str, Any]]:
    for d in dims:
        for way in WAYS if find_spec("optuna") else WAYS[:-1]:
            yield from (run(d, way, seed) for seed in range(seeds))


if __name__ == "__main__":
    given = arguments(__doc__ or "", seeds=6, dims=[6, 12, 24])
    write(given.out, rows(given.dims, given.seeds), by=("d", "way"))
