import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import fmin_l_bfgs_b
from scipy.stats import norm, qmc

from dense import CASES, KERNELS, D, data, differences, model
from gibo import GaussianProcess, SquaredExponential
from gibo.acquisition.expected_improvement import (
    SERIES_BELOW,
    LogExpectedImprovement,
    incumbent,
    log_h,
    maximize,
    means_at_data,
)

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
    slope = differences(lambda z: log_h(z[0])[0], np.array([z]), step)
    assert float(log_h(z)[1]) == pytest.approx(float(slope[0]), rel=1e-5)


def test_the_branches_of_log_h_meet_and_stay_finite():
    for z in (-1.0, SERIES_BELOW):
        below, above = (log_h(np.nextafter(z, side)) for side in (-np.inf, np.inf))
        np.testing.assert_allclose(below, above, rtol=1e-9)
    assert np.isfinite(log_h(np.array([-1e100, -1e20, 1e20, 1e100]))).all()


# -- expected improvement ---------------------------------------------------------------------------------------------


def example(kernel=KERNELS[0], gradients=False):
    return model(CASES["constant"], kernel, data(CASES["constant"], gradients))


def test_the_incumbent_when_two_values_at_one_point_disagree_without_noise():
    gp = GaussianProcess(SquaredExponential(), noise=0.0).condition([[0.0], [0.0], [2.0]], [1.0, 2.0, 0.0])
    assert gp.jitter > 0.0
    np.testing.assert_allclose(means_at_data(gp), gp.predict(gp.observations.X).mean, rtol=1e-12)
    # The two weights are huge, of opposite sign and cancel: few digits are left.
    assert incumbent(gp) == means_at_data(gp).max() == pytest.approx(1.5, abs=0.05)


def test_it_is_the_integral_over_the_posterior():
    gp, X = example(), np.random.default_rng(2).normal(size=(4, D))
    for best in (-1.0, 0.5, 2.0):
        log_ei = LogExpectedImprovement(gp, best)
        for x, value in zip(X, log_ei(X), strict=True):
            mean, variance = gp.predict(x)
            sd = math.sqrt(variance)

            def integrand(f, mean=mean, sd=sd, best=best):
                return max(f - best, 0.0) * norm.pdf(f, mean, sd)

            upper = max(best, mean) + 12.0 * sd
            expected = quad(integrand, best, upper, points=[np.clip(mean, best, upper)], epsabs=0.0)[0]
            assert math.exp(value) == pytest.approx(expected, rel=1e-8)
            assert isinstance(log_ei(x), float)
            assert log_ei(x) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("gradients", [False, True], ids=["values", "gradients"])
@pytest.mark.parametrize("z", [5.0, 0.0, -1.0, -3.0, -40.0, -1e3])
def test_its_gradient(kernel, gradients, z):
    gp = example(kernel, gradients)
    for x in np.random.default_rng(4).normal(size=(3, D)):
        mean, variance = gp.predict(x)
        log_ei = LogExpectedImprovement(gp, mean - z * math.sqrt(variance))
        value, gradient = log_ei.value_and_gradient(x)
        assert value == pytest.approx(log_ei(x), rel=1e-10)
        if z <= -40.0:
            assert math.exp(value) == 0.0  # expected improvement itself has underflowed
        # The third derivative grows with z², and so does what the step must be divided by.
        expected = differences(log_ei, x, 1e-4 / max(1.0, abs(z) ** 0.5))
        np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_without_data():
    gp = GaussianProcess(SquaredExponential(variance=4.0), noise=0.1)
    log_ei = LogExpectedImprovement(gp, 0.0)
    value, gradient = log_ei.value_and_gradient([0.3, 0.4])
    assert math.exp(value) == pytest.approx(2.0 / math.sqrt(2.0 * math.pi))
    assert gradient.tolist() == [0.0, 0.0]


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
