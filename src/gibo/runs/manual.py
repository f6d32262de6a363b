"""A run whose evaluations a person or another program makes, one call at a time.

Each function opens the run's journal, does one thing and closes it again, so that each call may be a separate process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from gibo._checks import as_flag, as_number, as_vector, describe, finite, instance, natural, positive_int
from gibo._linalg import Array
from gibo.errors import InputError, QueryError
from gibo.outcome import DETAILS, Evaluation, Outcome, Query, told_outcome
from gibo.runs.advice import Advice
from gibo.runs.description import Description, check_names
from gibo.runs.journal import Journal
from gibo.runs.lock import LOCK_PATIENCE
from gibo.runs.records import BY_HAND, NewAction, Start
from gibo.runs.result import Result, Status
from gibo.runs.session import Reparametrizer, Session
from gibo.runs.spec import Naming, RunSpec, baseline_of, check_sources


class Overview(NamedTuple):
    """The state of a run.

    Attributes:
        spec: the specification of the run.
        result: the result so far; values have the objective's sign.
        pending: the queries that were asked and not told.
        starts: the processes that worked on it.
        state: see `gibo.runs.records.state_of`.
        stopping: advice when to stop; None for a run that evaluates by itself.
        aborted: the point to set on the machine, by name, if the run was aborted.
    """

    spec: RunSpec
    result: Result
    pending: list[Query]
    starts: list[Start]
    state: str
    stopping: Advice | None
    aborted: dict[str, float] | None

    @classmethod
    def of(cls, session: Session) -> Overview:
        """The state of a run with a journal."""
        journal = session.journal
        assert journal is not None
        state, starts, aborted = journal.state(), journal.starts(), journal.aborted_at()
        result = Result.of(session, Status.WAITING if state == "waiting" else Status.CALLBACK, "")
        return cls(journal.spec(), result, session.optimizer.pending, starts, state, stopping(session), aborted)

    def last_step(self) -> tuple[float, float] | tuple[None, None]:
        """The probability of ascent of the last step and its certainty, if there is a model."""
        history = self.result.history
        return (history.probability_of_ascent[-1], history.certainty[-1]) if len(history.evaluations) else (None, None)

    def to_plain(self) -> dict[str, Any]:
        """JSON data in the user's units, for `gibo status --json` and `gibo serve`."""
        result, naming, (ascent, certainty) = self.result, self.spec.naming, self.last_step()
        return {
            "optimizer": self.spec.optimizer,
            "minimize": self.spec.sign < 0,
            "names": naming.names,
            "state": self.state,
            "evaluations": result.evaluations,
            "failures": len(result.failures),
            "iteration": result.iterations,
            "pending": [naming.query(query) for query in self.pending],
            "best": naming.best(result.best),
            "interval": result.interval,
            "best_seen": naming.best(result.best_seen),
            "iterate": naming(result.iterate),
            "probability_of_ascent": ascent,
            "certainty": certainty,
            "advice": [{"code": advice.code, "text": advice.text} for advice in result.advice],
            "notes": list(result.notes),
            "aborted": self.aborted,
            "may_stop": None if self.stopping is None or self.stopping.code == "go_on" else self.stopping.text,
            "reason": self.starts[-1].reason if self.starts else None,
        }


def create(folder: Path | str, description: Description) -> None:
    """Begin a run."""
    optimizer = instance("description", description, Description, "a Description").optimizer()
    kinds = None if description.parameters is None else description.parameters.to_plain()
    sign = -1.0 if as_flag("minimize", description.minimize) else 1.0
    given = None if description.baseline is None else positive_int("baseline", description.baseline)
    if optimizer.log.simulator is not None:
        check_sources(given)
    names = list(description.names)
    spec = RunSpec.of(optimizer, sign=sign, names=names, parameters=kinds, baseline=baseline_of(optimizer, given))
    options: dict[str, Any] = {}
    if description.budget is not None:
        options["budget"] = positive_int("budget", description.budget)
    if description.target is not None:
        options["target"] = finite("target", description.target)
    with Journal.create(folder, spec) as journal:
        journal.begin(options)
        journal.end(BY_HAND)


class Batch(NamedTuple):
    """Queries to evaluate, the naming of their points, and advice when to stop."""

    queries: list[Query]
    naming: Naming
    stopping: Advice | None


class Recorded(NamedTuple):
    """The effect of a tell: whether the value is new, and the ids of the pending queries."""

    is_new: bool
    pending: list[int]


def ask(folder: Path | str, waiting: Callable[[], None] | None = None) -> Batch:
    """The queries to evaluate next; the same ones until they are told."""
    with Journal.open(folder, LOCK_PATIENCE, waiting) as journal:
        journal.refuse_aborted()
        session = session_of(journal)
        if session.news:
            session.start(journal.last_options())
            journal.end(BY_HAND)
        return Batch(session.ask(), session.naming, stopping(session))


def session_of(journal: Journal) -> Session:
    """The session of a run by hand.

    Without the states' statistics, which come with the episodes, a training would silently become another run.
    """
    training = journal.spec().training
    if training is not None and training.get("normalize_states"):
        raise InputError(
            f"{journal.folder}: a run of gibo train with normalised states cannot be driven by hand; continue it with "
            "the same command, gibo train ..."
        )
    return Session.of(journal)


def tell(
    folder: Path | str,
    number: int,
    value: Any = None,
    failed: str | None = None,
    waiting: Callable[[], None] | None = None,
    **details: Any,
) -> Recorded:
    """Record the value of a query, or the reason of its failure; the same value may be told again.

    Args:
        folder: of the run.
        number: of the query.
        value: the value of its evaluation.
        failed: the reason if there is no value.
        waiting: called once if another process holds the run.
        **details: its noise, repeats, block and measured quantities, see `gibo.Outcome`.
    """
    number = natural("number", number)
    with Journal.open(folder, LOCK_PATIENCE, waiting) as journal:
        session = session_of(journal)
        is_new = record(session, number, _outcome(session, value, failed, details))
        return Recorded(is_new, sorted(session.optimizer.log.pending))


def record(session: Session, number: int, outcome: Outcome, actions: Sequence[NewAction] = ()) -> bool:
    """Record and tell the outcome of a query, with what people did; False if the very same was told before.

    The update after the last value of a batch is left for the next `ask`.
    """
    log = session.optimizer.log
    if (told := log.evaluations.get(number)) is not None:
        known = told.outcome.signed(session.sign)
        if _is_same(known, outcome):
            return False
        was = f"value {known.value!r}" if known.failure is None else f"failed, {known.failure[:80]!r}"
        raise QueryError(
            f"query {number} already has another value: {was}. To change it: gibo tell RUN {number} VALUE "
            "--correct REASON"
        )
    if number not in log.pending:
        which = ", ".join(map(str, sorted(log.pending)[:20]))
        hint = f"pending: {which}" if which else "no query is pending; run gibo ask first"
        raise QueryError(f"query {number} is unknown; {hint}")
    session.optimizer.check_outcome(log.pending[number], outcome)
    session.tell([Evaluation(log.pending[number], outcome)], update=False, actions=actions)
    return True


def _is_same(a: Outcome, b: Outcome) -> bool:
    """Whether two outcomes are equal; a failure may have the penalty as its value."""
    if (a.failure, a.details()) != (b.failure, b.details()) or (a.failure is None and a.value != b.value):
        return False
    pairs = ((a.gradient, b.gradient), (a.gradient_noise, b.gradient_noise))
    return all(x is y if x is None or y is None else np.array_equal(x, y) for x, y in pairs)


def as_outcome(request: Mapping[str, Any], d: int) -> tuple[int, Outcome]:
    """The query's number and its outcome, from a client's request."""
    known, details = ("id", "value", "gradient", "gradient_noise", "failed"), sorted(DETAILS)
    check_names("tell", request, (*known, *details))
    number, value, gradient, noise, failed = (request.get(name) for name in known)
    if not failed and (value is None or isinstance(value, bool)):
        raise InputError(f"value: expected a number, got {describe(value)}; or say failed")
    given = {name: request[name] for name in details if name in request}
    if isinstance(number, bool) or not isinstance(number, int):
        raise InputError(f"id: expected the number of a query, got {describe(number)}")
    return number, told_outcome(d, value, gradient, noise, False if failed is None else failed, **given)


def undo(
    folder: Path | str, count: int = 1, reason: str | None = None, waiting: Callable[[], None] | None = None
) -> list[int]:
    """Take back the last values; their queries are pending again, and own points of the user are removed.

    This is possible until the next queries are asked. The journal keeps the values that were taken back.

    Returns:
        The ids, the last one first.
    """
    count = positive_int("count", count)
    instance("reason", reason, (str, NoneType), "a text")
    with Journal.open(folder, LOCK_PATIENCE, waiting) as journal:
        taken = journal.undo(count, reason)
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
    **details: Any,
) -> Recorded:
    """Correct the value of a query, or record that it failed; the journal keeps both, and the reason.

    Later queries stay as they are; the model uses the new value from now on.
    """
    number = natural("number", number)
    if not instance("reason", reason, str, "a text").strip():
        raise InputError("correct: give a reason for the record")
    with Journal.open(folder, LOCK_PATIENCE, waiting) as journal:
        session = Session.of(journal)
        outcome = _outcome(session, value, failed, details)
        if (told := session.optimizer.log.evaluations.get(number)) is not None:
            session.optimizer.check_outcome(told.query, outcome)
        journal.correct(number, outcome.penalized(session.penalty), reason)
        return Recorded(True, sorted(session.optimizer.log.pending))


def _outcome(session: Session, value: Any, failed: str | None, details: Mapping[str, Any]) -> Outcome:
    if value is None and failed is None:
        raise InputError("VALUE: expected the value of the evaluation; if it failed, use --failed REASON")
    if value is not None and failed is not None:
        raise InputError("VALUE, --failed: give only one of them; a failed evaluation has no value")
    number = None if value is None else as_number("value", value)
    reason = False if failed is None else instance("failed", failed, str, "a reason") or "failed"
    return told_outcome(session.optimizer.d, number, None, None, reason, **details)


def tell_elsewhere(
    folder: Path | str,
    data: Sequence[tuple[Mapping[str, Any], Any]],
    waiting: Callable[[], None] | None = None,
    again: bool = False,
) -> int:
    """Record values of own points of the user, by the names of the parameters; returns their number.

    A value that the run already has at the same point is skipped, unless `again` is True.
    """
    with Journal.open(folder, LOCK_PATIENCE, waiting) as journal:
        session = session_of(journal)
        new = data if again else _unknown_values(session, data)
        session.tell_elsewhere(new)
        return len(new)


def _unknown_values(session: Session, data: Sequence[tuple[Mapping[str, Any], Any]]) -> list[tuple[Any, Any]]:
    """The values that the run does not have; duplicates in the data count separately."""
    points: dict[Any, list[Array]] = {}  # points of the run, by their values
    for e in session.optimizer.evaluations:
        points.setdefault(None if e.value is None else session.sign * e.value, []).append(e.x)
    new = []
    for values, value in data:
        number = value.value if isinstance(value, Outcome) else value
        x, same_value = session.naming.point(values), points.get(number, [])
        same = next((i for i, each in enumerate(same_value) if np.allclose(each, x, rtol=1e-9, atol=0.0)), None)
        if same is None:
            new.append((values, value))
        else:
            del same_value[same]
    return new


def names_of(folder: Path | str) -> list[str]:
    """The names of a run's parameters."""
    with Journal.read(folder) as journal:
        return journal.spec().naming.names


def status(folder: Path | str, learns: Callable[[Journal], Reparametrizer | None] = lambda journal: None) -> Overview:
    """The state of a run, also of a running one; `learns` makes the object that learns between iterations."""
    with Journal.read(folder) as journal:
        return Overview.of(Session.of(journal, learns(journal)))


def stopping(session: Session) -> Advice | None:
    """Advice when to stop a run by hand; None if a process evaluates its queries."""
    assert session.journal is not None
    if session.journal.state() != "waiting":
        return None
    options = session.journal.last_options()
    budget, target = options.get("budget"), options.get("target")
    best = None if target is None else session.optimizer.best
    if target is not None and best is not None and best.value >= session.sign * target:
        reached = f"the model's value of the recommended point has reached the target of {target:g}"
        return Advice("target_reached", f"You may stop: {reached}.")
    if budget is not None and session.spent >= budget:
        return Advice("budget_spent", f"You may stop: the budget of {budget} evaluations is spent.")
    conditions = [] if budget is None else [f"the budget of {budget} evaluations is spent ({session.spent} so far)"]
    if target is not None:
        conditions.append(f"the model's value has reached the target of {target:g}")
    conditions.append("the value is good enough for you, or the last steps were hardly better than a guess")
    return Advice("go_on", f"You may stop when {', or '.join(conditions)}.")


# -- the whole run ----------------------------------------------------------------------------------------------------


def abort(journal: Journal, point: Mapping[str, Any] | None = None, reason: str = "") -> dict[str, float]:
    """End a run; returns what to set on the machine: a point that is safe, the start if none is named."""
    record_abort(journal, point, reason)
    journal.begin(journal.last_options())
    journal.end(aborted_because(reason))
    return journal.aborted_at() or {}


def record_abort(journal: Journal, point: Mapping[str, Any] | None, reason: str) -> None:
    """Record that a person ends a run; the process that holds it records the end."""
    starts, spec = [each for each in journal.actions() if each.kind == "start"], journal.spec()
    if point is not None:
        x = spec.naming.point(point)
    else:  # the start, or the last one that a person gave
        with journal.explained():
            x = as_vector("x0", starts[-1].body["x"] if starts else spec.arguments["x0"])
    journal.acted(("abort", {"reason": instance("reason", reason, str, "a text"), "x": x.tolist()}))


def aborted_because(reason: str) -> str:
    """Why a run ended that was aborted."""
    return f"aborted: {reason}" if reason else "aborted"


def go_on(journal: Journal) -> None:
    """Let a run go on that was aborted."""
    if journal.aborted_at() is None:
        raise InputError(f"{journal.folder}: this run was not aborted")
    journal.acted(("continued", {}))
    if any(start.reason == BY_HAND for start in journal.starts()):  # it waits for somebody to tell again
        journal.begin(journal.last_options())
        journal.end(BY_HAND)


def start_at(journal: Journal, point: Mapping[str, Any]) -> dict[str, float]:
    """Let a run go on from another start, by the names of its parameters; returns it as it can be set.

    The queries that are pending are withdrawn. The new start is recommended until another point is surely better.
    """
    session = session_of(journal)
    session.start_at(session.naming.point(instance("point", point, Mapping, "numbers by name")))
    return session.naming(session.optimizer.start)
