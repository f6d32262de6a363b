import math

import numpy as np
import pytest
from scipy import stats

from gibo import InputError
from gibo.priors import LogNormal, Normal, SharedLogNormal, Uniform

# A prior and the same distribution by SciPy.
PRIORS = [
    pytest.param(Uniform(0.1, 0.3), stats.uniform(0.1, 0.2), id="uniform"),
    pytest.param(Uniform(0.0, 2.5), stats.uniform(0.0, 2.5), id="uniform-from-0"),
    pytest.param(Normal(20.0, 5.0), stats.norm(20.0, 5.0), id="normal"),
    pytest.param(LogNormal(0.3, 0.7), stats.lognorm(0.7, scale=0.3), id="lognormal"),
    pytest.param(LogNormal(4.0, 1.5), stats.lognorm(1.5, scale=4.0), id="lognormal-wide"),
]


def inside(reference):
    """Points over the bulk of the distribution, and beyond where it has tails."""
    return reference.ppf(np.array([1e-4, 0.01, 0.2, 0.5, 0.8, 0.99, 0.9999]))


def slope(f, x):
    """Central difference with a step in proportion to x."""
    h = 1e-6 * x
    return (f(x + h) - f(x - h)) / (2.0 * h)


@pytest.mark.parametrize(("prior", "reference"), PRIORS)
def test_the_log_density_is_scipys(prior, reference):
    x = inside(reference)
    np.testing.assert_allclose(prior.log_density(x), reference.logpdf(x), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("prior", "reference"), PRIORS)
def test_the_mean_is_scipys(prior, reference):
    assert prior.mean == pytest.approx(reference.mean(), rel=1e-12)
    assert prior.mean > 0


@pytest.mark.parametrize(("prior", "reference"), PRIORS)
def test_the_gradient_is_the_slope_of_the_log_density(prior, reference):
    x = reference.ppf(np.array([0.01, 0.2, 0.5, 0.8, 0.99]))
    expected = slope(prior.log_density, x)
    assert prior.gradient(x).shape == x.shape
    np.testing.assert_allclose(prior.gradient(x), expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


def test_a_uniform_is_zero_outside_its_support():
    prior = Uniform(0.1, 0.3)
    assert prior.support == (0.1, 0.3)
    assert prior.log_density(np.array([0.0999, 0.3001])).tolist() == [-np.inf, -np.inf]
    assert np.isfinite(prior.log_density(np.array([0.1, 0.3]))).all()


# -- lengthscales that vary together ----------------------------------------------------------------------------------

SHARED = SharedLogNormal(0.8, shared_log_sd=0.7, log_sd=0.3)


def reference(d):
    """The same distribution over the logarithms."""
    covariance = 0.3**2 * np.eye(d) + 0.7**2 * np.ones((d, d))
    return stats.multivariate_normal(np.full(d, math.log(0.8)), covariance)


@pytest.mark.parametrize("d", [1, 2, 5, 40])
def test_the_shared_density_is_that_of_correlated_logarithms(d):
    rng = np.random.default_rng(d)
    for x in np.exp(rng.normal(0.0, 0.7, (5, d))):
        density = SHARED.log_density(x)
        assert density.shape == ()
        assert density == pytest.approx(reference(d).logpdf(np.log(x)), rel=1e-10)


@pytest.mark.parametrize("d", [1, 2, 5, 40])
def test_the_shared_gradient_is_the_slope_of_the_log_density(d):
    x = np.exp(np.random.default_rng(d).normal(0.0, 0.7, d))
    expected = [slope(lambda v, j=j: SHARED.log_density(np.where(np.arange(d) == j, v, x)), x[j]) for j in range(d)]
    np.testing.assert_allclose(SHARED.gradient(x), expected, rtol=1e-5, atol=1e-6)


def test_the_shared_support_is_four_standard_deviations_of_the_whole():
    low, high = SHARED.support
    assert math.log(high / 0.8) == pytest.approx(4.0 * math.hypot(0.7, 0.3))
    assert math.log(low / 0.8) == pytest.approx(-4.0 * math.hypot(0.7, 0.3))


# -- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "arguments", "words"),
    [
        (Uniform, (0.3, 0.1), "lower must be below upper, got 0.3 and 0.1"),
        (Uniform, (-0.1, 0.1), "Uniform.lower: expected a non-negative"),
        (Normal, (0.0, 1.0), "Normal.centre: expected a positive"),
        (LogNormal, (1.0, math.nan), "LogNormal.log_sd: expected a positive"),
        (SharedLogNormal, (0.0, 1.0, 1.0), "SharedLogNormal.median: expected a positive"),
        (SharedLogNormal, (1.0, 1.0, None), "SharedLogNormal.log_sd: expected a number, got None"),
    ],
)
def test_mistakes_are_named(kind, arguments, words):
    with pytest.raises(InputError, match=words):
        kind(*arguments)
