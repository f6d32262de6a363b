"""Several named parameters: converts between a dictionary of values and the optimiser's vector."""

from __future__ import annotations

import difflib
import keyword
import os
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gibo._checks import as_path, as_vector, describe, instance, shown
from gibo._linalg import Array
from gibo.errors import InputError
from gibo.parameters.parameter import FIELDS, Parameter

# An objective gets other data under these names.
RESERVED = ("seed", "kind")


class Box(NamedTuple):
    """Lower and upper bounds (d,), as in ``scipy.optimize.Bounds``; a pair is ambiguous in two dimensions."""

    lb: Array
    ub: Array


@dataclass(frozen=True, init=False)
class Parameters:
    """Named parameters, in the order of the arguments.

    Example:
        >>> from gibo.parameters import integer, linear, log
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
            _check_name(name)
            _check_parameter(name, parameter)
        object.__setattr__(self, "entries", dict(parameters))

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __getitem__(self, name: str) -> Parameter:
        if name not in self.entries:
            raise InputError(_unknown(name, self.names))
        return self.entries[name]

    def __repr__(self) -> str:
        return f"Parameters({', '.join(f'{name}={p}' for name, p in self.entries.items())})"

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
        if not isinstance(values, Mapping):
            raise InputError(f"values: expected a value for each name, as in {{'gain': 1.0}}, got {describe(values)}")
        for name in values:
            if name not in self.entries:
                raise InputError(_unknown(name, self.names))
        missing = [name for name in self.entries if name not in values]
        if missing:
            raise InputError(f"values: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")
        return np.array([_named(name, p.inner, values[name]) for name, p in self.entries.items()])

    def to_values(self, x: npt.ArrayLike) -> dict[str, float]:
        """The values (Python floats and ints) that are evaluated at a vector (d,).

        Values outside of the bounds are moved to the nearest bound. Whole numbers are rounded.
        """
        entries = as_vector("x", x, self.d).tolist()
        return {name: p.value(entry) for (name, p), entry in zip(self.entries.items(), entries, strict=True)}

    def rounded(self, x: npt.ArrayLike) -> Array:
        """The vector (d,) of the values that are evaluated at x; a model should use it instead of x.

        >>> from gibo.parameters import integer, linear
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
        if not isinstance(data, Mapping):
            raise InputError(f"parameters: expected a table for each name, got {describe(data)}")
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
        with read_toml(path) as data:
            if "parameters" not in data:
                raise InputError("expected a table [parameters.NAME] for each parameter, found none")
            return cls.from_plain(data["parameters"])

    def _each(self, attribute: str) -> Array:
        return np.array([getattr(parameter, attribute) for parameter in self.entries.values()], dtype=np.float64)


@contextmanager
def read_toml(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """The content of a TOML file; errors in this block begin with the file's name."""
    path = as_path("path", path)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not readable as TOML: {error}") from None
    try:
        yield data
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


# -- checks -----------------------------------------------------------------------------------------------------------


def _check_name(name: str) -> None:
    if not name.isidentifier() or keyword.iskeyword(name):
        raise InputError(f"{shown(name)}: expected a valid name of a Python argument, such as gain_1")
    if name in RESERVED:
        raise InputError(f"{name}: the run passes its own {name} to the objective under this name; choose another one")


def _check_parameter(name: str, parameter: Any) -> None:
    if isinstance(parameter, Parameter):
        return
    text = f"{name}: expected linear(...), log(...), integer(...) or free(...), got {describe(parameter)}"
    if callable(parameter):
        text = f"{name}: parameters that depend on others are not supported; use a parameter that always exists"
    elif isinstance(parameter, (int, float, np.number)):
        text += "; omit a fixed parameter and set its value in your objective"
    elif isinstance(parameter, (list, tuple, set, frozenset, str)):
        text += "; categorical choices are not supported: make one run for each"
    raise InputError(text)


def _from_table(table: Any) -> Parameter:
    if not isinstance(table, Mapping):
        raise InputError(f"expected a table with kind, lower and upper, got {describe(table)}")
    kind = table.get("kind")
    if kind is not None:
        instance("kind", kind, str, "a text")
    if kind == "fixed" or "value" in table:
        raise InputError("fixed parameters are not searched; omit it and set its value in your objective")
    if kind in ("categorical", "choice") or "choices" in table:
        raise InputError("categorical choices are not supported: make one run for each")
    conditions = [key for key in ("if", "when", "condition", "depends_on", "parent") if key in table]
    if conditions:
        raise InputError(f"{conditions[0]}: parameters that depend on others are not supported")
    unknown = [key for key in table if key not in FIELDS]
    if unknown:
        raise InputError(_unknown(unknown[0], FIELDS))
    if kind is None:
        raise InputError('kind is missing; expected "linear", "log", "integer" or "free"')
    return Parameter(**table)


def _named(name: str, function: Any, argument: Any) -> Any:
    """Call a function, and put the parameter's name before its error message."""
    try:
        return function(argument)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def _unknown(name: Any, known: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(str(name), known, n=1)
    hint = f"did you mean {close[0]}?" if close else f"expected {', '.join(known[:12])}"
    return f"{shown(name)} is unknown; {hint}"
