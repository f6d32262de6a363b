from dataclasses import replace

import numpy as np
import pytest

from gibo import GaussianProcess, GradientInformation, Matern52, SquaredExponential
from gibo import _linalg as linalg

D = 3
ELL = np.array([0.5, 1.2, 0.8])
T = np.array([0.1, -0.3, 0.2])


@pytest.fixture(params=[SquaredExponential, Matern52])
def kernel(request):
    return request.param(ELL, 1.7)


@pytest.fixture(params=["prior", "one", "values", "gradients", "arrivals"])
def gp(request, kernel):
    """Models without data, with one value, with several, also with gradients, also with both in mixed order."""
    rng = np.random.default_rng(0)
    prior = GaussianProcess(kernel, noise=0.02)
    X, y, G, g = rng.normal(size=(7, D)), rng.normal(size=7), rng.normal(size=(2, D)), rng.normal(size=(2, D))
    X[1], X[5], G[0] = T, X[4], X[2]
    if request.param == "prior":
        return prior
    if request.param == "one":
        return prior.condition(X[:1], y[:1])
    if request.param == "values":
        return prior.condition(X, y)
    if request.param == "gradients":
        return prior.condition(X, y, G, g, 0.03)
    gp = prior.condition(X[:2], y[:2], G[:1], g[:1], 0.03)
    return gp.extend(X[2:5], y[2:5], G[1:], g[1:], 0.1).extend(X[5:], y[5:])


def candidates(gp):
    """Points at random, t itself, a neighbour of it, and an observed point."""
    x = np.vstack([np.random.default_rng(1).normal(size=(4, D)), T, T + 1e-3 * ELL])
    return x if gp.observations is None else np.vstack([x, gp.observations.X[0], gp.observations.X[-1]])


def differences(f, x):
    """Central differences with steps in proportion to the lengthscales."""
    return np.array([(f(x + s) - f(x - s)) / (2.0 * s.max()) for s in np.diag(1e-5 * ELL)])


def same(gi, other, x, rtol=1e-10):
    scale = other(x).max()
    np.testing.assert_allclose(gi(x), other(x), rtol=rtol, atol=rtol * scale)
    np.testing.assert_allclose(gi.covariance, other.covariance, rtol=rtol, atol=rtol * np.abs(other.covariance).max())
    for point in x:
        (value, slope), (others_value, others_slope) = gi.value_and_gradient(point), other.value_and_gradient(point)
        assert value == pytest.approx(others_value, rel=rtol, abs=rtol * scale)
        np.testing.assert_allclose(slope, others_slope, rtol=rtol, atol=rtol * max(np.abs(others_slope).max(), scale))


def test_it_is_the_decrease_of_the_trace(gp):
    gi = GradientInformation(gp, at=T)
    before = np.trace(gp.jacobian(T).covariance)
    for x in candidates(gp):
        after = np.trace(gp.extend(x, -3.0).jacobian(T).covariance)
        assert gi(x) == pytest.approx(before - after, rel=1e-10, abs=1e-12 * before)


def test_jitter_counts_as_noise(kernel):
    # Of rounding's size it would not show; a large one is as good.
    X = np.random.default_rng(6).normal(size=(5, D))
    gp = GaussianProcess(kernel, noise=0.02).condition(X, np.zeros(5))
    gp = replace(gp, factor=linalg.cholesky(kernel.k(X, X) + 0.02 * np.eye(5), jitter=0.3))
    gi = GradientInformation(gp, at=T)
    for x in candidates(gp):
        after = np.trace(gp.extend(x, 0.0).jacobian(T).covariance)
        assert gi(x) == pytest.approx(np.trace(gp.jacobian(T).covariance) - after, rel=1e-10, abs=1e-12)


def test_gradient(gp):
    gi = GradientInformation(gp, at=T)
    for x in candidates(gp):
        value, gradient = gi.value_and_gradient(x)
        numerical = differences(gi, x)
        assert value == gi(x)
        np.testing.assert_allclose(gradient, numerical, rtol=1e-6, atol=1e-7 * gi(candidates(gp)).max())


def test_a_batch_equals_its_points(gp):
    gi = GradientInformation(gp, at=T)
    x = candidates(gp)
    batch = gi(x)
    assert batch.shape == (len(x),)
    np.testing.assert_allclose(batch, [gi(point) for point in x], rtol=1e-11, atol=1e-13 * batch.max())
    assert type(gi(x[0].tolist())) is float
    assert gi(x[:0]).shape == (0,)


def test_extending_equals_telling_the_model(gp):
    gi, told = GradientInformation(gp, at=T), gp
    x = candidates(gp)
    for point, value in zip(x, np.random.default_rng(2).normal(size=len(x)), strict=True):
        gi, told = gi.extend(point), told.extend(point, value)
        same(gi, GradientInformation(told, at=T), x)


def test_it_does_not_depend_on_where_the_origin_is(kernel):
    rng = np.random.default_rng(4)
    X, x = rng.normal(size=(6, D)), rng.normal(size=(5, D))
    prior = GaussianProcess(kernel, noise=0.02)
    here = GradientInformation(prior.condition(X, np.zeros(6)), at=T)
    there = GradientInformation(prior.condition(X + 1e6, np.zeros(6)), at=T + 1e6)
    np.testing.assert_allclose(there(x + 1e6), here(x), rtol=1e-6)  # x + 1e6 itself is rounded to 1e-10


@pytest.mark.parametrize("noise", [0.0, 1e-16])
def test_asking_again_where_nothing_is_left_to_learn_gives_nothing(kernel, noise):
    X = np.random.default_rng(5).normal(size=(8, D))
    gi = GradientInformation(GaussianProcess(kernel, noise=noise).condition(X, np.zeros(8)), at=T)
    total = np.trace(gi.covariance)
    for x in X:
        assert gi(x) <= 1e-6 * total
        assert gi.extend(x)(x) <= 1e-6 * total
