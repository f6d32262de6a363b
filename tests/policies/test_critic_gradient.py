"""A critic's gradient, on problems where the gradient is known."""

import numpy as np
import pytest
from test_policy_gradient import LinearGaussian, OneStep, differences

import gibo
from gibo import InputError
from gibo.policies import CriticGradient, Normalization, Task
from gibo.policies.critic_gradient import _Features

THETA = np.array([0.3, 0.2])


def one_step(**options):
    return CriticGradient(Task(OneStep, policy="linear"), noise=0.4, **options)


def after(objective, theta, episodes, spread=0.0, **options):
    """The last outcome, after episodes around theta."""
    rng = np.random.default_rng(1)
    for seed in range(episodes - 1):
        objective(theta + spread * rng.standard_normal(len(theta)), seed=seed, kind="query", **options)
    return objective(theta, seed=episodes, **options)


def test_one_step():
    """The reward is the critic: −(u − 1)², and episodes that ended have nothing after them."""
    outcome = after(one_step(memory=60), THETA, 60)
    expected = -2.0 * (THETA @ OneStep.s - 1.0) * OneStep.s
    np.testing.assert_allclose(outcome.gradient, expected, rtol=0.25)
    assert (np.abs(outcome.gradient - expected) < 4.0 * np.sqrt(outcome.gradient_noise)).all()
    assert (np.sqrt(outcome.gradient_noise) < np.abs(expected)).all()


def test_linear_gaussian_control_with_episodes_of_other_parameters():
    """Its horizon is not the critic's, so direction and size are right only roughly."""
    theta = np.array([0.2, 0.1])
    objective = CriticGradient(Task(LinearGaussian, policy="linear"), noise=0.3, memory=60, discount=0.8)
    outcome = after(objective, theta, 60, spread=0.2)
    expected = differences(lambda t: LinearGaussian.expected_return(t, 0.3), theta)
    cosine = outcome.gradient @ expected / np.linalg.norm(outcome.gradient) / np.linalg.norm(expected)
    assert cosine > 0.9
    assert 0.3 < np.linalg.norm(outcome.gradient) / np.linalg.norm(expected) < 3.0


def test_normalized_states_are_seen_by_the_policy_alone():
    """With normalised states (s − 1)/2 the gradient is by what the policy sees."""
    seen = (OneStep.s - 1.0) / 2.0
    normalization = Normalization(np.array([1.0, 1.0]), np.array([2.0, 2.0]))
    outcome = after(one_step(memory=60), THETA, 60, normalization=normalization)
    np.testing.assert_allclose(outcome.gradient, -2.0 * (THETA @ seen - 1.0) * seen, rtol=0.25)


def test_it_costs_no_episodes_and_comes_once_there_are_enough():
    objective = one_step(memory=6)
    outcomes = [objective(THETA, seed=seed) for seed in range(5)]
    assert [outcome.gradient is not None for outcome in outcomes] == [False, False, False, True, True]
    assert {outcome.info["episodes"] for outcome in outcomes} == {1}
    assert objective(THETA, seed=9, kind="query").gradient is None


def test_only_the_last_episodes_are_remembered():
    old, new = one_step(memory=5), one_step(memory=5)
    for seed in range(4):
        old(THETA + 3.0, seed=50 + seed)
    same = [[objective(THETA, seed=seed) for seed in range(6)][-1] for objective in (old, new)]
    assert same[0].gradient.tolist() == same[1].gradient.tolist()


def test_a_policy_that_is_held_at_a_bound_has_no_gradient():
    task = Task(OneStep, policy="linear", environment_options={"low": 5.0})
    assert after(CriticGradient(task, noise=0.4), THETA, 6).gradient is None


def test_slopes_of_the_features_are_differences():
    rng = np.random.default_rng(0)
    states, actions = rng.normal(size=(9, 3)), rng.normal(size=(9, 2))
    phi = _Features.drawn(states, actions, 7, rng)
    assert phi(states, actions).shape == (9, 1 + 5 + 7)
    for j, step in enumerate(1e-5 * np.eye(2)):
        numerical = (phi(states, actions + step) - phi(states, actions - step)) / 2e-5
        np.testing.assert_allclose(phi.by_action(states, actions)[:, j], numerical, atol=1e-8)


def test_gibo_goes_up_with_it():
    with one_step() as objective:
        result = gibo.maximize(objective, np.zeros(2), budget=30, scale=0.3, settings=gibo.Settings(M=2))
    assert float(result.x @ OneStep.s) == pytest.approx(1.0, abs=0.4)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"memory": 3}, "memory: .* at least 4"), ({"discount": 1.0}, "between 0 and 1"), ({"features": 0}, "features")],
)
def test_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        one_step(**options)
