"""The journal of a run: its specification, its processes and its log of events, on the disk as they happen.

The tables are those of `gibo.runs.store`. The optimiser is never stored: a replay of the log `events` rebuilds it.
"""

from __future__ import annotations

import json
import math
import os
import platform
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gibo._checks import as_path, instance
from gibo._linalg import Array
from gibo._serialize import to_plain
from gibo.errors import InputError, JournalError, MissingExtraError, QueryError
from gibo.optimizers.log import Asked, Event, Iteration, Proceeded, Started, Stepped, Told
from gibo.optimizers.state import iteration_from_plain, outcome_from_plain, query_from_plain, started_from_plain
from gibo.outcome import DETAILS, EXTERNAL, Evaluation, Outcome, Query
from gibo.runs import records
from gibo.runs.legacy import current_facts
from gibo.runs.records import Action, NewAction, Start, state_of
from gibo.runs.spec import AFTER, BLOCK, SOURCE, RunSpec
from gibo.runs.store import COLUMNS, Store, sound
from gibo.runs.store import has_journal as has_journal
from gibo.runs.table import Columns, Line, columns_of, data_frame
from gibo.runs.views import Update, checked_belief


class Batch(NamedTuple):
    """A row of the batches, with its memo as data."""

    number: int
    iteration: int
    first: int
    size: int
    asked: float
    iterate: str
    memo: dict[str, Any]


class Journal:
    """A run's journal; see the module's docstring. Use `create`, `open` or `read` to make one."""

    def __init__(self, store: Store) -> None:
        self._store, self.folder = store, store.folder
        self._spec: RunSpec | None = None  # after it was read
        self._lost_settings: list[str] = []  # names of settings that this version of gibo does not have
        self._start: int | None = None
        self._full: JournalError | None = None  # after the reserve was needed

    # -- open and close -----------------------------------------------------------------------------------------------

    @classmethod
    def create(cls, folder: Path | str, spec: RunSpec) -> Journal:
        """Begin a journal; raises if there is one."""
        instance("spec", spec, RunSpec, "a RunSpec")
        journal = cls(Store.create(as_path("folder", folder).absolute(), asdict(spec)))
        journal._spec = spec
        return journal

    @classmethod
    def open(cls, folder: Path | str, patience: float = 0.0, waiting: Callable[[], None] | None = None) -> Journal:
        """Open a journal for writing; waits this many seconds for another writer, then raises."""
        return cls(Store.write(as_path("folder", folder).absolute(), patience, waiting))

    @classmethod
    def read(cls, folder: Path | str) -> Journal:
        """Open a journal for reading, in its present state, also while a run is writing."""
        return cls(Store.read(as_path("folder", folder).absolute()))

    def __repr__(self) -> str:
        return f"Journal({str(self.folder)!r})"

    def to_dataframe(self, library: str | None = None) -> Any:
        """A data frame with a row per query, including pending ones; see `Result.to_dataframe`."""
        return data_frame(self.columns(), library)

    def columns(self) -> Columns:
        """All queries with their results as columns by name; see `gibo.runs.table`."""
        told = {e.id: (e.outcome, at) for e, at in self.evaluations()}
        lines = []
        for query, asked in self.queries().values():
            outcome, at = told.get(query.id, (None, None))
            lines.append(Line(query, outcome, asked, at))
        return columns_of(lines, self.spec().naming)

    def explained(self) -> AbstractContextManager[None]:
        """Report invalid data in this block as damage of the journal."""
        return sound(self.folder, InputError, MissingExtraError)

    def close(self) -> None:
        """Close the file and release the lock."""
        self._store.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- writing ------------------------------------------------------------------------------------------------------

    def begin(self, options: dict[str, Any]) -> None:
        """Record that this process starts to work on the run, with the settings in the form of this version of gibo."""
        number = self._store.count["starts"]
        known = (json.dumps(to_plain(options)), json.dumps(records.versions()))
        with self._store.transaction():
            if self._lost_settings:
                self._replace_facts(arguments=self.spec().arguments, training=self.spec().training)
            self._store.insert("starts", number, os.getpid(), platform.node(), time.time(), *known)
        self._start = number

    def end(self, reason: str, iterations: Sequence[Iteration] = (), update: Update | None = None) -> None:
        """Record why this process stops working on the run."""
        with self._store.transaction():
            self._record_iterations(iterations, update)
            if self._start is not None:
                self._store.insert("ends", self._start, time.time(), reason)

    def asked(
        self, asked: Asked, iterate: Array, iterations: Sequence[Iteration] = (), update: Update | None = None
    ) -> None:
        """Record a batch before its evaluation, and the steps since the previous batch with their beliefs."""
        if self._full is not None:
            raise self._full
        first, size, at = asked.queries[0], len(asked.queries), time.time()
        with self._store.transaction():
            self._record_iterations(iterations, update)
            row = (self._store.count["batches"], first.iteration, first.id, size, at, _cell(iterate))
            memo = {**(asked.memo or {}), AFTER: self._store.count["evaluations"]}
            memo |= {} if first.block is None else {BLOCK: first.block}
            memo |= {} if first.source is None else {SOURCE: first.source}
            self._store.insert("batches", *row, json.dumps(memo))
            for query in asked.queries:
                self._record_query(query)

    def told(self, evaluations: Sequence[Evaluation], actions: Sequence[NewAction] = ()) -> None:
        """Record outcomes and people's actions, with the queries of own points; uses the reserve, see `Store`."""
        try:
            self._record_told(evaluations, actions)
        except JournalError as error:
            self._full = error  # no more queries will be asked
            try:
                self._store.use_reserve()
                self._record_told(evaluations, actions)
            except JournalError:
                lost = ", ".join(f"query {e.id}: {e.failure or e.value!r}" for e in evaluations)
                raise JournalError(f"{error}; not recorded, so write it down: {lost}") from None

    def attempted(self, evaluation: Evaluation) -> None:
        """Record a failed attempt before the next one."""
        o = evaluation.outcome
        with self._store.transaction():
            number = self._store.count["attempts"]
            self._store.insert("attempts", number, evaluation.id, time.time(), o.seconds, o.failure, o.traceback)

    def proceeded(self) -> None:
        """Record that the optimiser continued without the pending queries."""
        with self._store.transaction():
            self._store.insert("moves", self._store.count["evaluations"] - 1, self._store.count["batches"] - 1)

    def acted(self, *actions: NewAction) -> None:
        """Record actions of people as (kind, body); see `gibo.runs.records`."""
        self._record_told((), actions)

    def started(self, event: Started, withdrawn: Sequence[int]) -> None:
        """Record that the search continues from another start, without these queries."""
        body = {"x": event.x.tolist(), "iteration": event.iteration, "withdrawn": list(withdrawn)}
        self.acted(("start", {**body, "batches": self._store.count["batches"]}))

    def change_training(self, training: dict[str, Any] | None, why: str) -> None:
        """Record that a person continues the run with another objective."""
        with self._store.transaction():
            self._replace_facts(training=training)
            records.record(self._store, "remark", {"text": why[: records.LONGEST_TEXT]})

    def start_at(self, x: Array | None) -> None:
        """Begin at a point of earlier data; None: at the caller's start. Only before the first `ask`."""
        spec = self.spec().starting_at(x)
        if spec != self.spec():
            with self._store.transaction():
                self._replace_facts(arguments=spec.arguments, given_x0=spec.given_x0)

    def _replace_facts(self, **facts: Any) -> None:
        for name, value in facts.items():
            self._store.delete("facts", name)
            self._store.insert("facts", name, json.dumps(value))
        self._spec = None

    def undo(self, count: int, reason: str | None = None) -> list[int]:
        """Take back the last outcomes, if nothing was asked since; returns their queries, which are pending again."""
        with self._store.transaction(), sound(self.folder, InputError, QueryError):
            return records.undo(self._store, count, reason)

    def correct(self, query: int, outcome: Outcome, reason: str) -> None:
        """Replace the outcome of a query; see `gibo.runs.records`."""
        with self._store.transaction(), sound(self.folder, InputError, QueryError):
            records.correct(self._store, query, outcome.value, outcome.failure, reason)

    def _record_query(self, query: Query) -> None:
        self._store.insert("queries", query.id, query.iteration, query.kind, query.seed, _cell(query.x))

    def _record_told(self, evaluations: Sequence[Evaluation], actions: Sequence[NewAction]) -> None:
        with self._store.transaction():
            for e in evaluations:
                if e.kind == EXTERNAL:
                    self._record_query(e.query)
                o = e.outcome
                data = (_cell(e.gradient), _cell(e.gradient_noise), json.dumps(dict(o.info)) if o.info else None)
                known = (time.time(), o.seconds, o.value, *data, o.failure, o.traceback)
                number = self._store.count["evaluations"]
                self._store.insert("evaluations", number, e.id, *known)
                if details := o.details():
                    self._store.insert("details", number, json.dumps(details))
            for kind, body in actions:
                records.record(self._store, kind, body)

    def _record_iterations(self, iterations: Sequence[Iteration], update: Update | None) -> None:
        if update is not None:
            if update.belief is not None:
                self._store.insert("beliefs", update.number, update.evaluations, json.dumps(update.belief))
            for kind, body in update.views.items():
                self._store.delete("views", kind)
                self._store.insert("views", kind, update.number, json.dumps(to_plain(body)))
        for step in iterations[self._store.count["iterations"] :]:
            values = {**vars(step), "iterate": step.x}
            self._store.insert("iterations", *map(_cell, map(values.get, COLUMNS["iterations"])))

    # -- reading ------------------------------------------------------------------------------------------------------

    def spec(self) -> RunSpec:
        """The specification of the run."""
        if self._spec is None:
            with sound(self.folder):
                facts = {}
                for name, text in self._store.rows("facts"):
                    facts[name] = json.loads(text)
                plain, self._lost_settings = current_facts(facts)
                self._spec = RunSpec(**plain)
        return self._spec

    def news(self) -> list[str]:
        """What a person must know before this process continues the run."""
        starts, spec = self.starts(), self.spec()
        news = records.other_versions(starts[-1].versions, spec) if starts else []
        if lost := ", ".join(dict.fromkeys(self._lost_settings)):
            text = f"this version of gibo does not have all settings of the run; it continues without {lost}"
            news.append(text[:500])
        return news

    def starts(self) -> list[Start]:
        """The processes that worked on the run."""
        ends, starts = dict[int, list[Any]](), []
        with sound(self.folder):
            for number, *end in self._store.rows("ends"):
                ends[number] = end
            for number, process, host, at, options, versions in self._store.rows("starts"):
                known = (json.loads(options), json.loads(versions), *ends.get(number, (None, None)))
                starts.append(records.checked_start(Start(process, host, at, *known)))
        return starts

    def last_options(self) -> dict[str, Any]:
        """The options of the last start; none if the run was killed as it began."""
        starts = self.starts()
        return starts[-1].options if starts else {}

    def state(self) -> str:
        """The state of the run, see `gibo.runs.records.state_of`."""
        return state_of(self.folder, self.starts(), self.actions())

    def queries(self) -> dict[int, tuple[Query, float | None]]:
        """All queries and own points of the user, by id, with the times of asking."""
        found: dict[int, tuple[Query, float | None]] = {}
        with sound(self.folder):
            d, batch_of = len(self.spec().arguments["x0"]), dict[int, Batch]()
            for batch in self._batches():
                batch_of |= dict.fromkeys(range(batch.first, batch.first + batch.size), batch)
            for number, iteration, kind, seed, x in self._store.rows("queries"):
                data = {"id": number, "iteration": iteration, "kind": kind, "seed": seed, "x": json.loads(x)}
                if (of := batch_of.get(number)) is not None:
                    data |= {"block": of.memo.get(BLOCK), "source": of.memo.get(SOURCE)}
                found[number] = (query_from_plain(data, d), of and of.asked)
        return found

    def evaluations(self) -> list[tuple[Evaluation, float]]:
        """All evaluations with their times, in the order of arrival; values have the objective's sign."""
        asked, found = self.queries(), []
        details: dict[int, str] = dict(self._store.rows("details"))
        with sound(self.folder):
            for number, query, told, seconds, value, *texts, failure, traceback in self._store.rows("evaluations"):
                gradient, gradient_noise, info = (None if text is None else json.loads(text) for text in texts)
                known = json.loads(details.pop(number, "{}"))
                if known.keys() - DETAILS:
                    raise ValueError("an evaluation has unknown details")
                known |= {"value": value, "gradient": gradient, "gradient_noise": gradient_noise, "info": info or {}}
                known |= {"failure": failure, "traceback": traceback, "seconds": seconds}
                of = asked[query][0]
                found.append((Evaluation(of, outcome_from_plain(known, len(of.x))), float(told)))
            if details:
                raise ValueError("details of no evaluation")
        return found

    def attempts(self) -> dict[int, int]:
        """The numbers of failed attempts that were repeated, by query."""
        counts: dict[int, int] = {}
        for _, query, *_ in self._store.rows("attempts"):
            counts[query] = counts.get(query, 0) + 1
        return counts

    def last_belief(self) -> int:
        """The number of the last update with a belief; −1 if there is none."""
        rows = self._store.rows("beliefs")
        return rows[-1][0] if rows else -1

    def beliefs(self) -> dict[int, dict[str, Any]]:
        """The model's belief after each update, by the update's number; see `gibo.runs.views`."""
        d = len(self.spec().arguments["x0"])
        with sound(self.folder):
            return {number: checked_belief(json.loads(body), d) for number, _, body in self._store.rows("beliefs")}

    def views(self) -> dict[str, tuple[int, Any]]:
        """The data for a page's drawings by kind, with the number of the update that they belong to."""
        with sound(self.folder):
            return {kind: (number, json.loads(body)) for kind, number, body in self._store.rows("views")}

    def iterates(self) -> dict[int, Array]:
        """The optimiser's iterate at each ask, by the id of the batch's first query."""
        with sound(self.folder):
            return {batch.first: np.array(json.loads(batch.iterate), dtype=float) for batch in self._batches()}

    def actions(self) -> list[Action]:
        """The actions of people, in order."""
        found, most = [], len(self._store.rows("evaluations"))
        with sound(self.folder):
            for _, at, after, kind, body in self._store.rows("actions"):
                found.append(records.action(at, after, kind, json.loads(body)))
                most += kind == "undo"
            if found and max(each.after for each in found) > most:
                raise ValueError("an action after an evaluation that does not exist")
        return found

    def aborted_at(self) -> dict[str, float] | None:
        """What to set on the machine if the run was aborted; see `gibo.runs.records.safe_point`."""
        with self.explained():
            return records.safe_point(self.actions(), self.spec().naming)

    def refuse_aborted(self) -> None:
        """An error if the run was aborted."""
        if (point := self.aborted_at()) is not None:
            what = ", ".join(f"{name} = {value:.6g}" for name, value in point.items())
            to_go_on = f"To go on: gibo abort {self.folder} --revoke"
            raise InputError(f"{self.folder}: this run was aborted; set {what}. {to_go_on}")

    def events(self) -> list[Event]:
        """The log of the run's optimiser, with values in the objective's sign.

        After a value come the end of an iteration with pending queries, the step, new starts and batches.
        """
        found: list[tuple[tuple[int, ...], Event]] = []
        queries, told, batches, d = (
            self.queries(),
            self.evaluations(),
            self._batches(),
            len(self.spec().arguments["x0"]),
        )
        with sound(self.folder):
            for after, _ in self._store.rows("moves"):
                found.append(((after + 1, 0), Proceeded()))
            for row in self._store.rows("iterations"):
                data = dict(zip(COLUMNS["iterations"], row, strict=True))
                data["x"] = data.pop("iterate")
                data |= {name: json.loads(data[name]) for name in ("x", "gradient", "step", "lengthscale")}
                step = iteration_from_plain(data, d)
                found.append(((step.evaluations, 1), Stepped(step)))
            for each in self.actions():
                if each.kind == "start":
                    found.append(((each.after, 2, each.body["batches"], 0), started_from_plain(each.body, d)))
            for i, batch in enumerate(batches):
                asked = tuple(queries[batch.first + k][0] for k in range(batch.size))
                is_last = batch is batches[-1]  # of the memos only the last one is of use
                memo = {
                    name: part for name, part in batch.memo.items() if is_last and name not in (AFTER, BLOCK, SOURCE)
                }
                found.append(((batch.memo[AFTER], 2, i, 1), Asked(asked, memo or None)))
            for i, (e, _) in enumerate(told):
                found.append(((i, 3), Told(e.query, e.outcome)))
            found.sort(key=lambda pair: pair[0])
        return [event for _, event in found]

    def _batches(self) -> list[Batch]:
        found, queries = [], len(self._store.rows("queries"))
        for *row, memo in self._store.rows("batches"):
            found.append(Batch._make((*row, json.loads(memo))))
            if not 0 < found[-1].size <= queries:
                raise ValueError("a batch has more queries than exist")
        return found


def _cell(value: Any) -> Any:
    """A value as SQLite can store it; a vector is a JSON text."""
    if isinstance(value, np.ndarray):
        return json.dumps(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value  # SQLite has no NaN
