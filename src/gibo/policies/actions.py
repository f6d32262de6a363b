"""Converts the outputs of a policy to actions; does not need Gymnasium."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from gibo._checks import as_finite_or_infinite, one_of, positive_int, whole
from gibo._linalg import Array
from gibo._serialize import Serializable
from gibo.errors import InputError

Outputs: TypeAlias = Callable[[Any], Array]  # an observation to the policy's outputs (m,), a new array each time
Act: TypeAlias = Callable[[Any], Any]  # an observation to an action

DTYPES = ("float16", "float32", "float64")


@dataclass(frozen=True, eq=False)
class ContinuousActions(Serializable):
    """Arrays of real numbers between bounds; the outputs, one per entry, are clipped to them.

    Attributes:
        low: the lower bounds, in the shape of an action; −inf for a missing bound.
        high: the upper bounds, in the same shape.
        dtype: the type of an action's numbers: "float32", "float64" or "float16".

    >>> ContinuousActions(low=[-1.0, -1.0], high=[1.0, np.inf]).outputs
    2
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
        return math.prod(self.shape)

    def bind(self, outputs: Outputs) -> Act:
        """A function from an observation to an action; it checks nothing, and every action is a new array."""
        low, high, shape, dtype = self.low.reshape(-1), self.high.reshape(-1), self.shape, np.dtype(self.dtype)
        maximum, minimum = np.maximum, np.minimum

        def clipped(observation: Any) -> Array:
            action = outputs(observation)
            maximum(action, low, out=action)  # np.clip takes three times as long
            minimum(action, high, out=action)
            return action

        bounded = bool(np.isfinite(low).any() or np.isfinite(high).any())
        flat = clipped if bounded else outputs
        if dtype == np.float64 and len(shape) == 1:
            return flat
        if len(shape) == 1:
            return lambda observation: flat(observation).astype(dtype)
        return lambda observation: flat(observation).astype(dtype).reshape(shape)


@dataclass(frozen=True)
class DiscreteActions(Serializable):
    """The whole numbers start, start + 1, …, start + n − 1.

    With two actions, the sign of one output decides: the second action if it is positive, else the first. Otherwise
    each action has an output, and the largest one decides; the first of equal ones.

    >>> DiscreteActions(2).outputs, DiscreteActions(3).outputs
    (1, 3)
    """

    n: int
    start: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", positive_int("n", self.n))
        object.__setattr__(self, "start", whole("start", self.start))

    @property
    def outputs(self) -> int:
        """How many outputs a policy needs."""
        return 1 if self.n == 2 else self.n

    def bind(self, outputs: Outputs) -> Act:
        """A function from an observation to an action; it checks nothing."""
        start = self.start
        if self.n == 2:
            return self.bind_sign(lambda observation: outputs(observation)[0], 0.0)
        return lambda observation: start + int(outputs(observation).argmax())

    def bind_sign(self, output: Callable[[Any], Any], threshold: float) -> Act:
        """The choice between two actions: the second one if the output is above the threshold."""
        first, second = self.start, self.start + 1
        return lambda observation: second if output(observation) > threshold else first


Actions: TypeAlias = ContinuousActions | DiscreteActions
