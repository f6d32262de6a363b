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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from gibo._checks import as_path, describe, instance
from gibo.errors import InputError, InUseError, RunError
from gibo.outcome import DETAILS, Evaluation, Outcome, Query, checked, told_outcome
from gibo.runs.interventions import abort, aborted_because, abortion, start_at
from gibo.runs.journal import Journal
from gibo.runs.lock import at_fork, keep
from gibo.runs.manual import is_to_be_told, record
from gibo.runs.pools import Pool, Underway
from gibo.runs.records import LONGEST_TEXT, action
from gibo.runs.session import Session

RUNNING_ONLY = ("pause", "continue", "stop")  # these need a process that evaluates
ANY_TIME = ("tell", "mark_failed", "remark", "abort", "start")
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
    """The requests to a run; `act` takes them as JSON.

    Attributes:
        actions: the names of the possible requests.
    """

    actions: frozenset[str] = frozenset(ANY_TIME)

    def pause(self) -> bool:
        """Begin no evaluation until `continue_`; running evaluations continue. False if the run is already paused."""
        return self._do("paused", {})

    def continue_(self) -> bool:
        """End a pause."""
        return self._do("continued", {})

    def stop(self) -> bool:
        """End the run after this iteration, or at once if it is paused."""
        return self._do("stop", {})

    def abort(self, point: Mapping[str, Any] | None = None, reason: str = "") -> bool:
        """End the run at once; what is being evaluated is waited for.

        What is to be set on the machine is this point, by the names of its parameters, or else the start.
        """
        instance("at", point, (Mapping, NoneType), "numbers by name")
        return self._do("abort", {"reason": _text("reason", reason), "at": point})

    def start_at(self, point: Mapping[str, Any]) -> bool:
        """Go on from another start; the queries that are pending are withdrawn."""
        return self._do("start", {"at": instance("at", point, Mapping, "numbers by name")})

    def tell(self, query: int, value: float, **details: Any) -> bool:
        """Record the value of a pending query, with the details of `gibo.Outcome`; False if the same is recorded."""
        given = {name: part for name, part in details.items() if part is not None}
        outcome = told_outcome(1, _value(value), None, None, False, **given)
        return self._do("told", {"id": _number(query), "value": outcome.value, **outcome.details()})

    def mark_failed(self, query: int, reason: str = "") -> bool:
        """Record that a pending query has no value."""
        return self._do(
            "failed", {"id": _number(query), "reason": _text("reason", reason) or "marked as failed by hand"}
        )

    def remark(self, text: str) -> None:
        """Write a remark into the journal."""
        if not _text("text", text):
            raise InputError("text: a remark needs one")
        self._do("remark", {"text": _text("text", text)})

    def act(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Execute a request as JSON, such as ``{"action": "tell", "id": 3, "value": 1.5}``.

        Returns:
            ``{"ok": True, "recorded": whether it is new}``, after the journal has it.
        """
        if not isinstance(request, Mapping):
            raise InputError(f"request: expected an object, got {describe(request)}")
        name = request.get("action")
        known = (*RUNNING_ONLY, *ANY_TIME)
        if not isinstance(name, str) or name not in known:
            raise InputError(f"action: expected one of {', '.join(known)}, got {describe(name)}")
        do: dict[str, Callable[[], bool | None]] = {
            "pause": self.pause,
            "continue": self.continue_,
            "stop": self.stop,
            "abort": lambda: self.abort(request.get("at"), request.get("reason", "")),
            "start": lambda: self.start_at(request.get("at")),  # type: ignore[arg-type]  # checked
            "tell": lambda: self.tell(
                request.get("id"),  # type: ignore[arg-type]
                request.get("value"),  # type: ignore[arg-type]
                **{name: request[name] for name in DETAILS & request.keys()},
            ),
            "mark_failed": lambda: self.mark_failed(request.get("id"), request.get("reason", "")),  # type: ignore[arg-type]
            "remark": lambda: self.remark(request.get("text", "")),
        }
        return {"ok": True, "recorded": do[name]() is not False}

    @abstractmethod
    def _do(self, kind: str, body: dict[str, Any]) -> bool:
        """Record an action of `gibo.runs.records` and execute it; False if it is already recorded.

        The body of an abort and of a start has a point by its names, "at".
        """


class Control(Requests):
    """Requests to a run of this process.

    The loop of the run holds the session's lock except while it waits for evaluations, so that a request is handled
    between two steps of the loop. A value for a query that is being evaluated counts at once; the later result of the
    evaluation is dropped.

    Args:
        session: the run.
        pool: where its loop evaluates. The loop looks at the attributes, `take_told` and `take_withdrawn`.

    Attributes:
        paused, stopping: the requests to the loop.
        aborted: why a person has ended the run at once, or None.
    """

    actions = frozenset((*RUNNING_ONLY, *ANY_TIME))

    def __init__(self, session: Session, pool: Pool) -> None:
        self.session, self._pool = session, pool
        self.paused = self.stopping = False
        self.aborted: str | None = None
        self._withdrawn: list[Query] = []
        self._told: list[Evaluation] = []
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

    def take_told(self) -> list[Evaluation]:
        """The values told by request since the last call, for the loop."""
        told, self._told = self._told, []
        return told

    def take_withdrawn(self) -> list[Query]:
        """For the loop: what need not be evaluated any more since another start was set, since the last call."""
        withdrawn, self._withdrawn = self._withdrawn, []
        return withdrawn

    def _do(self, kind: str, body: dict[str, Any]) -> bool:
        with self._alone():
            log, journal = self.session.optimizer.log, self.session.journal
            if kind == "start":
                x, pending = self.session.naming.point(body["at"]), list(log.pending.values())
                self.session.start_at(x)
                self._withdrawn += pending
                return True
            if kind == "abort":
                if journal is None:
                    raise InputError("abort: it is for a run with a journal")
                done = abortion(journal, body["at"], body["reason"])
                self.session.record([], [done])
                self.aborted, self.stopping = aborted_because(body["reason"]), True
                return True
            action(time.time(), 0, kind, body)
            if kind in ("told", "failed"):
                known, outcome = log.evaluations.get(body["id"]), _outcome(body)
                was = None if known is None else known.outcome.signed(self.session.sign)
                if not is_to_be_told(body["id"], outcome, was, log.pending):
                    return False
                query = log.pending[body["id"]]
                self.session.optimizer.check_outcome(query, outcome)
                evaluations = [Evaluation(query, outcome.penalized(self.session.penalty))]
                self.session.record(evaluations, [(kind, body)])
                self.session.receive(evaluations, update=False)
                self._told += evaluations
                return True
            if kind in ("paused", "continued") and self.paused == (kind == "paused"):
                return False
            self.session.record([], [(kind, body)])
            self.stopping = self.stopping or kind == "stop"
            if kind in ("paused", "continued"):
                self.paused = kind == "paused"
            return True

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
    """Requests to a run that no process holds.

    Args:
        folder: of the run.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = as_path("folder", folder).absolute()
        with self._journal():  # a run that is held is reported at once
            pass

    def _do(self, kind: str, body: dict[str, Any]) -> bool:
        if kind in ("paused", "continued", "stop"):
            raise InputError(f"{kind}: no process works on this run")
        with self._journal() as journal:
            if kind == "start":
                start_at(journal, body["at"])
            elif kind == "abort":
                abort(journal, body["at"], body["reason"])
            elif kind in ("told", "failed"):
                action(time.time(), 0, kind, body)
                return record(journal, body["id"], _outcome(body), [(kind, body)])
            else:
                journal.acted((kind, body))
        return True

    @contextmanager
    def _journal(self) -> Iterator[Journal]:
        try:
            journal = Journal.open(self.folder)
        except InUseError as error:
            raise InUseError(f"{_holder(self.folder, error)}; {WITH_CONTROL}") from None
        with journal:
            yield journal


def _holder(folder: Path, error: InUseError) -> str:
    """The process that holds the run, from the journal."""
    with Journal.read(folder, whole=False) as journal:
        starts = journal.starts()
    if starts and starts[-1].ended is None:
        return f"{folder}: process {starts[-1].process} on {starts[-1].host} works on this run"
    return str(error).partition(";")[0]


def _outcome(body: Mapping[str, Any]) -> Outcome:
    """The outcome of an action of kind told or failed."""
    if "value" not in body:
        return Outcome.failed(body["reason"])
    details = {name: part for name, part in body.items() if name in DETAILS}
    return told_outcome(1, body["value"], None, None, False, **details)


def _number(number: Any) -> int:
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
        raise InputError(f"id: expected the number of a query, got {describe(number)}")
    return int(number)


def _value(value: Any) -> float:
    if isinstance(value, bool):
        raise InputError(f"value: expected a number, got {value}")
    outcome = checked(value, 1)
    assert outcome.value is not None
    return outcome.value


def _text(name: str, text: Any) -> str:
    if not isinstance(text, str) or len(text) > LONGEST_TEXT:
        raise InputError(f"{name}: expected a text of at most {LONGEST_TEXT} characters, got {describe(text)}")
    return text.strip()
