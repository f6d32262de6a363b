"""A Gymnasium environment: created with clear errors, its spaces, and an episode in it."""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from gibo._checks import as_flag, describe, describe_error, finite, has_methods, natural, positive, positive_int, shown
from gibo.errors import GiboError, InputError, MissingExtraError, NumericalError, missing_extra
from gibo.policies.normalizer import Collector, Statistics
from gibo.policies.policy import DTYPES, Actions, ContinuousActions, DiscreteActions, Policy

GL_PACKAGES = "libegl1 libgl1-mesa-dri libopengl0"


def gymnasium() -> Any:
    """The module gymnasium, loaded on first use."""
    try:
        return importlib.import_module("gymnasium")
    except ImportError as error:
        raise missing_extra("a task needs gymnasium", "gym") from error


def make(source: Any, options: Mapping[str, Any]) -> Any:
    """A new environment from an id or a function, with errors as an InputError or a MissingExtraError of one line."""
    gym = gymnasium()
    try:
        return gym.make(source, **options) if isinstance(source, str) else source(**options)
    except (Warning, GiboError):  # the user made warnings errors
        raise
    except Exception as error:  # an environment's constructor may raise anything, for example about its options
        text, name = " ".join(describe_error(error).split()), source if isinstance(source, str) else describe(source)
        if isinstance(error, gym.error.DependencyNotInstalled) or getattr(error, "name", None) in ("mujoco", "imageio"):
            for library, extra in (("box2d", "box2d"), ("mujoco", "mujoco"), ("imageio", "mujoco")):
                if library in text.lower():
                    raise missing_extra(f"{name} needs {library}", extra) from error
            raise MissingExtraError(f"environment {name}: {text}") from error
        given = f" with the options {shown(dict(options))}" if options else ""
        if os.environ.get("MUJOCO_GL") and isinstance(error, (AttributeError, ImportError)):
            text += f" ({gl_advice()})"  # MuJoCo cannot be loaded without its libraries
        raise InputError(f"environment {name}: it cannot be made{given}: {text}") from error


def gl_advice() -> str:
    """Advice for off-screen rendering with MuJoCo."""
    way = f"MUJOCO_GL is {os.environ.get('MUJOCO_GL', 'not set')}"
    return f"{way}; to render off-screen on Debian: apt-get install {GL_PACKAGES}, and set MUJOCO_GL=egl"


def spaces_of(environment: Any) -> tuple[tuple[int, ...], Actions]:
    """The shape of an observation, and the actions that the environment takes."""
    gym = gymnasium()
    seen, taken = getattr(environment, "observation_space", None), getattr(environment, "action_space", None)
    if seen is None or taken is None or isinstance(environment, gym.vector.VectorEnv):
        raise InputError(f"environment: expected one environment of Gymnasium, got {describe(environment)}")
    if not isinstance(seen, gym.spaces.Box) or not np.prod(seen.shape):
        raise InputError(
            f"observation space {seen!s:.120}: not supported; expected a Box that is not empty. "
            "The wrapper gymnasium.wrappers.FlattenObservation makes a Box of other spaces"
        )
    shape = tuple(map(int, seen.shape))
    if isinstance(taken, gym.spaces.Discrete):
        return shape, DiscreteActions(int(taken.n), int(taken.start))
    if isinstance(taken, gym.spaces.Box) and np.dtype(taken.dtype).name in DTYPES and np.prod(taken.shape):
        return shape, ContinuousActions(taken.low, taken.high, np.dtype(taken.dtype).name)
    raise InputError(
        f"action space {taken!s:.120}: not supported; expected Discrete or a Box of floats that is not empty. "
        "The wrapper gymnasium.wrappers.TransformAction can take actions of another space"
    )


class Episode(NamedTuple):
    """The result of an episode: the environment's return, the sum of its rewards; the optimiser's value, the sum of
    (reward − reward_shift)·reward_scale; the number of actions; whether it ended in a final state, in Gymnasium's
    sense; whether it was cut off, by the environment or at `max_steps`; and statistics of the states that the policy
    acted upon, if they were collected."""

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
        seed: for `reset`.
        max_steps, reward_shift, reward_scale: see `Task`.
        collect: also collect statistics of the states on which the policy acted: the first state counts, the state
            after the last action does not.

    Raises:
        NumericalError: the return, or a state that counts in the statistics, is not finite.
    """
    limit = 0 if max_steps is None else positive_int("max_steps", max_steps)
    shift, scale = finite("reward_shift", reward_shift), positive("reward_scale", reward_scale)
    if not callable(policy):
        raise InputError(f"policy: expected a Policy, or a function of an observation, got {describe(policy)}")
    if not has_methods(environment, "reset", "step"):
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
