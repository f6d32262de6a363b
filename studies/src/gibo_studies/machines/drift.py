"""A hill and a reactor that change: does the 90 % interval of the recommended point hold, and what does it cost?

    python -m gibo_studies.machines.drift --out drift.csv

While `budget` values are taken the hill moves by 1.5 in a random direction (the start is about 1.6 away from the
optimum, and `scale` is 0.5), and the level by 3 up or down; the reactor's catalyst loses half of its activity. Each
run is made with and without drift of the objective, and with and without `Settings(drift=True)`. A row has what the
recommended point reaches now, as a share of what can be gained over the start now.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import minimize

import gibo
from gibo._linalg import Array
from gibo.errors import InputError
from gibo_studies.machines.common import Hill, arguments, queries, write

NOISE, WAY, LEVEL = 0.1, 1.5, 3.0
# Of the reactor: zones, the share of the catalyst's activity that is left at the end, and what a unit of product earns.
ZONES, LEFT, PRICE = 4, 0.5, 20.0


class MovingHill:
    """A hill that moves, and whose level moves."""

    scale = 0.5

    def __init__(self, d: int, rng: np.random.Generator, moves: bool) -> None:
        self.hill, way = Hill(d, rng), rng.normal(size=d)
        self.level = LEVEL * rng.choice([-1.0, 1.0]) * moves
        self.way = way * WAY * moves / np.linalg.norm(way)

    def __call__(self, x: Array, t: float) -> float:
        return self.hill(x, self.way * t) + float(self.level * t)


class Reactor:
    """Profit of a tube with four zones in which A becomes the product B, and B becomes waste.

    Parameters, each 0 at an operator's guess: temperatures of the zones, flow, concentration of the feed, recycled
    share, and amount of hydrogen. The catalyst loses its activity, so that the best temperatures and flow move, and
    the profit falls.
    """

    scale = 0.3

    def __init__(self, d: int, rng: np.random.Generator, moves: bool) -> None:
        if d != ZONES + 4:
            raise InputError(f"d: the reactor has {ZONES + 4} parameters, got {d}")
        self.loss = -np.log(LEFT) * moves
        self.energies, self.rates = rng.uniform([0.8, 1.6], [1.2, 2.2]), rng.uniform([0.8, 0.15], [1.6, 0.4])

    def __call__(self, x: Array, t: float) -> float:
        activity, (flow, feed) = np.exp(-self.loss * t), np.exp(x[ZONES : ZONES + 2])
        recycled, hydrogen = 1.0 / (1.0 + np.exp(-x[ZONES + 2 :]))
        a, b, time = feed, 0.0, 0.5 / (flow * (1.0 + recycled))
        for temperature in np.clip(x[:ZONES], -3.0, 3.0):
            k1, k2 = self.rates * np.exp(self.energies * temperature) * [activity * (0.5 + hydrogen), 1.0]
            b = b * np.exp(-k2 * time) + a * k1 / (k2 - k1) * (np.exp(-k1 * time) - np.exp(-k2 * time))
            a = a * np.exp(-k1 * time)
        costs = 2.0 * feed**3 + 2.0 * (flow * (1.0 + recycled)) ** 3 + (x[:ZONES] ** 2).sum() + 10.0 * hydrogen**2
        return float(PRICE * flow * b * (1.0 + 1.5 * recycled) - costs)


OBJECTIVES: dict[str, Any] = {"hill": MovingHill, "reactor": Reactor}


def rows(runs: int, d: int, budget: int) -> Iterator[dict[str, Any]]:
    for name, run, moves, option in product(OBJECTIVES, range(runs), (True, False), (False, True)):
        found = one(name, run, d, budget, moves, option)
        yield {"objective": name, "run": run, "moves": moves, "drift": option, **found}


def one(name: str, run: int, d: int, budget: int, moves: bool, option: bool) -> dict[str, Any]:
    rng = np.random.default_rng(run)
    objective = OBJECTIVES[name](d, rng, moves)
    optimizer = gibo.GIBO(np.zeros(d), scale=objective.scale, seed=run, settings=gibo.Settings(drift=option))
    for told, query in queries(optimizer, budget):
        optimizer.tell(query, objective(query.x, told / budget) + NOISE * rng.normal())
    best = optimizer.best
    assert best is not None
    assert best.interval is not None
    now = objective(best.x, 1.0)
    start = objective(np.zeros(d), 1.0)

    def loss(x: Any) -> float:
        return -float(objective(x, 1.0))

    climbs = [minimize(loss, begin, method="BFGS") for begin in (best.x, np.zeros(d))]
    highest = -min(float(climb.fun) for climb in climbs)
    low, high = best.interval
    return {"reached": (now - start) / (highest - start), "holds": low <= now <= high, "width": high - low}


if __name__ == "__main__":
    given = arguments(__doc__ or "", runs=40, d=8, budget=200)
    write(given.out, rows(given.runs, given.d, given.budget), by=("objective", "moves", "drift"))
