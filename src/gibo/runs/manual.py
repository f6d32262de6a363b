"""A run whose evaluations are made by a person or another program, one call at a time.

Each function opens the run's journal, does one thing and closes it again, so that each may be a process of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from gibo._checks import as_finite_or_infinite, as_flag, as_number, describe, instance, natural, shown
from gibo._linalg import Array
from gibo._plugins import without_imports
from gibo.errors import InputError, QueryError
from gibo.optimizers import method_class
from gibo.optimizers.base import Optimizer
from gibo.optimizers.settings import Settings
from gibo.optimizers.state import Bounds
from gibo.outcome import Evaluation, Outcome, Query, checked
from gibo.parameters import Parameters
from gibo.parameters.named import read_toml
from gibo.runs.journal import Journal
from gibo.runs.records import BY_HAND, Start
from gibo.runs.result import Result, Status
from gibo.runs.session import Reparametrizer, Session
from gibo.runs.spec import Naming, RunSpec

# Two programs that drive one run may meet; each holds the journal for a moment only.
PATIENCE = 60.0


@dataclass(frozen=True)
class Description:
    """What a run by hand is: parameters with names, where they start, and how they are sought.

    Attributes:
        names: of the parameters.
        start, scale, lower, upper: one number per parameter.
        method: see `gibo.optimizers.method_class`.
        minimize: whether small values are good.
        seed: of all random choices.
        settings: those of `gibo.Settings` that differ from the default.
        parameters: what the numbers were made from, if they have kinds, such as log scales and whole numbers.
    """

    names: list[str]
    start: list[float]
    scale: list[float]
    lower: list[float]
    upper: list[float]
    method: str = "gibo"
    minimize: bool = False
    seed: int = 0
    settings: Mapping[str, Any] | None = None
    parameters: Parameters | None = None

    @classmethod
    def of(cls, parameters: Parameters, **others: Any) -> Description:
        """Of parameters with kinds."""
        low, high = parameters.bounds or (np.full(parameters.d, -math.inf), np.full(parameters.d, math.inf))
        start, scale, lower, upper = (each.tolist() for each in (parameters.x0, parameters.scale, low, high))
        return replace(cls(list(parameters), start, scale, lower, upper, **others), parameters=parameters)

    def optimizer(self) -> Optimizer:
        """A fresh one."""
        kind = method_class(self.method)
        names = instance("names", self.names, (list, tuple), "a list of names")
        if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise InputError(f"names: expected texts that differ, got {shown(names)}")
        bounded = bool(
            any(np.isfinite(as_finite_or_infinite("bounds", side)).any() for side in (self.lower, self.upper))
        )
        options: dict[str, Any] = {"scale": self.scale, "seed": self.seed}
        options["bounds"] = Bounds(self.lower, self.upper) if bounded else None
        settings = instance("settings", self.settings, (Mapping, NoneType), "settings by their names")
        if settings:
            if self.method != "gibo":
                raise InputError(f"settings: they are for the method gibo, not for {self.method}")
            options["settings"] = _settings(settings)
        return kind(self.start, **options)


class Overview(NamedTuple):
    """How a run stands.

    Attributes:
        spec: what it is.
        result: what it has come to; values are the objective's own.
        pending: the queries that were asked and not told.
        starts: the processes that ran it.
        state: "running", "killed", "waiting" (for somebody to tell) or "ended".
    """

    spec: RunSpec
    result: Result
    pending: list[Query]
    starts: list[Start]
    state: str


def create(folder: Path | str, description: Description) -> None:
    """Begin a run."""
    optimizer = instance("description", description, Description, "a Description").optimizer()
    kinds = None if description.parameters is None else description.parameters.to_plain()
    sign = -1.0 if as_flag("minimize", description.minimize) else 1.0
    spec = RunSpec.of(optimizer, sign=sign, names=list(description.names), parameters=kinds)
    with Journal.create(folder, spec) as journal:
        journal.begin({})
        journal.end(BY_HAND)


class Batch(NamedTuple):
    """Queries to evaluate, and how a person calls their points."""

    queries: list[Query]
    naming: Naming


def ask(folder: Path | str, waiting: Callable[[], None] | None = None) -> Batch:
    """The queries to evaluate next; the same ones until they are told."""
    with Journal.open(folder, PATIENCE, waiting) as journal:
        refuse_normalized(journal)
        return Batch(Session.of(journal).ask(), journal.spec().naming)


def tell(
    folder: Path | str,
    number: int,
    value: Any = None,
    failed: str | None = None,
    waiting: Callable[[], None] | None = None,
) -> None:
    """Record the value of a query, or why there is none."""
    number = natural("number", number)
    _check_telling(value, failed)
    with Journal.open(folder, PATIENCE, waiting) as journal:
        _tell(journal, number, value, failed)


def undo(
    folder: Path | str, count: int = 1, reason: str | None = None, waiting: Callable[[], None] | None = None
) -> list[int]:
    """Take the last values back; their queries are pending again, and points from elsewhere are gone.

    That is possible until the next queries are asked. The journal keeps what was taken back.

    Returns:
        The ids, the last one first.
    """
    if natural("count", count) < 1:
        raise InputError(f"count: expected at least 1, got {count}")
    instance("reason", reason, (str, NoneType), "a text")
    with Journal.open(folder, PATIENCE, waiting) as journal:
        taken = [row.query for row in journal.undo(count, reason)]
        Session.of(journal).start_at_best()
        return taken


def correct(
    folder: Path | str,
    number: int,
    value: Any = None,
    *,
    reason: str,
    failed: str | None = None,
    waiting: Callable[[], None] | None = None,
) -> None:
    """Another value for a query that was told, or why it has none; the journal keeps both, and the reason.

    What was asked meanwhile stays as it is; the model sees the new value from now on.
    """
    number = natural("number", number)
    _check_telling(value, failed)
    if not instance("reason", reason, str, "a text").strip():
        raise InputError("correct: say why, for the record")
    with Journal.open(folder, PATIENCE, waiting) as journal:
        journal.correct(number, _outcome(journal, value, failed), reason)


def _tell(journal: Journal, number: int, value: Any, failed: str | None) -> None:
    refuse_normalized(journal)
    outcome = _outcome(journal, value, failed)
    told = {e.id for e, _ in journal.evaluations()}
    asked = journal.queries()
    if number in told:
        raise QueryError(f"query {number} was told before; each query is told once (to change it: a correction)")
    if number not in asked:
        pending = ", ".join(map(str, sorted(asked.keys() - told))) or "none; ask for some"
        raise QueryError(f"query {number} is unknown; those that are pending: {pending}")
    journal.told([Evaluation(asked[number][0], outcome)])


def _check_telling(value: Any, failed: str | None) -> None:
    if (value is None) == (failed is None):
        raise InputError("tell: give a value, or say that the evaluation failed")
    instance("failed", failed, (str, NoneType), "a reason")


def _outcome(journal: Journal, value: Any, failed: str | None) -> Outcome:
    d = len(journal.spec().arguments["x0"])
    return Outcome.failed(failed or "failed") if value is None else checked(as_number("value", value), d)


def tell_elsewhere(
    folder: Path | str,
    data: Sequence[tuple[Mapping[str, Any], Any]],
    waiting: Callable[[], None] | None = None,
    again: bool = False,
) -> int:
    """Record values of points that nobody asked for, each by the names of its parameters; returns how many.

    A value that the run has at the same point is known already and is left out, unless it is to be recorded `again`.
    """
    with Journal.open(folder, PATIENCE, waiting) as journal:
        refuse_normalized(journal)
        session = Session.of(journal)
        new = data if again else unknown_values(session, data)
        session.tell_elsewhere(new)
        return len(new)


def unknown_values(session: Session, data: Sequence[tuple[Mapping[str, Any], Any]]) -> list[tuple[Any, Any]]:
    """Those that the run does not have; what is in the data twice must be in the run twice."""
    points: dict[Any, list[Array]] = {}  # of the run, by their values
    for e in session.evaluations:
        points.setdefault(e.value, []).append(e.x)
    new = []
    for values, value in data:
        x, same_value = session.naming.point(values), points.get(value, [])
        same = next((i for i, each in enumerate(same_value) if np.allclose(each, x, rtol=1e-9, atol=0.0)), None)
        if same is None:
            new.append((values, value))
        else:
            del same_value[same]
    return new


def names_of(folder: Path | str) -> list[str]:
    """Those of a run's parameters."""
    with Journal.read(folder) as journal:
        return journal.spec().naming.names


def status(folder: Path | str, learns: Callable[[Journal], Reparametrizer | None] = lambda journal: None) -> Overview:
    """How a run stands, also while it is running; `learns` gives what learnt between the iterations."""
    with Journal.read(folder) as journal:
        session = Session.of(journal, learns(journal))
        state = journal.state()
        result = Result.of(session, Status.WAITING if state == "waiting" else Status.CALLBACK, "")
        return Overview(journal.spec(), result, session.optimizer.pending, journal.starts(), state)


def refuse_normalized(journal: Journal) -> None:
    """Without the states' statistics, which come with the episodes, such a run would silently become another one."""
    training = journal.spec().training
    if training is not None and training.get("normalize_states"):
        raise InputError(
            f"{journal.folder}: a run of gibo train with normalised states cannot be driven by hand; continue it with "
            "the same command, gibo train ..."
        )


# -- descriptions -----------------------------------------------------------------------------------------------------


def read_description(path: Path) -> Description:
    """A description from a TOML file; see `gibo init --help` for an example."""
    with read_toml(path) as data:
        return _description(data)


def _description(data: Mapping[str, Any]) -> Description:
    _known("the file", data, ("parameters", "method", "minimize", "seed", "settings"))
    parameters = data.get("parameters")
    if not isinstance(parameters, dict) or not parameters:
        raise InputError("expected a table [parameters.NAME] for each parameter, got none")
    for name, kind in (("method", str), ("minimize", bool), ("seed", int), ("settings", dict)):
        if name in data and not isinstance(data[name], kind):
            raise InputError(f"{name}: got {describe(data[name])}")
    rest = {name: data[name] for name in ("method", "minimize", "seed", "settings") if name in data}
    if any(isinstance(entry, dict) and "kind" in entry for entry in parameters.values()):
        return Description.of(Parameters.from_plain(parameters), **rest)
    columns: dict[str, list[float]] = {name: [] for name in ("start", "scale", "lower", "upper")}
    default = {"scale": 1.0, "lower": -math.inf, "upper": math.inf}
    for name, entry in parameters.items():
        if not isinstance(entry, dict):
            raise InputError(f"parameters.{name}: expected start, scale, lower and upper, got {describe(entry)}")
        _known(f"parameters.{name}", entry, columns)
        if "start" not in entry:
            raise InputError(f"parameters.{name}: start is missing, where the search begins")
        for column, numbers in columns.items():
            numbers.append(as_number(f"parameters.{name}.{column}", entry.get(column, default.get(column))))
    start, scale, lower, upper = columns.values()
    return Description(list(parameters), start, scale, lower, upper, **rest)


def _settings(given: Mapping[str, Any]) -> Settings:
    _known("settings", given, list(Settings.__dataclass_fields__))
    simple = (bool, int, float, str, list)
    for name, value in given.items():
        if not isinstance(value, simple):
            raise InputError(f"settings.{name}: expected a number, a list of numbers or a name, got {describe(value)}")
    with without_imports():
        return Settings.default(**given)


def _known(where: str, data: Mapping[str, Any], names: Sequence[str] | Mapping[str, Any]) -> None:
    unknown = [name for name in data if name not in names]
    if unknown:
        raise InputError(f"{where}: {unknown[0]!r} is unknown; expected {', '.join(names)}")
