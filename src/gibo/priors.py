"""Priors on hyperparameters: log-densities with their derivatives.

A prior is a density over the hyperparameter itself (a lengthscale, a variance), not over its logarithm. The only
exception is `SharedLogNormal`, which states the reason. To write a prior, derive a frozen dataclass from `Prior`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from gibo._checks import positive
from gibo._linalg import Array
from gibo._serialize import Serializable
from gibo.errors import InputError

LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


class Prior(Serializable, ABC):
    """A density over a positive hyperparameter."""

    @abstractmethod
    def log_density(self, x: Array) -> Array:
        """Log-density at each x > 0, or one joint log-density of them all; −∞ outside the support."""

    @abstractmethod
    def gradient(self, x: Array) -> Array:
        """Derivative of the log-density at each x inside the support."""

    @property
    @abstractmethod
    def mean(self) -> float:
        """The mean, positive; a hyperparameter starts there before its first fit."""

    @property
    def support(self) -> tuple[float, float]:
        """The interval in which the density is positive; a fit stays inside."""
        return 0.0, math.inf


@dataclass(frozen=True)
class Uniform(Prior):
    """Uniform on [lower, upper].

    >>> Uniform(0.1, 0.3).support
    (0.1, 0.3)
    """

    lower: float
    upper: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "lower", positive("Uniform.lower", self.lower, or_zero=True))
        object.__setattr__(self, "upper", positive("Uniform.upper", self.upper))
        if not self.lower < self.upper:
            raise InputError(f"Uniform: lower must be below upper, got {self.lower} and {self.upper}")

    def log_density(self, x: Array) -> Array:
        inside = (x >= self.lower) & (x <= self.upper)
        return np.where(inside, -math.log(self.upper - self.lower), -np.inf)

    def gradient(self, x: Array) -> Array:
        return np.zeros_like(x)

    @property
    def mean(self) -> float:
        return 0.5 * (self.lower + self.upper)

    @property
    def support(self) -> tuple[float, float]:
        return self.lower, self.upper


@dataclass(frozen=True)
class Normal(Prior):
    """Normal with the given centre and standard deviation (of a positive quantity: not renormalised).

    >>> Normal(2.0, 1.0).gradient(np.array([3.0]))
    array([-1.])
    """

    centre: float
    sd: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "centre", positive("Normal.centre", self.centre))
        object.__setattr__(self, "sd", positive("Normal.sd", self.sd))

    def log_density(self, x: Array) -> Array:
        return -0.5 * ((x - self.centre) / self.sd) ** 2 - math.log(self.sd) - LOG_SQRT_2PI

    def gradient(self, x: Array) -> Array:
        return (self.centre - x) / self.sd**2

    @property
    def mean(self) -> float:
        return self.centre


@dataclass(frozen=True)
class LogNormal(Prior):
    """The logarithm is normal around log(median) with standard deviation log_sd.

    >>> LogNormal(1.0, 0.5).log_density(np.array([1.0])).round(3)
    array([-0.226])
    """

    median: float
    log_sd: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "median", positive("LogNormal.median", self.median))
        object.__setattr__(self, "log_sd", positive("LogNormal.log_sd", self.log_sd))

    def log_density(self, x: Array) -> Array:
        log_x = np.log(x)
        return (
            -0.5 * ((log_x - math.log(self.median)) / self.log_sd) ** 2 - log_x - math.log(self.log_sd) - LOG_SQRT_2PI
        )

    def gradient(self, x: Array) -> Array:
        return -((np.log(x) - math.log(self.median)) / self.log_sd**2 + 1.0) / x

    @property
    def mean(self) -> float:
        return self.median * math.exp(min(0.5 * self.log_sd * self.log_sd, 50.0))  # the limit keeps it a float


@dataclass(frozen=True)
class SharedLogNormal(Prior):
    """Lengthscales that vary together: ``log x_j = log median + s + e_j``.

    The common factor s has standard deviation shared_log_sd, each deviation e_j has log_sd. All values inform the
    common factor, so that a wrong guess is corrected early. Single dimensions differ only if the data show it.

    This density is taken over the logarithms, so that the median is also the mode. Over x itself the
    mode would be at ``median·exp(−log_sd² − d·shared_log_sd²)``, next to zero in high dimensions.

    >>> prior = SharedLogNormal(1.0, shared_log_sd=1.0, log_sd=0.3)
    >>> prior.log_density(np.array([2.0, 2.0])) > prior.log_density(np.array([2.0, 0.5]))
    np.True_
    """

    median: float
    shared_log_sd: float
    log_sd: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "median", positive("SharedLogNormal.median", self.median))
        object.__setattr__(self, "shared_log_sd", positive("SharedLogNormal.shared_log_sd", self.shared_log_sd))
        object.__setattr__(self, "log_sd", positive("SharedLogNormal.log_sd", self.log_sd))

    def log_density(self, x: Array) -> Array:
        z, precision_z, log_determinant = self._solve(x)
        return np.array(-0.5 * (float(z @ precision_z) + log_determinant) - len(x) * LOG_SQRT_2PI)

    def gradient(self, x: Array) -> Array:
        return -self._solve(x)[1] / x

    def _solve(self, x: Array) -> tuple[Array, Array, float]:
        """z = log(x/median), C⁻¹ z and log det C for C = log_sd²·I + shared_log_sd²·1 1ᵀ (Sherman and Morrison)."""
        z = np.log(x / self.median)
        total = self.log_sd**2 + len(x) * self.shared_log_sd**2
        precision_z = (z - float(z.sum()) * self.shared_log_sd**2 / total) / self.log_sd**2
        return z, precision_z, 2.0 * (len(x) - 1) * math.log(self.log_sd) + math.log(total)

    @property
    def mean(self) -> float:
        return self.median  # the estimate that the prior alone would give

    @property
    def support(self) -> tuple[float, float]:
        """Cut off at 4 standard deviations of the sum; otherwise a few data could drag the estimate far away."""
        factor = math.exp(min(4.0 * math.hypot(self.shared_log_sd, self.log_sd), 100.0))
        return self.median / factor, self.median * factor
