import functools

import numpy as np
import pytest
from scipy.optimize import minimize

from gibo import _linalg as linalg
from gibo.kernels import SquaredExponential
from gibo.optimizers.paper import lengthscale_distribution
from gibo_studies.paper.problems import gp_function

function = functools.cache(gp_function)


@pytest.mark.parametrize("d", [2, 4, 8])
def test_it_interpolates_an_exact_sample_at_1000_points(d):
    f, distribution = function(d, 0), lengthscale_distribution(d)
    assert ((f.lengthscale >= distribution.lower) & (f.lengthscale <= distribution.upper)).all()
    assert f.X.shape == (1000, d)
    assert f.X.min() >= 0.0
    assert f.X.max() <= 1.0
    K = SquaredExponential(f.lengthscale).k(f.X, f.X)
    L, jitter = linalg.cholesky(K)
    assert jitter < 1e-8
    z = L.T @ f.weights  # the weights are L⁻ᵀ z, the sample is L z
    assert z.mean() == pytest.approx(0.0, abs=0.15)
    assert z.std() == pytest.approx(1.0, abs=0.1)
    values = np.array([f(x) for x in f.X])
    # What the jitter takes away: jitter·weights.
    np.testing.assert_allclose(values, L @ z, atol=1e-4)


@pytest.mark.parametrize("d", [2, 4, 8])
def test_the_optimum_is_the_highest_point_of_the_cube(d):
    f = function(d, 0)
    assert ((f.x_best >= 0.0) & (f.x_best <= 1.0)).all()
    assert f(f.x_best) == pytest.approx(f.f_best, rel=1e-12)
    assert f.regret(f.x_best) == pytest.approx(0.0, abs=1e-12)
    points = np.vstack([np.random.default_rng(0).random((2000, d)), f.X])
    assert min(f.regret(x) for x in points) >= 0.0


@pytest.mark.parametrize(("d", "seed"), [(2, 0), (8, 0)])
def test_no_climb_from_elsewhere_ends_higher(d, seed):
    f = function(d, seed)
    starts = np.random.default_rng(2).random((60, d))
    climbs = [
        minimize(lambda x: -f(x), start, jac=lambda x: -f.gradient(x), bounds=[(0.0, 1.0)] * d) for start in starts
    ]
    assert max(-climb.fun for climb in climbs) <= f.f_best + 1e-4


def test_observations_have_a_noise_of_a_tenth():
    f, rng = function(2, 0), np.random.default_rng(0)
    noise = np.array([f.observe([0.4, 0.7], rng) for _ in range(4000)]) - f([0.4, 0.7])
    assert noise.std() == pytest.approx(0.1, rel=0.05)
    assert noise.mean() == pytest.approx(0.0, abs=0.006)
    assert f.observe([0.4, 0.7], np.random.default_rng(3)) == f.observe([0.4, 0.7], np.random.default_rng(3))


def test_its_gradient_against_differences():
    f, x, h = function(4, 1), np.array([0.3, 0.6, 0.5, 0.2]), 1e-6
    expected = [(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(4)]
    np.testing.assert_allclose(f.gradient(x), expected, rtol=1e-6, atol=1e-8)
