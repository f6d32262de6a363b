import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import fmin_l_bfgs_b
from scipy.stats import norm, qmc

from gibo import GaussianProcess, Matern52, SquaredExponential
from gibo.acquisition.confidence import PosteriorAtPoint
from gibo.acquisition.expected_improvement import (
    SERIES_BELOW,
    LogExpectedImprovement,
    incumbent,
    log_h,
    maximize,
    means_at_data,
)

D = 3


def model(kernel=SquaredExponential, gradients=False, noise=0.01, n=12, mean=0.2):
    rng = np.random.default_rng(0)
    gp = GaussianProcess(kernel([0.5, 1.2, 0.8], 1.7), noise=noise, mean=mean)
    X, y = rng.normal(size=(n, D)), rng.normal(size=n)
    if not gradients:
        return gp.condition(X, y)
    return gp.condition(X, y, rng.normal(size=(2, D)), rng.normal(size=(2, D)), 0.1)


every_model = pytest.mark.parametrize("kernel", [SquaredExponential, Matern52])
with_and_without_gradients = pytest.mark.parametrize("gradients", [False, True], ids=["values", "gradients"])


def differences(f, x, step):
    """Central differences of f by the components of x."""
    return np.array([(f(x + s) - f(x - s)) / (2.0 * step) for s in step * np.eye(len(x))])


# -- h ----------------------------------------------------------------------------------------------------------------


def improvement(z):
    """h(z) = E[max(Z + z, 0)] for a standard normal Z, by quadrature, and exp(z²/2)·h(z) where that underflows."""
    if z > -8.0:
        return math.log(quad(lambda t: t * norm.pdf(t - z), 0.0, max(z, 0.0) + 12.0, epsabs=0.0, epsrel=1e-12)[0])
    scaled = quad(lambda t: t * math.exp(-0.5 * t * t + t * z), 0.0, 40.0 / -z, epsabs=0.0, epsrel=1e-12)[0]
    return math.log(scaled) - 0.5 * z * z - 0.5 * math.log(2.0 * math.pi)


@pytest.mark.parametrize("z", [8.0, 1.0, 0.0, -0.9, -1.0, -1.1, -5.0, -8.0, -40.0, -200.0, -299.0, -301.0, -1e3, -1e5])
def test_log_h_is_the_integral(z):
    assert float(log_h(z)[0]) == pytest.approx(improvement(z), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("z", [8.0, 0.0, -1.0, -1.1, -5.0, -40.0, -299.0, -1e3, -1e5, -1e9])
def test_the_slope_of_log_h(z):
    step = 1e-4 * max(abs(z), 1.0)
    values = log_h(np.array([z - step, z + step]))[0]
    assert float(log_h(z)[1]) == pytest.approx((values[1] - values[0]) / (2.0 * step), rel=1e-5)


@pytest.mark.parametrize("z", [-1.0, SERIES_BELOW])
def test_the_branches_of_log_h_meet(z):
    below, above = (log_h(np.nextafter(z, side)) for side in (-np.inf, np.inf))
    np.testing.assert_allclose(below, above, rtol=1e-9)


def test_log_h_far_away_is_finite():
    value, slope = log_h(np.array([-1e100, -1e20, 1e20, 1e100]))
    assert np.isfinite(value).all()
    assert np.isfinite(slope).all()


# -- the posterior and its gradient -----------------------------------------------------------------------------------


@every_model
@with_and_without_gradients
def test_gradients_of_the_moments(kernel, gradients):
    gp = model(kernel, gradients)
    posterior = PosteriorAtPoint(gp)
    for x in [*np.random.default_rng(1).normal(size=(5, D)), gp.observations.X[0]]:
        at = posterior(x)
        np.testing.assert_allclose(
            at.mean_gradient, differences(lambda p: gp.predict(p).mean, x, 1e-5), rtol=1e-6, atol=1e-8
        )
        np.testing.assert_allclose(
            at.variance_gradient, differences(lambda p: gp.predict(p).variance, x, 1e-5), rtol=1e-6, atol=1e-8
        )


def test_points_far_from_the_origin_lose_nothing():
    gp = model()
    moved = gp.condition(gp.observations.X + 1e4, gp.observations.y)
    x = np.full(D, 0.3)
    for mine, there in zip(PosteriorAtPoint(gp)(x), PosteriorAtPoint(moved)(x + 1e4), strict=True):
        np.testing.assert_allclose(there, mine, rtol=1e-9, atol=1e-10)


@with_and_without_gradients
@pytest.mark.parametrize("mean", [0.2, "estimated"])
def test_means_at_the_data(gradients, mean):
    gp = model(gradients=gradients, mean=mean)
    np.testing.assert_allclose(means_at_data(gp), gp.predict(gp.observations.X).mean, rtol=1e-10, atol=1e-12)
    assert incumbent(gp) == means_at_data(gp).max()


def test_means_at_the_data_when_two_values_at_one_point_disagree_without_noise():
    gp = GaussianProcess(SquaredExponential(), noise=0.0).condition([[0.0], [0.0], [2.0]], [1.0, 2.0, 0.0])
    assert gp.jitter > 0.0
    np.testing.assert_allclose(means_at_data(gp), gp.predict(gp.observations.X).mean, rtol=1e-12)
    # The two weights are huge, of opposite sign and cancel: few digits are left.
    assert incumbent(gp) == pytest.approx(1.5, abs=0.05)


# -- expected improvement ---------------------------------------------------------------------------------------------


def test_it_is_the_integral_over_the_posterior():
    gp = model()
    for best in (-1.0, 0.5, 2.0):
        log_ei = LogExpectedImprovement(gp, best)
        for x in np.random.default_rng(2).normal(size=(4, D)):
            mean, variance = gp.predict(x)
            sd = math.sqrt(variance)

            def integrand(f, mean=mean, sd=sd, best=best):
                return max(f - best, 0.0) * norm.pdf(f, mean, sd)

            upper = max(best, mean) + 12.0 * sd
            expected = quad(integrand, best, upper, points=[np.clip(mean, best, upper)], epsabs=0.0)[0]
            assert math.exp(log_ei(x)) == pytest.approx(expected, rel=1e-8)


def test_a_batch_is_its_points():
    log_ei = LogExpectedImprovement(model())
    X = np.random.default_rng(3).normal(size=(6, D))
    batch = log_ei(X)
    assert batch.shape == (6,)
    for x, value in zip(X, batch, strict=True):
        assert isinstance(log_ei(x), float)
        assert log_ei(x) == pytest.approx(value, rel=1e-12)
        assert log_ei.value_and_gradient(x)[0] == pytest.approx(value, rel=1e-10)


@every_model
@with_and_without_gradients
@pytest.mark.parametrize("z", [5.0, 0.0, -1.0, -3.0, -40.0, -1e3])
def test_its_gradient(kernel, gradients, z):
    gp = model(kernel, gradients)
    for x in np.random.default_rng(4).normal(size=(3, D)):
        mean, variance = gp.predict(x)
        log_ei = LogExpectedImprovement(gp, mean - z * math.sqrt(variance))
        value, gradient = log_ei.value_and_gradient(x)
        assert math.isfinite(value)
        if z <= -40.0:
            assert math.exp(value) == 0.0  # expected improvement itself has underflowed
        # The third derivative grows with z², and so does what the step must be divided by.
        step = 1e-4 / max(1.0, abs(z) ** 0.5)
        expected = differences(log_ei, x, step)
        np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_without_data():
    gp = GaussianProcess(SquaredExponential(variance=4.0), noise=0.1)
    log_ei = LogExpectedImprovement(gp, 0.0)
    value, gradient = log_ei.value_and_gradient([0.3, 0.4])
    assert math.exp(value) == pytest.approx(2.0 / math.sqrt(2.0 * math.pi))
    assert gradient.tolist() == [0.0, 0.0]
    assert log_ei([0.3, 0.4]) == pytest.approx(value)


# -- its maximum ------------------------------------------------------------------------------------------------------


def best_of_many(log_ei, d):
    X = qmc.Sobol(d, rng=1).random(512)
    X = np.concatenate([X, log_ei.gp.observations.X])

    def cost(x):
        value, gradient = log_ei.value_and_gradient(x)
        return -value, -gradient

    order = np.argsort(-log_ei(X))[:20]
    return max(-fmin_l_bfgs_b(cost, X[i], bounds=[(0.0, 1.0)] * d)[1] for i in order)


@pytest.mark.parametrize("d", [1, 3, 10])
def test_it_finds_what_many_restarts_find(d):
    shortfalls = []
    for seed in range(10):
        rng = np.random.default_rng((d, seed))
        X = rng.random((5 * d, d))
        kernel = SquaredExponential(0.15 * np.sqrt(d) * rng.uniform(0.7, 1.3, d))
        gp = GaussianProcess(kernel, noise=0.01).condition(X, rng.normal(size=len(X)))
        log_ei = LogExpectedImprovement(gp)
        x, value = maximize(log_ei, np.zeros(d), np.ones(d), rng)
        assert ((x >= 0.0) & (x <= 1.0)).all()
        assert value == pytest.approx(log_ei(x), rel=1e-6, abs=1e-8)
        shortfalls.append(best_of_many(log_ei, d) - value)
    assert np.mean(shortfalls) <= 0.05
    assert np.max(shortfalls) <= 0.5


def test_it_climbs_where_expected_improvement_has_underflowed():
    X = np.linspace(0.0, 1.0, 6)[:, None]
    gp = GaussianProcess(SquaredExponential(0.3), noise=1e-4).condition(X, np.sin(5.0 * X[:, 0]))
    log_ei = LogExpectedImprovement(gp, 1e3)
    x, value = maximize(log_ei, np.zeros(1), np.ones(1), np.random.default_rng(0))
    assert math.exp(value) == 0.0
    grid = np.linspace(0.0, 1.0, 2001)[:, None]
    assert value >= np.max(log_ei(grid)) - 1e-4 * abs(value)
    assert 0.0 <= x[0] <= 1.0
