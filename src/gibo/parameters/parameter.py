"""One parameter: its range, start and scale, and its entry in the optimiser's vector.

Symbols
-------
value : float or int   the user's value: a gain, a delay
x : float              the entry of the optimiser's vector: ln(value) on a log scale, else the value
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from gibo._checks import as_number, describe, finite, one_of, shown
from gibo.errors import InputError

Kind: TypeAlias = Literal["linear", "log", "integer", "free"]

# The default scale as a share of the range. The ends of a range are usually clearly wrong, so that a much smaller
# change has an effect. The share matters little: on smooth functions of 4 and 10 parameters, 0.06 to 0.3 gave the same
# results, and 0.03 slightly worse ones.
SHARE = 0.1

# The keys of a saved parameter; any other key is an error.
FIELDS = ("kind", "lower", "upper", "start", "scale", "log")

LARGEST_WHOLE = 2**53  # above it, floats do not represent every whole number


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
        if not isinstance(self.log, bool):
            raise InputError(f"log: expected true or false, got {describe(self.log)}")
        if self.log and self.kind in ("linear", "free"):
            raise InputError(f'log: a parameter of kind "{self.kind}" has no log scale; use log(lower, upper)')
        object.__setattr__(self, "log", self.log or self.kind == "log")
        if self.kind == "free":
            self._check_free()
        else:
            self._check_range()
        if self.scale is not None:
            self._check_scale()

    def _check_free(self) -> None:
        if self.lower is not None or self.upper is not None:
            raise InputError("free: has no bounds; with bounds, use linear(lower, upper)")
        if self.start is None or self.scale is None:
            raise InputError("free: needs a start and a scale: free(start, scale)")
        object.__setattr__(self, "start", self._number("start", self.start))

    def _check_range(self) -> None:
        if self.lower is None or self.upper is None:
            raise InputError(f"{self.kind}: expected lower and upper; without bounds, use free(start, scale)")
        lower, upper = self._number("lower", self.lower), self._number("upper", self.upper)
        if lower == upper:
            raise InputError(
                f"lower, upper: both are {lower}, so the parameter is fixed; omit it and set its value in your "
                "objective"
            )
        if lower > upper:
            raise InputError(f"lower, upper: expected lower below upper, got {lower} and {upper}")
        if self.log and lower <= 0:
            raise InputError(f"lower: a log scale needs a positive lower, got {lower}; use linear({lower}, {upper})")
        if not self.log and not math.isfinite(float(upper) - float(lower)):
            raise InputError(f"lower, upper: their difference is too large for a float: {lower} and {upper}")
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        if not self.inner_lower < self.inner_upper:
            raise InputError(f"lower, upper: too close for a log scale: {lower} and {upper}")
        start = self._middle() if self.start is None else self._number("start", self.start)
        if not lower <= start <= upper:
            raise InputError(f"start: expected a value within [{lower}, {upper}], got {start}")
        object.__setattr__(self, "start", start)

    def _check_scale(self) -> None:
        scale = as_number("scale", self.scale)
        if self.log and not (math.isfinite(scale) and scale > 1.0):
            raise InputError(f"scale: on a log scale, expected a factor above 1, such as 2, got {scale}")
        if not (math.isfinite(scale) and scale > 0.0):
            raise InputError(f"scale: expected a positive finite number, got {scale}")
        object.__setattr__(self, "scale", scale)

    def _number(self, name: str, value: Any) -> float:
        """A finite number; an int for a parameter with whole numbers."""
        if isinstance(value, (bool, np.bool_)):
            raise InputError(f"{name}: expected a number, got {describe(value)}; for a switch, say integer(0, 1)")
        number = as_number(name, value)
        if not math.isfinite(number):
            hint = "" if name == "value" else "; without bounds, use free(start, scale)"
            raise InputError(f"{name}: expected a finite number, got {number}{hint}")
        if self.kind != "integer":
            return number
        if not number.is_integer() or abs(number) > LARGEST_WHOLE:
            raise InputError(f"{name}: expected a whole number of at most 2**53, got {shown(value)}")
        return int(number)

    def _middle(self) -> float:
        """The value in the middle of the range; rounded, so that 0.1 and 1000 on a log scale give 10 exactly."""
        value = self.value(self.inner_lower + (self.inner_upper - self.inner_lower) / 2.0)
        if self.kind != "log" or self.lower is None or self.upper is None:
            return value
        return min(max(float(f"{value:.12g}"), self.lower), self.upper)

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

    def __str__(self) -> str:
        """The call that creates the parameter."""
        if self.kind == "free":
            return f"free({self.start!r}, {self.scale!r})"
        scale = "" if self.scale is None else f", scale={self.scale!r}"
        steps = ", log=True" if self.kind == "integer" and self.log else ""
        return f"{self.kind}({self.lower!r}, {self.upper!r}, start={self.start!r}{scale}{steps})"

    def to_plain(self) -> dict[str, Any]:
        """Plain data for JSON and TOML."""
        plain = {name: getattr(self, name) for name in FIELDS if getattr(self, name) is not None}
        if self.kind != "integer" or not self.log:
            del plain["log"]
        return plain


def linear(lower: float, upper: float, *, start: float | None = None, scale: float | None = None) -> Parameter:
    """A real number between lower and upper.

    >>> linear(-1, 1, start=0.2).start, linear(-1, 1).inner_scale
    (0.2, 0.2)
    """
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
    """A whole number from lower to upper, inclusive; with ``log=True`` on a log scale.

    >>> integer(1, 9).value(4.4)
    4
    """
    return Parameter("integer", lower, upper, start, scale, log)


def free(start: float, scale: float) -> Parameter:
    """A real number without bounds.

    >>> free(0.0, 0.1).inner_upper
    inf
    """
    return Parameter("free", start=start, scale=scale)
