"""Where evaluations fail: a classifier, beside failures at random, which may happen anywhere.

Symbols
-------
e_i          1 if evaluation i failed, 0 if not;  n evaluations
f            a Gaussian process in the parameters: at a place with f the place makes an evaluation fail with probability
             Phi(f). Its mean is m, and its covariance at the evaluations K, with the objective's lengthscales
eps          the base rate: with this probability an evaluation fails at random, whatever its place
r_i          the probability that a failure comes of its place
mu, v        mean and variance of f_i as all other evaluations have it

An evaluation fails with probability ``eps + (1 − eps)·Phi(f)``. Which failures are random is found by expectation and
maximisation (Dempster, Laird, Rubin: Maximum likelihood from incomplete data via the EM algorithm, 1977). A round is

    p_i = Phi(mu_i/√(1 + v_i)),   r_i = (1 − eps)·p_i/(eps + (1 − eps)·p_i)
    eps = (Σ_failed (1 − r_i) + a)/(n + a + b)
    one Newton step to the maximum of  Σ_failed r_i·log Phi(f_i) + Σ_others log Phi(−f_i) − ½(f − m)ᵀK⁻¹(f − m)

So a failure among successes counts as random, and one beyond others as the edge of a place that fails. The Newton step
is a regression (Rasmussen, Williams: Gaussian processes for machine learning, 2006, section 3.4): with g and −W the
first and second derivatives of the sum, on the values ``f + g/W`` with the noise variances 1/W. Mean and variance of
that regression are Laplace's approximation of f; mu and v follow from its inverse matrix (section 5.4.2).
"""

from __future__ import annotations

import math

import numpy as np

from gibo._linalg import Array, cholesky, inverse
from gibo.gp import GaussianProcess
from gibo.kernels import Kernel

# f before any data: an evaluation then fails of its place with probability Phi(−2/√3) = 0.12. With twice the variance
# a wall costs a seventh fewer failures, and at a rate of random failures of one half the search hardly moves.
MEAN, VARIANCE = -2.0, 2.0
# a and b of the prior density of the base rate, in evaluations.
RANDOM, NOT_RANDOM = 0.5, 1.0
# Twice as many change the base rate by 0.02 to 0.06 where it is high, and by 0.003 where it is not.
EM_ROUNDS = 8
# Of W: an evaluation with less says nothing.
LEAST_WEIGHT = 1e-6


def failing(Z: Array, failed: Array, kernel: Kernel) -> tuple[GaussianProcess, float]:
    """The posterior of f and the base rate, given which (n,) of the evaluations at Z (n, d) failed.

    Example:
        >>> from gibo import SquaredExponential
        >>> Z = np.array([[-1.0], [-0.5], [0.0], [0.5], [1.0], [1.5]])
        >>> gp, eps = failing(Z, Z[:, 0] > 0.2, SquaredExponential(1.0, VARIANCE))
        >>> bool(gp.predict([-0.8]).mean + 1.0 < gp.predict([1.2]).mean and eps < 0.4)
        True
    """
    from scipy.special import log_ndtr, ndtr  # here, because few need it

    n, sign, K = len(failed), np.where(failed, 1.0, -1.0), kernel.k(Z, Z)
    f, eps = np.full(n, MEAN), (failed.sum() + RANDOM) / (n + RANDOM + NOT_RANDOM)
    p = np.full(n, ndtr(MEAN / math.sqrt(1.0 + kernel.variance)))
    for _ in range(EM_ROUNDS):
        r = np.where(failed, (1.0 - eps) * p / (eps + (1.0 - eps) * p), 1.0)
        eps = float(((1.0 - r).sum() + RANDOM) / (n + RANDOM + NOT_RANDOM))
        slope = np.exp(-0.5 * f**2 - 0.5 * math.log(2.0 * math.pi) - log_ndtr(sign * f))  # of log Phi, at sign·f
        g, W = r * sign * slope, np.maximum(r * slope * (slope + sign * f), LEAST_WEIGHT)
        values = f + g / W
        P = inverse(cholesky(K + np.diag(1.0 / W)).L)
        a, diagonal = P @ (values - MEAN), P.diagonal()
        f, mu, v = MEAN + K @ a, values - a / diagonal, np.maximum(1.0 / diagonal - 1.0 / W, 0.0)
        p = ndtr(mu / np.sqrt(1.0 + v))
    gp = GaussianProcess(kernel, noise=0.0, mean=MEAN)
    return gp.condition(Z, values, noise_scale=np.zeros(n), known_noise=1.0 / W), eps
