"""Global Bayesian optimisation with the defaults of BoTorch since 0.12 (Hvarfner, Hellsten, Nardi 2024), and its
acquisition function: noisy expected improvement through its logarithm, where what to improve on is uncertain too.

Symbols (those of `gibo.acquisition.expected_improvement`, and)
---------------------------------------------------------------
B (p, d)        the observed points of the highest posterior mean, the candidates for the best one
C               posterior covariance of the objective; ``C(B, B) = R Rᵀ``;  g(x) = ``C(B, x)``
Z (p, S)        standard normal numbers; ``F = m(B) + R Z`` are S samples of the objective at B
mu_s, best_s    mean of J(x) given the data and sample s;  the highest entry of sample s
sigma²          variance of J(x) given the data and any sample: it does not depend on the sample's values

    mu_s   = mu + gᵀ R⁻ᵀ Z_s,     sigma² = C(x, x) − ‖R⁻¹ g‖²
    log NEI = log (1/S)·Σ_s sigma·h((mu_s − best_s)/sigma)
"""

from __future__ import annotations

import math
from typing import Self

import numpy as np
import numpy.typing as npt

from gibo import _linalg as linalg
from gibo._linalg import Array
from gibo.acquisition.confidence import PosteriorAtPoint
from gibo.acquisition.expected_improvement import Improvement, log_h, means_at_data
from gibo.gp import GaussianProcess
from gibo.optimizers.vanilla_bo import VanillaBO
from gibo.priors import LogNormal

SAMPLES = 32
CANDIDATES = 32
# Of the variance, added to that at B: a sample is known to be there up to this.
JITTER = 1e-6


class LogNoisyExpectedImprovement:
    """``log E[max(J(x) − max_i J(x_i), 0)]`` under the joint posterior; the expectation over J(x_i) is one of samples.

    For a model of values alone. The samples stay the same, so that the function is smooth.

    Reference: Letham, Karrer, Ottoni, Bakshy: Constrained Bayesian optimization with noisy experiments, Bayesian
    Analysis 2019; Ament et al.: Unexpected improvements to expected improvement, NeurIPS 2023, for the logarithm.
    """

    def __init__(self, gp: GaussianProcess, rng: np.random.Generator) -> None:
        assert gp.observations is not None
        assert gp.factor is not None
        self.gp, self._X, self._L = gp, gp.observations.X, gp.factor.L
        self._B = self._X[np.sort(np.argsort(-means_at_data(gp), kind="stable")[:CANDIDATES])]
        self._WB = linalg.solve_lower(self._L, gp.cross(self._B))
        C = gp.kernel.k(self._B, self._B) - self._WB.T @ self._WB
        self._R = linalg.cholesky(C, jitter=JITTER * gp.kernel.variance).L
        Z = rng.standard_normal((len(self._B), SAMPLES))
        F = np.asarray(gp.predict(self._B).mean)[:, None] + self._R @ Z
        self._best: Array = F.max(axis=0)
        self._a = linalg.solve_upper(self._R, Z)
        self._posterior = PosteriorAtPoint(gp)
        self._least_variance = JITTER * gp.kernel.variance

    def __call__(self, X: Array) -> Array:
        """log NEI (p,) at points (p, d)."""
        mean, variance = (np.asarray(moment) for moment in self.gp.predict(X))
        g = self.gp.kernel.k(self._B, X) - self._WB.T @ linalg.solve_lower(self._L, self.gp.cross(X))
        root = linalg.solve_lower(self._R, g)
        sigma = np.sqrt(np.maximum(variance - np.einsum("bp,bp->p", root, root), self._least_variance))
        terms = log_h((mean[:, None] + g.T @ self._a - self._best) / sigma[:, None])[0]
        value: Array = np.log(sigma) + _log_mean(terms)
        return value

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        """log NEI and its gradient at one point x (d,)."""
        kernel, at = self.gp.kernel, x[None]
        mean, variance, mean_gradient, variance_gradient = self._posterior(x)
        w = linalg.solve_lower(self._L, self.gp.cross(at)[:, 0])
        g = kernel.k(self._B, at)[:, 0] - self._WB.T @ w
        Cg = linalg.solve(self._R, g)
        left = variance - float(g @ Cg)
        sigma2 = max(left, self._least_variance)
        sigma = float(np.sqrt(sigma2))
        z = (mean + g @ self._a - self._best) / sigma
        terms, r = log_h(z)
        share = np.exp(terms - terms.max())
        share /= share.sum()
        by_mean = share * r / sigma  # of each sample
        by_variance = float(share @ (1.0 - r * z)) / (2.0 * sigma2) if left > self._least_variance else 0.0
        by_g = self._a @ by_mean - 2.0 * by_variance * Cg
        at_data = linalg.solve_upper(self._L, self._WB @ by_g)
        gradient = float(by_mean.sum()) * mean_gradient + by_variance * variance_gradient
        gradient = gradient + by_g @ kernel.dk_db(self._B, at)[:, 0] - at_data @ kernel.dk_db(self._X, at)[:, 0]
        return float(np.log(sigma) + _log_mean(terms[None])[0]), gradient


def _log_mean(terms: Array) -> Array:
    """Of the exponentials along the last axis."""
    top = terms.max(axis=-1)
    mean: Array = top + np.log(np.exp(terms - top[..., None]).mean(axis=-1))
    return mean


class BestPracticeBO(VanillaBO):
    """`gibo.VanillaBO` with log noisy expected improvement."""

    method = "best-practice-bo"
    title = "Vanilla BO (best practice)"

    @classmethod
    def on_the_unit_cube(cls, x0: npt.ArrayLike, lower: Array, upper: Array, seed: int) -> Self:
        """The box (d,) to (d,) as the unit cube, with lengthscales that grow with √d.

        Reference: Hvarfner, Hellsten, Nardi: Vanilla Bayesian optimization performs great in high dimensions, ICML
        2024.
        """
        return cls(
            x0,
            bounds=(lower, upper),
            scale=upper - lower,
            seed=seed,
            lengthscale=LogNormal(math.exp(math.sqrt(2.0)) * math.sqrt(len(lower)), math.sqrt(3.0)),
            variance=1.0,
            noise=LogNormal(math.exp(-4.0), 1.0),
            mean="estimated",
            standardize=True,
            fit_from=4,
        )

    def _improvement(self, gp: GaussianProcess, evaluated: npt.NDArray[np.bool_]) -> Improvement:
        return LogNoisyExpectedImprovement(gp, self._rng)
