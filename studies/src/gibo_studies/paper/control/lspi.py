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

from gibo._linalg import Array
from gibo_studies.paper.control.lqr import check_definite

ITERATIONS = 50  # of policy iteration, at most
FIRST_DISCOUNT, RISE = 0.9, 10  # the discount of the first evaluation, and the evaluations over which it rises


class LSPI:
    """Learns a gain from transitions of a linear system that it does not know.

    Policy iteration on all the data: evaluate K by LSTD-Q, make it ``K = −H_uu⁻¹ H_ux``, and again, from K = 0. A K can
    be evaluated only if ``√γ (A + B K)`` is stable, and of the first K this is known for a small discount at most. So
    γ rises to `discount` over the first evaluations.

    The data are kept as sums over the transitions, which do not grow with their number.

    Args:
        n, p: numbers of states and inputs.
        Q, R: (n, n), (p, p) the cost ``xᵀQx + uᵀRu`` of a step; symmetric, Q positive semi-definite, R definite.
        discount: γ, above 0 and at most 1, for the average cost.

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

    def __init__(self, n: int, p: int, Q: Array, R: Array, discount: float = 1.0) -> None:
        self.n, self.p, self.m, self.discount = n, p, n + p, discount
        check_definite("Q", Q, definite=False)
        check_definite("R", R, definite=True)
        self._cost = np.zeros((self.m, self.m))
        self._cost[:n, :n] = Q
        self._cost[n:, n:] = R
        self.transitions = 0
        size = self.m * (self.m + 1) // 2 + 1
        # Sums over the transitions: of φφᵀ and of φ svec(x')ᵀ. The costs are linear in φ.
        self._here = np.zeros((size, size))
        self._next = np.zeros((size, self.n * (self.n + 1) // 2))

    def add(self, X: Array, U: Array) -> None:
        """Learn from a trajectory: states X (T + 1, n) and inputs U (T, p).

        Each transition counts with weight 1/(1 + ‖z‖²)². Without it, the few largest states of an episode that
        diverges, and their few directions, would be all that counts.
        """
        Z = np.hstack([X[:-1], U])
        root = 1.0 / np.sqrt(1.0 + (Z**2).sum(axis=1, keepdims=True))
        phi = np.hstack([svec_of_points(root * Z), root**2])
        self._here += phi.T @ phi
        self._next += phi.T @ svec_of_points(root * X[1:])
        self.transitions += len(U)

    def q_function(self, K: Array, gamma: float) -> Array:
        """(m, m) the estimated H of the gain K, which need not be the one that acted in the data."""
        coefficients = self._here.copy()
        # svec([x'; Kx']) = svec of the congruence of x'x'ᵀ with [I; K]: linear in svec(x').
        coefficients[:, :-1] -= gamma * self._next @ _congruence(np.vstack([np.eye(self.n), K]))
        costs = self._here[:, :-1] @ svec(self._cost)
        solution = np.linalg.lstsq(coefficients, costs, rcond=None)[0]
        return smat(np.asarray(solution[:-1], dtype=np.float64))

    def gain(self) -> Array:
        """(p, n) policy iteration on everything added so far; zeros if nothing was."""
        K = np.zeros((self.p, self.n))
        if not self.transitions:
            return K
        for i in range(ITERATIONS):
            rise = min(1.0, i / RISE)
            gamma = (1.0 - rise) * min(FIRST_DISCOUNT, self.discount) + rise * self.discount
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
