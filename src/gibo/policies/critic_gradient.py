"""A critic's policy gradient as an observation of the objective's gradient, which costs no episode of its own.

Müller et al. 2021 name actor-critic methods as future work (section 5); line 10 of their algorithm 1 is the door.

Symbols
-------
s, u, r, s'   a step: state, action as the environment took it (within its bounds), shaped reward, next state
a(s)          what the policy with the parameters theta would do, within the bounds
γ             the discount
phi (F,)      features of (s, u): 1, the standardised x = (s, u), and ``cos(W x + b)`` with random W and b
Q = wᵀ phi    the critic: the return from s on, if u is taken now and the policy acts afterwards

All steps of the last episodes, whatever parameters they were played with, teach the critic of the present policy
(LSTD-Q, Lagoudakis and Parr 2003), ``w = (Σ phi (phi − γ phi')ᵀ + λ I)⁻¹ Σ phi r`` with ``phi' = phi(s', a(s'))``. Its
gradient is that of a deterministic policy (Silver et al. 2014), summed over the steps of an episode:

    ∇J ≈ E Σ_t (∂a(s_t)/∂theta)ᵀ ∂Q(s_t, u)/∂u   at u = a(s_t)
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gibo._checks import as_number, as_vector, positive_int
from gibo._linalg import Array, single_thread
from gibo.errors import InputError
from gibo.policies.normalizer import Normalization
from gibo.policies.policy_gradient import FEWEST_EPISODES, Estimate, PolicyGradient, Trace
from gibo.policies.task import Task, unbounded

CRITICS = 12
HORIZON = math.log(2.0)  # a critic's horizon 1/(1 − γ) is within this of the one that is meant
RIDGE = 1e-3  # per step, of features of size 1


class _Played(NamedTuple):
    """An episode: states (T, k), actions (T, m), rewards (T,), and whether it ended by itself."""

    states: Array
    actions: Array
    rewards: Array
    terminated: bool


class CriticGradient(PolicyGradient):
    """A task whose outcomes come with a critic's gradient, learnt from the episodes that are played anyhow.

    Used like `PolicyGradient`, whose noise on the actions it has, but an evaluation with a gradient costs no more
    episodes than one without. It is the mean of several critics, each with episodes drawn anew from those remembered
    (a bootstrap), features and a discount of its own, and its variance is their spread. What they have in common, it
    does not know: the gradient is biased, by how much depends on the task. So measure what it is worth on yours.

    It remembers episodes: an outcome depends on those before it in this process, so a run that is resumed begins with
    an empty memory, and each worker has its own.

    Args:
        task: with continuous actions.
        noise: standard deviation of the noise on the policy's outputs, before they are clipped: a number, or one per
            output.
        memory: how many of the last episodes are remembered; at least 4.
        discount: γ, above 0 and below 1; the critics' own are around it.
        features: random ones of a critic, besides the linear ones.
        at: the kinds of queries that get a gradient; by default the iterates alone.

    Example:
        >>> objective = CriticGradient(Task("Pendulum-v1", policy="affine"), noise=0.3, features=20)
        >>> for seed in range(5):
        ...     outcome = objective([0.1, 0.0, 0.2, 0.0], seed=seed)
        >>> outcome.gradient.shape, outcome.info["episodes"]
        ((4,), 1)
        >>> objective.close()
    """

    def __init__(
        self,
        task: Task,
        *,
        noise: npt.ArrayLike,
        memory: int = 20,
        discount: float = 0.98,
        features: int = 50,
        at: Collection[str] = ("iterate",),
    ) -> None:
        super().__init__(task, noise=noise, at=at)
        self.episodes = task.episodes
        self.memory = positive_int("memory", memory)
        if self.memory < FEWEST_EPISODES:
            raise InputError(f"memory: a gradient's variance needs at least {FEWEST_EPISODES} episodes, got {memory}")
        self.discount = as_number("discount", discount)
        if not 0.0 < self.discount < 1.0:
            raise InputError(f"discount: expected a number between 0 and 1, got {discount}")
        self.features = positive_int("features", features)
        self._played: deque[_Played] = deque(maxlen=self.memory)

    def traces(
        self, theta: npt.ArrayLike, episodes: int, seed: int = 0, normalization: Normalization | None = None
    ) -> list[Trace]:
        """Episodes of the noisy policy, which are remembered."""
        traces = super().traces(theta, episodes, seed, normalization)
        for trace in traces:
            meant = self._meant(theta, trace.states, normalization)
            actions = self._clip(meant + self.noise * trace.noise)
            self._played.append(_Played(trace.states, actions, trace.rewards, trace.episode.terminated))
        return traces

    def estimate(
        self, theta: npt.ArrayLike, traces: list[Trace], normalization: Normalization | None = None
    ) -> Estimate | None:
        """The gradient and its variance from the episodes that are remembered; None while they are too few."""
        if len(self._played) < FEWEST_EPISODES:
            return None
        with single_thread(), np.errstate(over="ignore", invalid="ignore"):
            try:
                found = self._critics(as_vector("theta", theta, self.d), normalization)
            except np.linalg.LinAlgError:
                return None
            mean, noise = found.mean(axis=0), found.var(axis=0, ddof=1)
        if not (np.isfinite(mean).all() and np.isfinite(noise).all() and noise.any()):
            return None
        return Estimate(mean, np.where(noise > 0.0, noise, noise.max()))

    # -- the critic ---------------------------------------------------------------------------------------------------

    def _critics(self, theta: Array, normalization: Normalization | None) -> Array:
        """The gradients of `CRITICS` critics (CRITICS, d)."""
        states, actions, rewards = (np.concatenate(parts) for parts in list(zip(*self._played, strict=True))[:3])
        of_episode = np.repeat(np.arange(len(self._played)), [len(each.rewards) for each in self._played])
        meant = self._meant(theta, states, normalization)
        own = self._clip(meant)
        free = (meant == own).astype(float)  # where the policy is held at a bound, no parameter moves it
        last = np.append(np.diff(of_episode) > 0, True)
        ends = np.array([each.terminated for each in self._played])[of_episode] & last
        known = ~last | ends  # of a last step after which nothing ended, what came is not known
        seen = states if normalization is None else normalization(states)
        rng, found = np.random.default_rng(0), []
        for _ in range(CRITICS):
            phi = _Features.drawn(states, actions, self.features, rng)
            γ = 1.0 - (1.0 - self.discount) * math.exp(rng.uniform(-HORIZON, HORIZON))
            weight = rng.multinomial(len(self._played), np.full(len(self._played), 1.0 / len(self._played)))[of_episode]
            now, then = phi(states, actions), np.roll(phi(states, own), -1, axis=0)
            then[ends] = 0.0
            weighed = now * (weight * known)[:, None]
            ridge = RIDGE * len(states) * np.eye(now.shape[1])
            w = np.linalg.solve(weighed.T @ (now - γ * then) + ridge, weighed.T @ rewards)
            pull = phi.by_action(states, own) @ w * free * weight[:, None]
            found.append(self.task.architecture.pull_back(theta, seen, pull) / len(self._played))
        return np.array(found)

    def _meant(self, theta: npt.ArrayLike, states: Array, normalization: Normalization | None) -> Array:
        """(T, m) a(s) before it is clipped."""
        act, shape = unbounded(self.task.bind(theta, normalization)), self.task.observation_shape
        return np.array([act(state.reshape(shape)) for state in states], dtype=np.float64)

    def _clip(self, outputs: Array) -> Array:
        bounds: Any = self.task.actions
        return np.clip(outputs, bounds.low, bounds.high)


class _Features(NamedTuple):
    """phi of (s, u): see the module's text. x is (s, u), less its mean, divided by its deviation."""

    mean: Array
    sd: Array
    W: Array
    b: Array

    @classmethod
    def drawn(cls, states: Array, actions: Array, count: int, rng: np.random.Generator) -> _Features:
        x = np.hstack([states, actions])
        sd = x.std(axis=0)
        W = rng.standard_normal((count, x.shape[1])) / math.sqrt(x.shape[1])
        return cls(x.mean(axis=0), np.where(sd > 0.0, sd, 1.0), W, 2.0 * math.pi * rng.random(count))

    def __call__(self, states: Array, actions: Array) -> Array:
        """(T, F)."""
        x = self._standardized(states, actions)
        return np.hstack([np.ones((len(x), 1)), x, np.cos(x @ self.W.T + self.b)])

    def by_action(self, states: Array, actions: Array) -> Array:
        """∂phi/∂u (T, m, F)."""
        x, m = self._standardized(states, actions), actions.shape[1]
        k = x.shape[1] - m
        linear = np.hstack([np.zeros((m, 1 + k)), np.eye(m)])
        waves = -np.sin(x @ self.W.T + self.b)[:, None, :] * self.W[:, k:].T
        by_x = np.concatenate([np.broadcast_to(linear, (len(x), *linear.shape)), waves], axis=2)
        return by_x / self.sd[k:, None]

    def _standardized(self, states: Array, actions: Array) -> Array:
        x: Array = (np.hstack([states, actions]) - self.mean) / self.sd
        return x
