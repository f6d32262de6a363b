import math

import numpy as np
import pytest
from scipy import stats

from dense import differences
from gibo import InputError
from gibo.priors import LogNormal, Normal, SharedLogNormal, Uniform

# A prior and the same distribution by SciPy.
PRIORS = [
    (Uniform(0.1, 0.3), stats.uniform(0.1, 0.2)),
    (Uniform(0.0, 2.5), stats.uniform(0.0, 2.5)),
    (Normal(20.0, 5.0), stats.norm(20.0, 5.0)),
    (LogNormal(0.3, 0.7), stats.lognorm(0.7, scale=0.3)),
    (LogNormal(4.0, 1.5), stats.lognorm(1.5, scale=4.0)),
]


@pytest.mark.parametrize(("prior", "reference"), PRIORS, ids=[repr(prior) for prior, _ in PRIORS])
def test_a_prior_is_scipys(prior, reference):
    x = reference.ppf(np.array([1e-4, 0.01, 0.2, 0.5, 0.8, 0.99, 0.9999]))
    np.testing.assert_allclose(prior.log_density(x), reference.logpdf(x), rtol=1e-10, atol=1e-12)
    assert prior.mean == pytest.approx(reference.mean(), rel=1e-12)
    slopes = differences(prior.log_density, x, 1e-6 * x).diagonal()
    inside = slice(1, -1)
    scale = 1e-6 * np.abs(slopes[inside]).max()
    np.testing.assert_allclose(prior.gradient(x)[inside], slopes[inside], rtol=1e-5, atol=scale)


def test_a_uniform_is_zero_outside_its_support():
    prior = Uniform(0.1, 0.3)
    assert prior.support == (0.1, 0.3)
    assert prior.log_density(np.array([0.0999, 0.3001])).tolist() == [-np.inf, -np.inf]
    assert np.isfinite(prior.log_density(np.array([0.1, 0.3]))).all()


@pytest.mark.parametrize("d", [1, 2, 5, 40])
def test_shared_lengthscales_have_correlated_logarithms(d):
    prior = SharedLogNormal(0.8, shared_log_sd=0.7, log_sd=0.3)
    covariance = 0.3**2 * np.eye(d) + 0.7**2 * np.ones((d, d))
    reference = stats.multivariate_normal(np.full(d, math.log(0.8)), covariance)
    for x in np.exp(np.random.default_rng(d).normal(0.0, 0.7, (5, d))):
        density = prior.log_density(x)
        assert density.shape == ()
        assert density == pytest.approx(reference.logpdf(np.log(x)), rel=1e-10)
        slopes = differences(prior.log_density, x, 1e-6 * x)
        np.testing.assert_allclose(prior.gradient(x), slopes, rtol=1e-5, atol=1e-6)
    # Its support is four standard deviations of the whole.
    assert [math.log(end / 0.8) for end in prior.support] == pytest.approx(
        [-4.0 * math.hypot(0.7, 0.3)] * 1 + [4.0 * math.hypot(0.7, 0.3)]
    )


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
