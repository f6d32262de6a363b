"""Prior means with a gradient: the ``m`` and ``∇m`` of Müller et al. 2021, eq. (3).

For a constant mean, use a number. To write a mean, derive a frozen dataclass from `Mean`. `Fitted` is a mean that is
right up to a shift and a factor, such as that of a simulator; `from_run` makes one from a run.

Example:
    >>> from gibo import GaussianProcess, SquaredExponential
    >>> mean = QuadraticMean(top=1.0, centre=(0.5,), curvature=(2.0,))
    >>> gp = GaussianProcess(SquaredExponential(), noise=0.01, mean=mean)
    >>> gp.jacobian([0.0]).mean  # no data yet: the slope of the mean
    array([1.])
"""

from __future__ import annotations

import importlib
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gibo._checks import as_finite, as_vector, finite, instance
from gibo._linalg import Array, solve_lower
from gibo._serialize import Serializable
from gibo.errors import InputError
from gibo.kernels import Kernel, squared_distance
from gibo.observations import Observations


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


@dataclass(frozen=True, eq=False)
class KernelMean(Mean):
    """``m(x) = Σ_i weights_i·k(x, points_i)``, points (n, d), weights (n,).

    With the ``a`` of a Gaussian process that has data there (see `gibo.gp`), this is its mean, without the constant.
    """

    kernel: Kernel
    points: Any = field(repr=False)
    weights: Any = field(repr=False)

    def __post_init__(self) -> None:
        instance("KernelMean.kernel", self.kernel, Kernel, "a kernel such as SquaredExponential()")
        points = as_finite("KernelMean.points", self.points, ndim=2)
        self.kernel.ell(points.shape[1])
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "weights", as_vector("KernelMean.weights", self.weights, len(points)))

    def __call__(self, X: Array) -> Array:
        m: Array = self.kernel.k(_fits(X, self.points[0]), self.points) @ self.weights
        return m

    def gradient(self, X: Array) -> Array:
        kernel, points, ell = self.kernel, self.points, self.kernel.ell(self.points.shape[1])
        q = squared_distance(_fits(X, points[0]), points, ell)
        slopes = 2.0 * kernel.variance * kernel.profile(q, 1)[1] * self.weights
        gradient: Array = (slopes.sum(axis=1)[:, None] * X - slopes @ points) / ell**2
        return gradient


@dataclass(frozen=True)
class Fitted(Serializable):
    """A mean up to a shift and a factor, ``shift + factor·m(x)``, which the data determine; see `gibo.gp`.

    If m says nothing about the values, the factor goes to 0. It is negative where m has the wrong sign.
    """

    mean: Mean

    def __post_init__(self) -> None:
        instance("Fitted.mean", self.mean, Mean, "a gibo.means.Mean")


@dataclass(frozen=True)
class ShiftedAndScaled(Mean):
    """``shift + factor·m(x)``."""

    mean: Mean
    shift: float
    factor: float

    def __call__(self, X: Array) -> Array:
        m: Array = self.shift + self.factor * self.mean(X)
        return m

    def gradient(self, X: Array) -> Array:
        return self.factor * self.mean.gradient(X)


class Regression(NamedTuple):
    """Generalised least squares of a fitted mean, ``level·1 + b·f``: f is its function with mean 0 and deviation 1 over
    the data. A priori b is normal with mean 0 and the variance of the values: f alone may explain all of them.

    Attributes:
        P: (N, 2) ``L⁻¹ [1 f]``, for the observations of `gibo.gp`.
        precision: (2,) a priori, of level and b.
        centre, spread: f is the function less its centre, divided by its spread.
    """

    P: Array
    precision: Array
    centre: float
    spread: float

    @classmethod
    def of(cls, function: Mean, data: Observations, L: Array) -> Regression:
        m = function(data.X)
        centre, spread = float(m.mean()), float(m.std()) or 1.0
        slopes = function.gradient(data.G) / spread
        one = np.append(np.zeros(slopes.size), np.ones(len(m)))
        P = solve_lower(L, np.column_stack([one, np.append(slopes, (m - centre) / spread)]))
        return cls(P, np.array([0.0, 1.0 / (float(data.y.var()) or 1.0)]), centre, spread)

    def factors(self, w: Array) -> Array:
        """Level and b (2,), or (2, m), for whitened observations ``w = L⁻¹ y``, (N,) or (N, m)."""
        return np.asarray(np.linalg.solve(self.P.T @ self.P + np.diag(self.precision), self.P.T @ w))

    def function(self, function: Mean, w: Array) -> ShiftedAndScaled:
        """The mean with its shift and factor."""
        level, b = self.factors(w)
        return ShiftedAndScaled(function, level - b * self.centre / self.spread, b / self.spread)

    def squares(self, w: Array) -> Array:
        """``|w − P factors|² + precision·factors²`` (m,) at the factors of each column of w (N, m)."""
        return np.asarray((w**2).sum(axis=0) - np.einsum("km,km->m", self.P.T @ w, self.factors(w)))

    @property
    def log_occam_factor(self) -> float:
        """By what a log-likelihood at the likeliest b is above that of all b together, ``½·log(1 + |f|²/precision)``.

        Here f is the part of ``L⁻¹ f`` that is orthogonal to ``L⁻¹ 1``.
        """
        e, f = self.P.T
        square = float(f @ f) - float(f @ e) ** 2 / float(e @ e)
        return 0.5 * math.log1p(max(square, 0.0) / float(self.precision[1]))


def _fits(X: Array, given: Sequence[float]) -> Array:
    if X.shape[1] != len(given):
        raise InputError(f"mean: {len(given)} numbers do not fit points of {X.shape[1]} dimensions")
    return X


def __getattr__(name: str) -> Any:
    """`from_run` needs journals and optimisers, which are built on this module, so it is loaded when it is used."""
    if name == "from_run":
        return importlib.import_module("gibo.runs.earlier").from_run
    raise AttributeError(f"module 'gibo.means' has no attribute {name!r}")
