"""The likelihood-ratio gradient, on problems where the gradient of the noisy policy's return is known."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from gibo import InputError
from gibo.policies import Normalization, Task
from gibo_studies.paper.policy_gradient import PolicyGradient, pull_back


class OneStep(gymnasium.Env):
    """The state is s, the reward −(a − 1)²: the noisy policy's return is −(θ·s − 1)² − sd²."""

    s = np.array([0.5, -1.0])

    def __init__(self, low=-np.inf):
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.action_space = spaces.Box(low, np.inf, (1,), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.s.copy(), {}

    def step(self, action):
        return self.s.copy(), -float((action[0] - 1.0) ** 2), True, False, {}


class Walk(OneStep):
    """Six steps with random states."""

    def reset(self, *, seed=None, options=None):
        self.t = 0
        return super().reset(seed=seed)

    def step(self, action):
        self.t += 1
        reward = -float((action[0] - 1.0) ** 2)
        return self.np_random.standard_normal(2), reward, False, self.t == 6, {}


class Falling(gymnasium.Env):
    """Ends with probability that depends on the action; every step is worth 1."""

    def __init__(self):
        self.observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float64)
        self.action_space = spaces.Box(-np.inf, np.inf, (1,), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.ones(1), {}

    def step(self, action):
        self.t += 1
        return np.ones(1), 1.0, bool(action[0] > 1.0), self.t == 4, {}

    @staticmethod
    def expected_return(theta, sd):
        """1 + p + p² + p³, where p is the probability to go on."""
        p = _normal_cdf((1.0 - theta) / sd)
        return 1.0 + p + p**2 + p**3


def _normal_cdf(x):
    from scipy.special import ndtr

    return float(ndtr(x))


def differences(f, theta, h=1e-4):
    theta = np.asarray(theta, dtype=float)
    return np.array([(f(theta + h * e) - f(theta - h * e)) / (2 * h) for e in np.eye(len(theta))])


def sample(objective, theta, seeds):
    outcomes = [objective(theta, seed=seed) for seed in range(seeds)]
    zero = np.zeros(objective.d)  # what was estimated where there is no gradient, because all rewards were alike
    gradients = np.array([zero if o.gradient is None else o.gradient for o in outcomes])
    noises = np.array([zero if o.gradient is None else o.gradient_noise for o in outcomes])
    return np.array([o.value for o in outcomes]), gradients, noises


def assert_unbiased(samples, expected):
    error = samples.mean(axis=0) - expected
    assert (np.abs(error) < 4.0 * samples.std(axis=0, ddof=1) / np.sqrt(len(samples))).all()


def test_one_step():
    theta, sd = np.array([0.3, 0.2]), 0.4
    objective = PolicyGradient(Task(OneStep, policy="linear"), noise=sd, episodes=6)
    values, gradients, noises = sample(objective, theta, 700)
    error = theta @ OneStep.s - 1.0
    assert_unbiased(values, -(error**2) - sd**2)
    assert_unbiased(gradients, -2.0 * error * OneStep.s)
    assert np.abs(gradients.mean(axis=0)).min() > 0.5  # so an estimate of nothing would not pass
    # What it says of its variance is on average (n − 1)/(n − 3) = 5/3 of it.
    ratio = noises.mean(axis=0) / gradients.var(axis=0)
    assert (ratio > 1.2).all()
    assert (ratio < 2.2).all()


def test_episodes_of_different_lengths():
    theta, sd = np.array([0.5]), 0.6
    objective = PolicyGradient(Task(Falling, policy="linear"), noise=sd, episodes=6)
    values, gradients, _ = sample(objective, theta, 700)
    assert_unbiased(values, Falling.expected_return(0.5, sd))
    assert_unbiased(gradients, differences(lambda t: Falling.expected_return(t[0], sd), theta))


def test_clipping_belongs_to_the_environment():
    # Actions below 0.8 are 0.8: the return of the noisy policy by quadrature.
    theta, sd = np.array([0.4, -0.6]), 0.4

    def expected(t):
        mean = t @ OneStep.s
        e = np.linspace(-8.0, 8.0, 20001)
        density = np.exp(-0.5 * e**2) / np.sqrt(2.0 * np.pi)
        return float(np.sum(-((np.maximum(mean + sd * e, 0.8) - 1.0) ** 2) * density) * (e[1] - e[0]))

    objective = PolicyGradient(Task(lambda: OneStep(low=0.8), policy="linear"), noise=sd, episodes=6)
    values, gradients, _ = sample(objective, theta, 700)
    assert_unbiased(values, expected(theta))
    assert_unbiased(gradients, differences(expected, theta, 1e-3))


@pytest.mark.parametrize("policy", ["affine", "mlp:4,3:relu"])
def test_the_score_is_that_of_the_normalised_policy(policy):
    """∇ log π against differences of log π, along a recorded episode."""
    task = Task(Walk, policy=policy)
    normalization = Normalization([0.3, -0.2], [2.0, 0.5])
    theta = task.x0(seed=1) + 0.1 * np.random.default_rng(0).standard_normal(task.d)
    (trace,) = PolicyGradient(task, noise=0.3).traces(theta, 1, seed=5, normalization=normalization)
    to_go = np.cumsum(trace.rewards[::-1])[::-1]

    def outputs(t):
        return np.array([task.bind(t, normalization)(s) for s in trace.states])

    actions = outputs(theta) + 0.3 * trace.noise

    def log_likelihood(t):
        return -0.5 * float((((actions - outputs(t)) / 0.3) ** 2).sum(axis=1) @ to_go)

    score = pull_back(task.architecture, theta, normalization(trace.states), trace.noise / 0.3 * to_go[:, None])
    np.testing.assert_allclose(score, differences(log_likelihood, theta, 1e-6), rtol=1e-5, atol=1e-5)


def test_noise_and_environment_have_streams_of_their_own():
    # With next to no noise the value is the task's own, with the task's seeds.
    task = Task(Walk, episodes=4)
    objective = PolicyGradient(task, noise=1e-9, episodes=4)
    assert objective(np.zeros(3), seed=3).value == pytest.approx(task(np.zeros(3), seed=3).value, rel=1e-6)


def test_what_an_outcome_says():
    task = Task(Walk, episodes=2, reward_scale=0.1, normalize_states=True)
    objective = PolicyGradient(task, noise=0.3, episodes=5)
    outcome = objective(np.zeros(3), seed=3)
    assert outcome.info["episodes"] == 5
    assert outcome.info["steps"] == 5 * 6
    assert outcome.value == pytest.approx(0.1 * outcome.info["return"])
    assert outcome.info["statistics"]["count"] == 5 * 6
    query = objective(np.zeros(3), seed=3, kind="query")
    assert query.gradient is None
    assert query.info["episodes"] == 2


def test_what_is_not_known_is_not_taken_for_known():
    # The first state is always zero here, so nothing is learnt about its weight.
    task = Task(ZeroState, policy="linear")
    outcome = PolicyGradient(task, noise=0.3)(np.zeros(2), seed=0)
    assert outcome.gradient[0] == 0.0
    assert outcome.gradient_noise[0] == outcome.gradient_noise[1] > 0.0
    # Rewards that do not depend on anything: there is no gradient.
    assert PolicyGradient(Task(Scentless, policy="linear"), noise=0.3)(np.zeros(2), seed=0).gradient is None


class ZeroState(OneStep):
    s = np.array([0.0, 1.0])


class Scentless(OneStep):
    def step(self, action):
        return self.s.copy(), 1.0, True, False, {}


def test_arguments_are_checked():
    for arguments in ({"noise": [0.1, 0.2]}, {"noise": 0.1, "episodes": 3}, {"noise": 0.1, "at": ("iterates",)}):
        with pytest.raises(InputError, match=f"{[*arguments][-1]}: "):
            PolicyGradient(Task(OneStep), **arguments)


def test_a_gradient_too_large_for_a_float_is_left_out_and_its_value_kept():
    outcome = PolicyGradient(Task(Walk), noise=1e-200)(np.zeros(3), seed=1)
    assert np.isfinite(outcome.value)
    assert outcome.gradient is None
