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

α does not depend on the observed values, so that M queries can be planned before the first one is evaluated (`plan`):
they equal those of telling one value at a time and asking again.
"""

from __future__ import annotations

from copy import copy
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from gibo import _linalg as linalg
from gibo._checks import as_points, as_vector, batch_size, instance, moderate, one_or_many, positive, positive_int
from gibo._linalg import EPS, Array
from gibo.acquisition.climb import FACTR, MAXIMUM_STEPS, PGTOL
from gibo.blocks import QueryBlock
from gibo.errors import InputError, NumericalError
from gibo.gp import GaussianProcess, schur_complement
from gibo.kernels import Kernel

_ZERO = np.zeros(())  # an array, because NumPy takes longer for a number

# The starts of a plan's climbs. Over 400 random situations one climb from the best start reached on average 0.9997 of
# the best of 20 climbs from 256 samples, and never less than 0.91; a second one would double the time. Starts nearer to
# t halve the climbs where there is little noise, but with them fewer trials of Swimmer-v5 reached its plateau.
EIGENVECTORS = 3
LENGTHS = (0.5, 1.0, 2.0)
EVEN_POINTS = 8
MIRROR_ROUNDS = 3


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
        self.ell = gp.kernel.ell(d)
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
        return value, gradient / self.ell

    def to_scaled(self, x: Array) -> Array:
        """``u = (x − t)/ell``."""
        return (x - self.t) / self.ell

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
            w = np.concatenate([(2.0 * s2 * dpsi_G[:, None] * R / self.ell).ravel(), w])
        w = linalg.solve_lower(self._L, w, overwrite=True)
        c = u / self.ell
        c *= -slope
        c -= w.dot(self._V)
        v = max((s2 if blocks is None else blocks.variance(s2)) - float(w.dot(w)), 0.0) + self._least_variance()
        alpha = float(c.dot(c)) / v
        # v·∇α = 2·(∂²k(t, x)/∂t∂x)ᵀ c + 2·(∂k/∂x)ᵀ L⁻ᵀ (α w − V c), here by u instead of x.
        w *= alpha
        w -= self._V.dot(c)
        b = linalg.solve_upper(self._L, w, overwrite=True)
        e = c / self.ell
        gradient = -slope * e
        if len(ZG):
            b_G = b[: R.size].reshape(R.shape) / self.ell
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
        after.t, after._kernel, after.ell = self.t, self._kernel, self.ell
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
            k_G = 2.0 * s2 * dpsi[..., None] * R / self.ell
            k = np.concatenate([k_G.transpose(0, 2, 1).reshape(sites.ZG.size, len(U)), k])
        w = linalg.solve_lower(self._L, k)
        dpsi_t = self._kernel.profile(uu, 1)[1]
        if blocks is not None:
            dpsi_t = dpsi_t * blocks.factor[-1]
        c = -2.0 * s2 * dpsi_t[:, None] * U / self.ell - w.T @ self._V
        variance = s2 if blocks is None else blocks.variance(s2)
        v = np.maximum(variance - np.einsum("np,np->p", w, w), 0.0) + self._least_variance()
        return w, c, v

    def _least_variance(self) -> float:
        """The noise, or what rounding leaves where there is none: what v cannot fall below."""
        return max(self._noise, len(self._L) * EPS * self._kernel.variance)


class Plan(NamedTuple):
    """Queries X (M, d) in the order in which they were chosen, and the information α (M,) that each adds."""

    X: Array
    information: Array


def plan(
    gi: GradientInformation,
    lower: Array,
    upper: Array,
    M: int,
    rng: np.random.Generator,
    least_share: float = 0.0,
    least_gain: float = 0.0,
    maximum_steps: int = MAXIMUM_STEPS,
    basis: Array | None = None,
) -> Plan:
    """The next M queries in the box, each the most informative one given the earlier ones.

    α does not depend on the observed values, so that these queries equal those of M single asks; all of them may run in
    parallel. The plan ends early, after at least one query, when a query
    would remove less than `least_share` of the gradient's remaining uncertainty; or with the first one after it whose α
    is below `least_gain`. (That is the rule of the published code of Müller et al. 2021: the change of the acquisition,
    which counts all data there, is the α of the last query.) A query's climb has at most `maximum_steps`. For the
    `basis` see `maximize`.
    """
    instance("gi", gi, GradientInformation, "a GradientInformation")
    instance("rng", rng, np.random.Generator, "np.random.default_rng(seed)")
    lower, upper = as_vector("lower", lower, len(gi.t)), as_vector("upper", upper, len(gi.t))
    if not (lower < upper).all():
        raise InputError("lower, upper: expected lower below upper in every dimension")
    M, least_share = batch_size("M", M), positive("least_share", least_share, or_zero=True)
    steps = positive_int("maximum_steps", maximum_steps)
    X: list[Array] = []
    information: list[float] = []
    for _ in range(M):
        x, alpha = maximize(gi, lower, upper, rng, steps, basis)
        if X and alpha < least_share * float(gi.covariance.trace()):
            break
        X.append(x)
        information.append(alpha)
        if len(X) > 1 and alpha < least_gain:
            break
        if len(X) < M:
            gi = gi.extend(x)
    return Plan(np.array(X), np.array(information))


def maximize(
    gi: GradientInformation,
    lower: Array,
    upper: Array,
    rng: np.random.Generator,
    maximum_steps: int = MAXIMUM_STEPS,
    basis: Array | None = None,
) -> tuple[Array, float]:
    """The most informative point of the box, and its α, by a climb from the best of several starts.

    Starts: for the leading eigenvectors q of the gradient's covariance, ``t ± ell∘q`` at Mahalanobis lengths ½, 1 and 2
    and the corners of the box in their direction; a Latin hypercube of a few points. All are evaluated in one batch
    and the best is climbed from. In a box that is small against the lengthscales α is nearly convex and its maxima are
    corners; where the climb ends on faces of the box, the points mirrored across it are tried.

    Where directions are uncertain alike, as all of them are before there are data, the columns of `basis` (d, d), an
    orthogonal matrix, are taken in turn; None: the parameters.
    """
    low, high = gi.to_scaled(lower), gi.to_scaled(upper)
    starts = _starts(gi, low, high, rng, basis)
    alphas = gi.scaled_batch(starts)
    if not np.isfinite(alphas).all():
        raise NumericalError(
            "the information of queries is not finite: lengthscales, scale or x0 are too large or too small to compute "
            "with; use other units"
        )
    # The climb's tolerances hold for values of about 1.
    unit = max(float(alphas.max()), float(np.finfo(np.float64).tiny))

    def cost(u: Array) -> tuple[float, Array]:
        alpha, slope = gi.scaled_value_and_gradient(u)
        return -alpha / unit, slope / -unit

    def climbed(start: Array) -> tuple[Array, float]:
        u, lowest = linalg.minimize(cost, start, low, high, factr=FACTR, pgtol=PGTOL, maximum_steps=maximum_steps)
        return np.clip(u, low, high), -lowest * unit

    best, value = climbed(_first_of_best(starts, alphas))
    for _ in range(MIRROR_ROUNDS):
        on_face = np.flatnonzero((best <= low) | (best >= high))
        if not len(on_face):
            break
        mirrored = np.repeat(best[None], len(on_face), axis=0)
        mirrored[np.arange(len(on_face)), on_face] = (low + high - best)[on_face]
        alphas = gi.scaled_batch(mirrored)
        if float(alphas.max()) < 1.001 * value:
            break
        best, value = climbed(_first_of_best(mirrored, alphas))
    return np.clip(gi.t + gi.ell * best, lower, upper), value


def _starts(gi: GradientInformation, low: Array, high: Array, rng: np.random.Generator, basis: Array | None) -> Array:
    S = gi.covariance
    leading = _leading_eigenvectors(S, basis)
    directions = gi.to_scaled(gi.t + leading)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    directions = np.concatenate([directions, -directions])
    corners = np.where(directions > 0, high, low)
    even = low + (high - low) * ((_latin_hypercube(len(low)) + rng.random(len(low))) % 1.0)
    along = (np.array(LENGTHS)[:, None, None] * directions).reshape(-1, len(low))
    U = np.concatenate([along, corners, even])
    return np.clip(U, low, high, out=U)


@lru_cache(maxsize=64)
def _latin_hypercube(d: int) -> Array:
    """Points of the unit cube, shifted at random for use: in each dimension one in each of as many slices."""
    slices = np.tile(np.arange(EVEN_POINTS), (d, 1))
    points: Array = np.random.default_rng(0).permuted(slices, axis=1).T / EVEN_POINTS
    return points


def _first_of_best(points: Array, alphas: Array) -> Array:
    """The point with the highest α, or the first of those that agree with it to 9 digits.

    α has exact ties: t + δ and t − δ say the same while the data lie symmetrically. Which of them rounding favours must
    not decide, or planning and asking one by one would part.
    """
    first: Array = points[np.flatnonzero(alphas >= (1.0 - 1e-9) * alphas.max())[0]]
    return first


def _leading_eigenvectors(S: Array, basis: Array | None) -> Array:
    """As rows, approximately, and such that rounding in S does not decide which ones they are.

    Where eigenvalues coincide, as they do before there are data, any basis of their space would do. Weights that differ
    by a thousandth per direction of the basis select one, and a fixed direction gives the sign.
    """
    d = len(S)
    weight = 1.0 + 1e-3 * np.arange(d, 0, -1) / d
    S = S if basis is None else basis.T @ S @ basis
    leading = linalg.leading_eigenvectors(S * np.sqrt(np.outer(weight, weight)), EIGENVECTORS)
    sign = np.sign(np.sin(1.0 + np.arange(d)) @ leading)
    leading = np.where(sign == 0.0, 1.0, sign) * leading
    return (leading if basis is None else basis @ leading).T
