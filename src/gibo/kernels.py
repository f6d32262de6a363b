"""Covariance functions with the derivatives that a model of the gradient needs.

Symbols
-------
A (n, d), B (m, d)   points;  ``ell`` (d,) lengthscales,  ``s2`` the variance σ_f²
q                    squared distance in lengthscales, ``q = Σ_j (a_j − b_j)² / ell_j²``
psi                  the kernel's profile: ``k(a, b) = s2·psi(q)``; psi', psi'', psi''' are derivatives in q
r                    ``(a − b) / ell²``, so that ``∂q/∂a = 2 r`` and ``∂q/∂b = −2 r``
L (d, d)             ``diag(1/ell²)``. For the general matrix L of Müller et al. 2021, appendix A.1, change the
                     coordinates linearly before this: with ``L = Wᵀ W`` the model's points are W x

A kernel is one class with one method, its profile; every derivative below follows from it by the chain rule:

    ∂k/∂a      =  2·s2·psi'·r                                        ∂k/∂b = −∂k/∂a
    ∂²k/∂a∂bᵀ  = −2·s2·psi'·L − 4·s2·psi''·r rᵀ

No formula divides by the distance, so all are finite and exact if two points coincide.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from gibo._checks import as_finite, moderate, one_of, positive, positive_int, shown
from gibo._linalg import EPS, Array
from gibo._plugins import is_place, load
from gibo._serialize import Serializable, register
from gibo.errors import InputError
from gibo.priors import Prior

_SQRT5 = math.sqrt(5.0)

# Of a squared distance in lengthscales; see `squared_distance`.
LARGEST_ERROR = 1e-12

# Kernels by the name that settings use.
KERNELS: dict[str, type[Kernel]] = {}


def kernel_name(text: str) -> str:
    """The name of a kernel in `KERNELS`; ``module:Class`` imports a user's kernel."""
    if (isinstance(text, str) and text in KERNELS) or not is_place(text):
        one_of("kernel", text, KERNELS, hint="; of your own: module:Class, or import its module first")
        return text
    kind = load("kernel", text)
    if not (isinstance(kind, type) and issubclass(kind, Kernel) and KERNELS.get(vars(kind).get("name", "")) is kind):
        raise InputError(f"kernel: expected the place of a subclass of gibo.Kernel with a name, got {shown(text)}")
    return kind.name


@dataclass(frozen=True, eq=False)
class Kernel(Serializable, ABC):
    """A stationary kernel with one lengthscale per dimension (ARD), or one for all.

    To write a kernel, define a subclass with a `profile`. With a `name`, settings accept it by that name. If it has
    positive parameters that a fit should find, make it a frozen dataclass with these fields, a prior for each in
    `priors`, and the profile's derivatives in `profile_by_log`; see the rational quadratic kernel in
    ``tests/test_kernels.py``.

    Args:
        lengthscale: positive; a number, or one per dimension.
        variance: positive; the variance σ_f² of the function values (not a standard deviation).

    Example:
        >>> kernel = SquaredExponential(lengthscale=0.5, variance=2.0)
        >>> kernel.k(np.zeros((1, 3)), np.zeros((1, 3)))
        array([[2.]])
    """

    lengthscale: float | Array = 1.0
    variance: float = 1.0

    name: ClassVar[str]
    priors: ClassVar[Mapping[str, Prior]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        name = vars(cls).get("name")
        if isinstance(name, str):
            register(KERNELS, name, cls)

    def __post_init__(self) -> None:
        ell = as_finite("lengthscale", self.lengthscale)
        if ell.ndim > 1 or not ell.size or not (ell > 0).all():
            given = ell.tolist()
            raise InputError(f"lengthscale: expected positive number(s), one or one per dimension, got {shown(given)}")
        object.__setattr__(self, "lengthscale", float(ell) if ell.ndim == 0 else ell)
        object.__setattr__(self, "variance", positive("variance", self.variance))
        for name, values in (("lengthscale", ell), ("variance", np.array(self.variance))):
            moderate(name, values)
            moderate(f"1/{name}", 1.0 / values)
        for name in self.priors:
            if name not in self.__dataclass_fields__:
                raise InputError(
                    f"{name}: has a prior but is no field; put @dataclass(frozen=True, eq=False) before the class"
                )
            object.__setattr__(self, name, positive(name, getattr(self, name)))

    @abstractmethod
    def profile(self, q: Array, order: int) -> tuple[Array, ...]:
        """``(psi(q), psi'(q), …)`` up to the derivative of the given order, at most 3."""

    def profile_by_log(self, name: str, q: Array, order: int) -> tuple[Array, ...]:
        """The derivative of `profile` by the logarithm of the parameter with this name in `priors`.

        A fit needs order 0, and up to order 2 for data with gradients.
        """
        raise NotImplementedError(f"{type(self).__name__} has a prior of {name} but no profile_by_log")

    @property
    def own(self) -> dict[str, float]:
        """The values of the parameters in `priors`."""
        return {name: getattr(self, name) for name in self.priors}

    def with_hyperparameters(self, lengthscale: float | Array, variance: float, **own: float) -> Self:
        return replace(self, lengthscale=lengthscale, variance=variance, **own)

    def ell(self, d: int) -> Array:
        """The lengthscales as a (d,) array."""
        ell = np.asarray(self.lengthscale)
        d = positive_int("d", d)
        if ell.ndim == 1 and len(ell) != d:
            raise InputError(f"lengthscale: {len(ell)} lengthscales do not fit points of {d} dimensions")
        return np.broadcast_to(ell, (d,))

    # -- values and derivatives with respect to the points ------------------------------------------------------------

    def k(self, A: Array, B: Array) -> Array:
        """``k(a, b)`` for all pairs: (n, m)."""
        (psi,) = self.profile(squared_distance(A, B, self.ell(A.shape[1])), 0)
        return self.variance * psi

    def dk_da(self, A: Array, B: Array) -> Array:
        """``∂k/∂a`` for all pairs: (n, m, d)."""
        r, _, dpsi = self._pairs(A, B, 1)
        return 2.0 * self.variance * dpsi[..., None] * r

    def dk_db(self, A: Array, B: Array) -> Array:
        """``∂k/∂b`` for all pairs: (n, m, d)."""
        return -self.dk_da(A, B)

    def d2k_dadb(self, A: Array, B: Array) -> Array:
        """``∂²k/∂a_i∂b_j`` for all pairs: (n, m, d, d)."""
        r, _, dpsi, ddpsi = self._pairs(A, B, 2)
        outer: Array = -4.0 * self.variance * ddpsi[..., None, None] * r[..., :, None] * r[..., None, :]
        diagonal = -2.0 * self.variance * dpsi[..., None] / self.ell(A.shape[1]) ** 2
        i = np.arange(A.shape[1])
        outer[..., i, i] += diagonal
        return outer

    def gradient_variance(self, d: int) -> Array:
        """The diagonal (d,) of the gradient's prior covariance, ``H = ∂²k(t, t')/∂t∂t'`` at t' = t; the rest is 0."""
        _, dpsi = self.profile(np.zeros(1), 1)
        return -2.0 * self.variance * float(dpsi[0]) / self.ell(d) ** 2

    # -- derivatives with respect to the hyperparameters --------------------------------------------------------------

    def hyperparameter_gradient(self, W: Array, X: Array, G: Array) -> tuple[Array, float]:
        """``Σ_ij W_ij·∂K_ij/∂log ell`` (d,) and ``Σ_ij W_ij·∂K_ij/∂log s2``, without forming any ∂K.

        K is ``joint(X, G, X, G)``, W a symmetric matrix of its size. The values' part costs one matrix product.
        """
        n, d = X.shape
        ell, of_values = self.ell(d), W[G.size :, G.size :]
        Z = (X - X.mean(axis=0)) / ell if n else X
        psi, dpsi = self.profile(squared_distance(Z, Z, np.ones(d)), 1)
        Y = of_values * dpsi
        # Σ_ij Y_ij (z_i − z_j)² for a symmetric Y, per dimension.
        along = 2.0 * (Y.sum(axis=1) @ (Z * Z) - np.einsum("nd,nd->d", Z, Y @ Z))
        by_ell = -2.0 * self.variance * along
        by_s2 = self.variance * float(np.vdot(of_values, psi))
        if len(G):
            more_by_ell, more_by_s2 = self._hyperparameter_gradient_of_gradients(W, X, G)
            by_ell, by_s2 = by_ell + more_by_ell, by_s2 + more_by_s2
        return by_ell, by_s2

    def own_gradient(self, name: str, W: Array, X: Array, G: Array) -> float:
        """``Σ_ij W_ij·∂K_ij/∂log p`` for the parameter p of that name; see `hyperparameter_gradient`."""
        return float(np.vdot(W, _ByLog(self, name).joint(X, G, X, G)))

    def _hyperparameter_gradient_of_gradients(self, W: Array, X: Array, G: Array) -> tuple[Array, float]:
        """The part of `hyperparameter_gradient` that belongs to the blocks of K with gradients in them.

        In lengthscale units, u = (a − b)/ell and w = a block of W with its gradient components divided by ell, the
        blocks are ``−2·s2·psi'·u`` and ``−2·s2·psi'·I − 4·s2·psi''·u uᵀ``, and ``∂u_j/∂log ell_j = −u_j``.
        """
        n, m, d, p = len(X), len(G), X.shape[1], G.size
        s2, ell = self.variance, self.ell(d)
        by_ell = np.zeros(d)
        # Dividing a gradient's component j by ell_j contributes −(entries of row j) − (entries of column j).
        rows = (W * self.joint(X, G, X, G)).sum(axis=1)
        by_ell -= 2.0 * rows[:p].reshape(m, d).sum(axis=0)
        by_s2 = float(rows[:p].sum()) + float((W[p:, :p] * self.joint(X, G[:0], X[:0], G)).sum())
        # Values against gradients; the factor 2 stands for the transposed block.
        u = (X[:, None, :] - G[None, :, :]) / ell
        _, dpsi, ddpsi = self.profile(np.einsum("nmd,nmd->nm", u, u), 2)
        w = W[p:, :p].reshape(n, m, d) / ell
        wu = np.einsum("nmd,nmd->nm", w, u)
        by_ell += 2.0 * s2 * np.einsum("nm,nmd->d", 4.0 * ddpsi * wu, u * u)
        by_ell += 2.0 * s2 * np.einsum("nm,nmd->d", 2.0 * dpsi, w * u)
        # Gradients against gradients.
        u = (G[:, None, :] - G[None, :, :]) / ell
        _, dpsi, ddpsi, dddpsi = self.profile(np.einsum("nmd,nmd->nm", u, u), 3)
        ww = W[:p, :p].reshape(m, d, m, d).transpose(0, 2, 1, 3) / ell[:, None] / ell
        trace = np.einsum("nmii->nm", ww)
        wu_both = np.einsum("nmij,nmj->nmi", ww, u) + np.einsum("nmij,nmi->nmj", ww, u)
        uwu = 0.5 * np.einsum("nmi,nmi->nm", wu_both, u)
        by_ell += s2 * np.einsum("nm,nmd->d", 4.0 * ddpsi * trace + 8.0 * dddpsi * uwu, u * u)
        by_ell += s2 * np.einsum("nm,nmd->d", 4.0 * ddpsi, wu_both * u)
        return by_ell, by_s2

    # -- covariances of values and gradients together -----------------------------------------------------------------

    def joint(self, X: Array, G: Array, X2: Array, G2: Array) -> Array:
        """Covariance of (gradients at G, values at X) with (gradients at G2, values at X2).

        Rows: the m·d gradient components, point by point, then the n values; columns alike: (m·d + n, m2·d + n2).
        Values come last, so that a new value is a new last row.
        """
        n, p, n2, p2 = len(X), G.size, len(X2), G2.size
        K = np.empty((p + n, p2 + n2))
        K[p:, p2:] = self.k(X, X2)
        if p2:
            K[p:, :p2] = self.dk_db(X, G2).reshape(n, p2)
        if p:
            K[:p, p2:] = self.dk_da(G, X2).transpose(0, 2, 1).reshape(p, n2)
        if p and p2:
            K[:p, :p2] = self.d2k_dadb(G, G2).transpose(0, 2, 1, 3).reshape(p, p2)
        return K

    def _pairs(self, A: Array, B: Array, order: int) -> tuple[Array, ...]:
        """r (n, m, d), and psi and its derivatives (n, m), from exact differences."""
        ell = self.ell(A.shape[1])
        u = (A[:, None, :] - B[None, :, :]) / ell
        return u / ell, *self.profile(np.einsum("nmd,nmd->nm", u, u), order)


class SquaredExponential(Kernel):
    """``k(a, b) = s2·exp(−q/2)``.

    Reference: Rasmussen and Williams 2006, eq. (4.9); Müller et al. 2021, appendix A.1.

    Example:
        >>> SquaredExponential(lengthscale=[0.2, 0.5], variance=1.0).gradient_variance(2)
        array([25.,  4.])
    """

    name = "squared_exponential"

    def profile(self, q: Array, order: int) -> tuple[Array, ...]:
        psi = q * -0.5
        np.exp(psi, out=psi)
        if order == 0:
            return (psi,)
        dpsi = psi * -0.5
        if order == 1:
            return psi, dpsi
        return (psi, dpsi, psi * 0.25) if order == 2 else (psi, dpsi, psi * 0.25, psi * -0.125)


class Matern52(Kernel):
    """``k(a, b) = s2·(1 + √5·√q + 5q/3)·exp(−√5·√q)``, twice differentiable.

    Reference: Rasmussen and Williams 2006, eq. (4.17).

    Example:
        >>> Matern52(lengthscale=1.0, variance=3.0).gradient_variance(1)
        array([5.])
    """

    name = "matern52"

    def profile(self, q: Array, order: int) -> tuple[Array, ...]:
        s = _SQRT5 * np.sqrt(q)
        e = np.exp(-s)
        psi = (1.0 + s + s * s / 3.0) * e
        if order == 0:
            return (psi,)
        dpsi, ddpsi = -(5.0 / 6.0) * (1.0 + s) * e, (25.0 / 12.0) * e
        if order < 3:
            return (psi, dpsi, ddpsi)[: order + 1]
        # ∝ 1/√q; each use multiplies it by the fourth power of a difference, so the limit is 0.
        return psi, dpsi, ddpsi, -(125.0 / 24.0) * e / np.maximum(s, np.finfo(np.float64).tiny ** 0.5)


class _ByLog(Kernel):
    """The derivative of a kernel by the logarithm of one of its own parameters."""

    _of: tuple[Kernel, str]

    def __init__(self, kernel: Kernel, parameter: str) -> None:
        super().__init__(kernel.lengthscale, kernel.variance)
        object.__setattr__(self, "_of", (kernel, parameter))

    def profile(self, q: Array, order: int) -> tuple[Array, ...]:
        kernel, parameter = self._of
        return kernel.profile_by_log(parameter, q, order)


def squared_distance(A: Array, B: Array, ell: Array) -> Array:
    """``q`` for all pairs (n, m), through one matrix product.

    The points are centred first, so that the cancellation in ``|a|² + |b|² − 2 a·b`` is small: the error is a few units
    of rounding of the squared radius of the points in lengthscales. If that is too much, because some points are far
    from the others, differences are computed one by one, which is several times slower.
    """
    centre = B.mean(axis=0) if len(B) else 0.0
    U = (A - centre) / ell
    W = U if A is B else (B - centre) / ell
    u, w = np.einsum("nd,nd->n", U, U), np.einsum("md,md->m", W, W)
    if EPS * (u.max(initial=0.0) + w.max(initial=0.0)) > LARGEST_ERROR:
        return _squared_distance_by_differences(A / ell, B / ell)
    q: Array = U @ W.T
    q *= -2.0
    q += u[:, None] + w  # added first: symmetric where A is B
    if A is B:
        np.fill_diagonal(q, 0.0)
    np.maximum(q, 0.0, out=q)
    return q


def _squared_distance_by_differences(U: Array, W: Array) -> Array:
    q = np.zeros((len(U), len(W)))
    for a, b in zip(U.T, W.T, strict=True):
        q += (a[:, None] - b[None, :]) ** 2
    return q
