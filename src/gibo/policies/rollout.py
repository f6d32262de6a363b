"""One episode of a policy in an environment."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from gibo._checks import as_flag, describe, finite, natural, positive, positive_int
from gibo.errors import InputError, NumericalError
from gibo.policies.normalizer import Collector, Statistics
from gibo.policies.policy import Policy


@dataclass(frozen=True, eq=False)
class Episode:
    """The result of an episode.

    Attributes:
        value: the environment's return, the sum of its rewards.
        shaped: the optimiser's value, the sum of (reward − reward_shift)·reward_scale.
        steps: number of actions.
        terminated: it ended in a final state, in Gymnasium's sense.
        truncated: it was cut off, by the environment or at `max_steps`.
        statistics: of the states that the policy acted upon, if they were collected.
    """

    value: float
    shaped: float
    steps: int
    terminated: bool
    truncated: bool
    statistics: Statistics | None = None


def rollout(
    environment: Any,
    policy: Callable[[Any], Any],
    *,
    seed: int | None = None,
    max_steps: int | None = None,
    reward_shift: float = 0.0,
    reward_scale: float = 1.0,
    collect: bool = False,
) -> Episode:
    """Run one episode, from `reset` until it is terminated or truncated.

    Args:
        environment: with Gymnasium's `reset` and `step`. If it has no time limit, give `max_steps`.
        policy: a `Policy`, or any function from an observation to an action.
        seed: for `reset`; determines the episode's randomness.
        max_steps: cut the episode off after this many steps.
        reward_shift: subtracted from every reward for `Episode.shaped`, such as a bonus for being alive.
        reward_scale: positive; multiplies the shifted reward.
        collect: also collect statistics of the states on which the policy acted: the first state counts, the state
            after the last action does not.

    Raises:
        NumericalError: the return, or a state that counts in the statistics, is not finite.

    Example:
        >>> import gymnasium
        >>> environment = gymnasium.make("CartPole-v1")
        >>> episode = rollout(environment, lambda observation: 0, seed=0)
        >>> episode.terminated, episode.value == episode.steps
        (True, True)
        >>> environment.close()
    """
    limit = 0 if max_steps is None else positive_int("max_steps", max_steps)
    shift, scale = finite("reward_shift", reward_shift), positive("reward_scale", reward_scale)
    if not callable(policy):
        raise InputError(f"policy: expected a Policy, or a function of an observation, got {describe(policy)}")
    if not callable(getattr(environment, "reset", None)) or not callable(getattr(environment, "step", None)):
        raise InputError(f"environment: expected one of Gymnasium, got {describe(environment)}")
    seed, collect = None if seed is None else natural("seed", seed), as_flag("collect", collect)
    act = policy.act if isinstance(policy, Policy) else policy
    step = environment.step

    observation, _ = environment.reset(seed=seed)
    shape = np.shape(observation)
    if isinstance(policy, Policy) and shape != policy.observation_shape:
        raise InputError(
            f"policy: made for observations of shape {policy.observation_shape}, the environment gave {shape}"
        )
    collector = Collector(shape) if collect else None

    value, steps, terminated, truncated = 0.0, 0, False, False
    for steps in count(1):
        if collector is not None:
            collector.add(observation)
        observation, reward, terminated, truncated, _ = step(act(observation))
        value += reward
        if terminated or truncated:
            break
        if steps == limit:
            truncated = True
            break

    value = float(value)
    if not math.isfinite(value):
        raise NumericalError(f"the episode's return is {value} after {steps} steps; the environment may have diverged")
    return Episode(
        value=value,
        shaped=(value - steps * shift) * scale,
        steps=steps,
        terminated=bool(terminated),
        truncated=bool(truncated),
        statistics=None if collector is None else collector.statistics(),
    )
