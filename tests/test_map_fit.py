import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

from gibo import GaussianProcess, InputError, Matern52, NumericalError, SquaredExponential, fit
from gibo.map_fit import FitWarning, _Space, likelihood_of_values
from gibo.priors import LogNormal, Normal, SharedLogNormal, Uniform
from optimizer_helpers import assert_slopes_of_the_log_posterior, log_posterior

LOGNORMAL = {"lengthscale": LogNormal(0.8, 0.5), "variance": LogNormal(1.0, 0.7), "noise": LogNormal(0.02, 1.0)}
SHARED = {**LOGNORMAL, "lengthscale": SharedLogNormal(0.8, 0.7, 0.3)}
MIXED = {"lengthscale": LogNormal(0.6, 0.6), "variance": Normal(1.5, 0.5), "noise": Uniform(0.001, 0.5)}
SOME = {"variance": LogNormal(1.5, 0.7)}
PRIORS = {"lognormal": LOGNORMAL, "shared": SHARED, "mixed": MIXED, "some": SOME}
ell, noise, variance = np.array([0.5, 1.1, 0.8]), 0.05, 1.3


def example(seed=0, d=3, n=12, lengthscale=None, kernel=SquaredExponential, gradients=0, mean=0.0):
    """A conditioned model whose hyperparameters do not quite fit its data."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, d))
    y = np.sin(2.0 * X).sum(axis=1) + 0.1 * rng.normal(size=n) + 0.3
    gp = GaussianProcess(kernel(ell[:d] if lengthscale is None else lengthscale, variance), noise=noise, mean=mean)
    G = X[:gradients] + 0.1
    return gp.condition(X, y, G, 2.0 * np.cos(2.0 * G), 0.1) if gradients else gp.condition(X, y)


def hyperparameters(gp):
    return [*np.atleast_1d(gp.kernel.lengthscale).tolist(), gp.kernel.variance, gp.noise]


# -- the gradient -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gradients", [0, 3])
@pytest.mark.parametrize("lengthscale", [None, 0.7], ids=["one-per-dimension", "shared-by-all"])
@pytest.mark.parametrize("priors", PRIORS.values(), ids=PRIORS.keys())
@pytest.mark.parametrize("kernel", [SquaredExponential, Matern52])
@pytest.mark.parametrize("mean", [0.0, "estimated"])
def test_the_gradient_of_the_log_posterior(kernel, priors, lengthscale, gradients, mean):
    gp = example(kernel=kernel, lengthscale=lengthscale, gradients=gradients, mean=mean)
    assert_slopes_of_the_log_posterior(gp, priors)


@pytest.mark.parametrize("mean", [0.0, 0.4, "estimated"])
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
        model = gp.given(gp.observations)
        value, gradient = likelihood_of_values(gp, gp.observations)
        slow = model.log_likelihood_slopes()
        assert value == pytest.approx(model.log_likelihood, rel=1e-12)
        size = max(np.abs(slow["lengthscale"]).max(), abs(slow["variance"]), abs(slow["noise"]), 1.0)
        np.testing.assert_allclose(gradient["lengthscale"], slow["lengthscale"], rtol=1e-7, atol=1e-9 * size)
        assert gradient["variance"] == pytest.approx(slow["variance"], rel=1e-7, abs=1e-9 * size)
        assert gradient["noise"] == pytest.approx(slow["noise"], rel=1e-9)


# -- the optimum ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("priors", PRIORS.values(), ids=PRIORS.keys())
@pytest.mark.parametrize("seed", range(3))
def test_a_fit_raises_the_log_posterior(seed, priors):
    gp = example(seed, gradients=seed)
    fitted = fit(gp, priors)
    assert fitted.warning is None
    assert fitted.log_posterior > log_posterior(gp, priors)
    assert fitted.log_posterior == pytest.approx(log_posterior(fitted.gp, priors), rel=1e-12)
    assert fitted.gp.observations is gp.observations


@pytest.mark.parametrize("priors", [LOGNORMAL, SHARED, MIXED], ids=["lognormal", "shared", "mixed"])
@pytest.mark.parametrize("lengthscale", [None, 0.7], ids=["one-per-dimension", "shared-by-all"])
def test_a_fit_reaches_what_a_search_without_gradients_reaches(lengthscale, priors):
    gp = example(d=2, n=10, lengthscale=lengthscale)
    fitted = fit(gp, priors)
    space, rng = _Space(gp, priors), np.random.default_rng(0)
    low, high = space.low, space.high

    def cost(z):
        return -log_posterior(space.prior_model(np.clip(z, low, high)).given(gp.observations), priors)

    starts = [space.start, *(space.start + rng.normal(0.0, 0.7, (4, len(low))))]
    options = {"maxfev": 500, "xatol": 1e-4, "fatol": 1e-6}
    best = max(-scipy_minimize(cost, start, method="Nelder-Mead", options=options).fun for start in starts)
    assert fitted.log_posterior == pytest.approx(best, abs=5e-3)


@pytest.mark.parametrize("free", ["lengthscale", "variance", "noise"])
def test_what_has_no_prior_stays(free):
    gp = example()
    fitted = fit(gp, {free: LOGNORMAL[free]}).gp
    before = {"lengthscale": gp.kernel.lengthscale, "variance": gp.kernel.variance, "noise": gp.noise}
    after = {"lengthscale": fitted.kernel.lengthscale, "variance": fitted.kernel.variance, "noise": fitted.noise}
    for name in gp.hyperparameters:
        assert np.array_equal(before[name], after[name]) == (name != free)


# -- supports ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [0.2, 0.7, 50.0, 1e-4], ids=str)
def test_a_fit_stays_in_a_bounded_support_wherever_it_starts(start):
    priors = {"lengthscale": Uniform(0.1, 0.3), "variance": Uniform(0.1, 0.9), "noise": Uniform(0.2, 0.4)}
    gp = example(lengthscale=np.full(3, start))
    fitted = fit(gp, priors)
    assert fitted.warning is None
    assert math.isfinite(fitted.log_posterior)
    assert (fitted.gp.kernel.lengthscale >= 0.1).all()
    assert (fitted.gp.kernel.lengthscale <= 0.3).all()
    assert 0.1 <= fitted.gp.kernel.variance <= 0.9
    assert 0.2 <= fitted.gp.noise <= 0.4
    # The data vary by more than both variances together may explain, so the optimum is on these bounds.
    assert fitted.gp.kernel.variance == pytest.approx(0.9)
    assert fitted.gp.noise == pytest.approx(0.4)


def test_rounding_does_not_leave_the_support():
    upper = next(u for u in np.linspace(0.3, 0.4, 1000) if np.exp(math.log(u)) > u)
    fitted = fit(example(), {"lengthscale": Uniform(0.1, 5.0), "variance": Uniform(0.1, upper)})
    assert fitted.gp.kernel.variance == upper
    assert math.isfinite(fitted.log_posterior)


def test_no_noise_is_a_start_too():
    gp = example()
    data = gp.observations
    silent = GaussianProcess(gp.kernel, noise=0.0).condition(data.X, data.y)
    fitted = fit(silent, LOGNORMAL)
    assert fitted.warning is None
    assert fitted.log_posterior == pytest.approx(fit(gp, LOGNORMAL).log_posterior, abs=0.05)


# -- effort -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("priors", [LOGNORMAL, SHARED, MIXED], ids=["lognormal", "shared", "mixed"])
def test_a_fit_from_the_optimum_takes_few_evaluations(priors):
    first = fit(example(), priors)
    again = fit(first.gp, priors)
    assert first.evaluations > 5
    assert again.evaluations <= 4
    assert again.log_posterior >= first.log_posterior - 1e-9


def test_the_steps_are_limited():
    gp = example()
    short, long = fit(gp, LOGNORMAL, maximum_steps=1), fit(gp, LOGNORMAL)
    assert short.evaluations < long.evaluations
    assert log_posterior(gp, LOGNORMAL) < short.log_posterior < long.log_posterior


# -- failures ---------------------------------------------------------------------------------------------------------


def assert_kept(fitted, gp):
    assert isinstance(fitted.warning, FitWarning)
    assert "the old hyperparameters are kept" in fitted.warning.message
    assert hyperparameters(fitted.gp) == hyperparameters(gp)


@pytest.mark.parametrize("error", [NumericalError, InputError, FloatingPointError, OverflowError])
def test_a_model_that_cannot_be_made_keeps_the_old_hyperparameters(monkeypatch, error):
    def broken(self, z):
        raise error("no model here")

    gp = example()
    monkeypatch.setattr(_Space, "prior_model", broken)
    assert_kept(fit(gp, LOGNORMAL), gp)


def test_a_gradient_that_is_not_finite_keeps_the_old_hyperparameters(monkeypatch):
    gp = example()
    slopes = dict.fromkeys(gp.hyperparameters, np.nan)
    monkeypatch.setattr("gibo.map_fit.likelihood_of_values", lambda gp, data: (0.0, slopes))
    assert_kept(fit(gp, LOGNORMAL), gp)


def test_mistakes_are_named():
    with pytest.raises(InputError, match=r"priors: expected one of 'lengthscale', .*, got 'outputscale'"):
        fit(example(), {"outputscale": LogNormal(1.0, 1.0)})
    with pytest.raises(InputError, match="has no data yet"):
        fit(GaussianProcess(SquaredExponential(), noise=0.1), LOGNORMAL)
