import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

from dense import CASES, KERNELS, data, model
from gibo import GaussianProcess, InputError, Matern52, SquaredExponential, fit
from gibo.map_fit import FitWarning, likelihood_of_values
from gibo.priors import LogNormal, Normal, SharedLogNormal, Uniform
from optimizer_helpers import assert_fit_is_the_maximum, log_posterior

LOGNORMAL = {"lengthscale": LogNormal(0.8, 0.5), "variance": LogNormal(1.0, 0.7), "noise": LogNormal(0.02, 1.0)}
SHARED = {**LOGNORMAL, "lengthscale": SharedLogNormal(0.8, 0.7, 0.3)}
MIXED = {"lengthscale": LogNormal(0.6, 0.6), "variance": Normal(1.5, 0.5), "noise": Uniform(0.001, 0.5)}
SOME = {"variance": LogNormal(1.5, 0.7)}
PRIORS = {"lognormal": LOGNORMAL, "shared": SHARED, "mixed": MIXED, "some": SOME}
ell, noise, variance = np.array([0.5, 1.1, 0.8]), 0.05, 1.3
each_prior = pytest.mark.parametrize("priors", PRIORS.values(), ids=PRIORS.keys())


def example(seed=0, d=3, n=12, lengthscale=None, kernel=SquaredExponential, gradients=0, mean=0.0):
    """A conditioned model whose hyperparameters do not quite fit its data."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, d))
    y = np.sin(2.0 * X).sum(axis=1) + 0.1 * rng.normal(size=n) + 0.3
    gp = GaussianProcess(kernel(ell[:d] if lengthscale is None else lengthscale, variance), noise=noise, mean=mean)
    G = X[:gradients] + 0.1
    return gp.condition(X, y, G, 2.0 * np.cos(2.0 * G), 0.1) if gradients else gp.condition(X, y)


# -- the likelihood ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mean", [0.4, "estimated"])
@pytest.mark.parametrize("kernel", [SquaredExponential, Matern52])
@pytest.mark.parametrize("of_noise", [0.0, 1e-6, 0.05], ids=["without-noise", "little-noise", "noise"])
def test_the_quick_likelihood_of_values_is_the_likelihood(kernel, mean, of_noise):
    for seed, n in enumerate((1, 2, 12, 60)):
        gp = replace(example(seed, n=n, kernel=kernel, mean=mean), noise=of_noise)
        if of_noise and n == 60:  # points that coincide; without noise the derivatives of these would be rounding
            gp = gp.condition(np.repeat(gp.observations.X[:30], 2, axis=0), gp.observations.y)
        if n == 12 and of_noise:  # noise that differs between values
            more = {"noise_scale": np.linspace(0.1, 2.0, n), "known_noise": 0.1 * (np.arange(n) % 2)}
            gp = gp.condition(gp.observations.X, gp.observations.y, **more)
        slow = gp.given(gp.observations)
        value, gradient = likelihood_of_values(gp, gp.observations)
        slopes = slow.log_likelihood_slopes()
        assert value == pytest.approx(slow.log_likelihood, rel=1e-12)
        size = max(*(np.abs(slope).max() for slope in slopes.values()), 1.0)
        for name, slope in slopes.items():
            np.testing.assert_allclose(gradient[name], slope, rtol=1e-7, atol=1e-9 * size)


# -- the optimum ------------------------------------------------------------------------------------------------------


@each_prior
@pytest.mark.parametrize("gradients", [0, 3])
@pytest.mark.parametrize("lengthscale", [None, 0.7], ids=["one-per-dimension", "shared-by-all"])
@pytest.mark.parametrize("kernel", [SquaredExponential, Matern52])
@pytest.mark.parametrize("mean", [0.0, "estimated"])
def test_a_fit_ends_where_the_slopes_are_zero(kernel, priors, lengthscale, gradients, mean):
    gp = example(kernel=kernel, lengthscale=lengthscale, gradients=gradients, mean=mean)
    first = assert_fit_is_the_maximum(gp, priors)
    assert first.gp.observations is gp.observations
    assert fit(first.gp, priors).evaluations <= 4  # a warm start takes few


@pytest.mark.parametrize("name", ["shift", "share", "drift", "gap"])
def test_a_fit_with_blocks_ends_where_the_slopes_are_zero(name):
    gp = model(CASES[name], KERNELS[0], data(CASES[name], gradients=name == "gap"))
    priors = {name: LogNormal(1.0, 1.0) for name, value in gp.hyperparameters.items() if np.any(value)}
    assert_fit_is_the_maximum(gp, priors)


def test_a_fit_reaches_what_a_search_without_gradients_reaches():
    gp = example(d=2, n=10)
    z = np.log([*gp.kernel.lengthscale, gp.kernel.variance, gp.noise])

    def cost(z):
        *lengthscale, variance, noise = np.exp(np.clip(z, -9.0, 9.0))
        values = {"lengthscale": np.array(lengthscale), "variance": float(variance), "noise": float(noise)}
        return -log_posterior(gp.with_hyperparameters(**values).given(gp.observations), SHARED)

    starts = [z, *(z + np.random.default_rng(0).normal(0.0, 0.7, (3, 4)))]
    options = {"maxfev": 500, "xatol": 1e-4, "fatol": 1e-6}
    best = max(-scipy_minimize(cost, start, method="Nelder-Mead", options=options).fun for start in starts)
    assert fit(gp, SHARED).log_posterior == pytest.approx(best, abs=5e-3)


@pytest.mark.parametrize("free", ["lengthscale", "variance", "noise"])
def test_what_has_no_prior_stays(free):
    gp = example()
    fitted = fit(gp, {free: LOGNORMAL[free]}).gp
    for name, before in gp.hyperparameters.items():
        assert np.array_equal(before, fitted.hyperparameters[name]) == (name != free)


# -- supports and steps -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [0.2, 50.0, 1e-4], ids=str)
def test_a_fit_stays_in_a_bounded_support_wherever_it_starts(start):
    priors = {"lengthscale": Uniform(0.1, 0.3), "variance": Uniform(0.1, 0.9), "noise": Uniform(0.2, 0.4)}
    fitted = fit(example(lengthscale=np.full(3, start)), priors)
    assert fitted.warning is None
    assert math.isfinite(fitted.log_posterior)
    assert (np.clip(fitted.gp.kernel.lengthscale, 0.1, 0.3) == fitted.gp.kernel.lengthscale).all()
    # The data vary by more than both variances together may explain, so the optimum is on these bounds.
    assert (fitted.gp.kernel.variance, fitted.gp.noise) == pytest.approx((0.9, 0.4))


def test_rounding_does_not_leave_the_support():
    upper = next(u for u in np.linspace(0.3, 0.4, 1000) if np.exp(math.log(u)) > u)
    fitted = fit(example(), {"lengthscale": Uniform(0.1, 5.0), "variance": Uniform(0.1, upper)})
    assert fitted.gp.kernel.variance == upper
    assert math.isfinite(fitted.log_posterior)


def test_no_noise_is_a_start_too():
    gp = example()
    silent = replace(gp, noise=0.0).given(gp.observations)
    assert fit(silent, LOGNORMAL).log_posterior == pytest.approx(fit(gp, LOGNORMAL).log_posterior, abs=0.05)


def test_the_steps_are_limited():
    gp = example()
    short, long = fit(gp, LOGNORMAL, maximum_steps=1), fit(gp, LOGNORMAL)
    assert short.evaluations < long.evaluations
    assert log_posterior(gp, LOGNORMAL) < short.log_posterior < long.log_posterior


# -- failures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("broken", [math.nan, OverflowError("no model here")], ids=repr)
def test_where_nothing_is_finite_the_old_hyperparameters_are_kept(monkeypatch, broken):
    def likelihood(gp, data):
        if isinstance(broken, Exception):
            raise broken
        return 0.0, dict.fromkeys(gp.hyperparameters, broken)

    gp = example()
    monkeypatch.setattr("gibo.map_fit.likelihood_of_values", likelihood)
    kept = fit(gp, LOGNORMAL)
    assert isinstance(kept.warning, FitWarning)
    assert "the old hyperparameters are kept" in kept.warning.message
    assert kept.gp is gp


def test_mistakes_are_named():
    with pytest.raises(InputError, match=r"priors: expected one of 'lengthscale', .*, got 'outputscale'"):
        fit(example(), {"outputscale": LogNormal(1.0, 1.0)})
    with pytest.raises(InputError, match="has no data yet"):
        fit(GaussianProcess(SquaredExponential(), noise=0.1), LOGNORMAL)
