"""The interface for programs that evaluate queries: ask, tell, status, best, export, as plain JSON data."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from gibo._checks import as_flag, as_path, instance
from gibo.errors import InputError, JournalError, NumericalError, QueryError
from gibo.outcome import Outcome, Query
from gibo.runs import manual
from gibo.runs.description import check_names
from gibo.runs.journal import Journal
from gibo.runs.lock import LOCK_PATIENCE, keep
from gibo.runs.session import Session
from gibo.runs.table import rows_of


class ManualBench:
    """A run of `gibo init`, held in memory with its lock until `close`. Other processes can only read it.

    When a method returns, the journal has its result, so that nothing is lost with the memory. After an error of the
    disk, the run is read from the journal again. All methods are thread-safe. Wrong requests raise `InputError`.
    Unknown queries, and another value for a query that has one, raise `QueryError`.

    Args:
        folder: of the run.
        waiting: called once if another process holds the run.
    """

    def __init__(self, folder: Path | str, waiting: Callable[[], None] | None = None) -> None:
        self.folder = as_path("folder", folder).absolute()
        self._lock = threading.Lock()
        self._session = self._opened(waiting)
        self._closed = threading.Event()

    def __enter__(self) -> ManualBench:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the run after the present call has ended."""
        self._closed.set()
        with self._lock:
            self._let_go()

    def _opened(self, waiting: Callable[[], None] | None = None) -> Session | None:
        journal = Journal.open(self.folder, LOCK_PATIENCE, waiting)
        try:
            spec = journal.spec()
            if spec.training is not None:
                raise InputError(f"{self.folder}: a run of gibo train evaluates its own queries")
            self.naming = spec.naming
            keep(self.folder)
            return Session.of(journal)
        except BaseException:
            journal.close()
            raise

    def _let_go(self) -> None:
        session, self._session = self._session, None
        if session is not None and session.journal is not None:
            session.journal.close()

    @contextmanager
    def _run(self) -> Iterator[Session]:
        """The run, for one thread at a time."""
        with self._lock:
            if self._session is None and self._closed.is_set():
                raise JournalError(f"{self.folder}: the run is being closed")
            if self._session is None:
                self._session = self._opened()
            assert self._session is not None
            try:
                yield self._session
            except (InputError, QueryError, NumericalError):
                raise
            except BaseException:  # memory and disk may differ now; the disk is right
                self._let_go()
                raise

    def ask(self) -> dict[str, Any]:
        """``{"queries": [{"id", "kind", "iteration", "seed", "x", "parameters"}, …]}``; the same until told."""
        with self._run() as session:
            assert session.journal is not None
            session.journal.refuse_aborted()
            return {"queries": [self.naming.query(query) for query in session.ask()]}

    def tell(self, request: dict[str, Any]) -> dict[str, Any]:
        """Record ``{"id", "value"}``, or ``{"id", "failed"}``.

        If known, with ``"gradient"`` and ``"gradient_noise"``, ``"noise"``, ``"repeats"``, ``"block"`` and
        ``"measured"``; see `gibo.Outcome`.

        Returns ``{"id", "recorded"}``: false if the same value is already recorded, which is no error.
        """
        with self._run() as session:
            number, outcome = manual.as_outcome(request, len(self.naming.names))
            log = session.optimizer.log
            known = log.evaluations.get(number)
            query = log.pending.get(number) if known is None else known.query
            outcome = outcome if query is None else self._by_entry(query, outcome)
            return {"id": number, "recorded": manual.record(session, number, outcome)}

    def start(self, request: dict[str, Any]) -> dict[str, Any]:
        """Go on from another start, ``{"parameters"}``; returns it as it can be set, ``{"start"}``."""
        check_names("start", request, ("parameters",))
        with self._run() as session:
            point: Any = request.get("parameters")
            session.start_at(self.naming.point(instance("parameters", point, Mapping, "numbers by name")))
            return {"start": self.naming(session.optimizer.start)}

    def abort(self, request: dict[str, Any]) -> dict[str, Any]:
        """End the run, for a ``"reason"`` if there is one; returns what to set on the machine, ``{"set"}``.

        This is the start, or the safe ``"parameters"`` of the request. ``{"revoke": true}`` continues the run.
        """
        check_names("abort", request, ("parameters", "reason", "revoke"))
        with self._run() as session:
            assert session.journal is not None
            if as_flag("revoke", request.get("revoke", False)):
                manual.go_on(session.journal)
                return {"set": None}
            point = instance("parameters", request.get("parameters"), (Mapping, NoneType), "numbers by name")
            return {"set": manual.abort(session.journal, point, request.get("reason", ""))}

    def status(self) -> dict[str, Any]:
        """The state of the run; see `gibo.runs.manual.Overview`."""
        with self._run() as session:
            session.settle()
            return manual.Overview.of(session).to_plain()

    def best(self) -> dict[str, Any]:
        """``{"best": {"value", "parameters"} or None, "best_seen": …}``."""
        with self._run() as session:
            session.settle()
            best, seen = session.optimizer.best, session.optimizer.best_seen
            known = {"best": best and best.signed(session.sign), "best_seen": seen and seen.signed(session.sign)}
            return {name: self.naming.best(each) for name, each in known.items()}

    def export(self) -> dict[str, Any]:
        """``{"columns": [names], "rows": [[…], …]}``: all queries with their results."""
        with Journal.read(self.folder) as journal:
            columns, *rows = rows_of(journal.columns())
        return {"columns": columns, "rows": rows}

    def _by_entry(self, query: Query, outcome: Outcome) -> Outcome:
        """Convert a gradient to the optimiser's vector: for a log parameter, multiply by its value."""
        kinds = self.naming.parameters
        if outcome.gradient is None or kinds is None:
            return outcome
        factor = np.array([value if kinds[name].log else 1.0 for name, value in self.naming(query.x).items()])
        noise = None if outcome.gradient_noise is None else outcome.gradient_noise * factor**2
        return replace(outcome, gradient=outcome.gradient * factor, gradient_noise=noise)
