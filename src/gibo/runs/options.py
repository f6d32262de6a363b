"""The options of a run: names, types, defaults, meaning and checks.

`gibo.maximize`, `minimize`, `resume` and `run` take each of them as a keyword. `RunOptions` has their meaning and
checks them. `OptionNames` declares them for type checkers, `takes_options` for editors and `help`.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypedDict, TypeVar

from gibo._checks import (
    LARGEST,
    as_flag,
    as_list,
    as_number,
    as_path,
    describe,
    finite,
    has_methods,
    instance,
    natural,
    positive,
    positive_int,
    shown,
)
from gibo.errors import InputError
from gibo.parameters import Parameters
from gibo.runs.progress import Progress
from gibo.runs.result import Result
from gibo.runs.session import Reparametrizer

Callback = Callable[[Result], bool | None]
P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Result])

# The options that the journal keeps for the next start.
REMEMBERED = ("budget", "target", "least_certainty", "time_limit", "retries", "max_failures")
# Further arguments of `gibo.maximize` and `minimize`.
OF_SEARCH = ("scale", "bounds", "seed", "settings", "limits", "careful", "largest_step", "sources")
# The line of a docstring that stands for the options.
PLACEHOLDER = "        **options: those of `gibo.runs.options.RunOptions`.\n"


class OptionNames(TypedDict, total=False):
    """All options; `RunOptions` has their defaults and meaning."""

    parameters: Parameters | None
    data: Iterable[tuple[Any, Any]]
    target: float | None
    least_certainty: float | None
    callback: Callback | None
    progress: bool | Progress
    journal: str | Path | None
    force: bool
    watch: bool | Literal["control"]
    workers: int | None
    executor: Executor | None
    time_limit: float | None
    retries: int
    penalty: float | None
    baseline: int | None
    quorum: float
    max_failures: int
    sign: float
    reparametrizer: Reparametrizer | None
    training: dict[str, Any] | None


# Of options with another default than None, None is an error.
CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "budget": positive_int,
    "parameters": lambda name, value: instance(name, value, Parameters, "gibo.parameters.Parameters(...)"),
    "target": finite,
    "least_certainty": as_number,
    "journal": as_path,
    "force": as_flag,
    "workers": positive_int,
    "time_limit": positive,
    "retries": natural,
    "penalty": finite,
    "baseline": positive_int,
    "quorum": as_number,
    "max_failures": positive_int,
    "sign": finite,
    "training": lambda name, value: instance(name, value, dict, "plain data by name"),
}


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of a run.

    Attributes:
        budget: the largest number of evaluations; with a journal, including those of earlier starts.
        parameters: `gibo.parameters.Parameters`, with names, ranges and kinds. They include start, scale and bounds.
            The objective is called with a keyword argument for each parameter, or with a dictionary if it has no
            parameters of these names. `Result.parameters` has the recommended values.
        data: earlier data: pairs of a point (a vector or a dictionary by name) and its value. The optimiser gets them
            before the first evaluation, and they do not count as evaluations; a journal keeps them. The search starts
            at their best point within the bounds.
        target: stop when the model's value of the best point has reached this.
        least_certainty: stop when the model's certainty that the gradient is not zero was below this (for example 0.9)
            five times in a row.
        callback: called with the `Result` so far after each iteration; the run stops if it returns a true value.
        progress: True shows a progress bar, also in a notebook; or an object with an ``update(standing)``, see
            `gibo.runs.progress`.
        journal: a folder in which every query, value and failure is recorded before the run continues. If it has this
            run already, the run is continued. If it has another run, or one with a recognisably different objective
            (`gibo.runs.fingerprint`), an error is raised. See also `gibo.resume`.
        force: continue although the objective has changed; the run then mixes values of both.
        watch: True serves a page that shows the run, on this machine only, and prints its address to standard error. It
            needs a journal. See also `gibo watch`. With ``"control"`` whoever has the address can also pause and stop
            the run, and tell values.
        workers: number of processes on this machine that evaluate; None: this process evaluates, one query after
            another.
        executor: evaluate in a `concurrent.futures.Executor`, such as that of a Dask cluster.
        time_limit: seconds after which an evaluation is ended and counts as failed; a new process replaces its process.
        retries: the number of further attempts after a failed evaluation.
        penalty: the value of a failed evaluation after its last attempt. None: it has no value, and GIBO avoids regions
            where evaluations fail.
        baseline: every so many iterations the start is evaluated again, and the improvement is reported against that,
            for a machine that changes with time. These evaluations are spent from the budget; their kind is
            ``"baseline"``. None: never, but once with the first batch where the method has no model of the start.
        quorum: the next iteration starts when this share of the values has arrived; the others are used when they
            arrive. Below 1 the result depends on the order of arrival. For evaluations of very uneven durations.
        max_failures: stop after this many failed evaluations in a row, in the order of their ids.
        sign: 1 maximises, −1 minimises, as `gibo.minimize` does.
        reparametrizer: learns from the evaluations' info between iterations; see `gibo.runs.session`.
        training: a description of the objective as plain data for the journal; continuing with another one is an error.

    Example:
        >>> RunOptions(budget=100).max_failures
        10
    """

    budget: int
    parameters: Parameters | None = None
    data: Iterable[tuple[Any, Any]] = ()
    target: float | None = None
    least_certainty: float | None = None
    callback: Callback | None = None
    progress: bool | Progress = False
    journal: str | Path | None = None
    force: bool = False
    watch: bool | Literal["control"] = False
    workers: int | None = None
    executor: Executor | None = None
    time_limit: float | None = None
    retries: int = 0
    penalty: float | None = None
    baseline: int | None = None
    quorum: float = 1.0
    max_failures: int = 10
    sign: float = 1.0
    reparametrizer: Reparametrizer | None = None
    training: dict[str, Any] | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> RunOptions:
        """Make the options from keywords; an unknown one is a TypeError that names the nearest option."""
        names = [f.name for f in fields(cls)]
        for name in given:
            if name not in names:
                near = difflib.get_close_matches(name, [*names, *OF_SEARCH], 1)
                hint = f"did you mean {near[0]!r}?" if near else f"expected some of {', '.join(names)}"
                raise TypeError(f"a run has no option {name!r:.80}; {hint}")
        return cls(**given)

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name in CHECKS and (value is not None or each.default is not None):
                self.__dict__[each.name] = CHECKS[each.name](each.name, value)
        self.__dict__["data"] = as_list("data", self.data, "pairs of a point and its value")
        if self.penalty is not None and abs(self.penalty) > LARGEST:
            raise InputError(f"penalty: expected a number of at most {LARGEST:g} in size, got {self.penalty:g}")
        if self.least_certainty is not None and not 0.0 < self.least_certainty < 1.0:
            raise InputError(f"least_certainty: expected a probability between 0 and 1, got {self.least_certainty}")
        if not 0.0 < self.quorum <= 1.0:
            raise InputError(f"quorum: expected a number above 0 and at most 1, got {self.quorum}")
        if self.sign not in (1.0, -1.0):
            raise InputError(f"sign: expected 1 or -1, got {shown(self.sign)}")
        if self.callback is not None and not callable(self.callback):
            raise InputError(f"callback: expected a function of a Result, got {describe(self.callback)}")
        if not isinstance(self.progress, bool) and not has_methods(self.progress, "update"):
            raise InputError(
                f"progress: expected True, False or an object with an update method, got {describe(self.progress)}"
            )
        if self.reparametrizer is not None and not has_methods(self.reparametrizer, "options", "learn"):
            raise InputError(
                f"reparametrizer: expected an object with options and learn, got {describe(self.reparametrizer)}"
            )
        if not isinstance(self.watch, str) or self.watch != "control":
            as_flag("watch", self.watch)
        if self.watch and self.journal is None:
            raise InputError("watch: the page reads the run's journal; name a folder with journal=")
        if self.baseline is not None and self.reparametrizer is not None:
            raise InputError("baseline: with a state normaliser the start has another meaning in each iteration")
        if self.quorum < 1.0 and self.reparametrizer is not None:
            raise InputError("quorum: with a state normaliser, an iteration needs all of its values; use quorum=1")
        if self.executor is not None:
            if self.workers is not None:
                raise InputError("workers, executor: give only one of them; an executor has its own workers")
            if self.time_limit is not None:
                raise InputError("time_limit: an executor's evaluations cannot be ended; use workers=n instead")
            if not has_methods(self.executor, "submit"):
                raise InputError(f"executor: expected a concurrent.futures.Executor, got {describe(self.executor)}")


def takes_options(function: F) -> F:
    """Decorate a function with ``**options``: its signature and docstring then name each option."""
    own = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
    names = {p.name for p in own}
    options = [p for p in inspect.signature(RunOptions).parameters.values() if p.name not in names]
    function.__signature__ = inspect.Signature([*own, *options], return_annotation=Result.__name__)  # type: ignore[attr-defined]
    meaning = (RunOptions.__doc__ or "").partition("        parameters:")[2].partition("\n\n")[0]
    function.__doc__ = (function.__doc__ or "").replace(PLACEHOLDER, f"        parameters:{meaning}\n")
    return function


def like(other: Callable[P, Result]) -> Callable[[Callable[..., Result]], Callable[P, Result]]:
    """Decorate a function that passes its arguments on: it gets the types and the signature of the other function."""

    def described(function: Callable[..., Result]) -> Callable[P, Result]:
        function.__signature__ = inspect.signature(other)  # type: ignore[attr-defined]
        return function

    return described
