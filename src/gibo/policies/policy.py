"""A policy: an architecture with its parameters, its normalisation and its actions; and its file.

The file is JSON and complete: loading it needs neither Gymnasium nor an optimiser, and nothing is unpickled.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, TypeAlias

import numpy as np

from gibo._checks import (
    as_finite,
    as_finite_or_infinite,
    as_path,
    as_vector,
    describe_error,
    instance,
    natural,
    one_of,
    positive_int,
    shown,
)
from gibo._linalg import Array
from gibo._serialize import Serializable, from_plain, read_file, to_plain
from gibo.errors import InputError
from gibo.policies.architecture import Architecture, Layer, architecture
from gibo.policies.normalizer import Normalization

POLICY_FORMAT, VERSION = "gibo policy", 1
Outputs: TypeAlias = Callable[[Any], Array]  # an observation to the policy's outputs (m,), a new array each time
Act: TypeAlias = Callable[[Any], Any]  # an observation to an action

DTYPES = ("float16", "float32", "float64")


@dataclass(frozen=True, eq=False)
class ContinuousActions(Serializable):
    """Arrays of real numbers between bounds; the outputs, one per entry, are clipped to them.

    Attributes:
        low, high: the bounds, in the shape of an action; infinite for a missing bound.
        dtype: the type of an action's numbers: "float32", "float64" or "float16".
    """

    low: Array
    high: Array
    dtype: str = "float32"

    def __post_init__(self) -> None:
        one_of("dtype", self.dtype, DTYPES)
        low, high = as_finite_or_infinite("low", self.low), as_finite_or_infinite("high", self.high)
        if low.shape != high.shape or not low.size:
            raise InputError(f"low, high: expected the same shape, not empty, got {low.shape} and {high.shape}")
        if not (low <= high).all():
            raise InputError("low, high: expected no lower bound above its upper bound")
        for name, bound in (("low", low), ("high", high)):
            bound.flags.writeable = False
            object.__setattr__(self, name, bound)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of an action."""
        return self.low.shape

    @property
    def outputs(self) -> int:
        """How many outputs a policy needs."""
        return self.low.size

    def bind(self, outputs: Outputs) -> Act:
        """A function from an observation to an action; it checks nothing, and every action is a new array."""
        low, high, shape, dtype = self.low.reshape(-1), self.high.reshape(-1), self.shape, np.dtype(self.dtype)
        maximum, minimum = np.maximum, np.minimum

        def clipped(observation: Any) -> Array:
            action = outputs(observation)
            maximum(action, low, out=action)  # np.clip takes three times as long
            minimum(action, high, out=action)
            return action

        if dtype == np.float64 and len(shape) == 1:
            return clipped
        return lambda observation: clipped(observation).astype(dtype).reshape(shape)


@dataclass(frozen=True)
class DiscreteActions(Serializable):
    """The whole numbers start, start + 1, …, start + n − 1.

    With two actions, the sign of one output decides: the second action if it is positive, else the first. Otherwise
    each action has an output, and the largest one decides; the first of equal ones.
    """

    n: int
    start: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", positive_int("n", self.n))
        object.__setattr__(self, "start", natural("start", self.start, least=-(1 << 62)))

    @property
    def outputs(self) -> int:
        """How many outputs a policy needs."""
        return 1 if self.n == 2 else self.n

    def bind(self, outputs: Outputs) -> Act:
        """A function from an observation to an action; it checks nothing."""
        start = self.start
        if self.n == 2:
            return lambda observation: start + int(outputs(observation)[0] > 0.0)
        return lambda observation: start + int(outputs(observation).argmax())


Actions: TypeAlias = ContinuousActions | DiscreteActions


@dataclass(frozen=True, eq=False)
class Policy:
    """A function from an observation to an action. It is immutable: to change its parameters, make another one.

    Attributes:
        architecture: `Linear`, `Affine` or `MLP`.
        theta: (d,) its parameters; see the architecture for their order.
        actions: the actions that the outputs become.
        normalization: of the states, or None.
        observation_shape: of an observation, which is flattened; by default (inputs,).
        act: calls the policy without checking the observation's shape, for loops.

    Example:
        >>> from gibo.policies import Affine, DiscreteActions
        >>> policy = Policy(Affine(inputs=2, outputs=1), [1.0, 2.0, -0.5], DiscreteActions(2))
        >>> policy([1.0, 0.0]), policy([0.0, 0.0])
        (1, 0)
    """

    architecture: Architecture
    theta: Array
    actions: Actions
    normalization: Normalization | None = None
    observation_shape: tuple[int, ...] | None = None
    act: Act = field(init=False, repr=False)

    def __post_init__(self) -> None:
        net = instance("architecture", self.architecture, Architecture, "one such as Affine(inputs, outputs)")
        instance("actions", self.actions, (ContinuousActions, DiscreteActions), "DiscreteActions or ContinuousActions")
        instance("normalization", self.normalization, (Normalization, NoneType), "a Normalization or None")
        theta = as_vector("theta", self.theta, net.d)
        theta.flags.writeable = False
        shape = (net.inputs,) if self.observation_shape is None else self.observation_shape
        instance("observation_shape", shape, (list, tuple), "the sizes of an observation's dimensions")
        shape = tuple(positive_int("observation_shape", size) for size in shape)
        if net.outputs != self.actions.outputs:
            raise InputError(f"architecture: the actions need {self.actions.outputs} outputs, it has {net.outputs}")
        if net.inputs != math.prod(shape):
            raise InputError(
                f"architecture: observations of shape {shape} need {math.prod(shape)} inputs, it has {net.inputs}"
            )
        k = net.inputs if self.normalization is None else len(self.normalization.mean)
        if k != net.inputs:
            raise InputError(f"normalization: expected states of {net.inputs} numbers, got {k}")
        object.__setattr__(self, "theta", theta)
        object.__setattr__(self, "observation_shape", shape)
        object.__setattr__(self, "act", _bind(self, shape))

    def __call__(self, observation: Any) -> Any:
        """The action, in the type and shape that the environment expects."""
        state = as_finite("observation", observation)
        if state.shape != self.observation_shape:
            raise InputError(f"observation: expected shape {self.observation_shape}, got {state.shape}")
        return self.act(state)

    def layers(self) -> list[Layer]:
        """Its parameters with the normalisation in the first layer: ``W (s − mean)/std + b = W' s + (b − W' mean)``."""
        first, *rest = self.architecture.layers(self.theta)
        if self.normalization is not None:
            W = first.W / self.normalization.std
            shift = -(W @ self.normalization.mean)
            first = Layer(W, shift if first.b is None else first.b + shift)
        return [first, *rest]

    def __reduce__(self) -> Any:
        """Make the closure `act` anew instead of copying it."""
        return Policy, (self.architecture, self.theta, self.actions, self.normalization, self.observation_shape)

    def to_plain(self) -> dict[str, Any]:
        """The JSON data that `save` writes."""
        return {
            "format": POLICY_FORMAT,
            "version": VERSION,
            "policy": self.architecture.text,
            "observation_shape": to_plain(self.observation_shape),
            "actions": to_plain(self.actions),
            "normalization": None if self.normalization is None else self.normalization.to_plain(),
            "theta": to_plain(self.theta),
        }

    @classmethod
    def from_plain(cls, data: Any) -> Policy:
        """The inverse of `to_plain`, bit for bit."""
        if not isinstance(data, dict) or not isinstance(data.get("format"), str) or data["format"] != POLICY_FORMAT:
            raise InputError(f'not a policy of gibo: expected "format": "{POLICY_FORMAT}"')
        if type(data.get("version")) is not int or data["version"] != VERSION:
            raise InputError(
                f"expected version {VERSION} of its format, got {shown(data.get('version'))}; a newer gibo may read it"
            )
        try:
            shape = tuple(positive_int("observation_shape", size) for size in data["observation_shape"])
            actions = from_plain(data["actions"])
            instance("actions", actions, (ContinuousActions, DiscreteActions), "a saved space of actions")
            plain = data["normalization"]
            normalization = None if plain is None else Normalization.from_plain(plain)
            net = architecture(data["policy"], math.prod(shape), actions.outputs)
            return cls(net, data["theta"], actions, normalization, shape)
        except InputError as error:
            raise InputError(f"damaged: {error}") from None
        except Exception as error:  # a file may contain data of any shape
            raise InputError(f"damaged: {describe_error(error)}") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to one JSON file. If writing fails, the file stays as it was."""
        write_whole(path, json.dumps(self.to_plain(), allow_nan=False, indent=1).encode() + b"\n")


def load_policy(path: str | os.PathLike[str]) -> Policy:
    """Read a policy file of `Policy.save`.

    Raises:
        InputError: the file is missing, damaged, not a policy, or written by a newer gibo.
    """
    with read_file(path, json.loads, "JSON") as data:
        return Policy.from_plain(data)


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a whole file or nothing."""
    path = as_path("path", path)
    if not path.name:
        raise InputError(f"path: expected a file's name, got {shown(str(path))}")
    temporary = path.with_name(f"{path.name}.tmp")
    try:
        temporary.unlink(missing_ok=True)  # of a process that was killed; a link is not followed
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None


# -- acting -----------------------------------------------------------------------------------------------------------
# The bound function runs once per step of an environment, and a simple environment takes 10 µs per step. So the first
# layer includes the normalisation, and nothing is checked.


def _bind(policy: Policy, shape: tuple[int, ...]) -> Act:
    layers, actions = policy.layers(), policy.actions
    if len(layers) == 1 and isinstance(actions, DiscreteActions) and actions.n == 2:
        # w·s + b > 0 as w·s > −b, with no array in between.
        W, b = layers[0]
        output, threshold = W[0].dot, 0.0 if b is None else -float(b[0])
        first, second = actions.start, actions.start + 1

        def choose(observation: Any) -> Any:
            return second if output(observation) > threshold else first

        act: Act = choose
    else:
        act = actions.bind(_outputs(policy.architecture, layers))
    return act if len(shape) == 1 else lambda observation: act(np.asarray(observation).reshape(-1))


def _outputs(net: Architecture, layers: list[Layer]) -> Outputs:
    """A function from a flat state to the outputs, a new array each time."""
    squash: Any = _relu if net.is_relu else np.tanh
    # `dot` is faster than `@`, and it takes states of any type.
    dots: list[tuple[Any, Any]] = [(W.dot, b) for W, b in layers]
    *hidden, (last, b_last) = dots

    def outputs(state: Any) -> Array:
        h = state
        for dot, b in hidden:
            h = dot(h)
            np.add(h, b, out=h)
            squash(h, out=h)
        result: Array = last(h)
        return result if b_last is None else np.add(result, b_last, out=result)

    return outputs


def _relu(h: Array, out: Array) -> None:
    np.maximum(h, 0.0, out=out)
