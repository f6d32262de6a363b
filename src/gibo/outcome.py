"""The types of an evaluation: `Query` is the point, `Outcome` the result or failure, `Evaluation` both.

Results from outside are checked here, once: returned by an objective or told by hand.
"""

from __future__ import annotations

import json
import math
import numbers
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gibo._checks import (
    LARGEST,
    as_finite,
    as_list,
    as_number,
    as_vector,
    describe,
    describe_error,
    finite,
    instance,
    moderate,
    one_per_parameter,
    positive,
    positive_int,
    shown,
)
from gibo._linalg import Array
from gibo._serialize import to_plain
from gibo.errors import InputError

# The beginning of a message about what an objective returned.
OBJECTIVE = "the objective's "
# Largest number of characters of a message, of a traceback, and of an info as JSON.
LONGEST_FAILURE = 4_000
LONGEST_TRACEBACK = 20_000
LARGEST_INFO = 1 << 20
# Largest number of characters of a name (measured quantity, block), and of quantities of an evaluation.
LONGEST_NAME = 100
MOST_MEASURED = 1000
# Further fields of an outcome; see `details`.
DETAILS = frozenset(("measured", "noise", "repeats", "block", "source"))

ITERATE, QUERY, SURVEY, BASELINE, EXTERNAL = "iterate", "query", "survey", "baseline", "external"
SIMULATED = "simulated"


@dataclass(frozen=True, eq=False)
class Query:
    """A point to evaluate.

    Attributes:
        id: the number of the query; ids increase by one.
        x: (d,) the point.
        seed: for a stochastic objective; it depends only on the run's seed and the id.
        kind: ``"iterate"``, ``"query"``, ``"survey"``: one of the points spread over the bounds at first,
            ``"baseline"``: the start once more, ``"simulated"``: any of these in the simulator, or ``"external"``: a
            point that the optimiser did not ask for.
        iteration: the iteration of the optimiser that asked for it.
        block: the block that it was planned for, see `gibo.Settings`. Its value belongs to this block unless `tell`
            gets another one. None: unknown.
        source: where to evaluate it, a name in `sources`; None without sources.
    """

    id: int
    x: Array
    seed: int
    kind: str
    iteration: int
    block: str | float | None = None
    source: str | None = None


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of an evaluation. An objective returns one if a number alone is not enough.

    Attributes:
        value: the objective's value, a finite number of at most 1e100 in size; None if there is none.
        values: instead of `value`, the values of several evaluations at this point. `value` becomes their mean and
            `repeats` their number.
        gradient: (d,) an observation of the objective's gradient there, or None.
        gradient_noise: variance of the gradient's noise, one number or one per parameter; required with a gradient.
        measured: further measured quantities, numbers by name, such as ``{"torque": 3.2}``.
        noise: variance of the noise of `value`, if known.
        repeats: the number of evaluations of which `value` is the mean.
        block: a group of evaluations with a common shift, such as a day or an operator; a text or a number.
        source: in a run with sources, where it was evaluated, to check that it is where the query says; own points
            of the user belong to the machine.
        info: further JSON data; a journal records them with the value.
        failure: the reason why there is no value, or why the value is a penalty; None without a failure.
        traceback: of the exception, if any.
        seconds: duration of the evaluation.

    Example:
        >>> import gibo
        >>> def objective(x):
        ...     return gibo.Outcome(-float(x @ x), info={"steps": 200})
        >>> gibo.maximize(objective, [1.0, 1.0], budget=5).evaluations
        5
    """

    value: float | None = None
    gradient: npt.ArrayLike | None = None
    gradient_noise: npt.ArrayLike | None = None
    info: Mapping[str, Any] = field(default_factory=dict)
    failure: str | None = None
    traceback: str | None = None
    seconds: float = 0.0
    values: Sequence[float] | None = None
    measured: Mapping[str, float] = field(default_factory=dict)
    noise: float | None = None
    repeats: int = 1
    block: str | float | None = None
    source: str | None = None

    @classmethod
    def failed(cls, reason: str | BaseException | bool, seconds: float = 0.0) -> Outcome:
        """A failed evaluation with its reason or its exception."""
        if isinstance(reason, BaseException):
            return cls(None, failure=_text(describe_error(reason)), traceback=_trace(reason), seconds=seconds)
        text = reason if isinstance(reason, str) and reason else "failed"
        return cls(None, failure=_text(text), seconds=seconds)

    def signed(self, sign: float) -> Outcome:
        """The same with value and gradient multiplied by 1 or −1."""
        if finite("sign", sign) == 1.0 or self.value is None:
            return self
        gradient = None if self.gradient is None else sign * as_finite("gradient", self.gradient)
        return replace(self, value=sign * as_number("value", self.value), gradient=gradient)

    def penalized(self, penalty: float | None) -> Outcome:
        """The same; a failure has the penalty as its value, if there is one."""
        return self if self.failure is None or penalty is None else replace(self, value=penalty)

    def details(self) -> dict[str, Any]:
        """Measured quantities, noise, repeats, block and source as plain data, without those that were not given."""
        given = {"measured": dict(self.measured), "noise": self.noise, "repeats": self.repeats, "block": self.block}
        given |= {"source": self.source}
        return {name: part for name, part in given.items() if part not in ({}, None) and (name, part) != ("repeats", 1)}


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A query and its outcome, with the fields of both. The block is the outcome's, or else the query's."""

    query: Query
    outcome: Outcome
    id: int = field(init=False, repr=False)
    x: Array = field(init=False, repr=False)
    kind: str = field(init=False, repr=False)
    iteration: int = field(init=False, repr=False)
    value: float | None = field(init=False, repr=False)
    gradient: Array | None = field(init=False, repr=False)  # an array, because `checked` made it
    gradient_noise: Array | None = field(init=False, repr=False)
    failure: str | None = field(init=False, repr=False)
    measured: Mapping[str, float] = field(init=False, repr=False)
    noise: float | None = field(init=False, repr=False)
    repeats: int = field(init=False, repr=False)
    block: str | float | None = field(init=False, repr=False)
    source: str | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        q, o = self.query, self.outcome
        self.__dict__.update(measured=o.measured, noise=o.noise, repeats=o.repeats)
        self.__dict__.update(block=q.block if o.block is None else o.block)
        self.__dict__.update(
            id=q.id, x=q.x, kind=q.kind, source=q.source, iteration=q.iteration, value=o.value, failure=o.failure
        )
        self.__dict__.update(gradient=o.gradient, gradient_noise=o.gradient_noise)


def read_only(x: Array) -> Array:
    """The same array, now read-only."""
    x.flags.writeable = False
    return x


def as_point(x: npt.ArrayLike, d: int) -> Array:
    """A point (d,) from outside, checked and read-only."""
    return read_only(moderate("x", as_vector("x", x, d)))


class Best(NamedTuple):
    """A point and its value. If a model chose the point, the value is the model's mean.

    `interval` is the model's 90 % interval (low, high) of the value without noise.
    """

    x: Array
    value: float
    interval: tuple[float, float] | None = None

    def signed(self, sign: float) -> Best:
        """The same with the value's sign turned where `sign` is −1."""
        if sign > 0:
            return self
        return Best(self.x, -self.value, None if self.interval is None else (-self.interval[1], -self.interval[0]))


def checked(given: Any, d: int, what: str = "value", seconds: float = 0.0) -> Outcome:
    """Check a result: returns an `Outcome` with a finite float, arrays (d,) and plain data, or raises `InputError`.

    Args:
        given: a number or an `Outcome`.
        d: the number of parameters.
        what: how an error names the value, such as "the objective's value".
        seconds: its duration.
    """
    outcome = given if isinstance(given, Outcome) else Outcome(given)
    where = what.removesuffix("value")
    if outcome.values is not None:
        outcome = _with_mean(outcome, where)
    details = _checked_details(outcome, where)
    if outcome.value is None:
        if outcome.failure is not None:
            return replace(Outcome.failed(_failure(outcome.failure, what), seconds), **details)
        raise InputError(f"{what}: expected a number, got None; if the evaluation gave no value, report it as failed")
    value = as_number(what, outcome.value) + 0.0  # not −0.0, which a database does not keep
    if not math.isfinite(value):
        raise InputError(f"{what}: expected a finite number, got {value}; report a failed evaluation as failed")
    if abs(value) > LARGEST:
        raise InputError(f"{what}: expected a number of at most {LARGEST:g} in size, got {value:g}; rescale it")
    info = _checked_info(outcome.info, where)
    failure = None if outcome.failure is None else _text(_failure(outcome.failure, what))
    if outcome.gradient is None:
        if outcome.gradient_noise is not None:
            raise InputError(f"{where}gradient_noise: expected a gradient with it, got none")
        return Outcome(value, info=info, failure=failure, seconds=seconds, **details)
    gradient = moderate(f"{where}gradient", as_vector(f"{where}gradient", outcome.gradient, d))
    if outcome.gradient_noise is None:
        raise InputError(f"{where}gradient: give gradient_noise too, the variance of the gradient's noise")
    noise = one_per_parameter(f"{where}gradient_noise", outcome.gradient_noise, d)
    if not (noise >= 0).all():
        raise InputError(
            f"{where}gradient_noise: expected non-negative variance(s), got {shown(outcome.gradient_noise)}"
        )
    moderate(f"{where}gradient_noise: its standard deviation", np.sqrt(noise))
    return Outcome(value, gradient, noise, info, failure, seconds=seconds, **details)


def told_outcome(d: int, value: Any, gradient: Any, gradient_noise: Any, failed: Any, **details: Any) -> Outcome:
    """Check what `tell` got: a value with its details, an `Outcome`, or a failure.

    Args:
        d: the number of parameters.
        value, gradient, gradient_noise: see `Outcome`.
        failed: True, or the reason, if there is no value.
        **details: fields of `Outcome` named in `DETAILS`; None means not given.
    """
    given = {name: part for name, part in details.items() if part is not None}
    if not isinstance(failed, (bool, np.bool_, str, BaseException)):
        raise InputError(f"failed: expected True, a reason or an exception, got {type(failed).__name__}")
    if isinstance(failed, (str, BaseException)) or failed:
        if value is not None or gradient is not None:
            raise InputError("tell: give a value (and a gradient) or failed, not both")
        without = Outcome.failed(failed if isinstance(failed, (str, BaseException)) else True)
        return replace(without, **_checked_details(replace(without, **given), ""))
    if isinstance(value, Outcome):
        if given or gradient is not None or gradient_noise is not None:
            names = [*given, *(["gradient"] if gradient is not None or gradient_noise is not None else [])]
            raise InputError(f"{names[0]}: give it within the Outcome")
        return checked(value, d)
    return checked(Outcome(value, gradient, gradient_noise, **given), d)


def is_mistake(failure: str) -> bool:
    """Whether a failure is a mistake in the objective's program, and not a number that is infinite or too large."""
    is_number = any(text in failure for text in (": expected a finite", ": expected finite", f"{LARGEST:g} in size"))
    return failure.startswith(OBJECTIVE) and not is_number


def as_block(name: str, block: Any) -> str | float:
    """A block: a text, or a number of moderate size."""
    if isinstance(block, str):
        return as_name(name, block, "a text or a number")
    if isinstance(block, (bool, np.bool_)) or not isinstance(block, numbers.Real):
        raise InputError(f"{name}: expected a text or a number, got {describe(block)}")
    number = _moderate_number(name, block)
    return int(number) if isinstance(block, numbers.Integral) else number


def _with_mean(outcome: Outcome, where: str) -> Outcome:
    """The outcome with the mean of its several values."""
    if outcome.value is not None or outcome.repeats != 1:
        raise InputError(f"{where}values: give them without value and repeats, which follow from them")
    values = moderate(f"{where}values", as_vector(f"{where}values", outcome.values))  # type: ignore[arg-type]
    return replace(outcome, value=math.fsum(values) / len(values), values=None, repeats=len(values))


def _checked_details(outcome: Outcome, where: str) -> dict[str, Any]:
    """Measured quantities, noise, repeats, block and source, checked."""
    measured = instance(f"{where}measured", outcome.measured, Mapping, 'numbers by name, such as {"torque": 3.2}')
    items = as_list(f"{where}measured", measured.items(), "numbers by name") if measured else []
    if len(items) > MOST_MEASURED:
        raise InputError(f"{where}measured: expected at most {MOST_MEASURED} quantities, got {len(items)}")
    quantities = {
        as_name(f"{where}measured", name, "a name"): _moderate_number(f"{where}measured: {shown(name)}", number)
        for name, number in items
    }
    noise = None if outcome.noise is None else positive(f"{where}noise", outcome.noise, or_zero=True)
    if noise is not None and math.sqrt(noise) > LARGEST:
        raise InputError(f"{where}noise: expected a variance of at most {LARGEST**2:g}, got {noise:g}")
    block = None if outcome.block is None else as_block(f"{where}block", outcome.block)
    repeats = positive_int(f"{where}repeats", outcome.repeats)
    source = None if outcome.source is None else as_name(f"{where}source", outcome.source, "a name")
    return {"measured": quantities, "noise": noise, "repeats": repeats, "block": block, "source": source}


def as_name(name: str, text: Any, what: str) -> str:
    """A name, or what else a short printable text stands for."""
    if not isinstance(text, str) or not 0 < len(text) <= LONGEST_NAME or not text.isprintable() or text != text.strip():
        raise InputError(f"{name}: expected {what} of at most {LONGEST_NAME} printable characters, got {shown(text)}")
    return str(text)


def _moderate_number(name: str, number: Any) -> float:
    value = finite(name, number) + 0.0
    if abs(value) > LARGEST:
        raise InputError(f"{name}: expected a number of at most {LARGEST:g} in size, got {value:g}")
    return value


def _checked_info(info: Any, where: str) -> dict[str, Any]:
    try:
        plain: dict[str, Any] = to_plain(dict(info or {}))
        size = len(json.dumps(plain))
    except Exception as error:  # an info may hold foreign objects
        raise InputError(f"{where}info: expected data that JSON can hold: {describe_error(error)}") from None
    if size > LARGEST_INFO:
        return {"left out": f"an info of {size} characters; at most {LARGEST_INFO} are kept"}
    return plain


def _failure(failure: Any, what: str) -> str:
    return str(instance(f"{what.removesuffix('value')}failure", failure, str, "a text"))


def _text(text: str, longest: int = LONGEST_FAILURE) -> str:
    """The text without unpaired surrogates, which no file can hold, and cut to a length."""
    if len(text) > longest:
        text = f"{text[:longest]} … ({len(text) - longest} more characters)"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _trace(error: BaseException) -> str | None:
    try:
        return _text("".join(traceback.format_exception(error))[-LONGEST_TRACEBACK:], LONGEST_TRACEBACK)
    except Exception:  # a foreign __str__ may raise anything
        return None
