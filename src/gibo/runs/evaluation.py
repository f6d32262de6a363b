"""One evaluation of an objective, wherever it runs: what comes out is plain data, and nothing gets out by raising."""

from __future__ import annotations

import inspect
import json
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gibo._checks import as_vector, describe_error, finite
from gibo._linalg import Array
from gibo._serialize import to_plain
from gibo.errors import InputError
from gibo.outcome import Outcome

Objective = Callable[..., Any]


@dataclass(frozen=True)
class Answer:
    """What an evaluation gave: a value, or a failure with its cause.

    Attributes:
        value: a finite float, or None.
        gradient, gradient_noise: lists of d floats, or None.
        info: whatever else the objective returned, as plain data.
        failure: why there is no value, or None.
        traceback: of the exception, if there was one.
        seconds: how long it took.
    """

    value: float | None = None
    gradient: list[float] | None = None
    gradient_noise: list[float] | None = None
    info: dict[str, Any] | None = None
    failure: str | None = None
    traceback: str | None = None
    seconds: float = 0.0

    def __post_init__(self) -> None:
        # What a database does not keep: the sign of zero, and halves of characters (in file names, say).
        object.__setattr__(self, "value", None if self.value is None else self.value + 0.0)
        for name in ("failure", "traceback"):
            text = getattr(self, name)
            if text is not None:
                object.__setattr__(self, name, text.encode("utf-8", "backslashreplace").decode("utf-8"))

    def with_value(self, value: float) -> Answer:
        """A failure that is given a value nevertheless."""
        return replace(self, value=value)


def _asked_for(objective: Objective, offered: dict[str, Any]) -> dict[str, Any]:
    """Of what is offered, that for which the objective has a parameter of that name."""
    try:
        parameters = inspect.signature(objective).parameters
    except (TypeError, ValueError):  # builtins may have no signature
        return {}
    by_name = {name for name, each in parameters.items() if each.kind is not inspect.Parameter.POSITIONAL_ONLY}
    return {name: value for name, value in offered.items() if name in by_name}


def evaluate(objective: Objective, x: Array, seed: int, options: dict[str, Any], kind: str = "query") -> Answer:
    """Call the objective and turn whatever happens into an `Answer`; only KeyboardInterrupt gets out.

    An objective with a parameter named ``seed`` gets the query's, and one with a parameter named ``kind`` its kind.
    """
    options = {**options, **_asked_for(objective, {"seed": seed, "kind": kind})}
    started = time.perf_counter()
    try:
        given = objective(x, **options)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever else an objective raises must not end the run
        seconds = time.perf_counter() - started
        return Answer(failure=describe_error(error), traceback=_traceback(error), seconds=seconds)
    seconds = time.perf_counter() - started
    try:
        return _checked(given, len(x), seconds)
    except InputError as error:
        return Answer(failure=str(error), seconds=seconds)
    except Exception as error:  # what an Outcome holds is a stranger's
        return Answer(failure=f"the objective's outcome: {describe_error(error)}", seconds=seconds)


def _checked(given: Any, d: int, seconds: float) -> Answer:
    outcome = given if isinstance(given, Outcome) else Outcome(given)
    value = finite("the objective's value", outcome.value)
    info = None
    if outcome.info:
        try:
            info = to_plain(dict(outcome.info))
            json.dumps(info)
        except (TypeError, ValueError) as error:
            raise InputError(f"the objective's info: expected data that JSON can hold: {error}") from None
    if outcome.gradient is None:
        return Answer(value, info=info, seconds=seconds)
    if outcome.gradient_noise is None:
        raise InputError("the objective's gradient: give gradient_noise too, the variance of the gradient's noise")
    gradient = as_vector("the objective's gradient", outcome.gradient, d)
    noise = as_vector("the objective's gradient_noise", np.broadcast_to(np.asarray(outcome.gradient_noise), (d,)), d)
    if not (noise >= 0).all():
        raise InputError("the objective's gradient_noise: expected non-negative variance(s)")
    return Answer(value, gradient.tolist(), noise.tolist(), info, seconds=seconds)


def _traceback(error: BaseException) -> str | None:
    try:
        return "".join(traceback.format_exception(error))
    except Exception:  # a stranger's __str__ may raise anything
        return None
