"""A run as plain JSON data from its journal, whole or only the new part. The page knows nothing else of a run.

    {"format": 2, "kind": "run", "run": an id that changes when another run begins in the folder, or rows changed,
     "name": the folder's name, "now": seconds since 1970,
     "state": "running" | "waiting" (for somebody to tell) | "paused" | "ended" | "gone", "reason": text or null,
     "optimizer": "GIBO", "minimize": false, "budget": 300 or null, "count": 120, "failures": 3,
     "parameters": [{"name", "log", "integer", "start", "scale", "lower", "upper"}, …]    bounds null where there are
                     none; of a log parameter the scale is a factor
     "limits": [{"name", "lower", "upper", "probability"}, …]     limited quantities; that each holds at the recommended
                     point, null where it is not known
     "aborted": {name: value} or null, what to set on the machine where a person has ended the run
     "evaluations": {"first": n, "id": [], "iteration": [], "kind": [], "value": [], "failure": [], "seconds": [],
                     "told": [], "x": [], "info": []}    columns, in the order of arrival, from row n on; x is the JSON
                     text of a list, because few of them are ever looked at; info an object of numbers, or null
     "iterations": {"first": n, "number": [], "evaluations": [], "probability_of_ascent": [], "certainty": [],
                    "noise_sd": [], "step": [] (length, in scales)}
     "beliefs": {"first": n, "evaluations": [], "value": [], "sd": []}      of the recommended point, after each update
     "belief": {"x", "value", "sd", "low", "high"} or null, of the recommended point: between low and high with 90 %;
                without a model x alone, the others null
     "start": {"value", "low", "high"} or null, the predicted value at the start
     "best_seen": {"x", "value", "id"} or null,
     "gradient": {"mean": [], "sd": []} or null, change of the value per scale of each parameter
     "lengthscale": [] or null, in scales
     "views": what `gibo.runs.views` records of the model, or null where the page has it or there is none; "viewed" is
              their mark
     "verdict": {"code", "text"} or null, "next": what a person can do now, a text
     "pending": [{"id", "kind", "iteration", "x", "underway", "since", "worker"}, …]    being evaluated (since, worker
                where known), waiting for its turn, or for somebody to tell its value (since it was asked)
     "rate": {"per_minute", "seconds_left"}, each null where unknown
     "settings": {name: plain data}, "versions": {name: text}, "starts": [{"process", "host", "started", …}]
     "replay": id of the evaluation whose episode can be shown, or null where there is none, see `gibo.web.replay`
     "actions": [{"time", "after", "kind", "body"}, …]     what people did last, see `gibo.runs.records`
     "advice": [{"code", "text"}]}

Values, gradients and points are in the objective's own sign and in the user's units: each x has the values to set.
"""

from __future__ import annotations

import json
import math
import sqlite3
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gibo._checks import as_path, instance, natural
from gibo.errors import GiboError, JournalError
from gibo.outcome import EXTERNAL, ITERATE, QUERY, SIMULATED
from gibo.runs.advice import RECENT
from gibo.runs.control import held_here
from gibo.runs.curves import Curve, Row, learning_curve
from gibo.runs.database import FILE, connect_to_read
from gibo.runs.journal import Journal
from gibo.runs.legacy import OLD_EXTERNAL
from gibo.runs.pools import Underway
from gibo.runs.records import BODIES, Action, Start, action, safe_point, state_of
from gibo.runs.spec import RunSpec
from gibo.web.advice import advice, next_step
from gibo.web.recorded import Recorded, vector_bounds

FORMAT = 2
_NO_RATE: dict[str, float | None] = {"per_minute": None, "seconds_left": None}


class Since(NamedTuple):
    """The known part of a run: numbers of rows of evaluations, iterations and beliefs, and the views' mark."""

    evaluations: int = 0
    iterations: int = 0
    beliefs: int = 0
    viewed: int = 0


def seen(data: dict[str, Any]) -> Since:
    """The part that is known after a snapshot and the earlier ones."""
    evaluations, iterations, beliefs = (data[name] for name in ("evaluations", "iterations", "beliefs"))
    return Since(
        evaluations["first"] + len(evaluations["id"]),
        iterations["first"] + len(iterations["number"]),
        beliefs["first"] + len(beliefs["value"]),
        data["viewed"],
    )


def snapshot(folder: Path | str, since: Since | None = None) -> dict[str, Any]:
    """A run as plain data, see the module's docstring. With `since`, only the new part."""
    since = instance("since", Since() if since is None else since, Since, "a Since")
    since = Since(*(natural(f"since.{name}", number) for name, number in since._asdict().items()))
    with Reader(folder) as reader:
        return reader.snapshot(since)


class Reader:
    """Reads a run's journal repeatedly while another process writes; never writes.

    Args:
        folder: of the run.
        known: the `file` of an earlier reader that checked it; then it is not checked again.
    """

    def __init__(self, folder: Path | str, known: int = -1) -> None:
        self.folder = as_path("folder", folder)
        self._closing = ExitStack()
        self.file = known
        self._open()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._closing.close()

    def _open(self) -> None:
        self.close()
        # The journal reports a missing file.
        file = (self.folder / FILE).stat().st_ino if (self.folder / FILE).exists() else -1
        with Journal.read(self.folder, whole=file != self.file or file < 0) as journal:
            self.spec: RunSpec = journal.spec()
        self.file = file
        self.recorded = Recorded(self.spec, connect_to_read(self.folder, self._closing))
        kinds = self.spec.naming.parameters
        self._plain = kinds is None or all(kinds[name].kind in ("linear", "free") for name in kinds)

    def version(self) -> tuple[int, int, int]:
        """A number that changes with each write; cheap."""
        try:
            if (self.folder / FILE).stat().st_ino != self.file:
                self._open()
        except (OSError, GiboError):  # between two runs in one folder: show the old one until the new one exists
            return self.file, -1, 0
        (version,) = self.recorded.one("PRAGMA data_version")
        control = held_here(self.folder)
        now = 0 if control is None else hash(tuple(each.query for each in control.underway()))
        return self.file, int(version), now

    def snapshot(self, since: Since) -> dict[str, Any]:
        """See `snapshot`."""
        try:
            self.recorded.connection.execute("BEGIN")  # all queries see the same moment
            try:
                return self._snapshot(since)
            finally:
                self.recorded.connection.execute("ROLLBACK")
        except (sqlite3.Error, KeyError, TypeError, ValueError) as error:
            if isinstance(error, GiboError):
                raise
            raise JournalError(f"{self.folder / FILE}: cannot be read: {type(error).__name__}: {error}") from None

    def _snapshot(self, since: Since) -> dict[str, Any]:
        spec, now, starts = self.spec, time.time(), self._starts()
        interventions, changes = self._actions("paused", "continued", "abort"), self._actions("undo", "correction")
        standing = self._standing(starts, interventions)
        state, budget, count, failures = (standing[name] for name in ("state", "budget", "count", "failures"))
        views, viewed = self.recorded.views()
        believed, last = views.get("believed", views.get("verdict")), self.recorded.last()
        recommended = self.recorded.recommended(last, believed, count > failures, state in ("running", "paused"))
        recent = self._recent()
        failed = [failure for _, failure in recent]
        facts = self.recorded.facts(count, failed, failures, recommended, last, believed)
        verdict = believed and self.recorded.verdict(facts, believed, by_hand=state == "waiting")
        found = {
            "format": FORMAT,
            "kind": "run",
            "run": f"{self.file}-{starts[0].started if starts else 0}-{changes[-1].time if changes else 0}",
            "name": self.folder.resolve().name,
            "now": now,
            **standing,
            "parameters": _parameters(spec, self.recorded.start()[0]),
            "limits": self._limits(believed),
            "aborted": safe_point(interventions, spec.naming),
            "evaluations": self._evaluations(since.evaluations),
            "iterations": self._iterations(since.iterations),
            "beliefs": self.recorded.beliefs(since.beliefs),
            "belief": recommended and {**recommended, "x": self._user(json.dumps(recommended["x"]))},
            "start": believed
            and believed["start"]
            and {name: believed["start"][name] for name in ("value", "low", "high")},
            "best_seen": self._best_seen(),
            "gradient": self.recorded.gradient(last),
            "lengthscale": last and (np.array(last["lengthscale"]) / self.recorded.scale).tolist(),
            "views": views if viewed != since.viewed else None,
            "viewed": viewed,
            "verdict": verdict and {"code": verdict.code, "text": verdict.text},
            "pending": self._pending(),
            "rate": self._rate(starts, count, budget, now) if state == "running" else _NO_RATE,
            "settings": _settings(spec, starts),
            "versions": starts[-1].versions if starts else {},
            "starts": [start._asdict() for start in starts],
            "replay": self.last_episode(),
            "actions": [each._asdict() for each in self._actions(*BODIES)],
        }
        return {**found, "next": next_step(found), "advice": advice(found, recent, facts)}

    def standing(self) -> dict[str, Any]:
        """The state of the run in a few fields."""
        return self._standing(self._starts(), self._actions("paused", "continued"))

    def _standing(self, starts: list[Start], interventions: list[Action]) -> dict[str, Any]:
        count, failures = self.recorded.one("SELECT count(*), count(failure) FROM evaluations")
        state = state_of(self.folder, starts, interventions)
        return {
            "state": state,
            "reason": _reason(state, starts),
            "optimizer": self.spec.optimizer,
            "minimize": self.spec.sign < 0,
            "budget": starts[-1].options.get("budget") if starts else None,
            "count": count,
            "failures": failures,
        }

    def curve(self) -> Curve:
        """The run's learning curve."""
        rows = self.recorded.all(
            "SELECT q.iteration, q.kind, e.query IS NOT NULL, CASE WHEN e.failure IS NULL THEN "
            "coalesce(json_extract(e.info, '$.return'), e.value) END FROM queries q "
            "LEFT JOIN evaluations e ON e.query = q.id ORDER BY q.id"
        )
        return learning_curve((Row(*row) for row in rows), self.spec.sign)

    def last_episode(self) -> int | None:
        """The evaluation that `gibo play --last` shows; None if this is no training, or no episode is over."""
        row = self.spec.training and self.recorded.one(
            "SELECT q.id FROM evaluations e JOIN queries q ON q.id = e.query WHERE e.failure IS NULL AND q.kind IN "
            "(?, ?) ORDER BY q.kind = ? DESC, q.id DESC LIMIT 1",
            *(ITERATE, QUERY, ITERATE),
        )
        return row[0] if row else None

    # -- rows ---------------------------------------------------------------------------------------------------------

    def _user(self, x: str) -> list[float]:
        """A point of the journal in the user's units."""
        entries: list[float] = json.loads(x)
        return entries if self._plain else list(self.spec.naming(np.array(entries)).values())

    def _evaluations(self, first: int) -> dict[str, Any]:
        rows = self.recorded.all(
            "SELECT q.id, q.iteration, q.kind, e.value, e.failure, e.seconds, e.told, q.x, e.info FROM evaluations e "
            "JOIN queries q ON q.id = e.query WHERE e.number >= ? ORDER BY e.number",
            first,
        )
        names = ("id", "iteration", "kind", "value", "failure", "seconds", "told", "x", "info")
        columns: dict[str, Any] = {name: [row[i] for row in rows] for i, name in enumerate(names)}
        columns["kind"] = [EXTERNAL if kind == OLD_EXTERNAL else kind for kind in columns["kind"]]
        if not self._plain:
            columns["x"] = [json.dumps(self._user(x)) for x in columns["x"]]
        columns["info"] = [None if text is None else _numbers(json.loads(text)) for text in columns["info"]]
        return {"first": first, **columns}

    def _iterations(self, first: int) -> dict[str, Any]:
        rows = self.recorded.all(
            "SELECT number, evaluations, probability_of_ascent, certainty, noise, step FROM iterations "
            "ORDER BY number LIMIT -1 OFFSET ?",
            first,
        )
        names = ("number", "evaluations", "probability_of_ascent", "certainty")
        columns: dict[str, Any] = {name: [row[i] for row in rows] for i, name in enumerate(names)}
        columns["noise_sd"] = [None if row[4] is None else math.sqrt(max(0.0, row[4])) for row in rows]
        steps = np.array(json.loads(f"[{','.join(row[5] for row in rows)}]"), dtype=np.float64)
        columns["step"] = (
            np.linalg.norm(steps.reshape(len(rows), -1) / self.recorded.scale, axis=1).tolist() if rows else []
        )
        return {"first": first, **columns}

    # -- what goes on -------------------------------------------------------------------------------------------------

    def _best_seen(self) -> dict[str, Any] | None:
        row = self.recorded.one(
            "SELECT q.x, e.value, q.id FROM evaluations e JOIN queries q ON q.id = e.query "
            "WHERE e.value IS NOT NULL AND e.failure IS NULL AND q.kind != ? ORDER BY ? * e.value DESC LIMIT 1",
            *(SIMULATED, self.spec.sign),
        )
        return None if row is None else {"x": self._user(row[0]), "value": row[1], "id": row[2]}

    def _pending(self) -> list[dict[str, Any]]:
        withdrawn = {number for body in self.recorded.new_starts() for number in body["withdrawn"]}
        rows = [
            row
            for row in self.recorded.all(
                "SELECT id, kind, iteration, x FROM queries WHERE id NOT IN (SELECT query FROM evaluations) ORDER BY id"
            )
            if row[0] not in withdrawn
        ]
        control = held_here(self.folder)
        said = None if control is None else control.underway()
        now = {each.query: each for each in said or []}
        found = []
        for i, kind, n, x in rows:
            each = now.get(i, Underway(i, None, self._asked(i) or 0.0) if said is None else None)
            known = {"underway": each is not None, "since": each and each.since, "worker": each and each.worker}
            found.append({"id": i, "kind": kind, "iteration": n, "x": self._user(x), **known})
        return found

    def _limits(self, believed: dict[str, Any] | None) -> list[dict[str, Any]]:
        """The limited quantities, with the believed probability at the recommended point."""
        limits, known = (self.spec.arguments.get("limits") or {}).get("quantities", ()), believed or {}
        return [
            {"name": name, "lower": lower, "upper": upper, "probability": known.get("limits", {}).get(name)}
            for name, lower, upper in limits
        ]

    def _actions(self, *kinds: str) -> list[Action]:
        """The last actions of these kinds, the oldest first; journals of version 1 have none."""
        if not self.recorded.has("actions"):
            return []
        rows = self.recorded.all(
            f"SELECT time, after, kind, body FROM actions WHERE kind IN ({', '.join('?' * len(kinds))}) "
            "ORDER BY number DESC LIMIT ?",
            *kinds,
            RECENT,
        )
        return [action(at, after, kind, json.loads(body)) for at, after, kind, body in reversed(rows)]

    def _asked(self, query: int) -> float | None:
        row = self.recorded.one("SELECT asked FROM batches WHERE first <= ? ORDER BY first DESC LIMIT 1", query)
        return None if row is None else float(row[0])

    def _starts(self) -> list[Start]:
        rows = self.recorded.all(
            "SELECT s.process, s.host, s.started, s.options, s.versions, e.ended, e.reason "
            "FROM starts s LEFT JOIN ends e ON e.start = s.number ORDER BY s.number"
        )
        return [Start(p, h, at, json.loads(o), json.loads(v), ended, why) for p, h, at, o, v, ended, why in rows]

    def _recent(self) -> list[tuple[float, str | None]]:
        """The times of the last evaluations, and their failures; the oldest first."""
        rows = self.recorded.all("SELECT told, failure FROM evaluations ORDER BY number DESC LIMIT ?", RECENT)
        return [(told, failure) for told, failure in reversed(rows)]

    def _rate(self, starts: list[Start], count: int, budget: int | None, now: float) -> dict[str, float | None]:
        times = [told for told, _ in self._recent() if told >= starts[-1].started]
        if len(times) < 3:
            return _NO_RATE
        seconds = max(now - times[0], 1e-3) / len(times)
        left = None if budget is None else max(0.0, (budget - count) * seconds)
        return {"per_minute": 60.0 / seconds, "seconds_left": left}


def _reason(state: str, starts: list[Start]) -> str | None:
    """Why the run ended."""
    if state == "gone":
        return "its process ended without a record; the run can be continued"
    return starts[-1].reason if state == "ended" else None


def _parameters(spec: RunSpec, start: list[float]) -> list[dict[str, Any]]:
    """The parameters in the user's units, with the present start."""
    naming, d, found = spec.naming, len(spec.arguments["x0"]), []
    scales = np.broadcast_to(np.array(spec.arguments["scale"], dtype=float), d).tolist()
    for i, (name, x0, scale, *ends) in enumerate(zip(naming.names, start, scales, *vector_bounds(spec), strict=True)):
        kind = None if naming.parameters is None else naming.parameters[name]
        is_log = kind is not None and kind.log
        lower, upper = (naming.value(i, end) if math.isfinite(end) else None for end in ends)
        known = {"name": name, "log": is_log, "integer": kind is not None and kind.kind == "integer"}
        known["scale"] = math.exp(scale) if is_log else scale
        found.append({**known, "start": naming.value(i, x0), "lower": lower, "upper": upper})
    return found


def _numbers(info: Any) -> dict[str, float] | None:
    """Further measured numbers that can be plotted."""
    if not isinstance(info, dict):
        return None
    found = {name: x for name, x in info.items() if type(x) in (int, float) and math.isfinite(x)}
    return found or None


def _settings(spec: RunSpec, starts: list[Start]) -> dict[str, Any]:
    known = {"optimizer": spec.optimizer, "sign": spec.sign, "penalty": spec.penalty, "quorum": spec.quorum}
    rest = {name: value for name, value in spec.arguments.items() if name not in ("x0", "scale", "bounds")}
    training = {} if spec.training is None else {"training": spec.training}
    return {**known, **rest, **training, **({"last start": starts[-1].options} if starts else {})}
