"""How often evaluations fail, and what is reached, where a part of the box fails.

    python -m gibo_studies.machines.failures --seeds 2 --out studies/results/machines/failures.csv

Functions: quadratics in d parameters, started 2.5 from their maximum. Places that fail: a half space whose edge is 0.1
beyond the maximum ("half"), a third of the box along one parameter ("third"), none; "random" is the rate of failures at
random besides. Ways: ``gibo``, the default; ``passing over``: failures teach nothing; ``pessimistic``: the move sees
the lowest value of the window where evaluations failed; ``penalty``: the user's, three times the regret of the start.
Regret is a share of the start's; failures are those that the place made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gibo import GIBO
from gibo._linalg import Array
from gibo.gp import GaussianProcess
from gibo.steps import State
from gibo_studies.machines.common import arguments, write

CASES = [("half", 0.0), ("half", 0.1), ("third", 0.0), ("none", 0.1), ("none", 0.0)]
NOISE = 0.05


class PassingOver(GIBO):
    """Failures teach nothing."""

    _models_limits = False


class Pessimistic(PassingOver):
    """The move sees the lowest value of the window where evaluations failed."""

    def _moved(self, gp: GaussianProcess) -> tuple[Array, State]:
        for e in self._seen():
            if e.value is None and gp.observations is not None:
                gp = gp.extend(e.x / self.scale, float(gp.observations.y.min()))
        return super()._moved(gp)


WAYS = {"gibo": GIBO, "passing over": PassingOver, "pessimistic": Pessimistic, "penalty": GIBO}


class Function:
    """A quadratic, a part of whose box fails."""

    def __init__(self, d: int, seed: int, place: str) -> None:
        rng = np.random.default_rng([d, seed, 7])
        towards = rng.standard_normal(d)
        self.maximum = 2.5 * towards / np.linalg.norm(towards)
        self.curvature = rng.uniform(0.3, 2.0, d)
        if place == "third":
            normal = np.sign(rng.standard_normal()) * np.eye(d)[rng.integers(d)]
            self.edge = max(1.0, float(normal @ self.maximum) + 0.1)
        else:
            slant = rng.standard_normal(d)
            normal = slant / np.linalg.norm(slant) + 0.5 * self.maximum / 2.5
            normal /= np.linalg.norm(normal)
            self.edge = max(float(normal @ self.maximum) + 0.1, 0.3)
        self.normal = np.zeros(d) if place == "none" else normal

    def value(self, x: Array) -> float:
        return -float(self.curvature @ (x - self.maximum) ** 2)

    def fails(self, x: Array) -> bool:
        return float(self.normal @ x) > self.edge


def run(d: int, place: str, random: float, way: str, seed: int) -> dict[str, Any]:
    """One search with 12·d evaluations."""
    function, rng = Function(d, seed, place), np.random.default_rng(seed + 99)
    optimizer, failures, told = WAYS[way](np.zeros(d), scale=0.3, seed=seed, bounds=(-3.0, 3.0)), 0, 0
    start = function.value(np.zeros(d))
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
    return {"d": d, "place": place, "random": random, "way": way, "seed": seed, "regret": regret, "failures": failures}


def rows(dims: list[int], seeds: int) -> Iterator[dict[str, Any]]:
    for d in dims:
        for place, random in CASES:
            for way in WAYS:
                yield from (run(d, place, random, way, seed) for seed in range(seeds))


if __name__ == "__main__":
    given = arguments(__doc__ or "", seeds=6, dims=[6, 12, 24])
    write(given.out, rows(given.dims, given.seeds), by=("d", "place", "random", "way"))
