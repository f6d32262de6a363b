"""Checks of users' arguments. Each error says what was expected, what came and what to do."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Collection
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from gibo._linalg import Array
from gibo.errors import InputError

# Squares and sums of anything smaller stay far inside the range of floats, so no formula needs a guard of its own.
LARGEST = 1e100
LARGEST_BATCH = 10_000
LARGEST_SIZE = 10**8  # of any sequence; NumPy would iterate over a range of 10¹² numbers

T = TypeVar("T")


def as_finite(name: str, value: Any, ndim: int | None = None) -> Array:
    """A float64 copy of an array with finite entries only and, if given, this number of dimensions."""
    try:
        if hasattr(value, "__len__") and not hasattr(value, "dtype") and len(value) > LARGEST_SIZE:
            raise InputError(f"{name}: expected at most {LARGEST_SIZE:.0e} numbers, got {len(value)}")
        raw = np.asarray(value)
        if raw.size and raw.dtype.kind not in "fiub":  # neither strings of digits nor complex numbers
            raise InputError(f"{name}: expected numbers, got {describe(value)}")
        array = np.array(raw, dtype=np.float64)
    except InputError:
        raise
    except Exception:  # nested sequences of different lengths; and a foreign __array__ may raise anything
        raise InputError(f"{name}: expected numbers, got {describe(value)}") from None
    if ndim is not None and array.ndim != ndim:
        shapes = {0: "a number", 1: "a vector, shape (d,)", 2: "a matrix of points, shape (n, d)"}
        raise InputError(f"{name}: expected {shapes[ndim]}, got shape {array.shape}")
    if not np.isfinite(array).all():
        where = np.argwhere(~np.isfinite(array))[0]
        place = f" at index {', '.join(map(str, where))}" if array.ndim else ""
        raise InputError(f"{name}: expected finite numbers, got {array[tuple(where)]}{place}")
    return array


def moderate(name: str, array: Array) -> Array:
    """Raise if a number is so large that a sum of squares would overflow."""
    if array.size and float(np.abs(array).max()) > LARGEST:
        raise InputError(f"{name}: expected numbers of at most {LARGEST:g} in size; use other units")
    return array


def as_points(name: str, value: npt.ArrayLike, d: int) -> Array:
    """A finite (n, d) array."""
    array = as_finite(name, value, ndim=2)
    if array.shape[1] != d:
        raise InputError(f"{name}: expected points of {d} dimensions, got {array.shape[1]}")
    return array


def as_vector(name: str, value: npt.ArrayLike, d: int | None = None) -> Array:
    """A finite, non-empty (d,) array."""
    array = as_finite(name, value, ndim=1)
    if not array.size or (d is not None and len(array) != d):
        raise InputError(f"{name}: expected a vector of {'one or more' if d is None else d} numbers, got {len(array)}")
    return array


def one_or_many(name: str, x: npt.ArrayLike, d: int | None = None) -> tuple[Array, bool]:
    """One point (d,) or several (p, d), as an array (p, d); and whether it was one point."""
    array = as_finite(name, x)
    points = array if array.ndim == 2 else as_vector(name, array)[None]
    if not points.shape[1]:
        raise InputError(f"{name}: expected points of one or more dimensions, got shape {points.shape}")
    if d is not None and points.shape[1] != d:
        raise InputError(f"{name}: expected points of {d} dimensions, got {points.shape[1]}")
    return moderate(name, points), array.ndim == 1


def one_per_parameter(name: str, value: npt.ArrayLike, d: int) -> Array:
    """(d,) from a finite number or d of them."""
    array = as_finite(name, value)
    if array.shape not in ((), (d,)):
        raise InputError(f"{name}: expected a number or {d} numbers, one per parameter, got shape {array.shape}")
    return np.broadcast_to(array, (d,)).copy()


def positive(name: str, value: Any, or_zero: bool = False) -> float:
    """A positive (or non-negative) finite float."""
    number = as_number(name, value)
    if not math.isfinite(number) or number < 0 or (number == 0 and not or_zero):
        raise InputError(f"{name}: expected a {'non-negative' if or_zero else 'positive'} finite number, got {number}")
    return number


def natural(name: str, value: Any, least: int = 0, bits: int = 128) -> int:
    """An integer of at least `least` and below 2**bits."""
    try:
        wrong = isinstance(value, (bool, np.timedelta64)) or not isinstance(value, numbers.Integral)
        number = 0 if wrong else int(value)
    except Exception:  # the methods of a foreign object may raise anything
        wrong, number = True, 0
    if wrong or number < least:
        raise InputError(f"{name}: expected a whole number of at least {least}, got {shown(value)}")
    if number >= 1 << bits:
        raise InputError(f"{name}: expected a whole number below 2**{bits}, got {shown(value)}")
    return number


def positive_int(name: str, value: Any) -> int:
    """An integer from 1 to 2**63 − 1, which a database can hold."""
    return natural(name, value, least=1, bits=63)


def batch_size(name: str, value: Any) -> int:
    """An integer from 1 to 10,000: more queries at once are a mistake."""
    number = natural(name, value, least=1)
    if number > LARGEST_BATCH:
        raise InputError(f"{name}: expected at most {LARGEST_BATCH}, got {shown(value)}")
    return number


def as_number(name: str, value: Any) -> float:
    """A float from a number or an array with one number; strings, None and complex numbers are errors."""
    try:
        if isinstance(value, np.ndarray) and value.size == 1:
            value = value.reshape(())[()]
        sized = isinstance(value, np.ndarray) or hasattr(value, "__len__")
        if not sized and not isinstance(value, (complex, np.complexfloating)) and hasattr(value, "__float__"):
            return float(value)
    except OverflowError:
        raise InputError(f"{name}: too large for a float") from None
    except Exception as error:  # the methods of a foreign object may raise anything
        raise InputError(f"{name}: expected a number, got {describe(value)}: {describe_error(error)}") from None
    raise InputError(f"{name}: expected a number, got {describe(value)}")


def as_list(name: str, value: Any, of_what: str) -> list[Any]:
    """The items of an iterable."""
    try:
        return list(value)
    except Exception:  # not iterable, or the methods of a foreign object raise
        raise InputError(f"{name}: expected {of_what}, got {describe(value)}") from None


def as_flag(name: str, value: Any) -> bool:
    """Check that a value is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{name}: expected True or False, got {shown(value)}")
    return bool(value)


def one_of(name: str, value: Any, names: Collection[str], hint: str = "") -> None:
    """Check that a text is one of these."""
    if not isinstance(value, str) or value not in names:
        raise InputError(f"{name}: expected one of {', '.join(map(repr, names))}, got {shown(value)}{hint}")


def instance(name: str, value: T, kind: Any, such_as: str) -> T:
    """Check that a value is an instance of a class."""
    if not isinstance(value, kind):
        raise InputError(f"{name}: expected {such_as}, got {describe(value)}")
    return value


def has_methods(thing: Any, *methods: str) -> bool:
    """Whether an object has methods of these names."""
    try:
        return all(callable(getattr(thing, method, None)) for method in methods)
    except Exception:  # a foreign __getattr__ may raise anything
        return False


def as_path(name: str, value: Any) -> Path:
    """A valid file path."""
    if not isinstance(value, (str, os.PathLike)) or isinstance(value, bytes):
        raise InputError(f"{name}: expected a path, got {describe(value)}")
    try:
        path = Path(value)
        usable = b"\0" not in os.fsencode(path)
    except Exception:  # a foreign __fspath__ may raise anything, and some texts are no file names
        usable = False
    if not usable:
        raise InputError(f"{name}: expected a path, got {describe(value)}")
    return path


def finite(name: str, value: Any) -> float:
    """A finite float; see `as_number`."""
    number = as_number(name, value)
    if not math.isfinite(number):
        raise InputError(f"{name}: expected a finite number, got {number}")
    return number


class Box(NamedTuple):
    """Lower and upper bounds (d,), as in ``scipy.optimize.Bounds``; a pair is ambiguous in two dimensions."""

    lb: Any
    ub: Any


def is_like_bounds(bounds: Any) -> bool:
    """Whether an object is like ``scipy.optimize.Bounds``, which is slow to import."""
    try:
        return hasattr(bounds, "lb") and hasattr(bounds, "ub")
    except Exception:  # a foreign __getattr__ may raise anything
        return False


def as_bounds(bounds: Any, d: int) -> tuple[Array, Array] | None:
    """Lower and upper bounds (d,), or None.

    Accepted: None; (lower, upper), each a number or a vector; d pairs as in SciPy; ``scipy.optimize.Bounds``.
    With two parameters, two vectors can be read in both ways. If both are valid bounds, this is an error.
    """
    if bounds is None:
        return None
    if is_like_bounds(bounds):
        sides = (as_finite_or_infinite("bounds", side) for side in (bounds.lb, bounds.ub))
        lower, upper = (side[0] if side.shape == (1,) else side for side in sides)
        return _ordered(_stack(lower, upper, d))
    try:
        items = list(islice(iter(bounds), max(d, 2) + 1))
        is_pairs = len(items) == d and all(np.shape(item) == (2,) for item in items)
    except Exception:  # no sequence, ragged sequences, or a foreign object
        raise InputError(f"bounds: expected (lower, upper), got {describe(bounds)}") from None
    if is_pairs:
        # Pairs as in SciPy; None means no bound.
        items = [(-np.inf if low is None else low, np.inf if high is None else high) for low, high in items]
    readings = []
    if len(items) == 2:
        readings.append(_stack(items[0], items[1], d))
    if is_pairs:
        readings.append(as_finite_or_infinite("bounds", items).T)
    if not readings:
        raise InputError(
            f"bounds: expected (lower, upper) as numbers or vectors of {d}, or {d} pairs, got {describe(bounds)}"
        )
    possible = [reading for reading in readings if (reading[0] < reading[1]).all()]
    if len(possible) == 2 and not np.array_equal(possible[0], possible[1]):
        raise InputError(
            "bounds: with two parameters these can be read as (lower, upper) or as two pairs; "
            "say scipy.optimize.Bounds(lower, upper)"
        )
    return _ordered((possible or readings)[0])


def check_within(name: str, x: Array, bounds: tuple[Array, Array] | None) -> None:
    """Raise if a point (d,) lies outside of the bounds."""
    if bounds is not None and not ((bounds[0] <= x) & (x <= bounds[1])).all():
        j = int(np.flatnonzero((x < bounds[0]) | (x > bounds[1]))[0])
        low, high = bounds[0][j], bounds[1][j]
        raise InputError(f"{name}: must lie within the bounds; dimension {j} is {x[j]}, bounds [{low}, {high}]")


def _stack(lower: Any, upper: Any, d: int) -> Array:
    """(2, d) from two numbers or vectors."""
    sides = [as_finite_or_infinite("bounds", side) for side in (lower, upper)]
    if any(side.shape not in ((), (d,)) for side in sides):
        shapes = " and ".join(str(side.shape) for side in sides)
        raise InputError(f"bounds: expected numbers or vectors of {d} numbers, got shapes {shapes}")
    return np.stack([np.broadcast_to(side, (d,)) for side in sides])


def _ordered(sides: Array) -> tuple[Array, Array]:
    lower, upper = sides.copy()
    if not (lower < upper).all():
        j = int(np.flatnonzero(~(lower < upper))[0])
        raise InputError(
            f"bounds: lower must be below upper in every dimension; dimension {j} has {lower[j]} and {upper[j]}"
        )
    return lower, upper


def as_finite_or_infinite(name: str, value: Any) -> Array:
    """A float64 array without NaN; infinities, also as the strings "inf" and "-inf", are allowed."""
    try:
        array = np.array(value, dtype=np.float64)
    except Exception:  # a foreign __array__ may raise anything
        raise InputError(f"{name}: expected numbers, got {shown(value)}") from None
    if np.isnan(array).any():
        raise InputError(f"{name}: expected numbers, got NaN")
    return array


def describe(value: Any) -> str:
    """A short description of a value of the wrong type."""
    if value is None:
        return "None"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    return f"{type(value).__name__} {shown(value)}"


def shown(value: Any) -> str:
    """A short description of a value for an error message."""
    try:
        return f"{value!r:.80}"
    except Exception:  # a foreign __repr__ may raise anything
        return f"<{type(value).__name__}>"


def describe_error(error: BaseException) -> str:
    """``ValueError: its text``."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # a foreign __str__ may raise anything
        return type(error).__name__
