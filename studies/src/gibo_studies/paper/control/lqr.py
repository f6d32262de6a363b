"""The linear quadratic regulator: exact costs, and episodes as a learner sees them (Müller et al. 2021, appendix A.7).

Symbols
-------
A : (n, n), B : (n, p)    ``x' = A x + B u + w``, the disturbance w ~ N(0, W)
Q : (n, n), R : (p, p)    a step costs ``xᵀQx + uᵀRu``
K : (p, n)                a gain, ``u = K x``; also accepted row by row, (p·n,), as an optimiser has it
F = A + B K               the closed loop; K stabilises it if all its eigenvalues are inside the unit circle
Σ : (n, n)                the stationary covariance of x, ``Σ = F Σ Fᵀ + W``
P : (n, n)                ``P = Fᵀ P F + Q + KᵀRK``; the average cost is ``tr(W P)``
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gibo._checks import as_finite, as_vector, describe, natural, positive, positive_int
from gibo._linalg import Array
from gibo.errors import InputError
from gibo.outcome import read_only

# Entries of states and inputs stop at ± this: the system saturates. Their squares are far from the largest float.
LIMIT = 1e120
# Larger entries of the matrices or of a gain could overflow at that limit.
_LARGEST_MATRIX, _LARGEST_GAIN = 1e30, 1e100


@dataclass(frozen=True, eq=False)
class Trajectory:
    """An episode.

    Attributes:
        states: (steps + 1, n), the first one is x0.
        inputs: (steps, p).
        costs: (steps,) ``xᵀQx + uᵀRu``.
    """

    states: Array
    inputs: Array
    costs: Array

    @property
    def rewards(self) -> Array:
        """(steps,) ``−log(1 + cost)``: the paper's, because costs blow up where the controller is unstable."""
        return -np.log1p(self.costs)


@dataclass(frozen=True, eq=False)
class LQR:
    """Minimise the average cost of ``xᵀQx + uᵀRu`` over gains K, where ``x' = A x + B u + w``, u = K x, w ~ N(0, W).

    In an episode, entries of states and inputs beyond ±1e120 are cut off there. So all costs are finite, whatever the
    gain; an episode that stays below, such as any of 300 steps with ‖A + BK‖ ≤ 2.4, is not changed at all.

    Args:
        A: (n, n).
        B: (n, p); (A, B) can be stabilised.
        Q: (n, n), symmetric, positive semi-definite.
        R: (p, p), symmetric, positive definite.
        W: (n, n), symmetric, positive semi-definite.

    Raises:
        InputError: a shape or a property is not as described.

    Example:
        >>> lqr = LQR.paper()
        >>> lqr.spectral_radius(np.zeros(9)).__round__(3), lqr.cost(np.zeros(9))
        (1.024, inf)
        >>> lqr.relative_cost(lqr.optimal_gain)
        0.0
        >>> lqr.relative_cost(-0.1 * np.eye(3)) > 0
        True
    """

    A: Array
    B: Array
    Q: Array
    R: Array
    W: Array
    # Of the Riccati equation, and W^½ for drawing disturbances.
    _P: Array = field(init=False, repr=False)
    _K: Array = field(init=False, repr=False)
    _root: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("A", "B", "Q", "R", "W"):
            object.__setattr__(self, name, read_only(_matrix(name, getattr(self, name))))
        n, p = self.B.shape
        for name, size in (("A", n), ("Q", n), ("R", p), ("W", n)):
            shape = getattr(self, name).shape
            if shape != (size, size):
                raise InputError(f"{name}: expected shape ({size}, {size}), as B has shape ({n}, {p}), got {shape}")
        for name, definite in (("Q", False), ("R", True), ("W", False)):
            _check_definite(name, getattr(self, name), definite)
        _check_stabilisable(self.A, self.B)
        P, K = _riccati(self.A, self.B, self.Q, self.R)
        values, vectors = np.linalg.eigh(self.W)
        # The symmetric root; of the identity it is the identity, bit for bit.
        root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        for name, array in (("_P", P), ("_K", K), ("_root", root)):
            object.__setattr__(self, name, read_only(array))

    @classmethod
    def paper(cls) -> LQR:
        """The instance of the paper, from Dean et al. 2017; with disturbances of covariance W = I."""
        A = np.array([[1.01, 0.01, 0.0], [0.01, 1.01, 0.01], [0.0, 0.01, 1.01]])
        return cls(A, np.eye(3), 1e-3 * np.eye(3), np.eye(3), np.eye(3))

    @property
    def n(self) -> int:
        """Number of states."""
        return len(self.B)

    @property
    def p(self) -> int:
        """Number of inputs."""
        return len(self.B.T)

    # -- exact --------------------------------------------------------------------------------------------------------

    @property
    def optimal_gain(self) -> Array:
        """(p, n) ``K* = −(R + BᵀPB)⁻¹ BᵀPA`` with P of the Riccati equation."""
        return self._K.copy()

    @property
    def optimal_cost(self) -> float:
        """``J* = tr(W P)``."""
        return float((self.W * self._P).sum())

    def spectral_radius(self, K: npt.ArrayLike) -> float:
        """Largest absolute eigenvalue of A + B K."""
        return float(np.abs(np.linalg.eigvals(self._closed(self._gain(K)))).max())

    def is_stable(self, K: npt.ArrayLike) -> bool:
        """Whether K stabilises the system."""
        return self.spectral_radius(K) < 1.0

    def cost(self, K: npt.ArrayLike) -> float:
        """``J(K)``, the average cost over an infinite horizon; infinite where K does not stabilise the system."""
        K = self._gain(K)
        if not self.is_stable(K):
            return math.inf
        return _cost(float((self.W * self._cost_to_go(K)).sum()))

    def relative_cost(self, K: npt.ArrayLike) -> float:
        """``(J(K) − J*)/J*``, infinite where K does not stabilise the system.

        The difference is ``tr(Σ (K − K*)ᵀ (R + BᵀPB) (K − K*))``, so it is exact also close to the optimum.
        """
        if self.optimal_cost <= 0.0:
            raise InputError("relative_cost: the optimal cost is 0, so nothing is relative to it; use cost(K)")
        K = self._gain(K)
        if not self.is_stable(K):
            return math.inf
        E = K - self._K
        curvature = self.R + self.B.T @ self._P @ self.B
        difference = float((self._covariance(K) * (E.T @ curvature @ E)).sum())
        return _cost(difference) / self.optimal_cost

    def cost_gradient(self, K: npt.ArrayLike) -> Array:
        """(p, n) ``∂J/∂K = 2 ((R + BᵀPB) K + BᵀPA) Σ``, with P and Σ of this gain.

        Raises:
            InputError: K does not stabilise the system, so there is no gradient.
        """
        K = self._gain(K)
        radius = self.spectral_radius(K)
        if not radius < 1.0:
            raise InputError(
                f"K: the cost has a gradient only where K stabilises the system; the spectral radius is {radius:.6g}"
            )
        BP = self.B.T @ self._cost_to_go(K)
        gradient: Array = 2.0 * ((self.R + BP @ self.B) @ K + BP @ self.A) @ self._covariance(K)
        return gradient

    def _closed(self, K: Array) -> Array:
        F: Array = self.A + self.B @ K
        return F

    def _cost_to_go(self, K: Array) -> Array:
        return _lyapunov(self._closed(K).T, self.Q + K.T @ self.R @ K)

    def _covariance(self, K: Array) -> Array:
        return _lyapunov(self._closed(K), self.W)

    # -- episodes -----------------------------------------------------------------------------------------------------

    def simulate(
        self,
        K: npt.ArrayLike,
        steps: int = 300,
        *,
        seed: int,
        exploration: float = 0.0,
        x0: npt.ArrayLike | None = None,
    ) -> Trajectory:
        """An episode of u = K x + e.

        Args:
            seed: of the disturbances; they are the same with and without exploration.
            exploration: standard deviation of e, independent in each input and step.
            x0: (n,) where it starts; zeros by default.
        """
        K, (start, w) = self._gain(K), self._disturbances(steps, seed, x0)
        e = positive("exploration", exploration, or_zero=True) * _generator(seed, 1).standard_normal((steps, self.p))
        states, inputs = self._roll(K, start, w, e)
        return Trajectory(states, inputs, self.step_costs(states[:-1], inputs))

    def episode_return(
        self, K: npt.ArrayLike, steps: int = 300, *, seed: int, x0: npt.ArrayLike | None = None
    ) -> float:
        """The sum of ``−log(1 + cost)`` over an episode from x0, zeros by default: the return that the paper maximises.

        It is that of ``simulate(K, steps, seed=seed, x0=x0)``, and always finite.
        """
        K, (start, w) = self._gain(K), self._disturbances(steps, seed, x0)
        states, inputs = self._roll(K, start, w, None)
        return -float(np.log1p(self.step_costs(states[:-1], inputs)).sum())

    def step_costs(self, states: Array, inputs: Array) -> Array:
        """``xᵀQx + uᵀRu`` of states (..., n) and inputs (..., p)."""
        costs: Array = ((states @ self.Q) * states).sum(-1) + ((inputs @ self.R) * inputs).sum(-1)
        return np.maximum(costs, 0.0)  # rounding can make a tiny negative number of a zero

    def step(self, x: Array, u: Array, w: Array) -> Array:
        """The next state (n,), cut off at the limit; the input, too."""
        return _cut(self.A @ x + self.B @ self.limited(u) + w)

    def limited(self, u: Array) -> Array:
        """An input (p,), cut off at the limit."""
        return _cut(u)

    def disturbance(self, rng: np.random.Generator) -> Array:
        """One draw of w (n,)."""
        w: Array = self._root @ rng.standard_normal(self.n)
        return w

    def _disturbances(self, steps: int, seed: int, x0: npt.ArrayLike | None) -> tuple[Array, Array]:
        """x0 (n,) and w (steps, n)."""
        steps = positive_int("steps", steps)
        start = np.zeros(self.n) if x0 is None else _cut(as_vector("x0", x0, self.n))
        return start, _generator(seed).standard_normal((steps, self.n)) @ self._root

    def _roll(self, K: Array, x0: Array, w: Array, e: Array | None) -> tuple[Array, Array]:
        """States (steps + 1, n) and inputs (steps, p)."""
        with np.errstate(over="ignore", invalid="ignore"):
            states = _scan(self._closed(K), np.vstack([x0, w if e is None else w + e @ self.B.T]))
            inputs = states[:-1] @ K.T
            if e is not None:
                inputs += e
            if np.abs(states).max() <= LIMIT and np.abs(inputs).max() <= LIMIT:  # False where there is a NaN
                return states, inputs
        return self._roll_step_by_step(K, x0, w, e)

    def _roll_step_by_step(self, K: Array, x0: Array, w: Array, e: Array | None) -> tuple[Array, Array]:
        """The slow twin of `_roll`, which can cut off."""
        A, B, low, high = self.A, self.B, -LIMIT, LIMIT
        states, inputs = np.empty((len(w) + 1, self.n)), np.empty((len(w), self.p))
        states[0] = x0
        for t in range(len(w)):  # as `step`, without making arrays
            x, u, x_next = states[t], inputs[t], states[t + 1]
            K.dot(x, out=u)
            if e is not None:
                u += e[t]
            np.maximum(u, low, out=u)
            np.minimum(u, high, out=u)
            A.dot(x, out=x_next)
            x_next += B.dot(u)
            x_next += w[t]
            np.maximum(x_next, low, out=x_next)
            np.minimum(x_next, high, out=x_next)
        return states, inputs

    def _gain(self, K: npt.ArrayLike) -> Array:
        gain = as_finite("K", K)
        if gain.shape not in ((self.p, self.n), (self.p * self.n,)):
            expected = f"({self.p}, {self.n}) or ({self.p * self.n},)"
            raise InputError(f"K: expected a gain of shape {expected}, got shape {gain.shape}")
        if np.abs(gain).max() > _LARGEST_GAIN:
            raise InputError(f"K: expected entries of at most {_LARGEST_GAIN:g}, got {np.abs(gain).max():g}")
        return gain.reshape(self.p, self.n)


def _scan(F: Array, d: Array) -> Array:
    """The states ``x_t = F x_{t−1} + d_t`` with ``x_0 = d_0``, for d (T, n), in log₂ T products.

    After j rounds, row t holds ``Σ_k F^k d_{t−k}`` over k < 2^j.
    """
    x, power, width = d, F.T, 1
    while width < len(d):
        further = x.copy()
        further[width:] += x[:-width] @ power
        x, power, width = further, power @ power, 2 * width
    return x


def _lyapunov(F: Array, C: Array) -> Array:
    """``X = F X Fᵀ + C`` for a stable F."""
    from scipy.linalg import LinAlgWarning, solve_discrete_lyapunov

    with warnings.catch_warnings():  # next to instability; the result is huge, as it should be
        warnings.simplefilter("ignore", LinAlgWarning)
        X = np.asarray(solve_discrete_lyapunov(F, C), dtype=np.float64)
    return 0.5 * (X + X.T)


def _riccati(A: Array, B: Array, Q: Array, R: Array) -> tuple[Array, Array]:
    """P and the optimal gain."""
    from scipy.linalg import solve_discrete_are

    try:
        P = np.asarray(solve_discrete_are(A, B, Q, R), dtype=np.float64)
    except (np.linalg.LinAlgError, ValueError) as error:
        raise InputError(
            f"A, B, Q, R: no stabilising solution of the Riccati equation ({error}); Q must see every mode of A that "
            "is on the unit circle"
        ) from None
    return P, -np.asarray(np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A), dtype=np.float64)


def _cost(value: float) -> float:
    """A cost of a gain that is stable by a rounding error only may come out as anything; then it is infinite."""
    return value if 0.0 <= value < math.inf else math.inf


def _matrix(name: str, value: Any) -> Array:
    matrix = as_finite(name, value)
    if matrix.ndim != 2 or not matrix.size:
        raise InputError(f"{name}: expected a matrix, got {describe(value)}")
    if np.abs(matrix).max() > _LARGEST_MATRIX:
        raise InputError(f"{name}: expected entries of at most {_LARGEST_MATRIX:g}, got {np.abs(matrix).max():g}")
    return matrix


def _check_definite(name: str, matrix: Array, definite: bool) -> None:
    size = float(np.abs(matrix).max())
    if np.abs(matrix - matrix.T).max() > 1e-12 * size:
        raise InputError(f"{name}: expected a symmetric matrix; ({name} + {name}ᵀ)/2 is one")
    least = float(np.linalg.eigvalsh(matrix)[0])
    tolerance = 1e-12 * size  # of the eigenvalues' rounding errors
    if least < -tolerance or (definite and least <= tolerance):
        kind = "definite" if definite else "semi-definite"
        raise InputError(f"{name}: expected a positive {kind} matrix, its smallest eigenvalue is {least:.3g}")


def _check_stabilisable(A: Array, B: Array) -> None:
    """Hautus: [λI − A, B] has full rank at each eigenvalue that does not decay by itself."""
    for eigenvalue in np.linalg.eigvals(A):
        if abs(eigenvalue) >= 1.0:
            pencil = np.hstack([eigenvalue * np.eye(len(A)) - A, B])
            if np.linalg.matrix_rank(pencil) < len(A):
                raise InputError(f"A, B: no gain can stabilise the mode of A with the eigenvalue {eigenvalue:.6g}")


def _generator(seed: int, *stream: int) -> np.random.Generator:
    """That of ``reset(seed=seed)`` in Gymnasium, or another stream."""
    number = natural("seed", seed)
    return np.random.default_rng((number, *stream) if stream else number)


def _cut(x: Array) -> Array:
    return np.minimum(np.maximum(x, -LIMIT), LIMIT)
