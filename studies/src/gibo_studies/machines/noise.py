"""Values of uneven noise: what is it worth to say how noisy each is?

    python -m gibo_studies.machines.noise --out noise.csv

``repeats``: every other value is the mean of 25 evaluations, the others are single ones, whose noise has the standard
deviation 2. ``noise``: the noise variance of a value is known, and between 0.01 and 10. Each run is made with that told
and ignored. The hill is 10 high; a row has the height of the recommended point.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

import gibo
from gibo_studies.machines.common import Hill, arguments, queries, write

SINGLE, REPEATS = 2.0, 25


def rows(runs: int, d: int, budget: int) -> Iterator[dict[str, Any]]:
    for run, kind, told in product(range(runs), ("repeats", "noise"), (False, True)):
        yield {"run": run, "kind": kind, "told": told, "height": height(run, d, budget, kind, told)}


def height(run: int, d: int, budget: int, kind: str, told: bool) -> float:
    rng = np.random.default_rng(run)
    hill = Hill(d, rng)
    optimizer = gibo.GIBO(np.zeros(d), scale=0.5, seed=run)
    for count, query in queries(optimizer, budget):
        repeats = REPEATS if count % 2 else 1
        variance = SINGLE**2 / repeats if kind == "repeats" else float(10.0 ** rng.uniform(-2.0, 1.0))
        value = hill(query.x) + variance**0.5 * rng.normal()
        details = {"repeats": repeats} if kind == "repeats" else {"noise": variance}
        optimizer.tell(query, gibo.Outcome(value, **(details if told else {})))
    assert optimizer.best is not None
    return hill(optimizer.best.x)


if __name__ == "__main__":
    given = arguments(__doc__ or "", runs=20, d=6, budget=80)
    write(given.out, rows(given.runs, given.d, given.budget), by=("kind", "told"))
