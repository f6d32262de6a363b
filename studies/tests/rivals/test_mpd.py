"""The most probable ascent and what a value adds to it: against samples, dense algebra and central differences."""

import math

import numpy as np
import pytest

from gibo import GaussianProcess, Matern52, SquaredExponential
from gibo.gp import Jacobian
from gibo_studies.rivals.mpd import ExpectedAscent, most_probable_ascent


def beliefs(d, seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(d, d))
    return Jacobian(rng.normal(size=d), A @ A.T / d + 0.1 * np.eye(d)), rng


def test_no_other_direction_is_surer():
    jacobian, rng = beliefs(5, 0)
    direction, probability = most_probable_ascent(jacobian)
    others = [*rng.normal(size=(500, 5)), jacobian.mean, *(direction + 0.01 * rng.normal(size=(50, 5)))]
    assert max(jacobian.probability_of_ascent(each) for each in others) <= probability + 1e-12
    assert jacobian.probability_of_ascent(direction) == pytest.approx(probability, rel=1e-12)
    assert jacobian.probability_of_ascent(jacobian.mean) < probability - 0.001


def test_nothing_known_and_all_known_and_the_size_of_the_gradient_does_not_matter():
    assert most_probable_ascent(Jacobian(np.zeros(2), np.eye(2))).probability == 0.5
    direction, probability = most_probable_ascent(Jacobian(np.array([2.0, 0.0]), np.zeros((2, 2))))
    assert probability == 1.0
    assert direction[0] > 0.0 == direction[1]
    jacobian, _ = beliefs(3, 1)
    for size in (1e-30, 1e30):
        scaled = Jacobian(jacobian.mean * size, jacobian.covariance * size**2)
        assert most_probable_ascent(scaled).probability == pytest.approx(most_probable_ascent(jacobian).probability)


def model(kernel):
    rng = np.random.default_rng(3)
    X = rng.uniform(-1.0, 1.0, (6, 3))
    return GaussianProcess(kernel, noise=0.05).condition(X, rng.normal(size=6)), rng


KERNELS = [SquaredExponential(np.array([0.7, 1.1, 1.6]), 1.3), Matern52(np.array([0.9, 1.2, 0.8]), 0.8)]


@pytest.mark.parametrize("kernel", KERNELS, ids=["se", "matern"])
def test_alpha_is_what_a_value_adds_on_average(kernel):
    """Against the posterior made anew for values drawn from the model, which is dense algebra of another kind."""
    gp, _ = model(kernel)
    t, x = np.array([0.1, -0.2, 0.3]), np.array([0.5, 0.4, -0.6])

    def certainty(gp):
        mean, covariance = gp.jacobian(t)
        return float(mean @ np.linalg.solve(covariance, mean))

    mean, variance = gp.predict(x)
    # Gauss and Hermite: exact, because the certainty after a value is a quadratic function of it.
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)
    after = [certainty(gp.extend(x, mean + math.sqrt(variance + gp.noise) * node)) for node in nodes]
    expected = float(weights @ after) / weights.sum() - certainty(gp)
    assert ExpectedAscent(gp, t).value_and_gradient(x)[0] == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("kernel", KERNELS, ids=["se", "matern"])
def test_the_gradient_and_the_batch(kernel):
    gp, rng = model(kernel)
    acquisition = ExpectedAscent(gp, np.array([0.1, -0.2, 0.3]))
    for x in rng.uniform(-1.0, 1.0, (5, 3)):
        value, gradient = acquisition.value_and_gradient(x)
        assert acquisition(x[None])[0] == pytest.approx(value, rel=1e-10)
        h = 1e-5
        differences = [
            (acquisition((x + h * e)[None])[0] - acquisition((x - h * e)[None])[0]) / (2 * h) for e in np.eye(3)
        ]
        assert gradient.tolist() == pytest.approx(differences, rel=1e-5, abs=1e-7)
