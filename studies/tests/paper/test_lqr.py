import math

import gymnasium
import numpy as np
import pytest

from gibo.errors import InputError
from gibo_studies.paper.control import LQR
from gibo_studies.paper.control.lqr import LIMIT
from gibo_studies.paper.control.lqr_env import LQREnv

PAPER = LQR.paper()


def other():
    """Another instance: two inputs, nothing diagonal, W singular."""
    rng = np.random.default_rng(5)
    A, B = 0.5 * rng.standard_normal((4, 4)), rng.standard_normal((4, 2))
    Q, R, W = (root @ root.T for root in (rng.standard_normal((4, 4)), np.eye(2) + 0.3, rng.standard_normal((4, 3))))
    return LQR(A, B, Q, R, W)


INSTANCES = [PAPER, other()]
BOTH = pytest.mark.parametrize("lqr", INSTANCES)


def near(lqr, seed, size=0.01):
    """A gain close to the optimal one, which stabilises."""
    K = lqr.optimal_gain + size * np.random.default_rng(seed).standard_normal((lqr.p, lqr.n))
    assert lqr.is_stable(K)
    return K


# -- exact costs ------------------------------------------------------------------------------------------------------


@BOTH
def test_cost_is_the_limit_of_the_expected_cost_of_a_step(lqr):
    K = near(lqr, 0)
    F, step_cost = lqr.A + lqr.B @ K, lqr.Q + K.T @ lqr.R @ K
    covariance = np.zeros((lqr.n, lqr.n))
    for _ in range(5000):  # Σ = W + F W Fᵀ + F² W F²ᵀ + …
        covariance = F @ covariance @ F.T + lqr.W
    assert lqr.cost(K) == pytest.approx(np.trace(step_cost @ covariance), rel=1e-10)


@BOTH
def test_no_gain_is_better_than_the_optimal_one_and_relative_cost_is_the_difference(lqr):
    best = lqr.cost(lqr.optimal_gain)
    assert best == pytest.approx(lqr.optimal_cost, rel=1e-10)
    assert lqr.relative_cost(lqr.optimal_gain) == 0.0
    np.testing.assert_allclose(lqr.cost_gradient(lqr.optimal_gain), 0.0, atol=1e-9 * best)
    for seed in range(5):
        K = near(lqr, seed)
        assert lqr.cost(K) > best
        assert lqr.relative_cost(K) == pytest.approx((lqr.cost(K) - best) / best, rel=1e-7)
    close, far = lqr.optimal_gain + 1e-9, lqr.optimal_gain + 1e-4
    # Close to it the difference of costs itself would be rounding errors only.
    assert lqr.relative_cost(close) == pytest.approx(1e-10 * lqr.relative_cost(far), rel=0.01)


@BOTH
def test_gradient_against_differences(lqr):
    K, h = near(lqr, 0), 1e-6
    differences = np.empty_like(K)
    for index in np.ndindex(*K.shape):
        step = np.zeros_like(K)
        step[index] = h
        differences[index] = (lqr.cost(K + step) - lqr.cost(K - step)) / (2 * h)
    gradient = lqr.cost_gradient(K)
    np.testing.assert_allclose(gradient, differences, rtol=1e-5, atol=1e-6 * np.abs(gradient).max())


def test_where_the_gain_does_not_stabilise():
    assert PAPER.cost(np.zeros(9)) == PAPER.relative_cost(np.zeros(9)) == math.inf
    with pytest.raises(InputError, match=r"only where K stabilises the system; the spectral radius is 1.024"):
        PAPER.cost_gradient(np.zeros(9))
    barely = LQR([[1.0]], [[1.0]], [[1.0]], [[1.0]], [[1.0]])
    assert barely.cost([[0.0]]) == math.inf  # ρ = 1
    assert barely.cost([[-1e-6]]) == pytest.approx(1 / 2e-6, rel=1e-3)
    assert barely.cost([[-1e-16]]) > 1e14  # a number or infinite, and no warning


# -- episodes ---------------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("factor", [0.0, 1.0, -3.0])  # unstable, stable, diverging fast
def test_fast_path_equals_the_slow_twin(lqr, factor):
    K, x0, rng = factor * lqr.optimal_gain, np.arange(1.0, lqr.n + 1), np.random.default_rng(4)
    w, e = rng.standard_normal((100, lqr.n)), rng.standard_normal((100, lqr.p))
    fast, slow = lqr._roll(K, x0, w, e), lqr._roll_step_by_step(K, x0, w, e)
    assert np.abs(fast[0]).max() < LIMIT
    for quick, twin in zip(fast, slow, strict=True):
        size = np.abs(twin).max(axis=1, keepdims=True)
        np.testing.assert_allclose(quick / size, twin / size, atol=1e-10)


@pytest.mark.parametrize("steps", [1, 2, 65])
def test_an_episode_follows_the_dynamics(steps):
    lqr = INSTANCES[1]
    K = near(lqr, 0)
    quiet, explored = lqr.simulate(K, steps, seed=2), lqr.simulate(K, steps, seed=2, exploration=0.3)
    rng, x, total = np.random.default_rng(2), np.zeros(4), 0.0
    for t in range(steps):
        w = lqr.disturbance(rng)
        np.testing.assert_allclose(quiet.states[t], x, atol=1e-10)
        u = K @ x
        total -= math.log(1.0 + x @ lqr.Q @ x + u @ lqr.R @ u)
        x = lqr.step(x, u, w)
        # With exploration, the same disturbance.
        after = lqr.A @ explored.states[t] + lqr.B @ explored.inputs[t] + w
        np.testing.assert_allclose(explored.states[t + 1], after, atol=1e-10)
    np.testing.assert_allclose(quiet.states[-1], x, atol=1e-10)
    assert lqr.episode_return(K, steps, seed=2) == pytest.approx(total, rel=1e-10)


def test_disturbances_and_exploration_have_their_covariances():
    lqr = INSTANCES[1]
    K = lqr.optimal_gain
    episode = lqr.simulate(K, 100_000, seed=1, exploration=2.0)
    e = episode.inputs - episode.states[:-1] @ K.T
    w = episode.states[1:] - episode.states[:-1] @ lqr.A.T - episode.inputs @ lqr.B.T
    np.testing.assert_allclose(np.cov(w.T), lqr.W, atol=0.02 * np.abs(lqr.W).max())
    np.testing.assert_allclose(np.cov(e.T), 4.0 * np.eye(2), atol=0.08)
    assert abs(np.corrcoef(e[:, 0], w[:, 0])[0, 1]) < 0.02


@pytest.mark.parametrize("scale", [1.0, 50.0, 1e99])
def test_an_episode_that_diverges_stays_finite(scale):
    K = scale * np.clip(np.random.default_rng(0).standard_normal((3, 3)), -1, 1)
    episode = PAPER.simulate(K, seed=0, exploration=1.0, x0=[1e119, -1e130, 0.0])
    assert all(np.isfinite(part).all() for part in (episode.states, episode.inputs, episode.costs))
    assert math.isfinite(PAPER.episode_return(K, seed=0))
    assert np.abs(episode.states).max() <= LIMIT


# -- the environment --------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*(Box|action space|infinity|spec).*")  # that spaces are unbounded
def test_gymnasiums_own_check():
    from gymnasium.utils.env_checker import check_env

    check_env(LQREnv(), skip_render_check=True)


@pytest.mark.parametrize("factor", [1.0, -50.0])  # the last one at the limit
def test_an_episode_of_the_environment_has_the_return_of_the_fast_path(factor):
    environment, K = gymnasium.make("gibo/LQR-v0"), factor * PAPER.optimal_gain
    x, total, steps, done = environment.reset(seed=7)[0], 0.0, 0, False
    while not done:
        x, reward, terminated, truncated, _ = environment.step(K @ x)
        total, steps, done = total + reward, steps + 1, terminated or truncated
    assert steps == 300
    assert total == pytest.approx(PAPER.episode_return(K, seed=7), rel=1e-9)


# -- wrong input ------------------------------------------------------------------------------------------------------

EYE = np.eye(2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"A": np.eye(3)}, r"A: expected shape \(2, 2\), as B has shape \(2, 2\), got \(3, 3\)"),
        ({"Q": [[1.0, 1.0], [0.0, 1.0]]}, "Q: expected a symmetric matrix"),
        ({"R": 0 * EYE}, "R: expected a positive definite matrix"),
        ({"A": 2 * EYE, "B": [[1.0, 0.0], [0.0, 0.0]]}, "no stabilising solution of the Riccati equation"),
        ({"A": EYE, "Q": 0 * EYE}, "no stabilising solution of the Riccati equation"),
    ],
)
def test_wrong_matrices(changes, message):
    with pytest.raises(InputError, match=message):
        LQR(**{"A": 0.5 * EYE, "B": EYE, "Q": EYE, "R": EYE, "W": EYE, **changes})
