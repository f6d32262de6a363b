"""Gradient Information in closed form, with its exact gradient.

Symbols (those of `gibo.gp`, and)
---------------------------------
t (d,)      the current iterate, at which the gradient is inferred
u (d,)      a candidate x relative to t in lengthscales, ``u = (x − t)/ell``
k (N,)      covariance of the observations with a value at x;  ``w = L⁻¹ k``
c (d,)      covariance of ∇J(t) and J(x) given the data,  ``c = ∂k(t, x)/∂t − Vᵀ w``
v           variance of an observation at x given the data,  ``v = k(x, x) − wᵀ w + noise``

One more observation at x changes S by a rank-one term (a Schur complement): ``S after = S − c cᵀ/v``. Hence

    α(x)  = tr(S before) − tr(S after) = ‖c‖²/v
    ∇α(x) = (2·(∂c/∂x)ᵀ c − α·∇v)/v

and no candidate needs a factorisation of its own: α and ∇α cost two triangular solves and a few products, O(N² + N·d).
Where the model has blocks (`gibo.blocks`), the covariances are those of a value in the block of the coming queries:
``k → (1 + ρ·w)·k + η²·w``, ``∂k(t, x)/∂t`` and the derivatives likewise, each with the weight w of the query's block
with the block of the observation, or with the present at t; and ``k(x, x) = (1 + ρ)·s2 + η²``.

α does not depend on the observed values, and so M queries can be planned ahead (`gibo.acquisition.plan`).
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from gibo import _linalg as linalg
from gibo._checks import as_points, as_vector, instance, moderate, one_or_many
from gibo._linalg import EPS, Array
from gibo.blocks import QueryBlock
from gibo.gp import GaussianProcess, schur_complement
from gibo.kernels import Kernel

_ZERO = np.zeros(())  # an array, because NumPy takes longer for a number


class _Sites(NamedTuple):
    """Where the observations are, relative to t in lengthscales.

    A (n + 1, d + 2): rows ``(−2·z, |z|², 1)`` of the n values z, and of t itself (z = 0) in the last row: one product
        with ``(u, 1, |u|²)`` is the squared distances of a candidate u from all of them.
    ZG (m, d): the gradients.
    """

    A: Array
    ZG: Array

    @classmethod
    def of(cls, Z: Array, ZG: Array) -> _Sites:
        n, d = Z.shape
        A = np.zeros((n + 1, d + 2))
        np.multiply(Z, -2.0, out=A[:n, :d])
        np.einsum("nd,nd->n", Z, Z, out=A[:n, d])
        A[:, d + 1] = 1.0
        return cls(A, ZG)

    def more(self, z: Array) -> _Sites:
        """With one more value, at z (d,)."""
        return _Sites(np.insert(self.A, len(self.A) - 1, [*(-2.0 * z), z @ z, 1.0], axis=0), self.ZG)


class GradientInformation:
    """The information of an observation at x about the gradient at t: the decrease of ``tr Var[∇J(t)]``.

    Args:
        gp: the model, conditioned or not.
        at: the point t (d,) whose gradient matters.
        block: block of the next queries, if the model has blocks; None: a new block, or the present time.

    Example:
        >>> from gibo import GaussianProcess, GradientInformation, SquaredExponential
        >>> gp = GaussianProcess(SquaredExponential(lengthscale=1.0), noise=0.01).condition([[0.0]], [0.3])
        >>> gi = GradientInformation(gp, at=[0.0])
        >>> round(gi([1.0]), 3), round(gi([0.0]), 3)     # a value at t has no information about the slope at t
        (0.57, 0.0)

    Reference: Müller et al. 2021, eq. (4), there as an expected difference of traces.
    """

    def __init__(self, gp: GaussianProcess, at: npt.ArrayLike, block: float | None = None) -> None:
        instance("gp", gp, GaussianProcess, "a GaussianProcess")
        t = moderate("at", as_vector("at", at, None if gp.observations is None else gp.observations.X.shape[1]))
        d = len(t)
        self.t = t
        self._kernel: Kernel = gp.kernel
        self._ell = gp.kernel.ell(d)
        self._of_model = gp.noise, gp.jitter
        H = gp.prior_gradient_covariance(d)
        if gp.observations is None or gp.factor is None:
            none = np.empty((0, d))
            self._sites = _Sites.of(none, none)
            self._L, self._V = np.empty((0, 0), order="F"), none
            of_values, of_gradients = np.empty(0), np.empty(0)
        else:
            data = gp.observations
            self._sites = _Sites.of(self.to_scaled(data.X), self.to_scaled(data.G))
            of_values, of_gradients = data.blocks, data.gradient_blocks
            self._L = gp.factor.L
            self._V = linalg.solve_lower(self._L, gp.cross_gradient(t))
        self.covariance: Array = schur_complement(H, self._V)
        self._blocks = None if gp.blocks is None else QueryBlock.of(gp.blocks, of_values, of_gradients, block)
        self._noise = gp.jitter + (gp.noise if self._blocks is None else self._blocks.noise(gp.noise))

    def __call__(self, x: npt.ArrayLike) -> float | Array:
        """α at x: a number for (d,), an array (p,) for (p, d)."""
        points, one = one_or_many("x", x)
        if one:
            return self.value_and_gradient(points[0])[0]
        return self.scaled_batch(self.to_scaled(as_points("x", points, len(self.t))))

    def value_and_gradient(self, x: npt.ArrayLike) -> tuple[float, Array]:
        """α and ∇α at one point x (d,)."""
        value, gradient = self.scaled_value_and_gradient(self.to_scaled(moderate("x", as_vector("x", x, len(self.t)))))
        return value, gradient / self._ell

    def to_scaled(self, x: Array) -> Array:
        """``u = (x − t)/ell``."""
        return (x - self.t) / self._ell

    def from_scaled(self, u: Array) -> Array:
        """``x = t + ell·u``."""
        return self.t + self._ell * u

    def scaled_value_and_gradient(self, u: Array) -> tuple[float, Array]:
        """α and its gradient by u, where ``x = t + ell·u``; what the maximisation calls in its loop."""
        s2, (A, ZG), d, n = self._kernel.variance, self._sites, len(u), len(self._sites.A) - 1
        h = np.empty(d + 2)
        h[:d], h[d], h[d + 1] = u, 1.0, u.dot(u)
        q = A.dot(h)
        psi, dpsi, ddpsi = self._kernel.profile(np.maximum(q, _ZERO, out=q), 2)
        blocks = self._blocks
        if blocks is not None:
            psi, dpsi, ddpsi = psi * blocks.factor, dpsi * blocks.factor, ddpsi * blocks.factor
        slope, bend = 2.0 * s2 * float(dpsi[n]), 4.0 * s2 * float(ddpsi[n])  # the last site is t itself
        w = s2 * psi[:n]
        if blocks is not None:
            w += blocks.offset
        if len(ZG):
            R = ZG - u
            _, dpsi_G, ddpsi_G = self._kernel.profile(np.einsum("md,md->m", R, R), 2)
            if blocks is not None:
                dpsi_G, ddpsi_G = dpsi_G * blocks.gradient_factor, ddpsi_G * blocks.gradient_factor
            w = np.concatenate([(2.0 * s2 * dpsi_G[:, None] * R / self._ell).ravel(), w])
        w = linalg.solve_lower(self._L, w, overwrite=True)
        c = u / self._ell
        c *= -slope
        c -= w.dot(self._V)
        v = max((s2 if blocks is None else blocks.variance(s2)) - float(w.dot(w)), 0.0) + self._least_variance()
        alpha = float(c.dot(c)) / v
        # v·∇α = 2·(∂²k(t, x)/∂t∂x)ᵀ c + 2·(∂k/∂x)ᵀ L⁻ᵀ (α w − V c), here by u instead of x.
        w *= alpha
        w -= self._V.dot(c)
        b = linalg.solve_upper(self._L, w, overwrite=True)
        e = c / self._ell
        gradient = -slope * e
        if len(ZG):
            b_G = b[: R.size].reshape(R.shape) / self._ell
            b = b[R.size :]
            gradient -= 2.0 * s2 * (dpsi_G @ b_G)
            gradient -= 4.0 * s2 * ((ddpsi_G * np.einsum("md,md->m", R, b_G)) @ R)
        by_q = s2 * (b * dpsi[:n]).dot(A[:n])  # by each of h's entries; the middle one is constant
        gradient += by_q[:d]
        gradient += (2.0 * float(by_q[d + 1]) - bend * float(u.dot(e))) * u
        gradient *= 2.0 / v
        return alpha, gradient

    def extend(self, x: npt.ArrayLike) -> Self:
        """The acquisition after one more value at x, whatever that value is, in O(N² + N·d + d²)."""
        u = self.to_scaled(moderate("x", as_vector("x", x, len(self.t))))
        w, c, v = self._moments(u[None])
        N, pivot = len(self._L), float(np.sqrt(v[0]))
        after = object.__new__(type(self))
        after.t, after._kernel, after._ell = self.t, self._kernel, self._ell
        after._of_model, after._noise = self._of_model, self._noise
        after._sites = self._sites.more(u)
        after._blocks = None if self._blocks is None else self._blocks.more()
        after._L = np.zeros((N + 1, N + 1), order="F")
        after._L[:N, :N] = self._L
        after._L[N, :N] = w[:, 0]
        after._L[N, N] = pivot
        after._V = np.vstack([self._V, c / pivot])
        after.covariance = self.covariance - np.outer(c[0], c[0] / v[0])
        return after

    def in_block(self, block: float | None) -> Self:
        """The acquisition for queries in another block."""
        other = copy(self)
        if self._blocks is not None:
            other._blocks = self._blocks._replace(block=block).weighed()
            noise, jitter = self._of_model
            other._noise = jitter + other._blocks.noise(noise)
        return other

    def scaled_batch(self, U: Array) -> Array:
        """α (p,) at the rows of U (p, d)."""
        _, c, v = self._moments(U)
        alpha: Array = np.einsum("pd,pd->p", c, c) / v
        return alpha

    def _moments(self, U: Array) -> tuple[Array, Array, Array]:
        """w (N, p), c (p, d) and v (p,) at the candidates U (p, d)."""
        s2, sites = self._kernel.variance, self._sites
        uu = np.einsum("pd,pd->p", U, U)
        q = sites.A[:-1].dot(np.vstack([U.T, np.ones(len(U)), uu]))
        k = s2 * self._kernel.profile(np.maximum(q, 0.0), 0)[0]
        blocks = self._blocks
        if blocks is not None:
            k = k * blocks.factor[:-1, None] + blocks.offset[:, None]
        if len(sites.ZG):
            R = sites.ZG[:, None, :] - U
            dpsi = self._kernel.profile(np.einsum("mpd,mpd->mp", R, R), 1)[1]
            if blocks is not None:
                dpsi = dpsi * blocks.gradient_factor[:, None]
            k_G = 2.0 * s2 * dpsi[..., None] * R / self._ell
            k = np.concatenate([k_G.transpose(0, 2, 1).reshape(sites.ZG.size, len(U)), k])
        w = linalg.solve_lower(self._L, k)
        dpsi_t = self._kernel.profile(uu, 1)[1]
        if blocks is not None:
            dpsi_t = dpsi_t * blocks.factor[-1]
        c = -2.0 * s2 * dpsi_t[:, None] * U / self._ell - w.T @ self._V
        variance = s2 if blocks is None else blocks.variance(s2)
        v = np.maximum(variance - np.einsum("np,np->p", w, w), 0.0) + self._least_variance()
        return w, c, v

    def _least_variance(self) -> float:
        """The noise, or what rounding leaves where there is none: what v cannot fall below."""
        return max(self._noise, len(self._L) * EPS * self._kernel.variance)
