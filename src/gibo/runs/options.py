"""The options of a run: names, types, defaults, meaning and checks, in one place.

`gibo.maximize`, `minimize`, `resume` and `run` take each of them as a keyword. `OptionNames` tells type checkers so,
`takes_options` tells editors and `help`, and `RunOptions.of` makes one checked object of them.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, fields
from pathlib import Path
from types import NoneType
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
F = TypeVar("F", bound=Callable[..., Result])
P = ParamSpec("P")

# What the journal remembers for the next start.
REMEMBERED = ("budget", "target", "least_certainty", "time_limit", "retries", "max_failures")
# What `gibo.maximize` and `minimize` take besides.
OF_SEARCH = ("scale", "bounds", "seed", "settings", "limits", "careful", "largest_step")
# In the text of a function, the line that stands for the options.
PLACEHOLDER = "        **options: those of `gibo.runs.options.RunOptions`.\n"


class StartOptions(TypedDict, total=False):
    """What may differ each time a run is started, as keywords; `RunOptions` has their defaults and their meaning."""

    target: float | None
    least_certainty: float | None
    callback: Callback | None
    progress: bool | Progress
    force: bool
    watch: bool | Literal["control"]
    workers: int | None
    executor: Executor | None
    time_limit: float | None
    retries: int
    max_failures: int


class OptionNames(StartOptions, total=False):
    """All options as keywords: also what a run is from the beginning to the end."""

    journal: str | Path | None
    parameters: Parameters | None
    data: Iterable[tuple[Any, Any]]
    penalty: float | None
    baseline: int | None
    quorum: float
    sign: float
    reparametrizer: Reparametrizer | None
    training: dict[str, Any] | None


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a run is made.

    Attributes:
        budget: how many evaluations may be spent; with a journal, those of earlier starts included.
        parameters: `gibo.parameters.Parameters`, with names, ranges and kinds. They have start, scale and bounds. The
            objective is called with a keyword argument for each parameter or, if it takes none of these names, with a
            dictionary. `Result.parameters` has the recommended values.
        data: what is known before the run: pairs of a point (a vector or a dictionary by name) and its value. They are
            told before anything is evaluated, and are not counted; a journal keeps them. The search starts at the
            best of them that lies within the bounds.
        target: stop when the model believes that the value of the best point has reached this.
        least_certainty: stop when the model's certainty that the gradient is not zero was below this (for example 0.9)
            five times in a row.
        callback: called with the `Result` so far after each iteration; the run stops if it returns something true.
        progress: True shows a progress bar, also in a notebook; or an object with an ``update(standing)``, see
            `gibo.runs.progress`.
        journal: a folder in which every query, value and failure is recorded before the run goes on. If it holds this
            run, the run is continued. If it holds another run, or one of another objective as far as that can be seen
            (`gibo.runs.fingerprint`), that is an error. See also `gibo.resume`.
        force: continue although the objective has changed: the run then has the values of both.
        watch: True shows the run in the browser while it goes on, on a page of this machine alone, whose address is
            written to standard error. It reads the journal, so it needs one. See also `gibo watch`. With ``"control"``
            whoever has that address can also pause and stop the run, and tell values.
        workers: evaluate in this many processes on this machine; None: in this process, one after the other.
        executor: or in any `concurrent.futures.Executor`, such as that of a Dask cluster.
        time_limit: seconds after which an evaluation is ended and counts as failed; its process is replaced.
        retries: how often a failed evaluation is tried again.
        penalty: the value of an evaluation that failed in the end; None: it has none, and GIBO avoids places where
            evaluations fail.
        baseline: every so many iterations the start is evaluated again, and the improvement is reported against that,
            for a machine that changes with time. These evaluations are spent from the budget; their kind is
            ``"baseline"``. None: never.
        quorum: the next iteration starts when this share of the queries has arrived, and the rest is used when it
            arrives. Below 1 the result depends on the order of arrival. For evaluations of very uneven durations.
        max_failures: stop after this many failed evaluations in a row, in the order of their ids.
        sign: 1 maximises, −1 minimises, as `gibo.minimize` does.
        reparametrizer: learns from the evaluations' info between the iterations; see `gibo.runs.session`.
        training: what the objective is, as plain data, for the journal: it is an error to continue with another one.

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
        """From keywords; an unknown one is a TypeError that names the nearest option."""
        names = [f.name for f in fields(cls)]
        for name in given:
            if name not in names:
                near = difflib.get_close_matches(name, [*names, *OF_SEARCH], 1)
                hint = f"did you mean {near[0]!r}?" if near else f"expected some of {', '.join(names)}"
                raise TypeError(f"a run has no option {name!r:.80}; {hint}")
        return cls(**given)

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {
            "budget": positive_int("budget", self.budget),
            "max_failures": positive_int("max_failures", self.max_failures),
            "retries": natural("retries", self.retries),
            "workers": None if self.workers is None else positive_int("workers", self.workers),
            "target": None if self.target is None else finite("target", self.target),
            "penalty": None if self.penalty is None else finite("penalty", self.penalty),
            "baseline": None if self.baseline is None else positive_int("baseline", self.baseline),
            "time_limit": None if self.time_limit is None else positive("time_limit", self.time_limit),
            "least_certainty": None
            if self.least_certainty is None
            else as_number("least_certainty", self.least_certainty),
            "quorum": as_number("quorum", self.quorum),
            "sign": finite("sign", self.sign),
            "force": as_flag("force", self.force),
            "data": as_list("data", self.data, "pairs of a point and its value"),
            # Absolute, because the objective may change the working directory.
            "journal": None if self.journal is None else as_path("journal", self.journal).absolute(),
        }
        self.__dict__.update(checked)
        if self.penalty is not None and abs(self.penalty) > LARGEST:
            raise InputError(f"penalty: expected a number of at most {LARGEST:g} in size, got {self.penalty:g}")
        if self.least_certainty is not None and not 0.0 < self.least_certainty < 1.0:
            raise InputError(f"least_certainty: expected a probability between 0 and 1, got {self.least_certainty}")
        if not 0.0 < self.quorum <= 1.0:
            raise InputError(f"quorum: expected a number above 0 and at most 1, got {self.quorum}")
        if self.sign not in (1.0, -1.0):
            raise InputError(f"sign: expected 1 or -1, got {shown(self.sign)}")
        instance("parameters", self.parameters, (Parameters, NoneType), "gibo.parameters.Parameters(...)")
        instance("training", self.training, (dict, NoneType), "plain data by name")
        if self.callback is not None and not callable(self.callback):
            raise InputError(f"callback: expected a function of a Result, got {describe(self.callback)}")
        if not isinstance(self.progress, bool) and not has_methods(self.progress, "update"):
            raise InputError(
                f"progress: expected True, False or an object with an update, got {describe(self.progress)}"
            )
        if self.reparametrizer is not None and not has_methods(self.reparametrizer, "options", "learn"):
            raise InputError(
                f"reparametrizer: expected one with options and learn, got {describe(self.reparametrizer)}"
            )
        if not (isinstance(self.watch, str) and self.watch == "control"):
            as_flag("watch", self.watch)
        if self.watch and self.journal is None:
            raise InputError("watch: the page reads the run's journal; name a folder for it, with journal=")
        if self.baseline is not None and self.reparametrizer is not None:
            raise InputError("baseline: with a state normaliser the start has another meaning in each iteration")
        if self.quorum < 1.0 and self.reparametrizer is not None:
            raise InputError("quorum: with a state normaliser, an iteration needs all of its values; leave it at 1")
        if self.executor is not None:
            if self.workers is not None:
                raise InputError("workers, executor: give one of them; an executor brings its own workers")
            if self.time_limit is not None:
                raise InputError("time_limit: an executor's evaluations cannot be ended; give workers=n instead")
            if not has_methods(self.executor, "submit"):
                raise InputError(f"executor: expected a concurrent.futures.Executor, got {describe(self.executor)}")

    def remembered(self) -> dict[str, Any]:
        """What the journal keeps of a start."""
        return {name: getattr(self, name) for name in (*REMEMBERED, "workers")}


def takes_options(names: type[TypedDict]) -> Callable[[F], F]:  # type: ignore[valid-type]  # a TypedDict's class
    """For a function with such options as ``**options``: its signature and its text name each of them."""

    def described(function: F) -> F:
        own = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
        known = [p for p in inspect.signature(RunOptions).parameters.values() if p.name in names.__annotations__]
        function.__signature__ = inspect.Signature([*own, *known], return_annotation=Result.__name__)  # type: ignore[attr-defined]
        meaning = (RunOptions.__doc__ or "").partition("        parameters:")[2].partition("\n\n")[0]
        function.__doc__ = (function.__doc__ or "").replace(PLACEHOLDER, f"        parameters:{meaning}\n")
        return function

    return described


def like(other: Callable[P, Result]) -> Callable[[Callable[..., Result]], Callable[P, Result]]:
    """For a function that passes its arguments on to another one: it has the signature of that one."""

    def described(function: Callable[..., Result]) -> Callable[P, Result]:
        function.__signature__ = inspect.signature(other)  # type: ignore[attr-defined]
        return function

    return described
