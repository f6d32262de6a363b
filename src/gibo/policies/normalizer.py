"""Statistics of the states of a policy, and the conversion of its parameters when the normalisation changes.

Symbols
-------
s : (k,)     a state: an observation, flattened
count, mean, m2   the number of states, their mean (k,), and the sums of squared deviations from it (k,)
std : (k,)   √(m2/count), with a floor

A policy with a normalisation uses (s − mean)/std instead of s. When the normalisation changes, the same behaviour has
other parameters; `reexpress` gives them. An optimiser's values belong to behaviours, so its points are converted, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gibo._checks import as_finite, as_vector, describe, instance, natural, positive_int, shown
from gibo._linalg import Array
from gibo._serialize import to_plain
from gibo.errors import InputError, NumericalError
from gibo.policies.architecture import Architecture

# A state with a standard deviation of at most max(FLOOR, RELATIVE_FLOOR·|mean|) counts as constant: the rest is
# rounding, and dividing by it would make it the largest input.
FLOOR, RELATIVE_FLOOR = 1e-8, 1e-12
LARGEST_COUNT = 2**53  # number of states, above which a float cannot count

# Number of states that a `Collector` buffers before it merges them into its statistics.
CHUNK = 128


@dataclass(frozen=True, eq=False)
class Normalization:
    """A policy uses ``(s − mean)/std`` instead of the state s.

    Attributes:
        mean: (k,)
        std: (k,) positive.
    """

    mean: Array
    std: Array

    def __post_init__(self) -> None:
        mean = as_vector("mean", self.mean)
        std = as_vector("std", self.std, len(mean))
        if not (std > 0.0).all():
            raise InputError(f"std: expected positive numbers, got {std.min()}")
        _freeze(self, mean=mean, std=std)

    @classmethod
    def identity(cls, k: int) -> Normalization:
        """Mean 0 and std 1: changes nothing."""
        return cls(np.zeros(positive_int("k", k)), np.ones(k))

    def __call__(self, states: npt.ArrayLike) -> Array:
        """Normalised states, (k,) or (n, k)."""
        array = as_finite("states", states)
        k = len(self.mean)
        if array.ndim not in (1, 2) or array.shape[-1] != k:
            raise InputError(f"states: expected shape ({k},) or (n, {k}), got {array.shape}")
        return (array - self.mean) / self.std

    def to_plain(self) -> dict[str, Any]:
        """Data that JSON can hold."""
        return {"mean": to_plain(self.mean), "std": to_plain(self.std)}

    @classmethod
    def from_plain(cls, data: Any) -> Normalization:
        """The inverse of `to_plain`, bit for bit."""
        return cls(**_fields("normalization", data, ("mean", "std")))


@dataclass(frozen=True, eq=False)
class Statistics:
    """Count, mean and sums of squared deviations of states; immutable: `merge` returns a new one."""

    count: int
    mean: Array
    m2: Array

    def __post_init__(self) -> None:
        count = natural("count", self.count)
        if count > LARGEST_COUNT:
            raise InputError(f"count: expected at most {LARGEST_COUNT}, got {shown(count)}")
        mean = as_vector("mean", self.mean)
        m2 = as_vector("m2", self.m2, len(mean))
        if not (m2 >= 0.0).all():
            raise InputError(f"m2: expected non-negative numbers, got {m2.min()}")
        object.__setattr__(self, "count", count)
        _freeze(self, mean=mean, m2=m2)

    @classmethod
    def empty(cls, k: int) -> Statistics:
        """The statistics of no states."""
        return cls(0, np.zeros(positive_int("k", k)), np.zeros(k))

    @classmethod
    def of(cls, states: npt.ArrayLike) -> Statistics:
        """The statistics of states (n, k), one per row."""
        S = as_finite("states", states, ndim=2)
        if not len(S):
            return cls.empty(S.shape[1])
        # Deviations from the first state: they are exactly zero for a constant state.
        with np.errstate(over="ignore", invalid="ignore"):  # what comes of it is refused
            deviations = S - S[0]
            shift = deviations.mean(axis=0)
            m2 = ((deviations - shift) ** 2).sum(axis=0)
        return cls(len(S), S[0] + shift, m2)

    def merge(self, other: Statistics) -> Statistics:
        """Statistics of both sets of states together.

        ``mean = mean_a + δ·n_b/n``, ``m2 = m2_a + m2_b + δ²·n_a·n_b/n`` with ``δ = mean_b − mean_a`` (Chan, Golub and
        LeVeque: Updating formulae and a pairwise algorithm for computing sample variances, COMPSTAT 1982).
        """
        if len(self.mean) != len(instance("other", other, Statistics, "Statistics").mean):
            raise InputError(f"statistics: expected states of {len(self.mean)} numbers, got {len(other.mean)}")
        if not self.count or not other.count:
            return self if self.count else other
        count = self.count + other.count
        delta = other.mean - self.mean
        mean = self.mean + delta * (other.count / count)
        with np.errstate(over="ignore"):  # what comes of it is refused
            m2 = self.m2 + other.m2 + delta**2 * (self.count * (other.count / count))
        return Statistics(count, mean, m2)

    @property
    def std(self) -> Array:
        """(k,) standard deviations, ``√(m2/count)``.

        It is 1 for a constant state, whose standard deviation is at most ``max(1e-8, 1e-12·|mean|)``, and for fewer
        than two states.
        """
        std = np.sqrt(self.m2 / max(self.count, 1))
        std[std <= np.maximum(FLOOR, RELATIVE_FLOOR * np.abs(self.mean))] = 1.0
        return std

    @property
    def normalization(self) -> Normalization:
        """The normalisation with this mean and std; the identity without states."""
        return Normalization(self.mean, self.std)

    def to_plain(self) -> dict[str, Any]:
        """Data that JSON can hold."""
        return {"count": self.count, "mean": to_plain(self.mean), "m2": to_plain(self.m2)}

    @classmethod
    def from_plain(cls, data: Any) -> Statistics:
        """The inverse of `to_plain`, bit for bit."""
        return cls(**_fields("statistics", data, ("count", "mean", "m2")))


class Collector:
    """Statistics of observations of this shape that arrive one by one."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._chunk = np.empty((CHUNK, *shape))
        self._held = 0
        self._statistics = Statistics.empty(self._chunk[0].size)

    def add(self, observation: Any) -> None:
        """Add an observation; its shape is not checked."""
        self._chunk[self._held] = observation
        self._held += 1
        if self._held == CHUNK:
            self.statistics()

    def statistics(self) -> Statistics:
        """The statistics of all observations so far."""
        if self._held:
            states = self._chunk[: self._held].reshape(self._held, -1)
            self._held = 0
            try:
                self._statistics = self._statistics.merge(Statistics.of(states))
            except InputError:
                text = "an observation is not finite, or too large to be squared: it has no statistics"
                raise NumericalError(text) from None
        return self._statistics


@dataclass(frozen=True, eq=False)
class Reexpression:
    """The linear map ``θ' = T θ`` from parameters under one normalisation to those under another.

    It acts on the first layer, ``W' = W diag(std'/std)``, ``b' = b + W ((mean' − mean)/std)``, and leaves the rest.

    Attributes:
        d: number of parameters.
        units: outputs of the first layer.
        ratio: (k,) std'/std.
        shift: (k,) (mean' − mean)/std; None for a linear policy, which has no biases.
    """

    d: int
    units: int
    ratio: Array
    shift: Array | None

    def parameters(self, theta: npt.ArrayLike) -> Array:
        """T θ, for one vector (d,) or many (n, d)."""
        result, W, b = self._parts("theta", theta)
        if self.shift is not None:
            b += W @ self.shift
        W *= self.ratio
        return result

    def gradients(self, g: npt.ArrayLike) -> Array:
        """T⁻ᵀ g, for one gradient (d,) or many (n, d): the gradient of the same function in the new parameters.

        ``g'·dθ' = g·dθ``. A gradient's covariance S becomes T⁻ᵀ S T⁻¹: ``gradients(gradients(S).T).T``.
        """
        result, W, b = self._parts("gradient", g)
        if self.shift is not None:
            W -= b[..., np.newaxis] * self.shift
        W /= self.ratio
        return result

    def _parts(self, name: str, value: npt.ArrayLike) -> tuple[Array, Array, Array]:
        """A copy, and the views on its first layer: W (…, h, k) and b (…, h)."""
        copy = as_finite(name, value)
        if copy.ndim not in (1, 2) or copy.shape[-1] != self.d:
            raise InputError(f"{name}: expected shape ({self.d},) or (n, {self.d}), got {copy.shape}")
        weights = self.units * len(self.ratio)
        W = copy[..., :weights].reshape(*copy.shape[:-1], self.units, len(self.ratio))
        return copy, W, copy[..., weights : weights + self.units]


def reexpress(architecture: Architecture, old: Normalization, new: Normalization) -> Reexpression:
    """The map of parameters that keeps a policy's behaviour when its normalisation changes from old to new.

    A linear policy has no biases: a change of the mean changes its outputs by the constant ``W ((mean' − mean)/std)``.

    Example:
        >>> from gibo.policies.architecture import Affine
        >>> old, new = Normalization([0.0], [1.0]), Normalization([3.0], [2.0])
        >>> reexpress(Affine(inputs=1, outputs=1), old, new).parameters([5.0, 1.0])  # 5 s + 1 = 10 (s − 3)/2 + 16
        array([10., 16.])
    """
    instance("architecture", architecture, Architecture, "one such as Affine(inputs, outputs)")
    for normalization in (old, new):
        instance("normalization", normalization, Normalization, "a Normalization")
        if len(normalization.mean) != architecture.inputs:
            k = len(normalization.mean)
            raise InputError(f"normalization: expected states of {architecture.inputs} numbers, got {k}")
    return Reexpression(
        d=architecture.d,
        units=architecture.sizes[1],
        ratio=new.std / old.std,
        shift=(new.mean - old.mean) / old.std if architecture.has_bias else None,
    )


def _freeze(value: Any, **arrays: Array) -> None:
    """Set fields of a frozen dataclass to read-only arrays."""
    for name, array in arrays.items():
        array.flags.writeable = False
        object.__setattr__(value, name, array)


def _fields(name: str, data: Any, expected: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(data, dict) or set(data) != set(expected):
        raise InputError(f"{name}: expected a dictionary with {', '.join(expected)}, got {describe(data)}")
    return data
