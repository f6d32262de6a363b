"""The processes that worked on a run, and the actions of people, such as taking back or correcting a value.

A `Start` is a process that worked on the run. An `Action` is an action of a person, with its time:

    paused, continued, stop   of the whole run
    abort                     {"reason", "x"}: the run ended, and this point is to be set on the machine
    start                     {"x", …}: the search goes on from another start, with the iteration "iteration"; so many
                              "batches" were asked before, and these queries are "withdrawn"
    failed                    {"id", "reason"}: an evaluation that a person marked as failed
    told                      {"id", "value", …}: a value that somebody told
    remark                    {"text"}
    correction                {"id", "value", "reason", "was", …}: a corrected value
    undo                      {"id", "value", …}: an outcome that does not count any more

These are rows of a journal, checked as all that comes from a file. Only with a correction or an undo do other rows
change, and the action keeps what they were, and why. Values that were told after the last ask can be taken back. An
older value can only be corrected, where the optimiser leaves memos: its queries and steps stay as they were, and the
later ones use the new value. An optimiser without memos would compute other queries from it, so the old value stays.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from gibo._checks import as_vector, describe, finite, instance, natural
from gibo.errors import InputError, QueryError
from gibo.outcome import EXTERNAL
from gibo.runs.lock import is_held
from gibo.runs.spec import AFTER, Naming, RunSpec
from gibo.runs.store import Store

# A run of `gibo init` has no process; it waits for values.
BY_HAND = "made for evaluations by hand"
LATEST = 1e11  # seconds after 1970, or before it with a wrong clock; calendars end somewhat later
LARGEST_ACTION = 1 << 16  # characters of an action's body as JSON
LONGEST_TEXT = 2000  # characters of a text in it
MOST_NUMBERS = 1000  # digits of a point in a record

# The kinds of actions, with the required fields of their bodies.
BODIES: dict[str, dict[str, type]] = {
    "paused": {},
    "continued": {},
    "stop": {},
    "abort": {"reason": str, "x": list},
    "start": {"x": list, "iteration": int, "batches": int, "withdrawn": list},
    "failed": {"id": int, "reason": str},
    "told": {"id": int, "value": float},
    "remark": {"text": str},
    "correction": {"id": int, "reason": str},
    "undo": {"id": int},
}


NewAction = tuple[str, dict[str, Any]]  # kind and body of an action that is to be recorded


class Start(NamedTuple):
    """A process that worked on the run."""

    process: int
    host: str
    started: float
    options: dict[str, Any]
    versions: dict[str, str]
    ended: float | None
    reason: str | None


class Action(NamedTuple):
    """An action of a person: time, number of evaluations, kind and body; made by `action`."""

    time: float
    after: int
    kind: str
    body: dict[str, Any]


def checked_start(start: Start) -> Start:
    """The same, or an error."""
    _check_time(start.started)
    _check_time(start.started if start.ended is None else start.ended)
    known = isinstance(start.options, dict) and isinstance(start.versions, dict) and isinstance(start.host, str)
    if not known or not isinstance(start.reason, str | None):
        raise ValueError("not the record of a process")
    return start


def state_of(folder: Path, starts: Sequence[Start], actions: Sequence[Action]) -> str:
    """The state of a run: "waiting" (for values), "running", "paused", "ended" or "gone".

    It is gone if its process ended without a record; the folder's lock shows it, on the computer of that process.
    """
    if not starts or starts[-1].reason == BY_HAND:
        return "waiting"
    last = starts[-1]
    if last.ended is not None:
        return "ended"
    if last.host == platform.node() and not is_held(folder):
        return "gone"
    pauses = [each.kind for each in actions if each.time >= last.started and each.kind in ("paused", "continued")]
    return "paused" if pauses[-1:] == ["paused"] else "running"


def action(at: Any, after: Any, kind: Any, body: Any) -> Action:
    """An action from unchecked data; raises if they are wrong."""
    if kind not in BODIES:
        raise InputError(f"action: expected one of {', '.join(BODIES)}, got {describe(kind)}")
    instance(kind, body, dict, "an object")
    for name, wanted in BODIES[kind].items():
        found = body.get(name)
        if isinstance(found, bool) or not isinstance(found, (int, float) if wanted is float else wanted):
            raise InputError(f"{kind}.{name}: expected {wanted.__name__}, got {describe(found)}")
        if isinstance(found, str) and len(found) > LONGEST_TEXT:
            raise InputError(f"{kind}.{name}: expected at most {LONGEST_TEXT} characters, got {len(found)}")
    try:
        size = len(json.dumps(body, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{kind}: expected plain data, got {str(error)[:80]}") from None
    if size > LARGEST_ACTION:
        raise InputError(f"{kind}: expected at most {LARGEST_ACTION} characters as JSON, got {size}")
    return Action(_check_time(at), natural("after", after), kind, body)


def safe_point(actions: Sequence[Action], naming: Naming) -> dict[str, float] | None:
    """What to set on the machine, by name, if the run was aborted and nobody went on with it since."""
    for last in reversed(actions):
        if last.kind in ("abort", "continued"):
            return naming(as_vector("x", last.body["x"])) if last.kind == "abort" else None
    return None


def _check_time(at: Any) -> float:
    if abs(finite("a time", at)) > LATEST:
        raise ValueError("a time that no calendar has")
    return float(at)


@cache
def versions() -> dict[str, str]:
    """The versions of the software, for the record; looked up once, because that is slow."""
    from importlib.metadata import PackageNotFoundError, version  # here, because it is slow to load

    found = {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "gibo": sys.modules["gibo"].__version__,
    }
    for name in ("numpy", "scipy", "cma", "gymnasium", "mujoco"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def other_versions(before: dict[str, str], spec: RunSpec) -> list[str]:
    """A sentence if the software has other versions than before."""
    names = ["gibo", "numpy", "scipy"]
    names += ["cma"] if spec.optimizer == "CMAES" else []
    names += ["gymnasium", "mujoco"] if spec.training is not None else []
    now, parts = versions(), []
    for name in names:
        if before.get(name, now.get(name)) != now.get(name):
            parts.append(f"{name} {before[name]:.20}, now {now[name]}")
    if not parts:
        return []
    return [f"continued with other versions ({'; '.join(parts)}): the run may ask other queries than it would have"]


# -- taken back or corrected ------------------------------------------------------------------------------------------


class EvaluationRow(NamedTuple):
    """A row of the journal's evaluations."""

    number: int
    query: int
    told: float
    seconds: float
    value: float | None
    gradient: str | None
    gradient_noise: str | None
    info: str | None
    failure: str | None
    traceback: str | None


def undo(store: Store, count: int, reason: str | None) -> list[int]:
    """Take back the last `count` outcomes in a transaction; returns their queries, the last one first."""
    rows = [EvaluationRow(*row) for row in store.rows("evaluations")]
    starts = (after for _, _, after, kind, _ in store.rows("actions") if kind == "start")
    since = max([_asked(store), *(after + 1 for after, _ in store.rows("moves")), *starts])
    if count > len(rows) - since:
        free = len(rows) - since
        what = f"only the last {free} can be taken back" if free else "there is nothing to take back"
        raise InputError(
            f"undo: {what}; with what was told before, the next queries were asked. A wrong value can be corrected: "
            'gibo tell RUN ID VALUE --correct "reason"'
        )
    queries = {row[0]: row for row in store.rows("queries")}
    taken = rows[len(rows) - count :][::-1]
    for row in taken:
        body: dict[str, Any] = {"id": row.query, **_outcome(row), "told": row.told}
        if queries[row.query][2] == EXTERNAL:  # it was told with its query, the last one
            x = json.loads(queries[row.query][4])
            body["x"] = x if len(x) <= MOST_NUMBERS else None
            store.delete("queries", row.query)
        record(store, "undo", body | ({} if reason is None else {"reason": reason}))
        store.delete("evaluations", row.number)
        store.delete("details", row.number)
    _forget_steps(store, len(rows) - count)
    return [row.query for row in taken]


def correct(store: Store, query: int, value: float | None, failure: str | None, reason: str) -> None:
    """Correct the value of a query, or record that it failed, in a transaction."""
    rows = [EvaluationRow(*row) for row in store.rows("evaluations")]
    row = next((row for row in rows if row.query == query), None)
    if row is None:
        raise QueryError(f"query {query} was not told yet; tell it without a correction")
    since = _asked(store)
    if row.number < since:
        if json.loads(store.rows("batches")[-1][-1]).keys() == {AFTER}:
            raise QueryError(
                f"query {query}: its iteration has ended, and this optimiser computes later queries from its values "
                "again; only what was told since the last ask can be corrected"
            )
        if value is None or row.value is None:
            raise QueryError(
                f"query {query}: its iteration has ended; only its value can be corrected, not whether it failed"
            )
    changed = row._replace(value=value, failure=failure, traceback=None)
    if value is None:
        changed = changed._replace(gradient=None, gradient_noise=None)
    store.delete("evaluations", row.number)
    store.insert("evaluations", *changed)
    _forget_steps(store, since)
    record(store, "correction", {"id": query, **_outcome(changed), "was": _outcome(row), "reason": reason})


def _outcome(row: EvaluationRow) -> dict[str, Any]:
    return {"value": row.value, "failure": row.failure and row.failure[:LONGEST_TEXT]}


def _asked(store: Store) -> int:
    """The number of evaluations when the last batch was asked."""
    batches = store.rows("batches")
    return int(json.loads(batches[-1][-1])[AFTER]) if batches else 0


def _forget_steps(store: Store, evaluations: int) -> None:
    """Remove the steps after this number of evaluations; they will be made again."""
    for table in ("iterations", "beliefs"):
        for number, told, *_ in store.rows(table)[::-1]:
            if told > evaluations:
                store.delete(table, number)


def record(store: Store, kind: str, body: dict[str, Any]) -> None:
    """Record actions of people in a transaction."""
    made = action(time.time(), store.count["evaluations"], kind, body)
    store.insert("actions", store.count["actions"], *made[:3], json.dumps(made.body))
