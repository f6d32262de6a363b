"""A policy: an architecture with its parameters, its normalisation and its actions; and its file.

The file is JSON and complete: loading it needs neither Gymnasium nor an optimiser, and nothing is unpickled.
"""

from __future__ import annotations

import json
import math
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from types import NoneType
from typing import Any

import numpy as np

from gibo._checks import as_finite, as_path, as_vector, describe, describe_error, instance, positive_int, shown
from gibo._linalg import Array
from gibo._serialize import from_plain, to_plain
from gibo.errors import InputError
from gibo.policies.actions import Act, Actions, ContinuousActions, DiscreteActions, Outputs
from gibo.policies.architecture import MLP, Architecture, Layer, architecture
from gibo.policies.normalizer import Normalization

POLICY_FORMAT = "gibo policy"
VERSION = 1


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
        if self.normalization is not None and self.normalization.k != net.inputs:
            raise InputError(f"normalization: expected states of {net.inputs} numbers, got {self.normalization.k}")
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
        first, *rest = self.architecture.split(self.theta)
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
        version = data.get("version")
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise InputError(f"damaged: expected a version of at least 1, got {describe(version)}")
        if version > VERSION:
            raise InputError(
                f"written by a newer gibo: its format is version {version}, this gibo reads {VERSION}; upgrade gibo"
            )
        try:
            shape = tuple(positive_int("observation_shape", size) for size in data["observation_shape"])
            actions = from_plain(data["actions"])
            if not isinstance(actions, (ContinuousActions, DiscreteActions)):
                raise InputError(f"actions: expected a saved space of actions, got {describe(actions)}")
            plain = data["normalization"]
            normalization = None if plain is None else Normalization.from_plain(plain)
            net = architecture(data["policy"], math.prod(shape), actions.outputs)
            return cls(net, data["theta"], actions, normalization, shape)
        except InputError as error:
            raise InputError(f"damaged: {error}") from None
        except KeyError as error:
            raise InputError(f"damaged: {error.args[0]} is missing") from None
        except Exception as error:  # a file may contain data of any shape
            raise InputError(f"damaged: {describe_error(error)}") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to one JSON file. If writing fails, the file stays as it was.

        Example:
            >>> import tempfile
            >>> from gibo.policies import DiscreteActions, Linear, load_policy
            >>> policy = Policy(Linear(inputs=2, outputs=1), [1.0, 2.0], DiscreteActions(2))
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     policy.save(f"{folder}/policy.json")
            ...     load_policy(f"{folder}/policy.json").theta
            array([1., 2.])
        """
        write_whole(path, json.dumps(self.to_plain(), allow_nan=False, indent=1).encode() + b"\n")


def load_policy(path: str | os.PathLike[str]) -> Policy:
    """Read a policy file of `Policy.save`.

    Raises:
        InputError: the file is missing, damaged, not a policy, or written by a newer gibo.
    """
    path = as_path("path", path)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):  # not UTF-8, not JSON, or nested without end
        raise InputError(f"{path}: not readable as JSON; it is damaged or not a policy of gibo") from None
    try:
        return Policy.from_plain(data)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a whole file or nothing."""
    path = as_path("path", path)
    if not path.name:
        raise InputError(f"path: expected a file's name, got {shown(str(path))}")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise InputError(f"{path}: cannot be written: {error.strerror}") from None
        raise


# -- acting -----------------------------------------------------------------------------------------------------------
# The bound function runs once per step of an environment, and a simple environment takes 10 µs per step. So the first
# layer includes the normalisation, and nothing is checked.


def _bind(policy: Policy, shape: tuple[int, ...]) -> Act:
    layers, actions = policy.layers(), policy.actions
    if len(layers) == 1 and isinstance(actions, DiscreteActions) and actions.n == 2:
        # w·s + b > 0 as w·s > −b, with no array in between.
        W, b = layers[0]
        act = actions.bind_sign(W[0].dot, 0.0 if b is None else -float(b[0]))
    else:
        act = actions.bind(_outputs(policy.architecture, layers))
    return act if len(shape) == 1 else lambda observation: act(np.asarray(observation).reshape(-1))


def _outputs(net: Architecture, layers: list[Layer]) -> Outputs:
    """A function from a flat state to the outputs, a new array each time."""
    *hidden, last = [_affine(layer) for layer in layers]
    if not hidden:
        return last
    squash: Any = _relu if isinstance(net, MLP) and net.nonlinearity == "relu" else np.tanh

    def perceptron(state: Any) -> Array:
        h = state
        for layer in hidden:
            h = layer(h)
            squash(h, out=h)
        return last(h)

    return perceptron


def _affine(layer: Layer) -> Outputs:
    W, b = layer
    dot, add = W.dot, np.add  # `dot` is faster than `@`, and it takes states of any type
    if b is None:
        return dot
    bias = b

    def affine(state: Any) -> Array:
        outputs: Array = dot(state)
        add(outputs, bias, out=outputs)
        return outputs

    return affine


def _relu(h: Array, out: Array) -> None:
    np.maximum(h, 0.0, out=out)
