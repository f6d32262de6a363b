"""How values are shown to a model: shifted and scaled, and warped where their bad tail would decide everything.

Returns of episodes are skewed: a policy that falls early is hundreds below the others, and how much it is below says
little. A warp T is a monotone map of the values; the model sees ``u = (T(y) − shift)/spread``.

    none         T(y) = y
    low(w)       y above centre − w; below, ``centre − w − w·log(1 + (centre − w − y)/w)``
    asinh(w)     ``centre + w·asinh((y − centre)/w)``

Of these the likeliest is chosen: the highest ``log p(u) + Σ log T'(y_i) − n·log spread``, a density of the values as
they are, so that warps can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

from gibo._linalg import Array

WarpKind = Literal["none", "low", "asinh"]

# Widths that are tried, in root mean squares of what is above the median (low) or median absolute deviations (asinh).
LOW, ASINH = (4.0, 2.0, 1.0, 0.5), (3.0, 1.0)
# From this many values on a warp is looked for.
LEAST_VALUES = 4
# Beyond this a warped value stands for one that no run has ever seen.
STEEPEST = 50.0
# In standard deviations of the values: where half of them are the same.
LEAST_WIDTH = 1e-3


class Units(NamedTuple):
    """The model sees ``u = (T(y) − shift)/spread``; see the module's text."""

    shift: float
    spread: float
    warp: WarpKind = "none"
    centre: float = 0.0
    width: float = 1.0

    @classmethod
    def of(cls, y: Array, standardize: bool) -> Units:
        """Mean and standard deviation of y, without a warp; shift 0 and spread 1 if values are not changed."""
        if not standardize or not len(y):
            return cls(0.0, 1.0)
        largest = float(np.abs(y).max())
        if largest == 0.0:
            return cls(0.0, 1.0)
        shift, spread = largest * float((y / largest).mean()), largest * float((y / largest).std())
        return cls(shift, spread if spread > 0.0 else largest)

    @classmethod
    def candidates(cls, y: Array) -> Iterator[Units]:
        """All warps of y with their shift and spread; none first."""
        yield cls.of(y, standardize=True)
        centre = float(np.median(y))
        least = LEAST_WIDTH * float(y.std())
        top = max(math.sqrt(float(((y[y >= centre] - centre) ** 2).mean())), least)
        middle = max(float(np.median(np.abs(y - centre))), least)
        widths: list[tuple[WarpKind, float]] = [("low", c * top) for c in LOW]
        widths += [("asinh", c * middle) for c in ASINH]
        for warp, width in widths:
            v = cls(0.0, 1.0, warp, centre, width).warped(y)
            if v.std() > 0.0:
                yield cls(float(v.mean()), float(v.std()), warp, centre, width)

    def warped(self, y: Array) -> Array:
        """T(y)."""
        if self.warp == "low":
            below = np.maximum(self.centre - self.width - y, 0.0)
            knee = self.centre - self.width
            low: Array = np.where(below > 0.0, knee - self.width * np.log1p(below / self.width), y)
            return low
        if self.warp == "asinh":
            return self.centre + self.width * np.arcsinh((y - self.centre) / self.width)
        return y

    def apply(self, y: Array) -> Array:
        """u of y."""
        u: Array = (self.warped(y) - self.shift) / self.spread
        return u

    def log_slope(self, y: Array) -> Array:
        """log T'(y)."""
        if self.warp == "low":
            return -np.log1p(np.maximum(self.centre - self.width - y, 0.0) / self.width)
        if self.warp == "asinh":
            return -0.5 * np.log1p(((y - self.centre) / self.width) ** 2)
        return np.zeros_like(y)

    def invert(self, u: Array) -> Array:
        """y of u; what lies far beyond all values is held at the border of sense."""
        v: Array = self.shift + self.spread * u
        if self.warp == "low":
            knee = self.centre - self.width
            below = np.clip((knee - v) / self.width, 0.0, STEEPEST)
            inverse: Array = np.where(below > 0.0, knee - self.width * np.expm1(below), v)
            return inverse
        if self.warp == "asinh":
            return self.centre + self.width * np.sinh(np.clip((v - self.centre) / self.width, -STEEPEST, STEEPEST))
        return v

    def inverse_slope(self, u: float) -> float:
        """dy/du at u; the spread where there is no warp."""
        if self.warp == "none":
            return self.spread
        y = self.invert(np.array(u))
        return self.spread * math.exp(-float(self.log_slope(y)))
