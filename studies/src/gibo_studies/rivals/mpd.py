"""MPD: local search along the direction that ascends most probably (Nguyen et al. 2022, there of descent).

One iteration at the iterate t:

    queries   M of them, each the one that is expected to make the ascent surest, given those before
    move      small steps along S⁻¹μ on one model, while Φ(√(μᵀS⁻¹μ)) stays high

Symbols (those of `gibo.gp` and `gibo.acquisition.information`, and)
--------------------------------------------------------------------
mu (d,), S (d, d)   mean and covariance of the gradient at t given the data
c (d,), v           covariance of the gradient at t and a value at x; variance of an observation at x
b (d,)              ``S⁻¹ mu``, the direction that ascends most probably
q                   ``cᵀ S⁻¹ c``

A step along u ascends with probability ``Φ(uᵀmu/√(uᵀ S u))``. By the inequality of Cauchy and Schwarz that is largest
for ``u = S⁻¹ mu``, with ``Φ(√(muᵀ S⁻¹ mu))``. One more observation at x changes mu by a random multiple of c with
variance 1/v, and S to ``S − c cᵀ/v``. Hence (Sherman and Morrison)

    E[mu'ᵀ S'⁻¹ mu'] = muᵀ S⁻¹ mu + α(x),     α(x) = ((bᵀc)² + q)/(v − q)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gibo import _linalg as linalg
from gibo._linalg import EPS, Array
from gibo.acquisition.climb import climb
from gibo.gp import GaussianProcess, Jacobian, conditioned
from gibo.optimizers.model import Model
from gibo_studies.rivals.local_model import LocalModelSearch

STARTS = 64
STEP, MOST_STEPS = 0.05, 20  # small steps on one model, in lengthscales
LEAST_PROBABILITY = 0.65  # no further step where the ascent is less sure than this


class Ascent(NamedTuple):
    """A direction (d,) and the probability that the objective rises along it."""

    direction: Array
    probability: float


def most_probable_ascent(jacobian: Jacobian) -> Ascent:
    """The direction ``S⁻¹ mu`` and its probability ``Φ(√(muᵀ S⁻¹ mu))``; see the module's text.

    >>> ascent = most_probable_ascent(Jacobian(np.array([1.0, 1.0]), np.diag([1.0, 4.0])))
    >>> ascent.direction, round(ascent.probability, 3)
    (array([1.  , 0.25]), 0.868)
    """
    largest = float(np.abs(jacobian.mean).max(initial=0.0))
    if largest < 1e-100:  # nothing is known
        return Ascent(np.zeros_like(jacobian.mean), 0.5)
    mu, S = jacobian.mean / largest, jacobian.covariance / largest**2
    if not float(S.trace()) > 0.0:
        return Ascent(jacobian.mean, 1.0)
    b = linalg.solve(linalg.cholesky(S).L, mu)
    return Ascent(b / largest, 0.5 * math.erfc(-math.sqrt(max(float(mu @ b), 0.0) / 2.0)))


class ExpectedAscent:
    """α(x): how much a value at x is expected to add to ``muᵀ S⁻¹ mu`` at t; see the module's text.

    For a model of values alone.
    """

    def __init__(self, gp: GaussianProcess, at: Array) -> None:
        _, factor = conditioned(gp)
        self._gp, self._t, self._L = gp, at, factor.L
        jacobian = gp.jacobian(at)
        self._V = linalg.solve_lower(self._L, gp.cross_gradient(at))
        self._S = linalg.cholesky(jacobian.covariance).L
        self._b = linalg.solve(self._S, jacobian.mean)
        self._noise = max(gp.noise + gp.jitter, len(self._L) * EPS * gp.kernel.variance)

    def __call__(self, x: Array) -> Array:
        """α (p,) at points (p, d)."""
        w = linalg.solve_lower(self._L, self._gp.cross(x))
        c = self._gp.kernel.dk_da(self._t[None], x)[0] - w.T @ self._V
        v = np.maximum(self._gp.kernel.variance - np.einsum("np,np->p", w, w), 0.0) + self._noise
        root = linalg.solve_lower(self._S, c.T)
        q = np.einsum("dp,dp->p", root, root)
        alpha: Array = ((c @ self._b) ** 2 + q) / np.maximum(v - q, 0.5 * self._noise)
        return alpha

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        """α and its gradient at one point x (d,)."""
        gp, t, data = self._gp, self._t[None], self._gp.observations
        assert data is not None
        w = linalg.solve_lower(self._L, gp.cross(x[None])[:, 0])
        c = gp.kernel.dk_da(t, x[None])[0, 0] - w @ self._V
        v = max(gp.kernel.variance - float(w @ w), 0.0) + self._noise
        Sc = linalg.solve(self._S, c)
        along, q = float(self._b @ c), float(c @ Sc)
        rest = max(v - q, 0.5 * self._noise)  # by rounding alone below the noise
        alpha = (along**2 + q) / rest
        # ∇α = (∂c/∂x)ᵀ by_c + by_v·∇v
        by_c, by_v = (2.0 * along * self._b + 2.0 * (1.0 + alpha) * Sc) / rest, -alpha / rest
        at_data = linalg.solve_upper(self._L, self._V @ by_c + 2.0 * by_v * w)
        gradient = by_c @ gp.kernel.d2k_dadb(t, x[None])[0, 0] - at_data @ gp.kernel.dk_db(data.X, x[None])[:, 0]
        return alpha, gradient


class MPD(LocalModelSearch):
    """Local search along the most probable ascent. It maximises.

    Reference: Nguyen, Wu, Gardner, Garnett: Local Bayesian optimization via maximizing probability of descent,
    NeurIPS 2022; its step of 0.001 of the unit cube is here a share of a lengthscale.
    """

    method = "mpd"

    def _queries(self, model: Model, lower: Array, upper: Array) -> Array:
        gp, t = model.gp, self._iterate / self.scale
        ell, Z = gp.kernel.ell(self.d), []
        for _ in range(self.settings.sizes[0]):
            acquisition = ExpectedAscent(gp, t)
            starts = lower + (upper - lower) * self._rng.random((STARTS, self.d))
            z, _ = climb(acquisition, [starts], lower, upper, scale=ell, maximum_steps=20)
            Z.append(z)
            gp = gp.extend(z, gp.predict(z).mean)  # μ stays, S shrinks
        return np.array(Z)

    def _move(self, model: Model) -> Array:
        z, ell = self._iterate / self.scale, model.gp.kernel.ell(self.d)
        for _ in range(MOST_STEPS):
            direction, probability = most_probable_ascent(model.gp.jacobian(z))
            length = float(np.linalg.norm(direction / ell))
            if probability < LEAST_PROBABILITY or not length > 0.0:
                break
            z = self._inside(z + STEP * direction / length)
        return z
