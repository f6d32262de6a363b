"""A likelihood-ratio policy gradient as an observation of the objective's gradient (Müller et al. 2021, algorithm 1,
line 10: "optionally use a policy gradient method for additional derivative observations").

Symbols
-------
n, T        episodes of one evaluation; steps of one episode
theta (d,)  the policy's parameters;  a(s) (m,) what it computes in the state s
sd (m,)     standard deviation of the noise on each output
e_t (m,)    ~ N(0, I); the action taken is ``u_t = a(s_t) + sd·e_t``, and only then clipped to the environment's bounds
r_t, R_t    the shaped reward of a step; the reward to go, ``R_t = r_t + r_{t+1} + …``
b_t         the baseline: what R_t was on average in the other episodes that were still running; so it does not depend
            on the episode's own actions, and the estimate is unbiased

The noisy policy has the density ``π(u|s) = N(u; a(s), sd²)``, clipping being part of the environment, and the gradient
of its expected return is (Williams 1992; Sutton and Barto 2018, chapter 13)

    ∇J = E Σ_t ∇ log π(u_t|s_t) (R_t − b_t),     ∇ log π(u_t|s_t) = (∂a(s_t)/∂theta)ᵀ (e_t/sd)
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gibo._checks import as_finite, instance, natural, one_of, positive_int, shown
from gibo._linalg import Array, single_thread
from gibo.errors import InputError
from gibo.outcome import Outcome
from gibo.policies.architecture import MLP, Architecture
from gibo.policies.environment import Episode
from gibo.policies.normalizer import Normalization
from gibo.policies.policy import Act, ContinuousActions
from gibo.policies.task import Task, unbounded

KINDS = ("iterate", "query")
# With fewer episodes, their spread says too little about the variance of their mean.
FEWEST_EPISODES = 4


class Trace(NamedTuple):
    """An episode of the noisy policy, step by step."""

    episode: Episode
    states: Array  # (T, k) flattened, as the environment gave them
    noise: Array  # (T, m) e_t
    rewards: Array  # (T,) shaped


class Estimate(NamedTuple):
    """A gradient (d,) and the variance of each of its entries (d,)."""

    gradient: Array
    noise: Array


class PolicyGradient:
    """A task whose outcomes come with a gradient: that of the policy with Gaussian noise on its actions.

    The objective is the expected shaped return of the *noisy* policy, everywhere: an evaluation's value is the mean of
    its noisy episodes, so that values and gradients belong to one function. It is a smoothed version of the task's own
    objective; the smaller the noise, the closer they are, and the noisier the gradient. The policy that is found acts
    without noise in the end.

    An evaluation with a gradient costs `episodes` episodes, which ``info["episodes"]`` counts; one without costs
    the task's.

    Args:
        task: with continuous actions.
        noise: standard deviation of the noise on the policy's outputs, before they are clipped: a number, or one per
            output.
        episodes: n, for a gradient; at least 4.
        at: the kinds of queries that get a gradient; see `gibo.maximize`. By default the iterates alone.

    The variance of each entry is estimated from the spread of the n episodes' own estimates, s²/n, times
    (n − 1)/(n − 3): the error of a mean in units of an estimated standard deviation has Student's distribution, and
    that is its variance. An entry in which the episodes do not differ at all (a state that was always zero) is not
    taken for exactly known: it gets the largest variance of all entries. If they differ in no entry (all rewards
    alike), or the variance is beyond the largest float, the outcome has no gradient.

    Example:
        >>> from gibo.policies import Task
        >>> objective = PolicyGradient(Task("Pendulum-v1", policy="affine"), noise=0.3, episodes=4)
        >>> outcome = objective([0.0, 0.0, 0.0, 0.0], seed=1)
        >>> outcome.gradient.shape, outcome.info["episodes"], outcome.info["steps"]
        ((4,), 4, 800)
        >>> objective.close()
    """

    def __init__(
        self, task: Task, *, noise: npt.ArrayLike, episodes: int = 8, at: Collection[str] = ("iterate",)
    ) -> None:
        instance("task", task, Task, "a gibo.policies.Task")
        if not isinstance(task.actions, ContinuousActions) or task.action_noise:
            raise InputError(
                "task: expected continuous actions, to which noise is added, and no action_noise of the task's own"
            )
        self.task = task
        m = task.architecture.outputs
        sd = as_finite("noise", noise)
        if sd.shape not in ((), (m,)) or not (sd > 0.0).all():
            raise InputError(f"noise: expected a positive standard deviation, or {m} of them, got {shown(noise)}")
        self.noise = np.broadcast_to(sd, (m,)).copy()
        self.episodes = positive_int("episodes", episodes)
        if self.episodes < FEWEST_EPISODES:
            raise InputError(f"episodes: a gradient's variance needs at least {FEWEST_EPISODES}, got {episodes}")
        self.at = tuple(at)
        for kind in self.at:
            one_of("at", kind, KINDS)

    @property
    def d(self) -> int:
        return self.task.d

    def x0(self, seed: int | None = None) -> Array:
        """(d,) where to start; see `Task.x0`."""
        return self.task.x0(seed)

    def __call__(
        self,
        theta: npt.ArrayLike,
        *,
        seed: int = 0,
        kind: str = "iterate",
        normalization: Normalization | None = None,
    ) -> Outcome:
        """Evaluate parameters (d,), with a gradient if queries of this kind get one; ``info`` also counts the episodes.

        The environment of episode e gets the seed that `Task` gives it, and the noise on its actions one of its own.
        """
        wanted = kind in self.at
        n = self.episodes if wanted else self.task.episodes
        traces = self.traces(theta, n, seed, normalization)
        outcome = self.task.outcome([trace.episode for trace in traces])
        outcome = replace(outcome, info={**outcome.info, "episodes": n})
        estimate = self.estimate(theta, traces, normalization) if wanted else None
        if estimate is None:
            return outcome
        return replace(outcome, gradient=estimate.gradient, gradient_noise=estimate.noise)

    def traces(
        self, theta: npt.ArrayLike, episodes: int, seed: int = 0, normalization: Normalization | None = None
    ) -> list[Trace]:
        """Episodes of the noisy policy, step by step."""
        seed, outputs = natural("seed", seed), unbounded(self.task.bind(theta, normalization))
        send = self.task.actions.bind(lambda u: u)  # clips, and gives the environment's type
        with self.task.environment() as environment:
            return [self._trace(environment, outputs, send, (seed, e)) for e in range(episodes)]

    def _trace(self, environment: Any, outputs: Act, send: Act, entropy: tuple[int, int]) -> Trace:
        rng = np.random.default_rng(np.random.SeedSequence((*entropy, 2)))
        states: list[Array] = []
        noise: list[Array] = []

        def act(observation: Any) -> Any:
            states.append(np.array(observation, dtype=np.float64).reshape(-1))
            noise.append(rng.standard_normal(len(self.noise)))
            return send(outputs(observation) + self.noise * noise[-1])

        recorder, task = _Recorder(environment), self.task
        episode = task.episode(recorder, act, entropy, task.normalize_states)
        rewards = (np.array(recorder.rewards, dtype=np.float64) - task.reward_shift) * task.reward_scale
        return Trace(episode, np.array(states), np.array(noise), rewards)

    def estimate(
        self, theta: npt.ArrayLike, traces: list[Trace], normalization: Normalization | None = None
    ) -> Estimate | None:
        """The gradient and its variance from episodes of the noisy policy.

        None if they do not differ in anything, or if it is too large for a float.
        """
        net, n = self.task.architecture, len(traces)
        with single_thread(), np.errstate(over="ignore", invalid="ignore"):
            each = np.array(
                [
                    pull_back(
                        net,
                        theta,
                        trace.states if normalization is None else normalization(trace.states),
                        trace.noise / self.noise * advantage[:, None],
                    )
                    for trace, advantage in zip(traces, self._advantages(traces), strict=True)
                ]
            )
            noise = each.var(axis=0, ddof=1) / n * ((n - 1) / (n - 3))
        if not noise.any() or not np.isfinite(noise).all():
            return None
        return Estimate(each.mean(axis=0), np.where(noise > 0.0, noise, noise.max()))

    def _advantages(self, traces: list[Trace]) -> list[Array]:
        """``R_t − b_t`` (T,) of each episode."""
        to_go = [np.cumsum(trace.rewards[::-1])[::-1] for trace in traces]
        longest = max(map(len, to_go))
        total, running = np.zeros(longest), np.zeros(longest)
        for R in to_go:
            total[: len(R)] += R
            running[: len(R)] += 1.0
        others = np.maximum(running - 1.0, 1.0)  # where there is no other, nothing is subtracted
        return [R - (total[: len(R)] - R) / others[: len(R)] for R in to_go]

    def close(self) -> None:
        self.task.close()

    def __enter__(self) -> PolicyGradient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def pull_back(net: Architecture, theta: npt.ArrayLike, states: Array, cotangents: Array) -> Array:
    """``Σ_t (∂a(s_t)/∂theta)ᵀ v_t``: how the parameters change a weighted sum of outputs (d,).

    Args:
        net: the policy's architecture.
        theta: (d,) the parameters.
        states: (T, k) as the first layer sees them: normalised, if the policy normalises states.
        cotangents: (T, m) v_t, the weights of the outputs at each state.

    >>> from gibo.policies import Affine
    >>> pull_back(Affine(2, 1), [0.0, 0.0, 0.0], np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0], [10.0]]))
    array([31., 42., 11.])
    """
    layers = net.layers(theta)
    inputs, slopes = [states], []
    for W, b in layers[:-1]:
        h = inputs[-1] @ W.T + (0.0 if b is None else b)
        relu = isinstance(net, MLP) and net.nonlinearity == "relu"
        inputs.append(np.maximum(h, 0.0) if relu else np.tanh(h))
        slopes.append((h > 0.0).astype(np.float64) if relu else 1.0 - inputs[-1] ** 2)
    v, parts = cotangents, list[Array]()
    for i in reversed(range(len(layers))):
        W, b = layers[i]
        parts = [(v.T @ inputs[i]).ravel(), *([] if b is None else [v.sum(axis=0)]), *parts]
        if i:
            v = (v @ W) * slopes[i - 1]
    return np.concatenate(parts)


class _Recorder:
    """An environment that keeps the rewards of an episode."""

    def __init__(self, environment: Any) -> None:
        self.environment = environment
        self.rewards: list[Any] = []

    def reset(self, *, seed: int | None = None) -> Any:
        return self.environment.reset(seed=seed)

    def step(self, action: Any) -> Any:
        given = self.environment.step(action)
        self.rewards.append(given[1])
        return given
