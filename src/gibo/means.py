"""Prior means with a gradient: the ``m`` and ``∇m`` of Müller et al. 2021, eq. (3).

For a constant mean, use a number. To write a mean, derive a frozen dataclass from `Mean`.

Example:
    >>> from gibo import GaussianProcess, SquaredExponential
    >>> mean = QuadraticMean(top=1.0, centre=(0.5,), curvature=(2.0,))
    >>> gp = GaussianProcess(SquaredExponential(), noise=0.01, mean=mean)
    >>> gp.jacobian([0.0]).mean  # no data yet: the slope of the mean
    array([1.])
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gibo._checks import as_vector, finite
from gibo._linalg import Array
from gibo._serialize import Serializable
from gibo.errors import InputError


class Mean(Serializable, ABC):
    """A prior mean that can be differentiated once."""

    @abstractmethod
    def __call__(self, X: Array) -> Array:
        """m (n,) at the rows of X (n, d)."""

    @abstractmethod
    def gradient(self, X: Array) -> Array:
        """∇m (n, d) at the rows of X (n, d)."""

    def check(self, d: int) -> None:
        """Check that the mean accepts points of d dimensions."""
        X = np.zeros((2, d))
        for name, found, shape in (("m", self(X), (2,)), ("∇m", self.gradient(X), (2, d))):
            if np.shape(found) != shape or not np.isfinite(found).all():
                raise InputError(
                    f"mean: expected {name} to be {shape} finite numbers at two points of {d} dimensions, "
                    f"got shape {np.shape(found)}; does {type(self).__name__} fit the number of parameters?"
                )


@dataclass(frozen=True)
class LinearMean(Mean):
    """``m(x) = offset + slopeᵀ x``, slope (d,)."""

    slope: Sequence[float]
    offset: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "slope", tuple(as_vector("LinearMean.slope", self.slope).tolist()))
        object.__setattr__(self, "offset", finite("LinearMean.offset", self.offset))

    def __call__(self, X: Array) -> Array:
        m: Array = self.offset + _fits(X, self.slope) @ np.array(self.slope)
        return m

    def gradient(self, X: Array) -> Array:
        return np.tile(np.array(self.slope), (len(X), 1))


@dataclass(frozen=True)
class QuadraticMean(Mean):
    """``m(x) = top − ½ Σ_j curvature_j (x_j − centre_j)²``, centre and curvature (d,)."""

    centre: Sequence[float]
    curvature: Sequence[float]
    top: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "centre", tuple(as_vector("QuadraticMean.centre", self.centre).tolist()))
        curvature = as_vector("QuadraticMean.curvature", self.curvature, len(self.centre))
        object.__setattr__(self, "curvature", tuple(curvature.tolist()))
        object.__setattr__(self, "top", finite("QuadraticMean.top", self.top))

    def __call__(self, X: Array) -> Array:
        m: Array = self.top - 0.5 * (_fits(X, self.centre) - self.centre) ** 2 @ np.array(self.curvature)
        return m

    def gradient(self, X: Array) -> Array:
        slope: Array = -np.array(self.curvature) * (X - np.array(self.centre))
        return slope


def _fits(X: Array, given: Sequence[float]) -> Array:
    if X.shape[1] != len(given):
        raise InputError(f"mean: {len(given)} numbers do not fit points of {X.shape[1]} dimensions")
    return X
