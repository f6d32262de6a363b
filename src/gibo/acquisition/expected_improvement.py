"""Expected improvement through its logarithm, with exact gradients, and its maximisation over a box.

Symbols (those of `gibo.gp`, and)
---------------------------------
mu, sigma   mean and standard deviation of J(x) given the data
best        the value to improve on
z           ``(mu − best)/sigma``
phi, Phi    density and distribution function of the standard normal
h(z)        ``phi(z) + z·Phi(z)``, so that ``EI(x) = E[max(J(x) − best, 0)] = sigma·h(z)``
R(z)        ``Phi(z)/phi(z)``, a ratio that stays accurate where both have underflowed

Where an improvement is unlikely, EI and its gradient underflow to zero and no climb can start. The logarithm does not:

    log EI  = log sigma + log h(z)
    ∇log EI = (r·∇mu + (1 − r·z)·∇sigma)/sigma,    r = h'(z)/h(z) = Phi(z)/h(z)

scipy.special is imported where it is used, because it is slow to load.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from gibo._checks import as_vector, finite, instance, moderate
from gibo._linalg import EPS, Array
from gibo.acquisition.climb import Acquisition, climb
from gibo.acquisition.confidence import PosteriorAtPoint
from gibo.errors import InputError
from gibo.gp import GaussianProcess
from gibo.priors import LOG_SQRT_2PI

_SQRT_HALF_PI = math.sqrt(0.5 * math.pi)
_SQRT_HALF = math.sqrt(0.5)

# Below this z, 1 + z·R(z) has lost 10 of its 16 digits and the first terms of its series are exact to 12.
SERIES_BELOW = -300.0

SOBOL_POINTS = 128
CENTRES = 4
RADII = (0.1, 0.3, 1.0)  # in lengthscales
CLIMB_STEPS = 40


_Z = TypeVar("_Z", Array, np.float64)


def means_at_data(gp: GaussianProcess) -> Array:
    """The posterior mean (n,) at the locations of the observed values."""
    data = gp.observations
    if data is None:
        return np.empty(0)
    if gp.jitter > 0.0 or len(data.G) or gp.blocks is not None:
        return gp.mean_at(data.X) + gp.cross(data.X).T @ gp.a
    return data.y - data.noise(gp.noise) * gp.a  # from (K − D) a + m with the noise D, where K a = y − m


def incumbent(gp: GaussianProcess) -> float:
    """The value to improve on where values are noisy: the highest posterior mean at the observed points."""
    if not gp.n:
        raise InputError("this Gaussian process has no values yet; there is nothing to improve on")
    return float(means_at_data(gp).max())


class LogExpectedImprovement:
    """``log E[max(J(x) − best, 0)]``, sound also where the expectation itself underflows.

    Args:
        gp: the model, conditioned or not.
        best: the value to improve on; None: the `incumbent`, the highest posterior mean at the observed points.

    Example:
        >>> from gibo import GaussianProcess, SquaredExponential
        >>> gp = GaussianProcess(SquaredExponential(lengthscale=0.5), noise=0.01).condition([[0.0], [1.0]], [0.0, 1.0])
        >>> log_ei = LogExpectedImprovement(gp)
        >>> bool(log_ei([1.5]) > log_ei([-0.5]))
        True

    Reference: Ament, Daulton, Eriksson, Balandat, Bakshy: Unexpected improvements to expected improvement for Bayesian
    optimization, NeurIPS 2023, section 4.1.
    """

    def __init__(self, gp: GaussianProcess, best: float | None = None) -> None:
        self.gp = instance("gp", gp, GaussianProcess, "a GaussianProcess")
        self.best = incumbent(gp) if best is None else finite("best", best)
        N = 0 if gp.factor is None else len(gp.factor.L)
        self._posterior = PosteriorAtPoint(gp)
        # Rounding leaves no smaller variance than this.
        self._least_variance = max(N, 1) * EPS * gp.kernel.variance

    def __call__(self, x: npt.ArrayLike) -> float | Array:
        """log EI at x: a number for (d,), an array (p,) for (p, d)."""
        mean, variance = (np.asarray(moment) for moment in self.gp.predict(x))
        sigma = np.sqrt(np.maximum(variance, self._least_variance))
        value = np.log(sigma) + log_h((mean - self.best) / sigma)[0]
        return float(value) if np.ndim(x) == 1 else value

    def value_and_gradient(self, x: npt.ArrayLike) -> tuple[float, Array]:
        """log EI and its gradient at one point x (d,)."""
        data = self.gp.observations
        point = moderate("x", as_vector("x", x, None if data is None else data.X.shape[1]))
        mean, variance, mean_gradient, variance_gradient = self._posterior(point)
        sigma = math.sqrt(max(variance, self._least_variance))
        z = (mean - self.best) / sigma
        value, r = _log_h(z)
        gradient = (r / sigma) * mean_gradient
        if variance > self._least_variance:
            gradient += ((1.0 - r * z) / (2.0 * sigma * sigma)) * variance_gradient  # ∇sigma = ∇sigma²/(2·sigma)
        return math.log(sigma) + value, gradient


def log_h(z: npt.ArrayLike) -> tuple[Array, Array]:
    """``log h(z)`` and its derivative ``r(z) = Phi(z)/h(z)``, to about 11 digits for every z.

    For z > −1 directly. Below, ``h = phi·(1 + z·R)`` with ``R(z) = √(π/2)·erfcx(−z/√2)``; far below, where
    ``1 + z·R`` cancels, by the series ``1 + z·R = z⁻²·(1 − 3z⁻² + 15z⁻⁴ − …)``.

    >>> log_h([-1e3, 0.0])[0].round(3)
    array([-5.00014734e+05, -9.19000000e-01])
    """
    z = np.asarray(z, dtype=np.float64)
    value, slope = np.empty_like(z), np.empty_like(z)
    series, direct = z < SERIES_BELOW, z > -1.0
    for branch, where in ((_series, series), (_direct, direct), (_ratio, ~(series | direct))):
        value[where], slope[where] = branch(z[where])
    return value, slope


def _log_h(z: float) -> tuple[float, float]:
    """`log_h` of one number: a tenth of the time."""
    value, slope = (_series if z < SERIES_BELOW else _direct if z > -1.0 else _ratio)(np.float64(z))
    return float(value), float(slope)


def _direct(z: _Z) -> tuple[_Z, _Z]:
    from scipy.special import ndtr

    Phi = ndtr(z)
    h = np.exp(-0.5 * z * z - LOG_SQRT_2PI) + z * Phi
    return np.log(h), Phi / h


def _ratio(z: _Z) -> tuple[_Z, _Z]:
    from scipy.special import erfcx

    R = _SQRT_HALF_PI * erfcx(-_SQRT_HALF * z)
    g = 1.0 + z * R  # h/phi
    return np.log(g) - 0.5 * z * z - LOG_SQRT_2PI, R / g


def _series(z: _Z) -> tuple[_Z, _Z]:
    s = 1.0 / (z * z)
    R, g = (s * (1.0 - 3.0 * s) - 1.0) / z, s * (1.0 - s * (3.0 - 15.0 * s))
    return np.log(g) - 0.5 * z * z - LOG_SQRT_2PI, R / g


class Improvement(Acquisition, Protocol):
    """The logarithm of an expected improvement under a model."""

    gp: GaussianProcess


def maximize(log_ei: Improvement, lower: Array, upper: Array, rng: np.random.Generator) -> tuple[Array, float]:
    """The point of the box with the highest expected improvement, and log EI there.

    Looked at: Sobol points, shifted at random, and points around the observed ones of the highest posterior mean, at
    several distances. Two climbs in lengthscales: one from the best of the former and one from the best of the latter.
    Over 80 situations in 4 to 36 dimensions log EI came out 0.01 below that of 30 climbs from 1300 points on average.
    """
    d = len(lower)
    groups = [
        lower + (upper - lower) * ((_sobol_points(d) + rng.random(d)) % 1.0),
        *_around_the_best(log_ei.gp, d, rng),
    ]
    groups = [np.clip(group, lower, upper) for group in groups]
    return climb(log_ei, groups, lower, upper, scale=log_ei.gp.kernel.ell(d), maximum_steps=CLIMB_STEPS)


@lru_cache(maxsize=64)
def _sobol_points(d: int) -> Array:
    """Of the unit cube, made once; a random shift, modulo 1, makes new ones of them at no cost."""
    from scipy.stats import qmc  # here, because importing scipy.stats takes longer than everything else together

    points: Array = qmc.Sobol(d, scramble=True, rng=0).random(SOBOL_POINTS)
    return points


def _around_the_best(gp: GaussianProcess, d: int, rng: np.random.Generator) -> list[Array]:
    """One group of starts: the observed points of the highest posterior mean, and points around them; or none."""
    if gp.observations is None or not gp.n:
        return []
    centres = gp.observations.X[np.argsort(-means_at_data(gp), kind="stable")[:CENTRES]]
    directions = rng.standard_normal((len(RADII), len(centres), d))
    directions /= np.linalg.norm(directions, axis=2, keepdims=True)
    around = centres + np.array(RADII)[:, None, None] * gp.kernel.ell(d) * directions
    return [np.concatenate([centres, around.reshape(-1, d)])]
