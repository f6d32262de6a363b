"""How often evaluations fail, and what is reached, where a part of the box fails alongside the way to the maximum.

    python -m gibo_studies.machines.failures --out studies/results/machines/failures.csv

Functions of d parameters, started 2.5 from their maximum: quadratics; hills and valleys are those on which the model of
failures was chosen (``--shapes hill valley --dims 6 12 --first 100 --seeds 6``). Places that fail: a half space whose
edge is 0.3 from the start, which is one scale, and 0.1 beyond the maximum ("half"); a third of the box along one
parameter, with the same distances ("third"); none. "random" is the rate of failures at random besides. Ways: ``gibo``,
the default; ``passing over``: failures teach nothing; where half of the space fails also ``pessimistic``: the move sees
the lowest value of the window where evaluations failed; and ``penalty``: the user's, three times the regret of the
start. Regret is a share of the start's; failures are those that the place made.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from gibo import GIBO
from gibo._linalg import Array
from gibo.gp import GaussianProcess
from gibo.steps import State
from gibo_studies.machines.common import arguments, write

CASES = [("none", 0.0), ("half", 0.0), ("half", 0.1), ("third", 0.0), ("none", 0.1), ("none", 0.5)]
NOISE = 0.05
AWAY, TO_EDGE, BEYOND = 2.5, 0.3, 0.1


class PassingOver(GIBO):
    """Failures teach nothing."""

    def _region(self, limited: bool = True) -> None:
        return None


class Pessimistic(PassingOver):
    """The move sees the lowest value of the window where evaluations failed."""

    def _moved(self, gp: GaussianProcess) -> tuple[Array, State]:
        for e in self._seen():
            if e.value is None and gp.observations is not None:
                gp = gp.extend(e.x / self.scale, float(gp.observations.y.min()))
        return super()._moved(gp)


WAYS = {"gibo": GIBO, "passing over": PassingOver, "pessimistic": Pessimistic, "penalty": GIBO}


class Function:
    """A function with its maximum 0, and a part of the box that fails."""

    def __init__(self, shape: str, d: int, seed: int, place: str) -> None:
        rng = np.random.default_rng([d, seed, {"quadratic": 7, "hill": 8, "valley": 9}[shape]])
        normal, towards = rng.standard_normal((2, d))
        normal /= np.linalg.norm(normal)
        if place == "third":
            normal = np.sign(rng.standard_normal()) * np.eye(d)[rng.integers(d)]
        towards -= (towards @ normal) * normal
        ahead = TO_EDGE - BEYOND
        towards *= np.sqrt(AWAY**2 - ahead**2) / np.linalg.norm(towards)
        self.edge = 1.0 if place == "third" else TO_EDGE
        self.x0 = (self.edge - TO_EDGE) * normal
        self.maximum = self.x0 + towards + ahead * normal
        self.curvature, self.turn = rng.uniform(0.3, 2.0, d), np.linalg.qr(rng.standard_normal((d, d)))[0]
        self.normal, self.shape = np.zeros(d) if place == "none" else normal, shape

    def value(self, x: Array) -> float:
        z = x - self.maximum
        if self.shape == "quadratic":
            return -float(self.curvature @ z**2)
        z = self.turn @ z
        if self.shape == "hill":
            return 10.0 * float(np.expm1(-0.25 * (self.curvature @ z**2)))
        return -0.5 * float(self.curvature @ np.abs(z) ** 1.5) - 2.0 * float(z[0] + 0.3 * z[1] ** 2) ** 2

    def fails(self, x: Array) -> bool:
        return float(self.normal @ x) > self.edge


def run(shape: str, d: int, place: str, random: float, way: str, seed: int) -> dict[str, Any]:
    """One search with 12·d evaluations."""
    function, rng = Function(shape, d, seed, place), np.random.default_rng(seed + 99)
    optimizer, failures, told = WAYS[way](function.x0, scale=0.3, seed=seed, bounds=(-3.0, 3.0)), 0, 0
    start = function.value(function.x0)
    while told < 12 * d:
        for query in optimizer.ask():
            by_chance, noise = rng.random() < random, NOISE * rng.standard_normal()
            failures, told = failures + function.fails(query.x), told + 1
            if not (by_chance or function.fails(query.x)):
                optimizer.tell(query, function.value(query.x) + noise)
            elif way == "penalty":
                optimizer.tell(query, 3.0 * start)
            else:
                optimizer.tell(query, failed=True)
    best = optimizer.best
    regret = 1.0 if best is None else function.value(best.x) / start
    case = {"shape": shape, "d": d, "place": place, "random": random, "way": way, "seed": seed}
    return {**case, "regret": regret, "failures": failures}


def rows(shapes: list[str], dims: list[int], seeds: range) -> Iterator[dict[str, Any]]:
    for shape, d, (place, random) in product(shapes, dims, CASES):
        for way in WAYS if place == "half" else ("gibo", "passing over"):
            yield from (run(shape, d, place, random, way, seed) for seed in seeds)


if __name__ == "__main__":
    given = arguments(__doc__ or "", seeds=20, first=0, dims=[6, 12, 24], shapes=["quadratic"])
    seeds = range(given.first, given.first + given.seeds)
    write(given.out, rows(given.shapes, given.dims, seeds), by=("shape", "d", "place", "random", "way"))
