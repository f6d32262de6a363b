"""A Gymnasium environment as an objective: from a policy's parameters to its return."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from gibo._checks import as_flag, finite, has_methods, instance, natural, positive, positive_int
from gibo._linalg import Array, single_thread
from gibo.errors import InputError
from gibo.outcome import Outcome
from gibo.policies.architecture import Architecture, architecture
from gibo.policies.environment import Episode, make, rollout, spaces_of
from gibo.policies.normalizer import Normalization, Statistics
from gibo.policies.policy import Act, ContinuousActions, Policy

# From about this many weights in a layer on, BLAS uses several threads, which is slower and changes the result.
MANY_WEIGHTS = 4096


class Task:
    """The return of a policy in an environment as a function of the policy's parameters, for `gibo.maximize`.

    The same parameters and the same seed give the same outcome, bit for bit, in any process and after any other
    evaluations, if the environment's `reset(seed=...)` determines its randomness.

    An environment is created when needed and kept for the next evaluation; each process and each concurrent thread has
    its own. An environment that raised an exception is closed and not used again. A task from an id or from a picklable
    function can be sent to other processes.

    Args:
        environment: the id of a Gymnasium environment; or a function or class that creates one; or an environment,
            which stays in this process and is never closed by the task.
        policy: "linear", "affine", "mlp:16,16", "mlp:16,16:relu", or an architecture such as ``MLP(4, 1, (8,))``.
        episodes: per evaluation; the value is their mean.
        normalize_states: collect statistics of the states, in ``info["statistics"]`` of an outcome. The caller merges
            them and passes a normalisation with the next evaluations; the task itself never changes.
        reward_shift: subtracted from every reward, such as a bonus for being alive.
        reward_scale: positive; multiplies the shifted reward.
        action_noise: standard deviation of Gaussian noise on continuous actions during the search, as a share of half
            the range between an action's bounds, or in the action's units without bounds. The objective is then the
            return of the noisy policy, which is a smoother function of the parameters. The trained policy acts without
            noise, and `evaluate` adds none.
        max_steps: cut episodes off after this many steps. Required if the environment has no time limit.
        environment_options: options for ``gymnasium.make`` or for the function.

    Raises:
        InputError: there is no such environment, or its spaces are not supported.
        MissingExtraError: Gymnasium, MuJoCo or what else the environment needs is not installed.

    Example:
        >>> with Task("CartPole-v1", policy="affine") as task:
        ...     outcome = task([0.1, 0.5, 1.0, 1.0, 0.0], seed=3)
        >>> task.d, outcome.value, outcome.info["terminated"]
        (5, 500.0, 0)
    """

    def __init__(
        self,
        environment: Any,
        policy: str | Architecture = "affine",
        *,
        episodes: int = 1,
        normalize_states: bool = False,
        reward_shift: float = 0.0,
        reward_scale: float = 1.0,
        action_noise: float = 0.0,
        max_steps: int | None = None,
        environment_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.episodes = positive_int("episodes", episodes)
        self.normalize_states = as_flag("normalize_states", normalize_states)
        self.reward_shift = finite("reward_shift", reward_shift)
        self.reward_scale = positive("reward_scale", reward_scale)
        self.action_noise = positive("action_noise", action_noise, or_zero=True)
        self.max_steps = None if max_steps is None else positive_int("max_steps", max_steps)
        options = {} if environment_options is None else environment_options
        self.environment_options = dict(instance("environment_options", options, Mapping, "options by their names"))
        self._source = environment
        self._is_object = not isinstance(environment, (str, type)) and has_methods(environment, "step")
        if self._is_object and self.environment_options:
            raise InputError("environment_options: only for an id or a function; this environment already exists")
        # Environments that are free now, and the process that created them.
        self._idle = [environment] if self._is_object else []
        self._process = os.getpid()
        self._wide = False
        with self.environment() as made:
            self.observation_shape, self.actions = spaces_of(made)
            if self.action_noise and not isinstance(self.actions, ContinuousActions):
                raise InputError("action_noise: only for continuous actions; this environment's are discrete")
            inputs, outputs = math.prod(self.observation_shape), self.actions.outputs
            net = policy if isinstance(policy, Architecture) else architecture(policy, inputs, outputs)
            if (net.inputs, net.outputs) != (inputs, outputs):
                raise InputError(
                    f"policy: this environment needs {inputs} inputs and {outputs} outputs, {type(net).__name__} has "
                    f"{net.inputs} and {net.outputs}"
                )
            self.architecture = net
        self._wide = max(h * k for k, h in pairwise(net.sizes)) >= MANY_WEIGHTS

    # -- as an objective ----------------------------------------------------------------------------------------------

    @property
    def d(self) -> int:
        """Number of parameters."""
        return self.architecture.d

    def x0(self, seed: int | None = None) -> Array:
        """(d,) the start: zeros.

        With a seed, the hidden weights of a multi-layer perceptron are drawn at random; see `Architecture.initial`.
        """
        return self.architecture.initial(seed)

    def __call__(self, theta: npt.ArrayLike, *, seed: int = 0, normalization: Normalization | None = None) -> Outcome:
        """Evaluate parameters: the mean shaped return of `episodes` episodes.

        Args:
            theta: (d,) the parameters.
            seed: of this evaluation. Episode e gets ``SeedSequence((seed, e))``, and the noise on its actions
                ``SeedSequence((seed, e, 2))``.
            normalization: of the states, or None.

        Returns:
            An `Outcome`. Its info: ``return``, the environment's own mean return; ``steps`` of all episodes together;
            ``terminated``, the number of them that ended in a final state; with `normalize_states` also ``statistics``
            of all states, for `Statistics.from_plain`.
        """
        seed, policy, played = natural("seed", seed), self.bind(theta, normalization), []
        with self.environment() as environment:
            for e in range(self.episodes):
                act = self.with_action_noise(policy, (seed, e))
                played.append(self.episode(environment, act, (seed, e), self.normalize_states))
        return self.outcome(played)

    def outcome(self, played: Sequence[Episode]) -> Outcome:
        """The combined outcome of several episodes; see `__call__`."""
        values, shaped, steps, terminated, _, statistics = zip(*played, strict=True)
        info: dict[str, Any] = {"return": math.fsum(values) / len(played), "steps": sum(steps)}
        info["terminated"] = sum(terminated)
        if self.normalize_states:
            info["statistics"] = functools.reduce(Statistics.merge, statistics).to_plain()
        return Outcome(math.fsum(shaped) / len(played), info=info)

    def evaluate(
        self, theta: npt.ArrayLike, episodes: int, seed: int = 0, normalization: Normalization | None = None
    ) -> list[Episode]:
        """Episodes to test parameters, without statistics and with seeds from another stream.

        Episode e gets ``SeedSequence((seed, e, 1))``.
        """
        seed, policy = natural("seed", seed), self.bind(theta, normalization)
        count = positive_int("episodes", episodes)
        with self.environment() as environment:
            return [self.episode(environment, policy, (seed, e, 1), collect=False) for e in range(count)]

    def bind(self, theta: npt.ArrayLike, normalization: Normalization | None = None) -> Policy:
        """The policy with these parameters."""
        # A Policy accepts any vector and stores an array.
        return Policy(self.architecture, cast(Array, theta), self.actions, normalization, self.observation_shape)

    def with_action_noise(self, policy: Policy, entropy: tuple[int, ...]) -> Policy | Act:
        """The policy with this task's action noise, drawn with the episode's seed."""
        if not isinstance(self.actions, ContinuousActions) or not self.action_noise:
            return policy
        outputs, clip = unbounded(policy), self.actions.bind(lambda u: u)
        half = (self.actions.high - self.actions.low) / 2
        sd = self.action_noise * np.where(np.isfinite(half), half, 1.0).reshape(-1)
        rng = np.random.default_rng(np.random.SeedSequence((*entropy, 2)))
        return lambda observation: clip(outputs(observation) + sd * rng.standard_normal(len(sd)))

    def episode(self, environment: Any, policy: Any, entropy: tuple[int, ...], collect: bool) -> Episode:
        """One episode under this task's rules; the numbers give its seed."""
        return rollout(
            environment,
            policy,
            seed=episode_seed(entropy),
            max_steps=self.max_steps,
            reward_shift=self.reward_shift,
            reward_scale=self.reward_scale,
            collect=collect,
        )

    # -- the environments ---------------------------------------------------------------------------------------------

    def make(self, **options: Any) -> Any:
        """A new environment of this task, which the caller closes; options are added to the task's options."""
        if self._is_object:
            raise InputError("this task has one environment and cannot create another; give it an id or a function")
        return make(self._source, {**self.environment_options, **options})

    def close(self) -> None:
        """Close the environments of this task in this process. It can still be used and then creates new ones."""
        if self._is_object or self._process != os.getpid():
            return
        while self._idle:
            self._idle.pop().close()

    def __enter__(self) -> Task:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def environment(self) -> Iterator[Any]:
        """An environment for this thread only. In this context, wide policies use one BLAS thread."""
        if self._process != os.getpid():  # after a fork the environments belong to the parent
            if self._is_object:
                raise InputError(_ONLY_HERE)
            self._idle, self._process = [], os.getpid()
        try:
            environment = self._idle.pop()  # atomic, also among threads
        except IndexError:
            if self._is_object:
                raise InputError(
                    "environment: this one is in use by another thread; give the task an id or a function, so that "
                    "each thread gets its own"
                ) from None
            environment = self.make()
        try:
            with single_thread() if self._wide else nullcontext():
                yield environment
        except BaseException:
            if self._is_object:
                self._idle.append(environment)
            else:  # within an episode, or broken
                with suppress(Exception):
                    environment.close()
            raise
        self._idle.append(environment)

    def __getstate__(self) -> dict[str, Any]:
        if self._is_object:
            raise InputError(_ONLY_HERE)
        return {**self.__dict__, "_idle": []}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _process=os.getpid())


_ONLY_HERE = (
    "environment: a task that was given an environment stays in its process; give it an id or a function that makes "
    "the environment, so that each process gets its own"
)


def episode_seed(entropy: tuple[int, ...]) -> int:
    """The seed that an environment's `reset` gets, from the numbers of an episode."""
    return int(np.random.SeedSequence(entropy).generate_state(1)[0])


def unbounded(policy: Policy) -> Act:
    """The outputs of a policy with continuous actions, before they are clipped to the bounds."""
    m = policy.architecture.outputs
    return replace(policy, actions=ContinuousActions(np.full(m, -np.inf), np.full(m, np.inf), "float64")).act
