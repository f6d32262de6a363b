"""The posterior at one point with its gradient, and the lower confidence bound."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gibo import _linalg as linalg
from gibo._checks import finite, instance
from gibo._linalg import Array
from gibo.gp import GaussianProcess


class Moments(NamedTuple):
    """Mean and variance of the objective at one point, and their gradients (d,) by that point."""

    mean: float
    variance: float
    mean_gradient: Array
    variance_gradient: Array


class PosteriorAtPoint:
    """The posterior at one point with its gradient, in O(N² + N·d) for each point asked for.

    ``mu = m + kᵀ a``, ``sigma² = k(x, x) − kᵀ b`` with ``b = K⁻¹ k``; ``∇mu = Dᵀ a``, ``∇sigma² = −2·Dᵀ b``.

    Of values alone, row i of D is ``−2·s2·psi'(q_i)·(z_i − u)/ell`` with z and u the data and x in lengthscales, so
    that no array of size (N, d) needs to be made for a point.

    Example:
        >>> from gibo import GaussianProcess, SquaredExponential
        >>> gp = GaussianProcess(SquaredExponential(), noise=0.01).condition([[0.0], [1.0]], [0.0, 1.0])
        >>> bool(abs(PosteriorAtPoint(gp)(np.array([0.5])).variance_gradient[0]) < 1e-12)     # half-way
        True
    """

    def __init__(self, gp: GaussianProcess) -> None:
        self._gp, data = gp, gp.observations
        weighs_target = gp.blocks is not None and gp.blocks.weighs_target
        self._of_values = data is not None and not len(data.G) and not weighs_target
        if data is None or not self._of_values:
            return
        self._ell = gp.kernel.ell(data.X.shape[1])
        self._centre = data.X.mean(axis=0)  # so that the cancellation in |z|² + |u|² − 2 z·u is small
        self._Z = (data.X - self._centre) / self._ell
        self._squares = np.einsum("nd,nd->n", self._Z, self._Z)

    def __call__(self, x: Array) -> Moments:
        gp, s2 = self._gp, self._gp.kernel.variance
        m, slope = gp.prior_mean, np.zeros(len(x))
        if gp.mean_function is not None:
            m, slope = float(gp.mean_function(x[None])[0]), gp.mean_function.gradient(x[None])[0]
        if gp.observations is None or gp.factor is None:
            return Moments(m, gp.prior_variance, slope, np.zeros(len(x)))
        L, a = gp.factor.L, gp.a
        if not self._of_values:
            k, D = gp.cross(x[None])[:, 0], gp.cross_gradient(x)
            w = linalg.solve_lower(L, k)
            by_a, by_b = a @ D, linalg.solve_upper(L, w) @ D
        else:
            Z, u = self._Z, (x - self._centre) / self._ell
            q = Z @ u
            q *= -2.0
            q += self._squares
            q += u @ u
            psi, dpsi = gp.kernel.profile(np.maximum(q, 0.0, out=q), 1)
            k = s2 * psi
            w = linalg.solve_lower(L, k)
            dpsi *= -2.0 * s2
            ca, cb = dpsi * a, dpsi * linalg.solve_upper(L, w)
            by_a, by_b = ca @ Z - ca.sum() * u, cb @ Z - cb.sum() * u
            by_a, by_b = by_a / self._ell, by_b / self._ell
        return Moments(m + float(k @ a), max(gp.prior_variance - float(w @ w), 0.0), by_a + slope, -2.0 * by_b)


class LowerConfidenceBound:
    """``mean(x) − β·sd(x)``, with its gradient.

    Example:
        >>> from gibo import GaussianProcess, SquaredExponential
        >>> gp = GaussianProcess(SquaredExponential(), noise=0.01).condition([[0.0]], [1.0])
        >>> bound = LowerConfidenceBound(gp, 1.0)
        >>> bool(bound(np.array([[0.0], [2.0]])).argmax() == 0)
        True
    """

    def __init__(self, gp: GaussianProcess, beta: float) -> None:
        self.gp = instance("gp", gp, GaussianProcess, "a GaussianProcess")
        self.beta, self._posterior = finite("beta", beta), PosteriorAtPoint(gp)

    def __call__(self, x: Array) -> Array:
        mean, variance = self.gp.predict(x)
        return np.asarray(mean - self.beta * np.sqrt(variance))

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        mean, variance, mean_gradient, variance_gradient = self._posterior(x)
        sd = math.sqrt(max(variance, 1e-12 * self.gp.kernel.variance))
        return mean - self.beta * sd, mean_gradient - (0.5 * self.beta / sd) * variance_gradient
