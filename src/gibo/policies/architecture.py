"""The function of a policy without its parameters: their number and their positions in the vector.

Symbols
-------
k : int      numbers in a state (`inputs`)
m : int      numbers in the output (`outputs`)
d : int      number of parameters
theta : (d,) all parameters in one vector, layer after layer; in each layer W row by row, and then b
W : (h, k)   weights of a layer with k inputs and h outputs
b : (h,)     its biases
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from gibo._checks import as_vector, natural, one_of, positive_int, shown
from gibo._linalg import Array
from gibo.errors import InputError

Nonlinearity: TypeAlias = Literal["tanh", "relu"]

LARGEST_POLICY = 10**7  # far more than a search can handle; an error, or a forged file
FORMS = '"linear", "affine", "mlp:16,16" or "mlp:16,16:relu"'


class Layer(NamedTuple):
    """One layer, ``W s + b``; b is None without biases."""

    W: Array
    b: Array | None


@dataclass(frozen=True)
class Architecture:
    """The base of `Linear`, `Affine` and `MLP`.

    Attributes:
        inputs: k, the numbers in a state.
        outputs: m, the numbers in the output.
    """

    inputs: int
    outputs: int

    has_bias: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("inputs", "outputs"):
            object.__setattr__(self, name, positive_int(name, getattr(self, name)))
        if self.d > LARGEST_POLICY:
            raise InputError(f"a policy of {self.d} parameters is too large; at most {LARGEST_POLICY} are possible")

    @property
    def sizes(self) -> tuple[int, ...]:
        """Inputs, hidden units of each layer, outputs."""
        return (self.inputs, *getattr(self, "hidden", ()), self.outputs)

    @property
    def is_relu(self) -> bool:
        """Whether hidden layers use max(0, ·) instead of tanh."""
        return getattr(self, "nonlinearity", "tanh") == "relu"

    @property
    def d(self) -> int:
        """Number of parameters."""
        return sum(h * (k + self.has_bias) for k, h in pairwise(self.sizes))

    @property
    def text(self) -> str:
        """The short form that `architecture` reads."""
        return type(self).__name__.lower()

    def initial(self, seed: int | None = None) -> Array:
        """The initial parameters: zeros.

        With a seed, the weights of hidden layers are drawn from N(0, 1/k), where k is the number of the layer's inputs;
        the others are zero, and so are the outputs. If all are zero, hidden weights have no first-order effect.
        """
        theta, start = np.zeros(self.d), 0
        if seed is not None:
            rng = np.random.default_rng(natural("seed", seed))
            for k, h in pairwise(self.sizes[:-1]):
                theta[start : start + h * k] = rng.standard_normal(h * k) / math.sqrt(k)
                start += h * (k + self.has_bias)
        return theta

    def layers(self, theta: npt.ArrayLike) -> list[Layer]:
        """The parameters of each layer, first to last."""
        rest, layers = as_vector("theta", theta, self.d), []
        for k, h in pairwise(self.sizes):
            weights, rest = np.split(rest, [h * k])
            b, rest = np.split(rest, [h]) if self.has_bias else (None, rest)
            layers.append(Layer(weights.reshape(h, k), b))
        return layers


@dataclass(frozen=True)
class Linear(Architecture):
    """``a = W s``. The parameters are W, row by row."""

    has_bias: ClassVar[bool] = False


@dataclass(frozen=True)
class Affine(Architecture):
    """``a = W s + b``. The parameters are W, row by row, and then b."""


@dataclass(frozen=True)
class MLP(Architecture):
    """A multi-layer perceptron: ``h = f(W s + b)`` in every hidden layer, ``a = W h + b`` in the last one.

    The parameters are those of the first layer, W row by row and then b, those of the second layer, and so on.

    Attributes:
        hidden: units of each hidden layer.
        nonlinearity: f, "tanh" or "relu".

    >>> MLP(inputs=4, outputs=2, hidden=(16, 16)).d
    386
    """

    hidden: tuple[int, ...] = (16, 16)
    nonlinearity: Nonlinearity = "tanh"

    def __post_init__(self) -> None:
        if not isinstance(self.hidden, (list, tuple)) or not self.hidden:
            text = "hidden: expected the units of each hidden layer, as in (16, 16)"
            raise InputError(f"{text}, got {shown(self.hidden)}")
        object.__setattr__(self, "hidden", tuple(positive_int("hidden", units) for units in self.hidden))
        one_of("nonlinearity", self.nonlinearity, ("tanh", "relu"))
        super().__post_init__()

    @property
    def text(self) -> str:
        units = ",".join(map(str, self.hidden))
        return f"mlp:{units}" + ("" if self.nonlinearity == "tanh" else f":{self.nonlinearity}")


def architecture(text: str, inputs: int, outputs: int) -> Architecture:
    """Read the short form: "linear", "affine", "mlp:16,16" or "mlp:16,16:relu".

    >>> architecture("mlp:8:relu", inputs=4, outputs=1)
    MLP(inputs=4, outputs=1, hidden=(8,), nonlinearity='relu')
    """
    if isinstance(text, str) and text in ("linear", "affine"):
        return (Linear if text == "linear" else Affine)(inputs, outputs)
    form = r"mlp:([1-9][0-9]{0,8}(?:,[1-9][0-9]{0,8})*)(?::(tanh|relu))?"
    found = re.fullmatch(form, text, flags=re.ASCII) if isinstance(text, str) else None
    if found is None:
        raise InputError(f"policy: expected {FORMS}, got {shown(text)}")
    hidden = tuple(int(units) for units in found[1].split(","))
    return MLP(inputs, outputs, hidden, "relu" if found[2] == "relu" else "tanh")


def with_parameters(text: str, inputs: int, d: int) -> Architecture:
    """The architecture of this short form and these inputs that has d parameters."""
    for outputs in range(1, d + 1):
        found = architecture(text, inputs, outputs)
        if found.d == d:
            return found
    raise InputError(f"policy: no {text} policy of {inputs} states has {d} parameters")
