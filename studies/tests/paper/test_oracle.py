"""The expected return of a gain and its gradient, against episodes, quadrature and differences."""

import numpy as np
import pytest

from gibo_studies.paper.control.lqr import LQR
from gibo_studies.paper.control.oracle import LQRObjective, expected_return

PAPER = LQR.paper()


def small():
    """Two states, one input, and a disturbance in one direction only."""
    A, B = np.array([[1.05, 0.2], [-0.1, 0.8]]), np.array([[0.1], [1.0]])
    return LQR(A, B, np.diag([1.0, 0.2]), np.array([[0.5]]), np.outer([1.0, 0.3], [1.0, 0.3]))


def gains():
    rng = np.random.default_rng(0)
    return {
        "unstable": (PAPER, np.zeros((3, 3)), 40),
        "near the optimum": (PAPER, PAPER.optimal_gain + 0.02 * rng.standard_normal((3, 3)), 300),
        "one input": (small(), np.array([[-0.4, -0.3]]), 12),
    }


@pytest.mark.parametrize(("lqr", "K", "steps"), gains().values(), ids=list(gains()))
def test_the_gradient_against_differences(lqr, K, steps):
    value, gradient = expected_return(lqr, K, steps)
    assert gradient.shape == K.shape
    h = 1e-5
    for i in np.ndindex(K.shape):
        E = np.zeros(K.shape)
        E[i] = h
        slope = (expected_return(lqr, K + E, steps).value - expected_return(lqr, K - E, steps).value) / (2 * h)
        assert gradient[i] == pytest.approx(slope, rel=1e-5, abs=1e-5 * np.abs(gradient).max())
    assert expected_return(lqr, K.ravel(), steps).value == value


@pytest.mark.parametrize(("lqr", "K", "steps"), gains().values(), ids=list(gains()))
def test_the_value_is_the_mean_over_episodes(lqr, K, steps):
    returns = np.array([lqr.episode_return(K, steps, seed=seed) for seed in range(800)])
    error = returns.mean() - expected_return(lqr, K, steps).value
    assert abs(error) < 4.0 * returns.std() / np.sqrt(len(returns))
    assert returns.std() > 0.0


# -- the objective ----------------------------------------------------------------------------------------------------

STABLE = (-0.3 * np.eye(3)).ravel()


def test_a_gradient_comes_at_stable_iterates_only():
    objective = LQRObjective(PAPER, noise=2.0, steps=20)
    assert objective(STABLE, seed=1).gradient is None
    assert objective(np.zeros(9), seed=1, kind="iterate").gradient is None
    assert LQRObjective(PAPER, steps=20)(STABLE, seed=1, kind="iterate").gradient is None


def test_value_and_noise():
    objective = LQRObjective(PAPER, noise=2.0, steps=20)
    outcomes = [objective(STABLE, seed=seed, kind="iterate") for seed in range(60)]
    assert [o.value for o in outcomes] == [PAPER.episode_return(STABLE, 20, seed=seed) for seed in range(60)]
    errors = np.array([o.gradient for o in outcomes]) - expected_return(PAPER, STABLE, 20).gradient.ravel()
    assert errors.std() == pytest.approx(2.0, rel=0.1)
    assert abs(errors.mean()) < 4.0 * 2.0 / np.sqrt(errors.size)
    assert {o.gradient_noise for o in outcomes} == {4.0}
