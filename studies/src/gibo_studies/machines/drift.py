"""A reactor whose optimum and level move: does the 90 % interval of the recommended point hold, and what does it cost?

    python -m gibo_studies.machines.drift --out drift.csv

While `budget` values are taken the hill moves by 1.5 in a random direction (the start is about 1.6 away from the
optimum, and `scale` is 0.5), and the level by 3 up or down. Each run is made with and without drift of the objective,
and with and without `Settings(drift=True)`. A row has the recommended point's height now, without the level.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import gibo
from gibo_studies.machines.common import Hill, arguments, write

NOISE, WAY, LEVEL = 0.1, 1.5, 3.0


def rows(runs: int, d: int, budget: int) -> Iterator[dict[str, Any]]:
    """A row per run."""
    for run in range(runs):
        for moves in (True, False):
            for option in (False, True):
                yield {"run": run, "moves": moves, "drift": option, **one(run, d, budget, moves, option)}


def one(run: int, d: int, budget: int, moves: bool, option: bool) -> dict[str, Any]:
    rng = np.random.default_rng(run)
    hill, way, level = Hill(d, rng), rng.normal(size=d), LEVEL * rng.choice([-1.0, 1.0])
    way *= WAY * moves / np.linalg.norm(way)
    optimizer = gibo.GIBO(np.zeros(d), scale=0.5, seed=run, settings=gibo.Settings(drift=option))
    told = 0
    while told < budget:
        for query in optimizer.ask()[: budget - told]:
            t = told / budget
            value = hill(query.x, way * t) + level * moves * t + NOISE * rng.normal()
            optimizer.tell(query, value)
            told += 1
    best = optimizer.best
    assert best is not None
    assert best.interval is not None
    height = hill(best.x, way)
    holds = best.interval[0] <= height + level * moves <= best.interval[1]
    return {"height": height, "holds": holds, "width": best.interval[1] - best.interval[0]}


if __name__ == "__main__":
    given = arguments(__doc__ or "", runs=20, d=8, budget=200)
    write(given.out, rows(given.runs, given.d, given.budget), by=("moves", "drift"))
