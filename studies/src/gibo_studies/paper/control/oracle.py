"""What a learner of the linear quadratic regulator can only estimate: its expected return and the return's gradient.

Symbols (those of `gibo_studies.paper.control.lqr`, and)
------------------------------------------
M = Q + KᵀRK     the cost of a step is ``q = xᵀMx``, its reward ``−log(1 + q)``
Σ_t              covariance of the state after t steps, ``Σ_0 = 0``, ``Σ_{t+1} = F Σ_t Fᵀ + W``
λ (n,)           the eigenvalues of Σ_t M, the same as those of ``M^½ Σ_t M^½`` and of ``Σ_t^½ M Σ_t^½``

A state is Gaussian, so ``E e^{−sq} = Π_i (1 + 2sλ_i)^{−½}``, and with ``log(1 + q) = ∫ e^{−s} (1 − e^{−sq})/s ds``

    E log(1 + q)      = ∫ e^{−s} (1 − Π_i (1 + 2sλ_i)^{−½})/s ds
    ∂E log(1 + q)/∂λ_i = c_i = ∫ e^{−s} Π_j (1 + 2sλ_j)^{−½}/(1 + 2sλ_i) ds,       s from 0 to ∞

Both integrals are smooth in log s, where the trapezoidal rule is exact to rounding. The derivatives by Σ_t and M follow
from those by λ, and that by K from them by going back through the recursion of Σ_t.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gibo._linalg import Array, single_thread
from gibo.errors import InputError
from gibo.outcome import Outcome
from gibo_studies.paper.control.lqr import LQR

# The step of the trapezoidal rule in log s: its error is about exp(−π²/STEP).
STEP = 0.25


class ExpectedReturn(NamedTuple):
    """The expected return of an episode, and its gradient (p, n) by the gain."""

    value: float
    gradient: Array


def expected_return(lqr: LQR, K: npt.ArrayLike, steps: int = 300) -> ExpectedReturn:
    """The mean of ``lqr.episode_return(K, steps, seed=...)`` over all disturbances, and its gradient by K; both exact.

    A gain need not stabilise the system: over finitely many steps everything is finite.

    Raises:
        InputError: the states grow beyond the largest float within these steps.

    Example:
        >>> lqr = LQR.paper()
        >>> value, gradient = expected_return(lqr, -0.5 * np.eye(3))
        >>> round(value, 1), gradient.shape
        (-188.6, (3, 3))
    """
    K = np.reshape(np.asarray(K, dtype=np.float64), (lqr.p, lqr.n))
    F, M = lqr.A + lqr.B @ K, lqr.Q + K.T @ lqr.R @ K
    with np.errstate(over="ignore", invalid="ignore"), single_thread():
        S = np.zeros((steps, lqr.n, lqr.n))
        for t in range(1, steps):
            S[t] = F @ S[t - 1] @ F.T + lqr.W
        if not np.isfinite(S).all() or not np.isfinite(M).all():
            raise InputError(f"K: the states grow beyond the largest float within {steps} steps; give fewer steps")
        root_S, root_M = _root(S), _root(M)
        # eigh gives the eigenvalues of both in the same order.
        values, U = np.linalg.eigh(root_M @ S @ root_M)
        V = np.linalg.eigh(root_S @ M @ root_S)[1]
        mean, c = _moments(np.maximum(values, 0.0))
        by_S = _weighted(root_M @ U, c)
        by_M = _weighted(root_S @ V, c)
        adjoint = np.zeros((lqr.n, lqr.n))  # by Σ_{t+1}, through all later steps
        gradient = np.zeros((lqr.p, lqr.n))
        for t in range(steps - 1, -1, -1):
            gradient -= 2.0 * (lqr.B.T @ adjoint @ F @ S[t] + lqr.R @ K @ by_M[t])
            adjoint = by_S[t] + F.T @ adjoint @ F
    return ExpectedReturn(-float(mean.sum()), gradient)


class LQRObjective:
    """The return of an episode as an objective of the gain, row by row; at iterates with a noisy exact gradient.

    The gradient is that of the expected return, with independent Gaussian noise on each entry. It comes with a query of
    kind ``"iterate"`` only, and only where the gain stabilises the system: elsewhere there is none.

    Without `noise`, its standard deviation, there are no gradients.
    """

    def __init__(self, lqr: LQR, noise: float | None = None, steps: int = 300) -> None:
        self.lqr, self.noise, self.steps = lqr, noise, steps

    def __call__(self, theta: npt.ArrayLike, *, seed: int = 0, kind: str = "query") -> Outcome:
        """Evaluate a gain. The episode's disturbances and the gradient's noise have streams of their own."""
        value = self.lqr.episode_return(theta, self.steps, seed=seed)
        if self.noise is None or kind != "iterate" or not self.lqr.is_stable(theta):
            return Outcome(value)
        exact = expected_return(self.lqr, theta, self.steps).gradient.ravel()
        rng = np.random.default_rng((seed, 2))
        return Outcome(value, exact + self.noise * rng.standard_normal(len(exact)), self.noise**2)


def _root(S: Array) -> Array:
    """The symmetric root of positive semi-definite matrices (..., n, n)."""
    values, vectors = np.linalg.eigh(S)
    return _weighted(vectors, np.sqrt(np.maximum(values, 0.0)))


def _weighted(X: Array, weights: Array) -> Array:
    """``X diag(weights) Xᵀ`` of many (..., n, n)."""
    product: Array = (X * weights[..., None, :]) @ X.swapaxes(-1, -2)
    return product


def _moments(values: Array) -> tuple[Array, Array]:
    """``E log(1 + q)`` (T,) and c (T, n), for eigenvalues λ (T, n)."""
    # Left of this, s is below rounding against the smallest scale 1/(2λ) on which anything happens.
    left = -40.0 - math.log1p(2.0 * float(values.max(initial=0.0)))
    s = np.exp(np.arange(left, math.log(750.0), STEP))
    growth = 1.0 + 2.0 * s[:, None] * values[:, None, :]  # (T, nodes, n)
    log_product = np.log(growth).sum(axis=-1)
    density = STEP * np.exp(-s)
    mean = -np.expm1(-0.5 * log_product) @ density
    c = np.einsum("s,ts,tsn->tn", density * s, np.exp(-0.5 * log_product), 1.0 / growth)
    return mean, c
