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
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gibo._checks import as_finite, as_vector, natural
from gibo._linalg import Array
from gibo.errors import InputError
from gibo.outcome import read_only

# Entries of states and inputs stop at ± this: the system saturates. Their squares are far from the largest float.
LIMIT = 1e120
_LARGEST_GAIN = 1e100  # larger entries could overflow at that limit


class Trajectory(NamedTuple):
    """An episode."""

    states: Array  # (steps + 1, n), the first one is x0
    inputs: Array  # (steps, p)
    costs: Array  # (steps,) ``xᵀQx + uᵀRu``


@dataclass(frozen=True, eq=False)
class LQR:
    """Minimise the average cost of ``xᵀQx + uᵀRu`` over gains K, where ``x' = A x + B u + w``, u = K x, w ~ N(0, W).

    In an episode, entries of states and inputs beyond ±1e120 are cut off there. So all costs are finite, whatever the
    gain; an episode that stays below, such as any of 300 steps with ‖A + BK‖ ≤ 2.4, is not changed at all.

    Q and W must be symmetric and positive semi-definite, R positive definite, and (A, B) stabilisable.

    Example:
        >>> lqr = LQR.paper()
        >>> lqr.spectral_radius(np.zeros(9)).__round__(3), lqr.cost(np.zeros(9))
        (1.024, inf)
        >>> lqr.relative_cost(lqr.optimal_gain)
        0.0
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
            object.__setattr__(self, name, read_only(as_finite(name, getattr(self, name), ndim=2)))
        n, p = self.B.shape
        for name, size in (("A", n), ("Q", n), ("R", p), ("W", n)):
            shape = getattr(self, name).shape
            if shape != (size, size):
                raise InputError(f"{name}: expected shape ({size}, {size}), as B has shape ({n}, {p}), got {shape}")
        for name, definite in (("Q", False), ("R", True), ("W", False)):
            check_definite(name, getattr(self, name), definite)
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
        return len(self.B)

    @property
    def p(self) -> int:
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
        return float(np.abs(np.linalg.eigvals(self.A + self.B @ self._gain(K))).max())

    def is_stable(self, K: npt.ArrayLike) -> bool:
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

    def _cost_to_go(self, K: Array) -> Array:
        return _lyapunov((self.A + self.B @ K).T, self.Q + K.T @ self.R @ K)

    def _covariance(self, K: Array) -> Array:
        return _lyapunov(self.A + self.B @ K, self.W)

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
        start = np.zeros(self.n) if x0 is None else limited(as_vector("x0", x0, self.n))
        w = np.random.default_rng(natural("seed", seed)).standard_normal((steps, self.n)) @ self._root
        e = np.zeros((steps, self.p))
        if exploration:
            e = exploration * np.random.default_rng((seed, 1)).standard_normal((steps, self.p))
        states, inputs = self._roll(self._gain(K), start, w, e)
        return Trajectory(states, inputs, self.step_costs(states[:-1], inputs))

    def episode_return(
        self, K: npt.ArrayLike, steps: int = 300, *, seed: int, x0: npt.ArrayLike | None = None
    ) -> float:
        """The sum of ``−log(1 + cost)`` over an episode from x0: the return that the paper maximises; always finite.

        Costs blow up where the controller is unstable.
        """
        return -float(np.log1p(self.simulate(K, steps, seed=seed, x0=x0).costs).sum())

    def step_costs(self, states: Array, inputs: Array) -> Array:
        """``xᵀQx + uᵀRu`` of states (..., n) and inputs (..., p)."""
        costs: Array = ((states @ self.Q) * states).sum(-1) + ((inputs @ self.R) * inputs).sum(-1)
        return np.maximum(costs, 0.0)  # rounding can make a tiny negative number of a zero

    def step(self, x: Array, u: Array, w: Array) -> Array:
        """The next state (n,), cut off at the limit."""
        return limited(self.A @ x + self.B @ u + w)

    def disturbance(self, rng: np.random.Generator) -> Array:
        """One draw of w (n,)."""
        w: Array = self._root @ rng.standard_normal(self.n)
        return w

    def _roll(self, K: Array, x0: Array, w: Array, e: Array) -> tuple[Array, Array]:
        """States (steps + 1, n) and inputs (steps, p)."""
        with np.errstate(over="ignore", invalid="ignore"):
            states = _scan(self.A + self.B @ K, np.vstack([x0, w + e @ self.B.T]))
            inputs = states[:-1] @ K.T + e
            if np.abs(states).max() <= LIMIT and np.abs(inputs).max() <= LIMIT:  # False where there is a NaN
                return states, inputs
        return self._roll_step_by_step(K, x0, w, e)

    def _roll_step_by_step(self, K: Array, x0: Array, w: Array, e: Array) -> tuple[Array, Array]:
        """The slow twin of `_roll`, which can cut off."""
        states, inputs = [x0], list[Array]()
        for disturbance, exploration in zip(w, e, strict=True):
            inputs.append(limited(K @ states[-1] + exploration))
            states.append(self.step(states[-1], inputs[-1], disturbance))
        return np.array(states), np.array(inputs)

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
            f"A, B, Q, R: no stabilising solution of the Riccati equation ({error}); B must reach every mode of A that "
            "does not decay, and Q must see every mode on the unit circle"
        ) from None
    return P, -np.asarray(np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A), dtype=np.float64)


def _cost(value: float) -> float:
    """A cost of a gain that is stable by a rounding error only may come out as anything; then it is infinite."""
    return value if 0.0 <= value < math.inf else math.inf


def check_definite(name: str, matrix: Array, definite: bool) -> None:
    """Refuse a matrix that is not symmetric or not positive (semi-)definite."""
    size = float(np.abs(matrix).max())
    if np.abs(matrix - matrix.T).max() > 1e-12 * size:
        raise InputError(f"{name}: expected a symmetric matrix; ({name} + {name}ᵀ)/2 is one")
    least = float(np.linalg.eigvalsh(matrix)[0])
    tolerance = 1e-12 * size  # of the eigenvalues' rounding errors
    if least < -tolerance or (definite and least <= tolerance):
        kind = "definite" if definite else "semi-definite"
        raise InputError(f"{name}: expected a positive {kind} matrix, its smallest eigenvalue is {least:.3g}")


def limited(x: Array) -> Array:
    """States or inputs, cut off at the limit."""
    return np.minimum(np.maximum(x, -LIMIT), LIMIT)
