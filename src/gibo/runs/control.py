"""Requests of people to a run: pause, continue, stop, abort, go on from another start, tell a value, mark an evaluation
as failed, make a remark.

The process that holds a run handles them. A request is answered after the journal has recorded it, so that a request
with the answer ``{"ok": True}`` survives any crash. An impossible request raises a `GiboError`.

    Control        a run of this process; requests may come from any thread, such as a server's
    FolderControl  a run that no process holds: each request takes the run's lock for a moment
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import NoneType
from typing import Any

from gibo._checks import as_path, describe, instance
from gibo.errors import InputError, InUseError, RunError
from gibo.outcome import Evaluation, Outcome, Query
from gibo.runs.journal import Journal
from gibo.runs.lock import at_fork, keep
from gibo.runs.manual import abort, aborted_because, as_outcome, record, record_abort, session_of, start_at
from gibo.runs.pools import Pool, Underway
from gibo.runs.records import LONGEST_TEXT
from gibo.runs.session import Session

# The requests, and the kinds of their actions in the journal.
KINDS = {
    "pause": "paused",
    "continue": "continued",
    "stop": "stop",
    "tell": "told",
    "mark_failed": "failed",
    "remark": "remark",
    "abort": "abort",
    "start": "start",
}
ANY_TIME = ("tell", "mark_failed", "remark", "abort", "start")  # the others need a process that evaluates
REQUEST_PATIENCE = 30.0  # seconds that a request waits for the run, which may be computing a step
LOCK_POLL = 0.05  # seconds between two attempts
WITH_CONTROL = (
    'only that process can change the run. Start it with control: gibo train ... --control, or watch="control" in '
    "Python; gibo serve takes values itself"
)

_held_here: dict[Path, Control] = {}  # runs of this process, by folder
at_fork(after_in_child=_held_here.clear)  # a child process has no runs of its parent


def control_of(folder: Path | str) -> Requests:
    """The object that takes requests for the run in a folder: this process's `Control`, or a `FolderControl`."""
    return held_here(folder) or FolderControl(folder)


def held_here(folder: Path | str) -> Control | None:
    """The control of a run that a loop of this process is running."""
    return _held_here.get(as_path("folder", folder).resolve())


class Requests(ABC):
    """The requests to a run, as JSON:

    {"action": "pause"}                            begin no evaluation; running evaluations continue
    {"action": "continue"}                         end a pause
    {"action": "stop"}                             end the run after this iteration, or at once if it is paused
    {"action": "abort", "at", "reason"}            end the run at once, but wait for running evaluations; this point, by
                                                   the names of its parameters, or else the start is to be set
    {"action": "start", "at"}                      go on from this start; pending queries are withdrawn
    {"action": "tell", "id", "value", …}           the value of a pending query, with the details of `gibo.Outcome`
    {"action": "mark_failed", "id", "reason"}      a pending query has no value
    {"action": "remark", "text"}                   a remark for the journal

    Attributes:
        actions: the names of the possible requests.
    """

    actions: frozenset[str] = frozenset(ANY_TIME)

    def act(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Execute a request.

        Returns:
            ``{"ok": True, "recorded": whether it is new}``, after the journal has it.
        """
        if not isinstance(request, Mapping):
            raise InputError(f"request: expected an object, got {describe(request)}")
        name = request.get("action")
        if not isinstance(name, str) or name not in KINDS:
            raise InputError(f"action: expected one of {', '.join(KINDS)}, got {describe(name)}")
        return {"ok": True, "recorded": self._do(KINDS[name], request)}

    @abstractmethod
    def _do(self, kind: str, request: Mapping[str, Any]) -> bool:
        """Execute and record a request as an action of this kind; False if it is already recorded."""


class Control(Requests):
    """Requests to a run of this process.

    The loop of the run holds the session's lock except while it waits for evaluations, so that a request is handled
    between two steps of the loop. A value for a query that is being evaluated counts at once; the later result of the
    evaluation is dropped.

    Args:
        session: the run.
        pool: where its loop evaluates.

    Attributes:
        paused, stopping: the requests to the loop.
        aborted: why a person has ended the run at once, or None.
        told, withdrawn: evaluations that were told and queries that were withdrawn, until the loop takes them.
    """

    actions = frozenset(KINDS)

    def __init__(self, session: Session, pool: Pool) -> None:
        self.session, self._pool = session, pool
        self.paused = self.stopping = False
        self.aborted: str | None = None
        self.told: list[Evaluation] = []
        self.withdrawn: list[Query] = []
        self._closed = False
        if session.journal is not None:
            keep(session.journal.folder)
            _held_here[session.journal.folder.resolve()] = self

    def close(self) -> None:
        """Refuse later requests, because the loop has ended."""
        self._closed = True
        if self.session.journal is not None:
            _held_here.pop(self.session.journal.folder.resolve(), None)

    def underway(self) -> list[Underway]:
        """The running evaluations."""
        return [] if self._closed else self._pool.underway()

    def _do(self, kind: str, request: Mapping[str, Any]) -> bool:
        with self._alone():
            session, journal = self.session, self.session.journal
            assert journal is not None  # this object is found by the journal's folder
            if kind == "start":
                pending = session.optimizer.pending
                session.start_at(session.naming.point(_point(request, (Mapping,))))
                self.withdrawn += pending
            elif kind == "abort":
                reason = _text("reason", request)
                record_abort(journal, _point(request), reason)
                self.aborted, self.stopping = aborted_because(reason), True
            elif kind in ("told", "failed"):
                return self._tell(kind, request)
            elif kind in ("paused", "continued") and self.paused == (kind == "paused"):
                return False
            else:
                journal.acted((kind, _remark(request) if kind == "remark" else {}))
                self.paused = kind == "paused" or (self.paused and kind != "continued")
                self.stopping = self.stopping or kind == "stop"
            return True

    def _tell(self, kind: str, request: Mapping[str, Any]) -> bool:
        number, outcome, body = _told(request, self.session)
        query = self.session.optimizer.log.pending.get(number)
        try:
            return record(self.session, number, outcome, [(kind, body)])
        finally:
            if query is not None and number in self.session.optimizer.log.evaluations:  # also if it was not recorded
                self.told.append(Evaluation(query, outcome.penalized(self.session.penalty)))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Take the session's lock as soon as the loop waits; raises if the run ends first or computes for too long."""
        deadline = time.monotonic() + REQUEST_PATIENCE
        while not self.session.lock.acquire(timeout=LOCK_POLL):
            self._refuse_if_closed()
            if time.monotonic() > deadline:
                raise RunError(f"the run has been computing for {REQUEST_PATIENCE:g} s; try again")
        try:
            self._refuse_if_closed()
            yield
        finally:
            self.session.lock.release()

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise InputError("the run has ended; nothing was recorded")


class FolderControl(Requests):
    """Requests to a run that no process holds."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = as_path("folder", folder).absolute()
        with self._journal():  # a run that is held is reported at once
            pass

    def _do(self, kind: str, request: Mapping[str, Any]) -> bool:
        if kind in ("paused", "continued", "stop"):
            raise InputError(f"{kind}: no process works on this run")
        with self._journal() as journal:
            if kind == "start":
                start_at(journal, _point(request, (Mapping,)))
            elif kind == "abort":
                abort(journal, _point(request), _text("reason", request))
            elif kind in ("told", "failed"):
                session = session_of(journal)
                number, outcome, body = _told(request, session)
                return record(session, number, outcome, [(kind, body)])
            else:
                journal.acted((kind, _remark(request)))
        return True

    @contextmanager
    def _journal(self) -> Iterator[Journal]:
        try:
            journal = Journal.open(self.folder)
        except InUseError as error:
            raise InUseError(f"{str(error).partition(';')[0]}; {WITH_CONTROL}") from None
        with journal:
            yield journal


def _told(request: Mapping[str, Any], session: Session) -> tuple[int, Outcome, dict[str, Any]]:
    """The number of a query, its outcome, and the body of the action."""
    told = {name: part for name, part in request.items() if name not in ("action", "reason")}
    if request["action"] == "mark_failed":
        told["failed"] = _text("reason", request) or "marked as failed by hand"
    number, outcome = as_outcome(told, session.optimizer.d)
    if outcome.failure is not None:
        return number, outcome, {"id": number, "reason": outcome.failure}
    return number, outcome, {"id": number, "value": outcome.value, **outcome.details()}


def _point(request: Mapping[str, Any], kinds: tuple[type, ...] = (Mapping, NoneType)) -> Any:
    return instance("at", request.get("at"), kinds, "numbers by name")


def _remark(request: Mapping[str, Any]) -> dict[str, str]:
    if not _text("text", request):
        raise InputError("text: a remark needs one")
    return {"text": _text("text", request)}


def _text(name: str, request: Mapping[str, Any]) -> str:
    text = request.get(name, "")
    if not isinstance(text, str) or len(text) > LONGEST_TEXT:
        raise InputError(f"{name}: expected a text of at most {LONGEST_TEXT} characters, got {describe(text)}")
    return text.strip()
