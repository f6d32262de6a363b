"""What was told is taken back or corrected: rows of the journal change, and an action keeps what they were, and why.

Nothing else in a journal ever changes. What came after the last queries were asked has had no consequence yet: it can
be taken back, and a replay does the rest. An older value has had one: the queries and steps that followed stay as they
were, and only what comes now knows better. That is so where the optimiser leaves memos, up to which a replay computes
nothing again; one without them would have asked for other queries, so there an older value stays what it is.
"""

from __future__ import annotations

import json
import time
from typing import Any, NamedTuple

from gibo.errors import InputError, QueryError
from gibo.outcome import EXTERNAL
from gibo.runs.records import AFTER, LONGEST_TEXT, OLD_EXTERNAL, action
from gibo.runs.store import Store

MOST_NUMBERS = 1000  # of a point, for the record of it


class Row(NamedTuple):
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


def undo(store: Store, count: int, reason: str | None) -> list[Row]:
    """Take back the last `count` outcomes, in a transaction; returns them, the last one first."""
    rows = [Row(*row) for row in store.rows("evaluations")]
    since = max([_asked(store, rows), *(after + 1 for after, _ in store.rows("moves"))])
    if count > len(rows) - since:
        free = len(rows) - since
        what = f"only the last {free} can be taken back" if free else "there is nothing to take back"
        raise InputError(
            f"undo: {what}; with what was told before, the next queries were asked. A wrong value can be corrected: "
            'gibo tell RUN ID VALUE --correct "reason"'
        )
    queries = {row[0]: row for row in store.rows("queries")}
    taken = rows[: len(rows) - count - 1 : -1]
    for row in taken:
        body: dict[str, Any] = {"id": row.query, **_outcome(row), "told": row.told}
        if queries[row.query][2] in (EXTERNAL, OLD_EXTERNAL):  # it was told with its query, the last one
            x = json.loads(queries[row.query][4])
            body["x"] = x if len(x) <= MOST_NUMBERS else None
            store.delete("queries", row.query)
        record(store, "undo", body | ({} if reason is None else {"reason": reason}))
        store.delete("evaluations", row.number)
    _forget_steps(store, len(rows) - count)
    return taken


def correct(store: Store, query: int, value: float | None, failure: str | None, reason: str) -> None:
    """Another value (or none, with the reason why there is none) for a query, in a transaction."""
    rows = [Row(*row) for row in store.rows("evaluations")]
    row = next((row for row in rows if row.query == query), None)
    if row is None:
        raise QueryError(f"query {query} was not told yet; tell it without a correction")
    since = _asked(store, rows)
    if row.number < since:
        if not any('"iterate"' in memo for *_, memo in store.rows("batches")[-1:]):
            raise QueryError(
                f"query {query}: its iteration is over, and this optimiser computes what followed from its values "
                "again; only what was told since the last ask can be corrected"
            )
        if value is None or row.value is None:
            raise QueryError(
                f"query {query}: its iteration is over; a value can be corrected, not whether there is one"
            )
    changed = row._replace(value=value, failure=failure, traceback=None)
    if value is None:
        changed = changed._replace(gradient=None, gradient_noise=None)
    store.delete("evaluations", row.number)
    store.insert("evaluations", *changed)
    _forget_steps(store, since)
    record(store, "correction", {"id": query, **_outcome(changed), "was": _outcome(row), "reason": reason})


def _outcome(row: Row) -> dict[str, Any]:
    return {"value": row.value, "failure": row.failure and row.failure[:LONGEST_TEXT]}


def _asked(store: Store, rows: list[Row]) -> int:
    """How many evaluations there were when the last batch was asked."""
    batches = store.rows("batches")
    if not batches:
        return 0
    *_, first, _, _, _, memo = batches[-1]
    after = json.loads(memo).get(AFTER)
    if isinstance(after, int) and 0 <= after <= len(rows):
        return after
    return max((row.number + 1 for row in rows if row.query < first), default=0)


def _forget_steps(store: Store, evaluations: int) -> None:
    """Those that were made with more than this: they will be made again."""
    for number, told, *_ in store.rows("iterations")[::-1]:
        if told > evaluations:
            store.delete("iterations", number)


def record(store: Store, kind: str, body: dict[str, Any]) -> None:
    """What people did, in a transaction."""
    made = action(time.time(), store.count("evaluations"), kind, body)
    store.insert("actions", store.count("actions"), *made[:3], json.dumps(made.body))
