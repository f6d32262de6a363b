"""The journal of a run: its specification, its processes and its log of events, on the disk as they happen.

The tables are those of `gibo.runs.store`. The optimiser is never stored: a replay of the log `events` rebuilds it.
"""

from __future__ import annotations

import json
import math
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from gibo._checks import as_path, instance
from gibo._linalg import Array
from gibo._serialize import to_plain
from gibo.errors import InputError, JournalError, MissingExtraError, QueryError
from gibo.optimizers.log import Asked, Event, Iteration, Started, Stepped, Told
from gibo.optimizers.state import query_from_plain
from gibo.outcome import DETAILS, EXTERNAL, Evaluation, Outcome, Query
from gibo.runs import records
from gibo.runs.database import is_there, sound
from gibo.runs.events import NewStart, events_of, iteration_of, outcome_of
from gibo.runs.legacy import current_facts
from gibo.runs.records import Action, Row, Start, state_of
from gibo.runs.spec import AFTER, BLOCK, SOURCE, RunSpec
from gibo.runs.store import COLUMNS, Store
from gibo.runs.table import Columns, Line, columns_of, data_frame
from gibo.runs.views import Update, checked_belief

NewAction = tuple[str, dict[str, Any]]  # kind and body of a person's action


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
        store = Store.write(_absolute(folder), new=True)
        try:
            with store:
                for field in fields(spec):
                    store.insert("facts", field.name, json.dumps(getattr(spec, field.name)))
        except BaseException:
            store.close()
            raise
        journal = cls(store)
        journal._spec = spec
        return journal

    @classmethod
    def open(cls, folder: Path | str, patience: float = 0.0, waiting: Callable[[], None] | None = None) -> Journal:
        """Open a journal for writing; waits this many seconds for another writer, then raises."""
        return cls(Store.write(_absolute(folder), new=False, patience=patience, waiting=waiting))

    @classmethod
    def read(cls, folder: Path | str, whole: bool = True) -> Journal:
        """Open a journal for reading, in its present state, also while a run is writing.

        Each table is checked when it is read. With `whole` all tables are checked at once, which takes a second for
        100,000 rows.
        """
        return cls(Store.read(_absolute(folder), whole))

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
        number = self._store.count("starts")
        known = (json.dumps(to_plain(options)), json.dumps(records.versions()))
        with self._store:
            if self._lost_settings:
                self._replace_facts(arguments=self.spec().arguments, training=self.spec().training)
            self._store.insert("starts", number, os.getpid(), platform.node(), time.time(), *known)
        self._start = number

    def end(self, reason: str, iterations: Sequence[Iteration] = (), update: Update | None = None) -> None:
        """Record why this process stops working on the run."""
        with self._store:
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
        with self._store:
            self._record_iterations(iterations, update)
            row = (self._store.count("batches"), first.iteration, first.id, size, at, _cell(iterate))
            memo = {**(asked.memo or {}), AFTER: self._store.count("evaluations")}
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
        with self._store:
            number = self._store.count("attempts")
            self._store.insert("attempts", number, evaluation.id, time.time(), o.seconds, o.failure, o.traceback)

    def proceeded(self) -> None:
        """Record that the optimiser continued without the pending queries."""
        with self._store:
            self._store.insert("moves", self._store.count("evaluations") - 1, self._store.count("batches") - 1)

    def acted(self, *actions: NewAction) -> None:
        """Record actions of people as (kind, body); see `gibo.runs.records`."""
        self._record_told((), actions)

    def started(self, event: Started, withdrawn: Sequence[int]) -> None:
        """Record that the search continues from another start, without these queries."""
        body = {"x": event.x.tolist(), "iteration": event.iteration, "withdrawn": list(withdrawn)}
        self.acted(("start", {**body, "batches": self._store.count("batches")}))

    def change_training(self, training: dict[str, Any] | None, why: str) -> None:
        """Record that a person continues the run with another objective."""
        with self._store:
            self._replace_facts(training=training)
            records.record(self._store, "remark", {"text": why[: records.LONGEST_TEXT]})

    def start_at(self, x: Array | None) -> None:
        """Begin at a point of earlier data; None: at the caller's start. Only before the first `ask`."""
        spec = self.spec().starting_at(x)
        if spec != self.spec():
            with self._store:
                self._replace_facts(arguments=spec.arguments, given_x0=spec.given_x0)

    def _replace_facts(self, **facts: Any) -> None:
        for name, value in facts.items():
            self._store.delete("facts", name)
            self._store.insert("facts", name, json.dumps(value))
        self._spec = None

    def undo(self, count: int, reason: str | None = None) -> list[Row]:
        """Take back the last outcomes, if nothing was asked since; the queries are pending again."""
        with self._store, sound(self.folder, InputError, QueryError):
            return records.undo(self._store, count, reason)

    def correct(self, query: int, outcome: Outcome, reason: str) -> None:
        """Replace the outcome of a query; see `gibo.runs.records`."""
        with self._store, sound(self.folder, InputError, QueryError):
            records.correct(self._store, query, outcome.value, outcome.failure, reason)

    def _record_query(self, query: Query) -> None:
        self._store.insert("queries", query.id, query.iteration, query.kind, query.seed, _cell(query.x))

    def _record_told(self, evaluations: Sequence[Evaluation], actions: Sequence[NewAction]) -> None:
        with self._store:
            for e in evaluations:
                if e.kind == EXTERNAL:
                    self._record_query(e.query)
                o = e.outcome
                data = (_cell(e.gradient), _cell(e.gradient_noise), json.dumps(dict(o.info)) if o.info else None)
                known = (time.time(), o.seconds, o.value, *data, o.failure, o.traceback)
                number = self._store.count("evaluations")
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
        for step in iterations[self._store.count("iterations") :]:
            cells = (_cell(getattr(step, "x" if name == "iterate" else name)) for name in COLUMNS["iterations"])
            self._store.insert("iterations", *cells)

    # -- reading ------------------------------------------------------------------------------------------------------

    def spec(self) -> RunSpec:
        """The specification of the run."""
        if self._spec is None:
            with sound(self.folder):
                facts = {name: json.loads(text) for name, text in self._store.rows("facts")}
                plain, self._lost_settings = current_facts(facts)
                self._spec = RunSpec(**plain)
        return self._spec

    def news(self) -> list[str]:
        """What a person must know before this process continues the run."""
        starts, spec = self.starts(), self.spec()
        news = [] if not starts else records.other_versions(starts[-1].versions, spec)
        if self._lost_settings:
            lost = ", ".join(dict.fromkeys(self._lost_settings))
            text = f"this version of gibo does not have all settings of the run; it continues without {lost}"
            news.append(text[:500])
        return news

    def starts(self) -> list[Start]:
        """The processes that worked on the run."""
        ends = {row[0]: row[1:] for row in self._store.rows("ends")}
        with sound(self.folder):
            return [
                records.checked_start(
                    Start(process, host, at, json.loads(options), json.loads(found), *ends.get(number, (None, None)))
                )
                for number, process, host, at, options, found in self._store.rows("starts")
            ]

    def last_options(self) -> dict[str, Any]:
        """The options of the last start; none if the run was killed as it began."""
        starts = self.starts()
        return starts[-1].options if starts else {}

    def state(self) -> str:
        """The state of the run, see `gibo.runs.records.state_of`."""
        return state_of(self.folder, self.starts(), self.actions())

    def evaluations(self) -> list[tuple[Evaluation, float]]:
        """All evaluations with their times, in the order of arrival; values have the objective's sign."""
        asked = self._queries()
        with sound(self.folder):
            details = self._details()
            return [
                (Evaluation(query := asked[row[1]], outcome_of(row, details, len(query.x))), float(row[2]))
                for row in self._store.rows("evaluations")
            ]

    def queries(self) -> dict[int, tuple[Query, float | None]]:
        """All queries and own points of the user, by id, with the times of asking."""
        asked = self._queries()
        with sound(self.folder):
            times = {first + i: at for _, _, first, size, at, *_ in self._batches(asked) for i in range(size)}
            return {i: (query, times.get(i)) for i, query in asked.items()}

    def iterates(self) -> dict[int, Array]:
        """The optimiser's iterate at each ask, by the id of the batch's first query."""
        with sound(self.folder):
            return {row[2]: np.array(json.loads(row[5]), dtype=np.float64) for row in self._store.rows("batches")}

    def last_belief(self) -> int:
        """The number of the last update with a belief; −1 if there is none."""
        return max((number for number, *_ in self._store.rows("beliefs")), default=-1)

    def beliefs(self) -> dict[int, dict[str, Any]]:
        """The model's belief after each update, by the update's number; see `gibo.runs.views`."""
        d = len(self.spec().arguments["x0"])
        with sound(self.folder):
            return {number: checked_belief(json.loads(body), d) for number, _, body in self._store.rows("beliefs")}

    def views(self) -> dict[str, tuple[int, Any]]:
        """The data for a page's drawings by kind, with the number of the update that they belong to."""
        with sound(self.folder):
            return {kind: (number, json.loads(body)) for kind, number, body in self._store.rows("views")}

    def attempts(self) -> dict[int, int]:
        """The numbers of failed attempts that were repeated, by query."""
        counts: dict[int, int] = {}
        for _, query, *_ in self._store.rows("attempts"):
            counts[query] = counts.get(query, 0) + 1
        return counts

    def actions(self) -> list[Action]:
        """The actions of people, in order."""
        with sound(self.folder):
            found = [
                records.action(at, n, kind, json.loads(body)) for _, at, n, kind, body in self._store.rows("actions")
            ]
            most = self._store.count("evaluations") + sum(each.kind == "undo" for each in found)
            if any(each.after > most for each in found):
                raise ValueError("an action after an evaluation that does not exist")
            return found

    def pending(self) -> dict[int, Query]:
        """The queries that were asked and not told, by id."""
        told = {e.id for e, _ in self.evaluations()}
        withdrawn = {number for each in self.new_starts() for number in each.body["withdrawn"]}
        return {i: query for i, (query, _) in self.queries().items() if i not in told | withdrawn}

    def new_starts(self) -> list[Action]:
        """The starts that people gave the search, in their order."""
        return [each for each in self.actions() if each.kind == "start"]

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
        """The log of the run's optimiser, with values in the objective's sign."""
        self.actions()  # a forged journal is refused as a whole
        with sound(self.folder):
            return list(self._events())

    def _events(self) -> Iterator[Event]:
        asked, details = self._queries(), self._details()
        rows = self._store.rows("evaluations")
        told = [Told(asked[row[1]], outcome_of(row, details, len(asked[row[1]].x))) for row in rows]
        steps = [Stepped(iteration_of(row)) for row in self._store.rows("iterations")]
        starts = [NewStart.of(each, len(self.spec().arguments["x0"])) for each in self.new_starts()]
        return events_of(asked, self._batches(asked), told, self._store.rows("moves"), steps, starts)

    def _queries(self) -> dict[int, Query]:
        spec = self.spec()
        with sound(self.folder):
            d = len(spec.arguments["x0"])
            of_batch: dict[int, dict[str, Any]] = {}  # block and source of queries, by id
            for _, _, first, size, _, _, thought in self._store.rows("batches"):
                if f'"{BLOCK}"' in thought or f'"{SOURCE}"' in thought:
                    memo = json.loads(thought)
                    common = {"block": memo.get(BLOCK), "source": memo.get(SOURCE)}
                    of_batch |= dict.fromkeys(range(first, first + min(size, self._store.count("queries"))), common)
            found = {}
            for number, iteration, kind, seed, x in self._store.rows("queries"):
                data = {"id": number, "iteration": iteration, "kind": kind, "seed": seed, "x": json.loads(x)}
                found[number] = query_from_plain({**data, **of_batch.get(number, {})}, d)
            return found

    def _batches(self, asked: dict[int, Query]) -> list[tuple[Any, ...]]:
        rows = self._store.rows("batches")
        if any(not 0 < row[3] <= len(asked) for row in rows):
            raise ValueError("a batch has more queries than exist")
        return rows

    def _details(self) -> dict[int, dict[str, Any]]:
        """The details of evaluations that have some, by number."""
        found = {number: dict(json.loads(body)) for number, body in self._store.rows("details")}
        if any(not 0 <= n < self._store.count("evaluations") or each.keys() - DETAILS for n, each in found.items()):
            raise ValueError("details of no evaluation")
        return found


def _absolute(folder: Path | str) -> Path:
    """The folder, wherever this process goes later."""
    return as_path("folder", folder).absolute()


def has_journal(folder: Path | str) -> bool:
    """Whether a run has begun in this folder."""
    return is_there(as_path("folder", folder))


def _cell(value: Any) -> Any:
    """A value as SQLite can store it; a vector is a JSON text."""
    if isinstance(value, np.ndarray):
        return json.dumps(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value  # SQLite has no NaN
