"""Least-squares policy iteration for the linear quadratic regulator (Lagoudakis and Parr 2003; Tu and Recht 2018).

Symbols
-------
z = [x; u] : (m,), m = n + p
svec(S)                   the upper triangle of a symmetric S, off-diagonal entries times √2, so that
                          ``svec(S)ᵀ svec(T) = tr(S T)``; svec(z) is short for svec(z zᵀ): ``svec(S)ᵀ svec(z) = zᵀSz``
γ                         the discount
H : (m, m)                the quadratic part of the Q-function of a gain K:  ``Q_K(x, u) = zᵀ H z + constant``
φ = [svec(z); 1]          the regressors of a transition (x, u, x')

The Q-function of K obeys ``Q_K(x, u) = xᵀQx + uᵀRu + γ E[Q_K(x', K x')]``. Its constant, times 1 − γ, is the average
cost b that the disturbances cause, the one unknown that is not in H:

    φᵀ [h; b] − γ svec([x'; K x'])ᵀ h  =  cost,         h = svec(H)

Least squares with the regressors φ as instruments (LSTD-Q) is consistent in spite of the noise in x'.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import numpy.typing as npt

from gibo._checks import as_finite, as_number, moderate, positive_int
from gibo._linalg import Array
from gibo.errors import InputError
from gibo_studies.paper.control.lqr import _check_definite

# The evaluations over which the discount rises.
_RISE = 10


class LSPI:
    """Learns a gain from transitions of a linear system that it does not know.

    Policy iteration on all the data: evaluate K by LSTD-Q, make it ``K = −H_uu⁻¹ H_ux``, and again. A K can be
    evaluated only if ``√γ (A + B K)`` is stable, and of K0 this is known for a small discount at most. So the first
    evaluation takes `first_discount`, and γ rises to `discount` over the next ten.

    The data are kept as sums over the transitions, which do not grow with their number.

    Args:
        n: number of states.
        p: number of inputs.
        Q, R: (n, n), (p, p) the cost ``xᵀQx + uᵀRu`` of a step; symmetric, Q positive semi-definite, R definite.
        discount: γ, above 0 and at most 1, for the average cost.
        K0: (p, n) where policy iteration begins; zeros by default.
        first_discount: for the first evaluation; at most `discount`.
        iterations: of policy iteration, at most.

    Example:
        >>> from gibo_studies.paper.control import LQR
        >>> lqr = LQR.paper()
        >>> lspi = LSPI(lqr.n, lqr.p, lqr.Q, lqr.R)
        >>> for seed in range(40):
        ...     episode = lqr.simulate(np.zeros(9), seed=seed, exploration=1.0)
        ...     lspi.add(episode.states, episode.inputs)
        >>> lqr.is_stable(lspi.gain())
        True
    """

    def __init__(
        self,
        n: int,
        p: int,
        Q: npt.ArrayLike,
        R: npt.ArrayLike,
        discount: float = 1.0,
        K0: npt.ArrayLike | None = None,
        *,
        first_discount: float = 0.9,
        iterations: int = 50,
    ) -> None:
        self.n, self.p = positive_int("n", n), positive_int("p", p)
        self.m = self.n + self.p
        Q, R = _shaped("Q", Q, (self.n, self.n)), _shaped("R", R, (self.p, self.p))
        _check_definite("Q", Q, definite=False)
        _check_definite("R", R, definite=True)
        self._cost = np.zeros((self.m, self.m))
        self._cost[: self.n, : self.n] = Q
        self._cost[self.n :, self.n :] = R
        self.discount = _discount("discount", discount)
        self.first_discount = min(_discount("first_discount", first_discount), self.discount)
        self.K0 = np.zeros((self.p, self.n)) if K0 is None else _shaped("K0", K0, (self.p, self.n))
        self.iterations = positive_int("iterations", iterations)
        self.transitions = 0
        size = self.m * (self.m + 1) // 2 + 1
        # Sums over the transitions: of φφᵀ and of φ svec(x')ᵀ. The costs are linear in φ.
        self._here = np.zeros((size, size))
        self._next = np.zeros((size, self.n * (self.n + 1) // 2))

    def add(self, states: npt.ArrayLike, inputs: npt.ArrayLike) -> None:
        """Learn from a trajectory: states (T + 1, n) and inputs (T, p).

        Each transition counts with weight 1/(1 + ‖z‖²)². Without it, the few largest states of an episode that
        diverges, and their few directions, would be all that counts.
        """
        X, U = as_finite("states", states, ndim=2), as_finite("inputs", inputs, ndim=2)
        if X.shape[1] != self.n or U.shape[1] != self.p or len(X) != len(U) + 1:
            raise InputError(
                f"states, inputs: expected shapes (T + 1, {self.n}) and (T, {self.p}), got {X.shape} and {U.shape}"
            )
        Z = np.hstack([X[:-1], U])
        root = 1.0 / np.sqrt(1.0 + (Z**2).sum(axis=1, keepdims=True))
        phi = np.hstack([svec_of_points(root * Z), root**2])
        self._here += phi.T @ phi
        self._next += phi.T @ svec_of_points(root * X[1:])
        self.transitions += len(U)

    def q_function(self, K: npt.ArrayLike, discount: float | None = None) -> Array:
        """(m, m) the estimated H of the gain K, which need not be the one that acted in the data."""
        K = moderate("K", _shaped("K", K, (self.p, self.n)))
        gamma = self.discount if discount is None else _discount("discount", discount)
        if not self.transitions:
            raise InputError("there are no transitions yet; add a trajectory first")
        coefficients = self._here.copy()
        # svec([x'; Kx']) = svec of the congruence of x'x'ᵀ with [I; K]: linear in svec(x').
        coefficients[:, :-1] -= gamma * self._next @ _congruence(np.vstack([np.eye(self.n), K]))
        costs = self._here[:, :-1] @ svec(self._cost)
        solution = np.linalg.lstsq(coefficients, costs, rcond=None)[0]
        return smat(np.asarray(solution[:-1], dtype=np.float64))

    def gain(self) -> Array:
        """(p, n) policy iteration from K0 on everything added so far; K0 itself if nothing was."""
        K = self.K0.copy()
        if not self.transitions:
            return K
        for i in range(self.iterations):
            rise = min(1.0, i / _RISE)
            gamma = (1.0 - rise) * self.first_discount + rise * self.discount
            H = _at_least(self.q_function(K, gamma), self._cost)
            before, K = K, -np.asarray(np.linalg.solve(H[self.n :, self.n :], H[self.n :, : self.n]), dtype=np.float64)
            if rise == 1.0 and np.abs(K - before).max() <= 1e-9 * (1.0 + np.abs(K).max()):
                break
        return K


def svec(S: Array) -> Array:
    """The upper triangle of a symmetric matrix, off-diagonal entries times √2.

    >>> svec(np.array([[1.0, 2.0], [2.0, 5.0]])).round(3)
    array([1.   , 2.828, 5.   ])
    """
    rows, columns, factors = _triangle(len(S))
    entries: Array = S[rows, columns] * factors
    return entries


def smat(v: Array) -> Array:
    """The inverse of `svec`.

    >>> smat(svec(np.array([[1.0, 2.0], [2.0, 5.0]])))
    array([[1., 2.],
           [2., 5.]])
    """
    size = (math.isqrt(8 * len(v) + 1) - 1) // 2
    rows, columns, factors = _triangle(size)
    S = np.empty((size, size))
    S[rows, columns] = S[columns, rows] = v / factors
    return S


def svec_of_points(Z: Array) -> Array:
    """svec(z zᵀ) of each row of Z (T, m)."""
    rows, columns, factors = _triangle(Z.shape[1])
    products: Array = Z[:, rows] * Z[:, columns] * factors
    return products


@functools.cache
def _triangle(size: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], Array]:
    rows, columns = np.triu_indices(size)
    return rows, columns, np.where(rows == columns, 1.0, math.sqrt(2.0))


def _congruence(T: Array) -> Array:
    """The matrix C with ``svec(x xᵀ)ᵀ C = svec(T x xᵀ Tᵀ)ᵀ``."""
    size = T.shape[1] * (T.shape[1] + 1) // 2
    return np.array([svec(T @ smat(unit) @ T.T) for unit in np.eye(size)])


def _at_least(H: Array, cost: Array) -> Array:
    """The symmetric matrix nearest to H (Frobenius) for which H − cost is positive semi-definite, as it must be."""
    values, vectors = np.linalg.eigh(H - cost)
    return np.asarray(cost + (vectors * np.maximum(values, 0.0)) @ vectors.T, dtype=np.float64)


def _shaped(name: str, value: npt.ArrayLike, shape: tuple[int, int]) -> Array:
    array = as_finite(name, value)
    if array.size != math.prod(shape) or array.shape not in (shape, (math.prod(shape),)):
        raise InputError(f"{name}: expected shape {shape}, got {array.shape}")
    return array.reshape(shape)


def _discount(name: str, value: float) -> float:
    number = as_number(name, value)
    if not 0.0 < number <= 1.0:
        raise InputError(f"{name}: expected a number above 0 and at most 1, got {number}")
    return number
