"""The model's records in a run's journal; nothing is computed again. Older journals have fewer records."""

from __future__ import annotations

import json
import math
import sqlite3
import zlib
from dataclasses import replace
from typing import Any

import numpy as np

from gibo._linalg import Array
from gibo.optimizers.model import Z90
from gibo.outcome import Best
from gibo.runs.advice import RECENT, Advice, Facts, alike, of_values, signal
from gibo.runs.records import action
from gibo.runs.spec import RunSpec
from gibo.runs.store import SINCE
from gibo.runs.verdict import verdict
from gibo.runs.views import checked_belief


class Recorded:
    """Reads the model's records of a run repeatedly.

    Args:
        spec: the specification of the run.
        connection: to the run's journal.
    """

    def __init__(self, spec: RunSpec, connection: sqlite3.Connection) -> None:
        self.spec, self.connection = spec, connection
        self.scale: Array = np.broadcast_to(np.array(spec.arguments["scale"], float), len(spec.arguments["x0"]))

    def all(self, query: str, *values: Any) -> list[Any]:
        """The rows of a query."""
        return self.connection.execute(query, values).fetchall()

    def one(self, query: str, *values: Any) -> Any:
        """The first row of a query."""
        return self.connection.execute(query, values).fetchone()

    def has(self, table: str) -> bool:
        """Whether journals of this version have a table."""
        return bool(self.one("PRAGMA user_version")[0] >= SINCE[table])

    def beliefs(self, first: int) -> dict[str, Any]:
        """The records of the recommended point after each update, from row `first` on."""
        rows = self.has("beliefs") and self.all(
            "SELECT evaluations, json_extract(body, '$.value'), json_extract(body, '$.deviation') FROM beliefs "
            "ORDER BY number LIMIT -1 OFFSET ?",
            first,
        )
        names = ("evaluations", "value", "sd")
        return {"first": first, **{name: [row[i] for row in rows or ()] for i, name in enumerate(names)}}

    def last(self) -> dict[str, Any] | None:
        """The record of the last update."""
        row = self.has("beliefs") and self.one("SELECT body, evaluations FROM beliefs ORDER BY number DESC LIMIT 1")
        d = len(self.spec.arguments["x0"])
        return {**checked_belief(json.loads(row[0]), d), "evaluations": row[1]} if row else None

    def views(self) -> tuple[dict[str, Any], int]:
        """The recorded views by kind, and a mark that changes with them."""
        rows = self.all("SELECT kind, body FROM views ORDER BY kind") if self.has("views") else []
        mark = zlib.crc32("".join(body for _, body in rows).encode())
        return {kind: json.loads(body) for kind, body in rows}, mark

    def start(self) -> tuple[list[float], int]:
        """The present start (d,), and the iteration in which the search from it began."""
        bodies = self.new_starts()
        return (bodies[-1]["x"], bodies[-1]["iteration"]) if bodies else (self.spec.arguments["x0"], 0)

    def new_starts(self) -> list[dict[str, Any]]:
        """The bodies of the actions that gave the search another start."""
        rows = self.has("actions") and self.all("SELECT body FROM actions WHERE kind = 'start' ORDER BY number")
        return [action(0.0, 0, "start", json.loads(body)).body for (body,) in rows or ()]

    def recommended(
        self, last: dict[str, Any] | None, believed: dict[str, Any] | None, has_value: bool, running: bool
    ) -> dict[str, Any] | None:
        """The recommended point: ``{"x": as the optimiser has it, "value", "sd", "low", "high"}``, None where unknown.

        At the end of a run the views are newer than the record of the last update. During a run they may be some
        seconds older; then everything shown is from the time of the views.
        """
        best = None if believed is None else believed["best"]
        young = believed is not None and (last is None or believed["evaluations"] > last["evaluations"])
        if best is not None and (young or running):
            known = None if best["low"] is None else (best["high"] - best["low"]) / (2.0 * Z90)
            return {**best, "sd": known}
        if last is not None:
            return {**{name: last[name] for name in ("x", "value", "low", "high")}, "sd": last["deviation"]}
        row = self.one("SELECT iterate FROM batches ORDER BY number DESC LIMIT 1")
        if row is None or not has_value or self.spec.optimizer == "GIBO":
            return None
        return {"x": json.loads(row[0]), **dict.fromkeys(("value", "sd", "low", "high"))}

    def gradient(self, last: dict[str, Any] | None) -> dict[str, Any] | None:
        """Mean and standard deviation of the value's change per scale of each parameter."""
        if last is None:
            return None
        mean, deviation = np.array(last["gradient"]), np.array(last["gradient_deviation"])
        return {"mean": (mean * self.scale).tolist(), "sd": (deviation * self.scale).tolist()}

    def facts(
        self,
        count: int,
        recent: list[str | None],
        failures: int,
        recommended: dict[str, Any] | None,
        last: dict[str, Any] | None,
        believed: dict[str, Any] | None,
    ) -> Facts:
        """The facts for the rules of `gibo.runs.advice`, in the optimiser's units."""
        arguments, d = self.spec.arguments, len(self.spec.arguments["x0"])
        columns = "probability_of_ascent, step, variance, noise, lengthscale"
        rows = self.all(f"SELECT {columns} FROM iterations ORDER BY number DESC LIMIT ?", RECENT)[::-1]
        prior = (arguments.get("settings") or {}).get("lengthscale")
        expected = prior.get("median") if isinstance(prior, dict) else None
        lower, upper = vector_bounds(self.spec)
        alikes = self.all("SELECT value, count(*) FROM evaluations WHERE value IS NOT NULL GROUP BY value LIMIT 2")
        ell = last["lengthscale"] if last is not None else json.loads(rows[-1][4]) if rows else None
        return Facts(
            minimize=self.spec.sign < 0,
            naming=self.spec.naming,
            scale=self.scale.tolist(),
            lower=lower,
            upper=upper,
            count=count,
            failures=failures,
            recent=recent,
            alike=alike([value for value, count in alikes for _ in range(min(count, RECENT))]),
            ascents=[row[0] for row in rows],
            steps=[json.loads(row[1]) for row in rows],
            lengthscale=None if ell is None else np.broadcast_to(ell, (d,)).tolist(),
            expected=expected if isinstance(expected, float) else None,
            signal=signal(rows[-1][2] or 0.0, rows[-1][3] or 0.0) if rows else None,
            recommended=None if recommended is None else recommended["x"],
            violated=(believed or {}).get("violated", ()),
        )

    def verdict(self, facts: Facts, believed: dict[str, Any], by_hand: bool) -> Advice:
        """The verdict, from the model's records of the start and of the recommended point."""
        rows = self.all(
            "SELECT q.iteration, q.kind, e.value, q.x FROM evaluations e JOIN queries q ON q.id = e.query "
            "WHERE e.number < ? ORDER BY q.id",
            believed["evaluations"],
        )
        (iterations,) = self.one("SELECT max(number) + 1 FROM views")
        (batch,) = self.one("SELECT coalesce(sum(size), 0) FROM batches WHERE iteration = 0")
        start, begun = self.start()
        x0 = json.dumps(start)
        facts = replace(
            facts,
            **of_values([(*row, x == x0) for *row, x in rows], begun),
            batch=batch,
            iterations=iterations,
            by_hand=by_hand,
        )
        return verdict(facts, _best(believed["start"]), _best(believed["best"]))


def _best(known: dict[str, Any] | None) -> Best | None:
    if known is None:
        return None
    interval = None if known["low"] is None else (known["low"], known["high"])
    return Best(np.array(known["x"]), known["value"], interval)


def vector_bounds(spec: RunSpec) -> tuple[list[float], list[float]]:
    """The bounds of the optimiser's vector, infinite if there are none."""
    d, bounds = len(spec.arguments["x0"]), spec.arguments.get("bounds") or {}
    lower = np.broadcast_to(np.array(bounds.get("lb", -math.inf), dtype=float), d)
    return lower.tolist(), np.broadcast_to(np.array(bounds.get("ub", math.inf), dtype=float), d).tolist()
