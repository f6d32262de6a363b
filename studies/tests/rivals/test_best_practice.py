"""Noisy expected improvement: against plain sampling of the joint posterior, and central differences."""

import numpy as np
import pytest

from gibo import GaussianProcess, SquaredExponential
from gibo.acquisition.expected_improvement import LogExpectedImprovement
from gibo_studies.rivals import best_practice
from gibo_studies.rivals.best_practice import LogNoisyExpectedImprovement


def model(noise=0.1):
    rng = np.random.default_rng(5)
    X = rng.uniform(0.0, 1.0, (8, 2))
    y = np.sin(3.0 * X[:, 0]) + 0.3 * rng.normal(size=8)
    return GaussianProcess(SquaredExponential(np.array([0.5, 0.8])), noise=noise).condition(X, y), rng


def test_it_is_the_expectation_over_the_joint_posterior(monkeypatch):
    gp, rng = model()
    monkeypatch.setattr(best_practice, "SAMPLES", 4000)
    log_nei = LogNoisyExpectedImprovement(gp, np.random.default_rng(0))
    X = gp.observations.X
    K = gp.kernel.k(X, X) + gp.noise * np.eye(len(X))
    for x in rng.uniform(0.0, 1.0, (4, 2)):
        P = np.vstack([X, x])
        k = gp.kernel.k(P, X)
        mean = gp.prior_mean + k @ np.linalg.solve(K, gp.observations.y - gp.prior_mean)
        covariance = gp.kernel.k(P, P) - k @ np.linalg.solve(K, k.T) + 1e-10 * np.eye(len(P))
        J = rng.multivariate_normal(mean, covariance, size=100_000)
        gain = np.maximum(J[:, -1] - J[:, :-1].max(axis=1), 0.0)
        error = gain.std() * (1 / np.sqrt(len(gain)) + 1 / np.sqrt(4000))
        assert np.exp(log_nei(x[None])[0]) == pytest.approx(gain.mean(), abs=4.0 * error)


def test_without_noise_it_is_expected_improvement():
    gp, rng = model(noise=1e-8)
    log_nei, log_ei = LogNoisyExpectedImprovement(gp, rng), LogExpectedImprovement(gp)
    points = [x for x in rng.uniform(0.0, 1.0, (200, 2)) if log_ei(x) > -20.0]  # lower, the jitter of 1e-6 decides
    assert len(points) > 3
    for x in points:
        assert log_nei(x[None])[0] == pytest.approx(log_ei(x), rel=1e-2)


def test_the_gradient_and_the_batch():
    gp, rng = model()
    log_nei = LogNoisyExpectedImprovement(gp, rng)
    for x in rng.uniform(0.0, 1.0, (5, 2)):
        value, gradient = log_nei.value_and_gradient(x)
        assert log_nei(np.array([x, x]))[1] == pytest.approx(value, rel=1e-8)
        h = 1e-5
        differences = (log_nei(x + h * np.eye(2)) - log_nei(x - h * np.eye(2))) / (2 * h)
        assert gradient.tolist() == pytest.approx(differences.tolist(), rel=1e-4, abs=1e-6)
