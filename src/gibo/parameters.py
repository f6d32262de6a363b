"""Named parameters with ranges, log scales and whole numbers, and the vector of an optimiser.

::

    parameters = Parameters(gain=log(0.1, 100), delay=integer(1, 9), angle=linear(-1, 1, start=0.2))
    parameters.x0, parameters.scale, parameters.bounds      # for an optimiser
    parameters.to_values(x)                                 # {"gain": 3.2, "delay": 5, "angle": 0.2} for an objective

Symbols
-------
value : float or int   the user's value: a gain, a delay
x : float              the entry of the optimiser's vector: ln(value) on a log scale, else the value
"""

from __future__ import annotations

import keyword
import math
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from gibo._checks import Box, as_flag, as_number, as_vector, describe, finite, instance, one_of, shown
from gibo._linalg import Array
from gibo._serialize import read_file
from gibo.errors import InputError

__all__ = ["SHARE", "Box", "Parameter", "Parameters", "free", "integer", "linear", "log"]

Kind: TypeAlias = Literal["linear", "log", "integer", "free"]

# The default scale as a share of the range. The ends of a range are usually clearly wrong, so that a much smaller
# change has an effect. The share matters little: on smooth functions of 4 and 10 parameters, 0.06 to 0.3 gave the same
# results, and 0.03 slightly worse ones.
SHARE = 0.1
# The keys of a saved parameter; any other key is an error.
FIELDS = ("kind", "lower", "upper", "start", "scale", "log")
LARGEST_WHOLE = 2**53  # above it, floats do not represent every whole number
# An objective gets other data under these names.
RESERVED = ("seed", "kind")


@dataclass(frozen=True)
class Parameter:
    """One parameter; made by `linear`, `log`, `integer` and `free`.

    Attributes:
        kind: "linear", "log", "integer" or "free".
        lower, upper: the ends of its range, inclusive; None for "free".
        start: the start of the search; None: the middle of the range, on its scale.
        scale: the change that has a clear effect, roughly; on a log scale, a factor. None: from the range.
        log: whether it is on a log scale; always for "log", optional for "integer".
    """

    kind: Kind
    lower: float | None = None
    upper: float | None = None
    start: float | None = None
    scale: float | None = None
    log: bool = False

    def __post_init__(self) -> None:
        one_of("kind", self.kind, get_args(Kind))
        if as_flag("log", self.log) and self.kind in ("linear", "free"):
            raise InputError(f'log: a parameter of kind "{self.kind}" has no log scale; use log(lower, upper)')
        self._put("log", self.log or self.kind == "log")
        if self.kind != "free":
            self._check_range()
        elif self.lower is not None or self.upper is not None or self.start is None or self.scale is None:
            raise InputError("free: expected a start and a scale, and no bounds; with bounds, use linear(lower, upper)")
        else:
            self._put("start", self._number("start", self.start))
        if self.scale is not None:
            scale, least = as_number("scale", self.scale), 1.0 if self.log else 0.0
            if not least < scale < math.inf:
                factor = ", a factor on the log scale" if self.log else ""
                raise InputError(f"scale: expected a finite number above {least:g}{factor}, got {scale}")
            self._put("scale", scale)

    def _put(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _check_range(self) -> None:
        if self.lower is None or self.upper is None:
            raise InputError(f"{self.kind}: expected lower and upper; without bounds, use free(start, scale)")
        lower, upper = self._number("lower", self.lower), self._number("upper", self.upper)
        if lower >= upper:
            text = f"lower, upper: expected lower below upper, got {lower} and {upper}"
            raise InputError(f"{text}; set a fixed parameter in your objective instead")
        if self.log and lower <= 0:
            raise InputError(f"lower: a log scale needs a positive lower, got {lower}; use linear({lower}, {upper})")
        self._put("lower", lower)
        self._put("upper", upper)
        width = self.inner_upper - self.inner_lower
        if not 0.0 < width < math.inf:
            raise InputError(f"lower, upper: too close for a log scale, or too far apart: {lower} and {upper}")
        start = self.start
        if start is None:
            start = self.value(self.inner_lower + width / 2.0)
            if self.kind == "log":  # so that 0.1 and 1000 give 10 exactly
                start = min(max(float(f"{start:.12g}"), lower), upper)
        start = self._number("start", start)
        if not lower <= start <= upper:
            raise InputError(f"start: expected a value within [{lower}, {upper}], got {start}")
        self._put("start", start)

    def _number(self, name: str, value: Any) -> float:
        """A finite number; an int for a parameter with whole numbers."""
        if isinstance(value, (bool, np.bool_)):
            raise InputError(f"{name}: expected a number, got {describe(value)}; for a switch, say integer(0, 1)")
        number = finite(name, value)
        if self.kind != "integer":
            return number
        if not number.is_integer() or abs(number) > LARGEST_WHOLE:
            raise InputError(f"{name}: expected a whole number of at most 2**53, got {shown(value)}")
        return int(number)

    # -- the vector's entry -------------------------------------------------------------------------------------------

    @property
    def inner_lower(self) -> float:
        """The lower bound of the vector's entry."""
        return -math.inf if self.lower is None else self._inner(self.lower)

    @property
    def inner_upper(self) -> float:
        """The upper bound of the vector's entry."""
        return math.inf if self.upper is None else self._inner(self.upper)

    @property
    def inner_start(self) -> float:
        """The start of the vector's entry."""
        assert self.start is not None  # the check sets it
        return self._inner(self.start)

    @property
    def inner_scale(self) -> float:
        """The change of the vector's entry that has a clear effect: as given, or `SHARE` of the range.

        For whole numbers at least one step at the start; a smaller change has no effect at all.
        """
        if self.scale is not None:
            return math.log(self.scale) if self.log else self.scale
        share = SHARE * (self.inner_upper - self.inner_lower)
        if self.kind != "integer" or self.start is None:
            return share
        return max(share, self._inner(self.start + 1) - self.inner_start)

    def _inner(self, value: float) -> float:
        return math.log(value) if self.log else float(value)

    def inner(self, value: Any) -> float:
        """The vector's entry for a valid value."""
        number = self._number("value", value)
        if self.lower is not None and self.upper is not None and not self.lower <= number <= self.upper:
            raise InputError(f"value: expected one within [{self.lower}, {self.upper}], got {shown(value)}")
        return self._inner(number)

    def value(self, x: float) -> float:
        """The value for an entry of the vector: within the bounds, exact at the ends and the start, rounded if whole.

        If two neighbouring values have the same logarithm, it is the end.
        """
        x = finite("x", x)
        # The inverse of the logarithm may miss these values by a rounding error.
        for known in (self.lower, self.upper, self.start):
            if known is not None and x == self._inner(known):
                return known
        value = x
        if self.log:
            value = math.exp(min(max(x, self.inner_lower), self.inner_upper))
        if self.kind == "integer":
            value = round(value)
        return value if self.lower is None or self.upper is None else min(max(value, self.lower), self.upper)

    def rounded(self, x: float) -> float:
        """The vector's entry of the value that is evaluated at x."""
        x = finite("x", x)
        if self.kind == "integer":
            return self._inner(self.value(x))
        return min(max(x, self.inner_lower), self.inner_upper)

    def to_plain(self) -> dict[str, Any]:
        """Plain data for JSON and TOML."""
        plain = {name: getattr(self, name) for name in FIELDS if getattr(self, name) is not None}
        if self.kind != "integer" or not self.log:
            del plain["log"]
        return plain


def linear(lower: float, upper: float, *, start: float | None = None, scale: float | None = None) -> Parameter:
    """A real number between lower and upper."""
    return Parameter("linear", lower, upper, start, scale)


def log(lower: float, upper: float, *, start: float | None = None, scale: float | None = None) -> Parameter:
    """A positive number on a log scale, such as a gain or a rate; its scale is a factor.

    >>> log(0.1, 1000).start, log(0.1, 100, scale=2).inner_scale == math.log(2)
    (10.0, True)
    """
    return Parameter("log", lower, upper, start, scale)


def integer(
    lower: int, upper: int, *, start: int | None = None, scale: float | None = None, log: bool = False
) -> Parameter:
    """A whole number from lower to upper, inclusive; with ``log=True`` on a log scale."""
    return Parameter("integer", lower, upper, start, scale, log)


def free(start: float, scale: float) -> Parameter:
    """A real number without bounds."""
    return Parameter("free", start=start, scale=scale)


@dataclass(frozen=True, init=False)
class Parameters:
    """Named parameters, in the order of the arguments.

    Example:
        >>> parameters = Parameters(gain=log(0.1, 1000), delay=integer(1, 9), angle=linear(-1, 1, start=0.2))
        >>> parameters.to_values(parameters.x0)
        {'gain': 10.0, 'delay': 5, 'angle': 0.2}
        >>> parameters.to_vector({"gain": 1.0, "delay": 3, "angle": 0.0})
        array([0., 3., 0.])
    """

    entries: dict[str, Parameter]

    def __init__(self, /, **parameters: Parameter) -> None:
        if not parameters:
            raise InputError("Parameters: expected at least one, as in Parameters(gain=log(0.1, 100))")
        for name, parameter in parameters.items():
            if not name.isidentifier() or keyword.iskeyword(name):
                raise InputError(f"{shown(name)}: expected a valid name of a Python argument, such as gain_1")
            if name in RESERVED:
                raise InputError(f"{name}: the run passes its own {name} to the objective; choose another name")
            instance(name, parameter, Parameter, "linear(...), log(...), integer(...) or free(...)")
        object.__setattr__(self, "entries", dict(parameters))

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __getitem__(self, name: str) -> Parameter:
        one_of("parameter", name, self.names)
        return self.entries[name]

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in the order of the vector."""
        return tuple(self.entries)

    @property
    def d(self) -> int:
        """Number of parameters."""
        return len(self.entries)

    @property
    def x0(self) -> Array:
        """(d,) the start as a vector."""
        return self._each("inner_start")

    @property
    def scale(self) -> Array:
        """(d,) the change of each entry of the vector that has a clear effect."""
        return self._each("inner_scale")

    @property
    def bounds(self) -> Box | None:
        """The vector's bounds, infinite for missing ones; None if all are missing."""
        if all(parameter.kind == "free" for parameter in self.entries.values()):
            return None
        return Box(self._each("inner_lower"), self._each("inner_upper"))

    def to_vector(self, values: Mapping[str, Any]) -> Array:
        """The vector (d,) for a value of each parameter, by name."""
        for name in instance("values", values, Mapping, "a value for each name, as in {'gain': 1.0}"):
            one_of("values", name, self.names)
        missing = [name for name in self.entries if name not in values]
        if missing:
            raise InputError(f"values: expected a value for each name; missing: {', '.join(missing)}")
        return np.array([_named(name, p.inner, values[name]) for name, p in self.entries.items()])

    def to_values(self, x: npt.ArrayLike) -> dict[str, float]:
        """The values (Python floats and ints) that are evaluated at a vector (d,).

        Values outside of the bounds are moved to the nearest bound. Whole numbers are rounded.
        """
        entries = as_vector("x", x, self.d).tolist()
        return {name: p.value(entry) for (name, p), entry in zip(self.entries.items(), entries, strict=True)}

    def rounded(self, x: npt.ArrayLike) -> Array:
        """The vector (d,) of the values that are evaluated at x; a model should use it instead of x.

        >>> Parameters(delay=integer(1, 9), angle=linear(-1, 1)).rounded([4.4, 0.3])
        array([4. , 0.3])
        """
        entries = as_vector("x", x, self.d).tolist()
        return np.array([p.rounded(entry) for p, entry in zip(self.entries.values(), entries, strict=True)])

    # -- files --------------------------------------------------------------------------------------------------------

    def to_plain(self) -> dict[str, dict[str, Any]]:
        """Plain data for JSON and TOML: a table for each name."""
        return {name: parameter.to_plain() for name, parameter in self.entries.items()}

    @classmethod
    def from_plain(cls, data: Any) -> Parameters:
        """The inverse of `to_plain`; start and scale are optional.

        >>> Parameters.from_plain({"gain": {"kind": "log", "lower": 0.1, "upper": 100, "start": 1}}).x0
        array([0.])
        """
        instance("parameters", data, Mapping, "a table for each name")
        return cls(**{str(name): _named(str(name), _from_table, table) for name, table in data.items()})

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> Parameters:
        """Read the tables ``[parameters.NAME]`` of a TOML file.

        ::

            [parameters.gain]
            kind = "log"
            lower = 0.1
            upper = 100
            start = 1
        """
        with read_file(path, tomllib.loads, "TOML") as data:
            if "parameters" not in data:
                raise InputError("expected a table [parameters.NAME] for each parameter, found none")
            return cls.from_plain(data["parameters"])

    def _each(self, attribute: str) -> Array:
        return np.array([getattr(parameter, attribute) for parameter in self.entries.values()], dtype=np.float64)


def _from_table(table: Any) -> Parameter:
    for key in instance("parameter", table, Mapping, "a table with kind, lower and upper"):
        one_of("keys", key, FIELDS, "; fixed, conditional and categorical parameters are not supported")
    if "kind" not in table:
        raise InputError('kind is missing; expected "linear", "log", "integer" or "free"')
    return Parameter(**table)


def _named(name: str, function: Any, argument: Any) -> Any:
    """Call a function, and put the parameter's name before its error message."""
    try:
        return function(argument)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
