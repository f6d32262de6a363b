"""Synthetic objectives drawn from a Gaussian process (Müller et al. 2021, section 4.1 and appendix A.5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gibo import _linalg as linalg
from gibo._linalg import Array, minimize
from gibo.kernels import SquaredExponential
from gibo.optimizers.paper import lengthscale_distribution

SAMPLES = 1000
NOISE_SD = 0.1
STARTS_FOR_OPTIMUM = 100


@dataclass(frozen=True, eq=False)
class GPFunction:
    """A function on the unit cube that the Gaussian process with these lengthscales could have drawn.

    It is the interpolating posterior mean ``f(x) = k(x, X) K⁻¹ f(X)`` of an exact joint sample f(X) at 1000 Sobol
    points X, with unit variance. (d, seed) gives it fully.

    Example:
        >>> function = gp_function(d=4, seed=0)
        >>> 0.0 < function.regret(np.full(4, 0.5)) < 2.0
        True
    """

    d: int
    seed: int
    lengthscale: Array  # (d,) the true ones, drawn from ``ℓ(d)`` with γ = 0.3
    X: Array
    weights: Array
    x_best: Array  # the global maximum, found by local optimisation from the best samples
    f_best: float

    def __call__(self, x: npt.ArrayLike) -> float:
        """The value at x (d,), without noise."""
        return _value_and_gradient(np.asarray(x, dtype=np.float64), self.X, self.weights, self.lengthscale)[0]

    def gradient(self, x: npt.ArrayLike) -> Array:
        return _value_and_gradient(np.asarray(x, dtype=np.float64), self.X, self.weights, self.lengthscale)[1]

    def observe(self, x: npt.ArrayLike, rng: np.random.Generator) -> float:
        """The value at x with Gaussian noise of standard deviation 0.1."""
        return self(x) + NOISE_SD * float(rng.standard_normal())

    def regret(self, x: npt.ArrayLike) -> float:
        """Normalised distance to the maximum, ``(f* − f(x))/f*``."""
        return (self.f_best - self(x)) / self.f_best

    @property
    def start(self) -> Array:
        """The middle of the cube, where every method starts."""
        return np.full(self.d, 0.5)


def gp_function(d: int, seed: int) -> GPFunction:
    """The function given by (d, seed): the same on every machine and for every method."""
    from scipy.stats import qmc  # slow to import, and needed here only

    rng = np.random.default_rng((d, seed))
    distribution = lengthscale_distribution(d)
    ell = rng.uniform(distribution.lower, distribution.upper, d)
    X = qmc.Sobol(d, scramble=True, rng=rng).random_base2(10)[:SAMPLES]
    kernel = SquaredExponential(ell)
    with linalg.single_thread():
        L = linalg.cholesky(kernel.k(X, X)).L
        z = rng.standard_normal(SAMPLES)
        # f(X) = L z is the sample, so the interpolating mean's weights K⁻¹ f(X) are L⁻ᵀ z.
        weights, sample = linalg.solve_upper(L, z), L @ z
        x_best, f_best = _maximum(X, weights, ell, X[np.argsort(-sample)[:STARTS_FOR_OPTIMUM]])
    return GPFunction(d, seed, ell, X, weights, x_best, f_best)


def _maximum(X: Array, weights: Array, ell: Array, starts: Array) -> tuple[Array, float]:
    def cost(x: Array) -> tuple[float, Array]:
        value, gradient = _value_and_gradient(x, X, weights, ell)
        return -value, -gradient

    low, high = np.zeros(X.shape[1]), np.ones(X.shape[1])
    runs = [minimize(cost, start, low, high, factr=1e7, pgtol=1e-5, maximum_steps=15000) for start in starts]
    x, lowest = min(runs, key=lambda run: run[1])
    return x, -lowest


def _value_and_gradient(x: Array, X: Array, weights: Array, ell: Array) -> tuple[float, Array]:
    U = (X - x) / ell
    k = np.exp(-0.5 * np.einsum("nd,nd->n", U, U)) * weights
    return float(k.sum()), (k @ U) / ell
