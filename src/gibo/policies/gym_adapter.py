"""Creates Gymnasium environments with clear errors, and reads their spaces. Gymnasium is loaded on first use."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from gibo._checks import describe_error, shown
from gibo.errors import InputError, MissingExtraError, missing_extra
from gibo.policies.actions import DTYPES, Actions, ContinuousActions, DiscreteActions

GL_PACKAGES = "libegl1 libgl1-mesa-dri libopengl0"


def gymnasium() -> Any:
    """The module gymnasium, loaded on first use."""
    try:
        return importlib.import_module("gymnasium")
    except ImportError as error:
        raise missing_extra("a task needs gymnasium", "gym") from error


def make(name: str, options: Mapping[str, Any]) -> Any:
    """``gymnasium.make`` with errors as an InputError or a MissingExtraError of one line."""
    gym = gymnasium()
    try:
        return gym.make(name, **options)
    except Warning:  # the user made warnings errors
        raise
    except gym.error.DependencyNotInstalled as error:
        if "mujoco" in str(error).lower():
            raise missing_extra(f"{name} needs mujoco", "mujoco") from error
        if "box2d" in str(error).lower():
            raise missing_extra(f"{name} needs Box2D", "box2d") from error
        raise MissingExtraError(f"environment {name!r}: {_one_line(str(error))}") from error
    except ModuleNotFoundError as error:
        if error.name in ("mujoco", "imageio"):
            raise missing_extra(f"{name} needs {error.name}", "mujoco") from error
        raise InputError(f"environment {name!r}: {_one_line(str(error))}") from error
    except gym.error.Error as error:
        raise InputError(f"environment {name!r}: {_one_line(str(error))}") from error
    except Exception as error:  # an environment's constructor may raise anything, for example about its options
        given = f" with the options {shown(dict(options))}" if options else ""
        text = f"environment {name!r} cannot be made{given}: {_one_line(describe_error(error))}"
        if os.environ.get("MUJOCO_GL") and isinstance(error, (AttributeError, ImportError)):
            text += f" ({gl_advice()})"  # MuJoCo cannot be loaded without its libraries
        raise InputError(text) from error


def gl_advice() -> str:
    """Advice for off-screen rendering with MuJoCo."""
    way = f"MUJOCO_GL is {os.environ.get('MUJOCO_GL', 'not set')}"
    return f"{way}; to render off-screen on Debian: apt-get install {GL_PACKAGES}, and set MUJOCO_GL=egl"


def observation_shape(environment: Any) -> tuple[int, ...]:
    """The shape of an observation; a policy can use only a Box."""
    space = _space(environment, "observation_space")
    if not isinstance(space, gymnasium().spaces.Box) or not np.prod(space.shape):
        raise InputError(
            f"observation space {space!s:.120}: not supported; expected a Box that is not empty. "
            "The wrapper gymnasium.wrappers.FlattenObservation makes a Box of other spaces"
        )
    return tuple(int(size) for size in space.shape)


def actions_of(environment: Any) -> Actions:
    """The actions that an environment takes."""
    space = _space(environment, "action_space")
    spaces = gymnasium().spaces
    if isinstance(space, spaces.Discrete):
        return DiscreteActions(int(space.n), int(space.start))
    if isinstance(space, spaces.Box) and np.dtype(space.dtype).name in DTYPES and np.prod(space.shape):
        return ContinuousActions(space.low, space.high, np.dtype(space.dtype).name)
    raise InputError(
        f"action space {space!s:.120}: not supported; expected Discrete or a Box of floats that is not empty. "
        "The wrapper gymnasium.wrappers.TransformAction can take actions of another space"
    )


def _space(environment: Any, name: str) -> Any:
    if isinstance(environment, gymnasium().vector.VectorEnv) or not all(
        hasattr(environment, each) for each in ("reset", "step", name)
    ):
        raise InputError(
            f"environment: expected one environment of Gymnasium, got an object of type {type(environment).__name__}"
        )
    return getattr(environment, name)


def _one_line(text: str) -> str:
    return " ".join(text.split())
