"""What a Gymnasium environment may be, and an episode in it."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from tiny_environments import Drift, Scripted

from gibo import InputError, MissingExtraError, NumericalError
from gibo.policies import Affine, ContinuousActions, DiscreteActions, Policy, Statistics, Task, rollout


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("CartPoole-v1", "environment CartPoole-v1: .*CartPoole.* doesn't exist"),
        ("no_such_module:Thing-v0", "environment no_such_module:Thing-v0: .*No module named 'no_such_module'"),
    ],
)
def test_an_unknown_id_is_refused_in_one_line(name, words):
    with pytest.raises(InputError, match=words):
        Task(name)


@pytest.mark.parametrize(
    ("library", "extra", "error"),
    [
        ("box2d", "box2d", gymnasium.error.DependencyNotInstalled("Box2D is not installed,\nrun `pip install`")),
        ("mujoco", "mujoco", gymnasium.error.DependencyNotInstalled("MuJoCo is not installed, run this")),
        ("imageio", "mujoco", ModuleNotFoundError("No module named 'imageio'", name="imageio")),
    ],
)
def test_what_is_not_installed_is_named(library, extra, error):
    def made():
        raise error

    with pytest.raises(MissingExtraError, match=rf" needs {library}, .*: pip install 'gibo\[{extra}\]'$"):
        Task(made)


@pytest.mark.parametrize("missing", ["gymnasium", "mujoco"])
def test_without_a_library_the_message_says_what_to_install(missing):
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "import gibo\nfrom gibo.policies import Task\n"
        "try:\n    Task('Hopper-v5')\nexcept gibo.MissingExtraError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert f"needs {missing}, which is not installed: pip install" in done.stdout, done.stderr


BOX = spaces.Box(-1.0, 1.0, (2,), np.float32)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"observation_space": spaces.Dict(a=BOX)}, "observation space .*: not supported; expected a Box"),
        ({"observation_space": spaces.Box(-1.0, 1.0, (0,))}, "observation space .*: not supported; expected a Box"),
        ({"action_space": spaces.Dict(a=BOX)}, "action space .*: not supported; expected Discrete or a Box"),
        ({"action_space": spaces.Box(0, 5, (2,), np.int64)}, "action space .*: not supported; expected Discrete"),
        ({"action_space": spaces.Box(-1.0, 1.0, (0,))}, "action space .*: not supported; expected Discrete"),
    ],
)
def test_other_spaces_are_refused_by_name(given, words):
    with pytest.raises(InputError, match=words):
        Task(lambda: Scripted(**given))


@pytest.mark.parametrize("made", [lambda: 3, lambda: gymnasium.make_vec("CartPole-v1", num_envs=2)])
def test_what_a_function_makes_must_be_one_environment(made):
    with pytest.raises(InputError, match=r"^environment: expected one environment of Gymnasium, got"):
        Task(made)


def drift_policy(seed=0):
    return Policy(
        Affine(2, 2), np.random.default_rng(seed).standard_normal(6), ContinuousActions([-1.0] * 2, [1.0] * 2)
    )


def zero(_):
    return 0


def added_up(rewards):
    """One after the other; from Python 3.12 on `sum` compensates rounding."""
    total = 0.0
    for reward in rewards:
        total += reward
    return total


@pytest.mark.parametrize("seed", range(3))
def test_an_episode_equals_a_loop_written_out(seed):
    environment, policy = Drift(), drift_policy(seed)
    episode = rollout(environment, policy, seed=seed, collect=True)

    twin = Drift()
    observation, _ = twin.reset(seed=seed)
    rewards, states, terminated, truncated = [], [], False, False
    while not (terminated or truncated):
        states.append(observation)
        observation, reward, terminated, truncated, _ = twin.step(policy(observation))
        rewards.append(reward)
    assert episode.value == added_up(rewards)
    assert episode.shaped == episode.value
    assert episode.steps == len(rewards)
    assert (episode.terminated, episode.truncated) == (terminated, truncated)
    expected = Statistics.of(states)
    assert episode.statistics.count == len(states) == episode.steps  # the last observation is not among them
    np.testing.assert_allclose(episode.statistics.mean, expected.mean, rtol=1e-13)
    np.testing.assert_allclose(episode.statistics.m2, expected.m2, rtol=1e-13)
    assert [a.tolist() for a in environment.taken] == [a.tolist() for a in twin.taken]
    assert environment.seeds == [seed]


def test_rewards_are_shifted_and_scaled_for_the_optimiser_only():
    episode = rollout(Scripted((1.0, 2.0, 4.0)), zero, reward_shift=0.5, reward_scale=10.0)
    assert episode.value == 7.0
    assert episode.shaped == pytest.approx(sum((r - 0.5) * 10.0 for r in (1.0, 2.0, 4.0)))


@pytest.mark.parametrize(
    ("max_steps", "steps", "terminated", "truncated"),
    [(1, 1, False, True), (2, 2, False, True), (3, 3, True, False), (9, 3, True, False), (None, 3, True, False)],
)
def test_an_episode_can_be_cut_off(max_steps, steps, terminated, truncated):
    episode = rollout(Scripted(), zero, max_steps=max_steps, collect=True)
    assert (episode.steps, episode.terminated, episode.truncated) == (steps, terminated, truncated)
    assert episode.statistics.count == steps
    assert episode.statistics.mean.tolist() == [np.arange(steps).mean()]


@pytest.mark.parametrize("reward", [np.nan, np.inf, -np.inf])
def test_a_return_that_is_not_finite_is_a_numerical_error(reward):
    with pytest.raises(NumericalError, match=r"the episode's return is (nan|inf|-inf) after 2 steps"):
        rollout(Scripted((1.0, reward)), zero)


def test_a_policy_for_other_observations_is_refused():
    policy = Policy(Affine(3, 1), np.zeros(4), DiscreteActions(2))
    with pytest.raises(InputError, match=r"made for observations of shape \(3,\), the environment gave \(1,\)"):
        rollout(Scripted(), policy)


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1", "Acrobot-v1", "MountainCarContinuous-v0"])
def test_actions_are_what_an_environment_takes(name):
    rng = np.random.default_rng(0)
    with Task(name, max_steps=20) as task, task.environment() as environment:
        policy = task.bind(rng.standard_normal(task.d))
        environment.reset(seed=0)
        for _ in range(5):
            action = policy(rng.standard_normal(task.observation_shape))
            assert environment.action_space.contains(action)
            environment.step(action)
