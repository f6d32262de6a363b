"""The model of where evaluations fail."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_ndtr, ndtr

from gibo import SquaredExponential
from gibo.optimizers.failures import MEAN, NOT_RANDOM, RANDOM, VARIANCE, failing

KERNEL = SquaredExponential(np.array([1.0, 2.0]), VARIANCE)


def wall(n=60, random=0.0, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.uniform(-1.5, 1.5, (n, 2))
    return Z, (Z[:, 0] > 0.5) | (rng.random(n) < random)


def test_the_posterior_is_that_of_the_weighted_likelihood_by_brute_force():
    Z, failed = wall(30, 0.1)
    gp, eps = failing(Z, failed, KERNEL)
    K, sign, n = KERNEL.k(Z, Z), np.where(failed, 1.0, -1.0), len(Z)
    W, f = 1.0 / gp.observations.known_noise, np.asarray(gp.predict(Z).mean)
    P = np.linalg.inv(K + np.diag(1.0 / W))
    others = [np.flatnonzero(np.arange(n) != i) for i in range(n)]
    p = np.empty(n)
    for i, rest in enumerate(others):  # each one left out, by the regression on the others
        inverse = np.linalg.inv((K + np.diag(1.0 / W))[np.ix_(rest, rest)])
        mean = MEAN + K[i, rest] @ inverse @ (gp.observations.y[rest] - MEAN)
        p[i] = ndtr(mean / math.sqrt(1.0 + K[i, i] - K[i, rest] @ inverse @ K[rest, i]))
    r = np.where(failed, (1.0 - eps) * p / (eps + (1.0 - eps) * p), 1.0)
    assert eps == pytest.approx(((1.0 - r).sum() + RANDOM) / (n + RANDOM + NOT_RANDOM), abs=5e-3)

    def loss(a):
        f = MEAN + K @ a
        return 0.5 * a @ K @ a - r @ log_ndtr(sign * f)

    at = MEAN + K @ minimize(loss, P @ (gp.observations.y - MEAN), method="BFGS", options={"gtol": 1e-6}).x
    np.testing.assert_allclose(f, at, atol=0.02)


def test_a_place_that_fails_is_told_from_failures_at_random():
    Z, failed = wall(random=0.0)
    gp, clean = failing(Z, failed, KERNEL)
    _, mixed = failing(*wall(random=0.3), KERNEL)
    assert (np.asarray(gp.predict(np.array([[1.2, 0.0], [-0.5, 0.0]])).mean) > 0.0).tolist() == [True, False]
    assert clean < 0.05 < 0.15 < mixed < 0.4
    rng = np.random.default_rng(1)
    gp, everywhere = failing(Z, rng.random(len(Z)) < 0.5, KERNEL)
    assert 0.25 < everywhere < 0.6
    assert (np.asarray(gp.predict(Z).mean) < 0.0).mean() > 0.9
