"""The transformation of values for a model: shifted, scaled and, if that is likelier, warped.

Symbols
-------
y        a value in the objective's units (the optimiser maximises)
T        a monotone map, the warp
u        the model's value, ``u = (T(y) − shift)/spread``: mean 0 and standard deviation 1 over the data

Returns of episodes are skewed: a policy that fails early is hundreds below the others, and the exact difference has
little meaning. Three warps are tried (centre: the median of the data; w: a width):

    none         T(y) = y
    low(w)       y above centre − w; below it ``centre − w − w·log(1 + (centre − w − y)/w)``
    asinh(w)     ``centre + w·asinh((y − centre)/w)``

The likeliest warp is used. ``log p(u) + Σ log T'(y_i) − n·log spread`` is a density of the original values, so that
warps can be compared (Snelson, Rasmussen, Ghahramani: Warped Gaussian processes, NeurIPS 2003).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from gibo._linalg import Array
from gibo.means import Mean

WarpKind = Literal["none", "low", "asinh"]

# Widths that are tried: in root mean squares of the values above the median (low), in median absolute deviations
# (asinh).
LOW_WIDTHS, ASINH_WIDTHS = (4.0, 2.0, 1.0, 0.5), (3.0, 1.0)
# The least width in standard deviations of the values, for data with many equal values.
LEAST_WIDTH = 1e-3
# Beyond this many widths the inverse of a warp is constant.
STEEPEST = 50.0
# Gauss-Hermite quadrature for the mean of a warped normal distribution.
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(16)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


class Units(NamedTuple):
    """A warp with its shift and spread; see the module's docstring."""

    shift: float = 0.0
    spread: float = 1.0
    warp: WarpKind = "none"
    centre: float = 0.0
    width: float = 1.0

    @classmethod
    def of(cls, y: Array, standardize: bool) -> Units:
        """Units from mean and standard deviation of y, without a warp; shift 0 and spread 1 for unchanged values."""
        if not standardize or not len(y):
            return cls(0.0, 1.0)
        largest = float(np.abs(y).max())
        if largest == 0.0:
            return cls(0.0, 1.0)
        shift, spread = largest * float((y / largest).mean()), largest * float((y / largest).std())
        return cls(shift, spread if spread > 0.0 else largest)

    @classmethod
    def candidates(cls, y: Array) -> Iterator[Units]:
        """All warps of y with their shift and spread; first without a warp."""
        yield cls.of(y, standardize=True)
        centre = float(np.median(y))
        least = LEAST_WIDTH * float(y.std())
        above = max(math.sqrt(float(((y[y >= centre] - centre) ** 2).mean())), least)
        around = max(float(np.median(np.abs(y - centre))), least)
        widths: list[tuple[WarpKind, float]] = [("low", c * above) for c in LOW_WIDTHS]
        widths += [("asinh", c * around) for c in ASINH_WIDTHS]
        for warp, width in widths:
            v = cls(0.0, 1.0, warp, centre, width).warped(y)
            spread = float(v.std())
            if spread > 0.0:
                yield cls(float(v.mean()), spread, warp, centre, width)

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

    def log_density(self, y: Array) -> float:
        """What the logarithm of a density of u is short of that of y."""
        return float(self.log_slope(y).sum()) - len(y) * math.log(self.spread)

    def invert(self, u: Array) -> Array:
        """y of u."""
        v: Array = self.shift + self.spread * u
        if self.warp == "low":
            knee = self.centre - self.width
            below = np.clip((knee - v) / self.width, 0.0, STEEPEST)
            inverse: Array = np.where(below > 0.0, knee - self.width * np.expm1(below), v)
            return inverse
        if self.warp == "asinh":
            return self.centre + self.width * np.sinh(np.clip((v - self.centre) / self.width, -STEEPEST, STEEPEST))
        return v

    def inverse_slope(self, u: Array) -> Array:
        """dy/du at u; the spread without a warp."""
        return self.spread * np.exp(-self.log_slope(self.invert(u)))

    def mean(self, u: Array, variance: Array | float, within: tuple[float, float] = (-np.inf, np.inf)) -> Array:
        """The mean of y if u is normal with these means and variances.

        With a warp, y is kept `within` limits, because the inverse is a guess beyond the data and grows exponentially.
        """
        if self.warp == "none":
            return self.invert(u)
        y = np.clip(self.invert(u[..., None] + np.sqrt(variance)[..., None] * NODES), *within)
        mean: Array = y @ WEIGHTS
        return mean

    def mean_slope(self, u: float, variance: float) -> float:
        """The derivative of `mean` by u."""
        if self.warp == "none":
            return self.spread
        return float(self.inverse_slope(u + math.sqrt(variance) * NODES) @ WEIGHTS)


@dataclass(frozen=True)
class InUnits(Mean):
    """A mean of the user's x and y in the model's units: ``(m(scale·z) − shift)/spread``."""

    mean: Mean
    scale: Array
    shift: float = 0.0
    spread: float = 1.0

    def __call__(self, X: Array) -> Array:
        m: Array = (self.mean(X * self.scale) - self.shift) / self.spread
        return m

    def gradient(self, X: Array) -> Array:
        slope: Array = self.mean.gradient(X * self.scale) * (self.scale / self.spread)
        return slope
