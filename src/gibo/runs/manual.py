"""A run whose evaluations are made by a person or another program, one call at a time.

Each function opens the run's journal, does one thing and closes it again, so that each may be a process of its own.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gibo._checks import as_number, describe, finite
from gibo._linalg import Array
from gibo.errors import InputError, QueryError
from gibo.optimizers.ars import ARS
from gibo.optimizers.base import Best, Bounds, Optimizer, Query
from gibo.optimizers.cma import CMAES
from gibo.optimizers.gibo import GIBO
from gibo.optimizers.random_search import RandomSearch
from gibo.optimizers.settings import Settings
from gibo.optimizers.vanilla_bo import VanillaBO
from gibo.runs.evaluation import Answer
from gibo.runs.journal import Facts, Journal, Start
from gibo.runs.learner import Learner

METHODS: dict[str, type[Optimizer]] = {
    "gibo": GIBO,
    "ars": ARS,
    "cma-es": CMAES,
    "vanilla-bo": VanillaBO,
    "random-search": RandomSearch,
}
# Two programs that drive one run may meet; each holds the journal for a moment only.
PATIENCE = 5.0


@dataclass(frozen=True)
class Description:
    """What a run by hand is: parameters with names, where they start, and how they are sought.

    Attributes:
        names: of the parameters.
        start, scale, lower, upper: one number per parameter.
        method: one of `METHODS`.
        minimize: whether small values are good.
        seed: of all random choices.
        settings: those of `gibo.Settings` that differ from the default.
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

    def optimizer(self) -> Optimizer:
        """A fresh one."""
        if self.method not in METHODS:
            raise InputError(f"method: expected one of {', '.join(METHODS)}, got {self.method!r:.80}")
        bounded = any(map(math.isfinite, [*self.lower, *self.upper]))
        options: dict[str, Any] = {"scale": self.scale, "seed": self.seed}
        options["bounds"] = Bounds(self.lower, self.upper) if bounded else None
        if self.settings:
            if self.method != "gibo":
                raise InputError(f"settings: they are for the method gibo, not for {self.method}")
            options["settings"] = _settings(self.settings)
        return METHODS[self.method](self.start, **options)


@dataclass(frozen=True)
class Status:
    """How a run stands; values are the objective's own.

    Attributes:
        optimizer: the name of its class.
        names: of the parameters.
        evaluations, failures: how many were told, and how many of them had no value.
        open: the queries that were asked and not told.
        iteration: of the optimiser.
        best: the point that the optimiser recommends and what it believes its value to be; None before any value.
        best_seen: the best value told.
        iterate: where the optimiser stands.
        probability_of_ascent: of the last step, by the model; None without one.
        starts: the processes that ran it.
    """

    optimizer: str
    names: list[str]
    minimize: bool
    evaluations: int
    failures: int
    open: list[Query]
    iteration: int
    best: Best | None
    best_seen: Best | None
    iterate: Array
    probability_of_ascent: float | None
    starts: list[Start]


def create(folder: Path | str, description: Description) -> None:
    """Begin a run."""
    optimizer = description.optimizer()
    facts = Facts.of(optimizer, sign=-1.0 if description.minimize else 1.0, names=description.names)
    with Journal.create(folder, facts) as journal:
        journal.begin({})
        journal.end("made for evaluations by hand")


def ask(folder: Path | str) -> list[Query]:
    """The queries to evaluate next; the same ones until they are told."""
    with Journal.open(folder, PATIENCE) as journal:
        optimizer = journal.optimizer()
        known = {query.id for query in optimizer.waiting}
        queries = optimizer.ask()
        fresh = [query for query in queries if query.id not in known]
        if fresh:
            steps = optimizer.iterations if isinstance(optimizer, GIBO) else ()
            journal.asked(fresh, optimizer.iterate, optimizer.thought(), steps)
        return queries


def tell(folder: Path | str, number: int, value: Any = None, failed: str | None = None) -> None:
    """Record the value of a query, or why there is none."""
    if (value is None) == (failed is None):
        raise InputError("tell: give a value, or say that the evaluation failed")
    answer = Answer(failure=failed or "failed") if value is None else Answer(finite("value", value))
    with Journal.open(folder, PATIENCE) as journal:
        told = {t.query.id for t in journal.evaluations()}
        asked = {query.id for query in journal.queries()}
        if number in told:
            raise QueryError(f"query {number} was told before; each query is told once")
        if number not in asked:
            out = ", ".join(map(str, sorted(asked - told))) or "none; ask for some"
            raise QueryError(f"query {number} is unknown; those that are out: {out}")
        journal.told([(number, answer)])


def status(folder: Path | str) -> Status:
    """How a run stands, also while it is running."""
    with Journal.read(folder) as journal:
        facts, told = journal.facts(), journal.evaluations()
        optimizer = journal.optimizer(_learner(facts))
        best, seen = (
            None if point is None else Best(point.x, facts.sign * point.value)
            for point in (optimizer.best, optimizer.best_seen)
        )
        steps = optimizer.iterations if isinstance(optimizer, GIBO) else []
        return Status(
            optimizer=facts.optimizer,
            names=names_of(facts),
            minimize=facts.sign < 0,
            evaluations=len(told),
            failures=sum(t.answer.failure is not None for t in told),
            open=optimizer.waiting,
            iteration=optimizer.iteration,
            best=best,
            best_seen=seen,
            iterate=optimizer.iterate,
            probability_of_ascent=steps[-1].probability_of_ascent if steps else None,
            starts=journal.starts(),
        )


def table(folder: Path | str) -> list[list[Any]]:
    """Every query and what became of it, as rows; the first one holds the columns' names."""
    with Journal.read(folder) as journal:
        names = names_of(journal.facts())
        told = {t.query.id: t for t in journal.evaluations()}
        asked = {first + i: at for _, _, first, size, at, _, _ in journal.rows("batches") for i in range(size)}
        rows: list[list[Any]] = [
            ["id", "iteration", "kind", *names, "value", "failure", "seconds", "asked", "told", "seed"]
        ]
        for query in journal.queries():
            t = told.get(query.id)
            known: tuple[Any, ...] = ("", "", "", "")
            if t is not None:
                known = (t.answer.value, t.answer.failure, t.answer.seconds, t.told)
            value, failure, seconds, at = ("" if item is None else item for item in known)
            row = [query.id, query.iteration, query.kind, *query.x.tolist(), value, failure, seconds]
            rows.append([*row, asked.get(query.id, ""), at, query.seed])
        return rows


def _learner(facts: Facts) -> Learner | None:
    """What learnt in a run of `gibo train`."""
    if facts.task is None or not facts.task.get("normalize_states"):
        return None
    from gibo.training.training import Training  # here, because it is for those who train policies

    training = Training.from_plain(facts.task)
    with training.task() as task:
        return training.learner(task)


def names_of(facts: Facts) -> list[str]:
    """The parameters' names; x0, x1, … if they have none."""
    return facts.names or [f"x{i}" for i in range(len(facts.arguments["x0"]))]


# -- descriptions -----------------------------------------------------------------------------------------------------


def read_description(path: Path) -> Description:
    """A description from a TOML file; see `gibo init --help` for an example."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: not readable as TOML: {error}") from None
    try:
        return _description(data)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _description(data: Mapping[str, Any]) -> Description:
    _known("the file", data, ("parameters", "method", "minimize", "seed", "settings"))
    parameters = data.get("parameters")
    if not isinstance(parameters, dict) or not parameters:
        raise InputError("expected a table [parameters.NAME] for each parameter, got none")
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
    for name, kind in (("method", str), ("minimize", bool), ("seed", int), ("settings", dict)):
        if name in data and not isinstance(data[name], kind):
            raise InputError(f"{name}: got {describe(data[name])}")
    rest = {name: data[name] for name in ("method", "minimize", "seed", "settings") if name in data}
    start, scale, lower, upper = columns.values()
    return Description(list(parameters), start, scale, lower, upper, **rest)


def _settings(given: Mapping[str, Any]) -> Settings:
    _known("settings", given, list(Settings.__dataclass_fields__))
    simple = (bool, int, float, str, list)
    for name, value in given.items():
        if not isinstance(value, simple):
            raise InputError(f"settings.{name}: expected a number, a list of numbers or a name, got {describe(value)}")
    return Settings(**given)


def _known(where: str, data: Mapping[str, Any], names: Sequence[str] | Mapping[str, Any]) -> None:
    unknown = [name for name in data if name not in names]
    if unknown:
        raise InputError(f"{where}: {unknown[0]!r} is unknown; expected {', '.join(names)}")
