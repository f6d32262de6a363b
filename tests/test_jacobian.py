import numpy as np
import pytest
from scipy.stats import chi2

from gibo import Jacobian

# -- probability of ascent --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_the_probability_of_ascent_is_that_of_sampled_gradients(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(3, 3))
    mean, covariance, step = 0.5 * rng.normal(size=3), A @ A.T, rng.normal(size=3)
    gradients = rng.multivariate_normal(mean, covariance, size=40_000)
    sampled = (gradients @ step > 0).mean()
    assert Jacobian(mean, covariance).probability_of_ascent(step) == pytest.approx(sampled, abs=0.01)


def test_the_probability_of_ascent_at_the_edges():
    one, certain = np.ones(2), np.zeros((2, 2))
    assert Jacobian(one, np.eye(2)).probability_of_ascent(np.zeros(2)) == 0.5
    assert Jacobian(np.zeros(2), np.eye(2)).probability_of_ascent(one) == 0.5
    assert Jacobian(one, certain).probability_of_ascent(one) == 1.0
    assert Jacobian(one, certain).probability_of_ascent(-one) == 0.0
    assert Jacobian(np.zeros(2), certain).probability_of_ascent(one) == 0.5


# -- certainty --------------------------------------------------------------------------------------------------------


def some(d, seed=0, size=1.0):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(d, d))
    return Jacobian(size * rng.normal(size=d), A @ A.T + 0.1 * np.eye(d))


@pytest.mark.parametrize("d", [1, 2, 5, 30, 200])
def test_the_certainty_is_the_credible_level_at_zero(d):
    for seed in range(3):
        mean, covariance = some(d, seed)
        assert Jacobian(mean, covariance).certainty() == pytest.approx(
            chi2(d).cdf(mean @ np.linalg.solve(covariance, mean)), abs=1e-9
        )


@pytest.mark.parametrize("unit", [1e-90, 1e-6, 1e90])
def test_the_certainty_does_not_depend_on_the_unit_of_the_objective(unit):
    mean, covariance = some(3)
    assert Jacobian(unit * mean, unit**2 * covariance).certainty() == pytest.approx(some(3).certainty(), rel=1e-12)


def test_the_certainty_at_the_edges():
    one, certain = np.ones(2), np.zeros((2, 2))
    assert Jacobian(np.zeros(2), np.eye(2)).certainty() == 0.0
    assert Jacobian(np.zeros(2), certain).certainty() == 0.0
    assert Jacobian(one, certain).certainty() == 1.0
    assert Jacobian(1e6 * one, 1e-12 * np.eye(2)).certainty() == 1.0
    assert Jacobian(1e-300 * one, np.eye(2)).certainty() == 0.0  # a mean that is left far from all data
    assert Jacobian(one, np.ones((2, 2))).certainty() == pytest.approx(chi2(2).cdf(1.0), rel=1e-6)  # singular
