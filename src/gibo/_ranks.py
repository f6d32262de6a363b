"""Test whether some values are lower than others by their ranks, because noise may have heavy tails or grow."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr


def lower_by_chance(some: npt.ArrayLike, others: npt.ArrayLike) -> float:
    """The approximate p-value of Mann and Whitney's test that the first values are lower than the others.

    >>> round(lower_by_chance([1.0, 2.0, 2.5], [3.0, 4.0, 5.0]), 3)
    0.04
    """
    some, ordered = np.asarray(some, dtype=np.float64), np.sort(np.asarray(others, dtype=np.float64))
    m, n = len(some), len(ordered)
    # The number of pairs in which the first value is higher; equal pairs count half.
    above = 0.5 * sum(float(ordered.searchsorted(some, side).sum()) for side in ("left", "right"))
    return float(ndtr((above - 0.5 * m * n + 0.5) / math.sqrt(m * n * (m + n + 1) / 12.0)))
