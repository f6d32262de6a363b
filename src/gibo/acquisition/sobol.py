"""Points that fill a box evenly."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from gibo._linalg import Array


def sobol_points(lower: Array, upper: Array, count: int, rng: np.random.Generator) -> Array:
    """Sobol points (count, d) of the box, shifted at random (a power of two for `count`).

    The points of the unit cube are made once; a random shift, modulo 1, makes new ones of them at no cost.
    """
    d = len(lower)
    return lower + (upper - lower) * ((_unit_cube(d, count) + rng.random(d)) % 1.0)


@lru_cache(maxsize=64)
def _unit_cube(d: int, count: int) -> Array:
    from scipy.stats import qmc  # here, because importing scipy.stats takes longer than everything else together

    points: Array = qmc.Sobol(d, scramble=True, rng=0).random(count)
    return points
