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
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gibo._checks import as_path, instance, natural
from gibo._linalg import Array
from gibo.errors import GiboError, JournalError
from gibo.optimizers.model import Z90
from gibo.outcome import EXTERNAL, ITERATE, QUERY, SIMULATED
from gibo.runs.advice import RECENT
from gibo.runs.control import held_here
from gibo.runs.journal import Journal
from gibo.runs.legacy import OLD_EXTERNAL
from gibo.runs.pools import Underway
from gibo.runs.records import BODIES, Action, Start, action, safe_point, state_of
from gibo.runs.spec import RunSpec
from gibo.runs.store import FILE, SINCE, connect
from gibo.runs.views import checked_belief
from gibo.web.advice import advice, judged, next_step

FORMAT = 2
GRADIENT = (("mean", "gradient"), ("sd", "gradient_deviation"))


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
    """Reads a run's journal repeatedly while another process writes; never writes, and computes no model. Thread-safe.

    Args:
        folder: of the run.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = as_path("folder", folder)
        self._closing, self._lock = ExitStack(), threading.RLock()
        self._open()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._closing.close()

    def _open(self) -> None:
        self.close()
        # The journal reports a missing file.
        self._file = (self.folder / FILE).stat().st_ino if (self.folder / FILE).exists() else -1
        with Journal.read(self.folder) as journal:
            self.spec: RunSpec = journal.spec()
        self._connection = connect(self.folder, self._closing)
        x0, kinds = self.spec.arguments["x0"], self.spec.naming.parameters
        self.scale: Array = np.broadcast_to(np.array(self.spec.arguments["scale"], dtype=float), len(x0))
        self._plain = kinds is None or all(kinds[name].kind in ("linear", "free") for name in kinds)

    def version(self) -> tuple[int, int, int]:
        """A number that changes with each write; cheap."""
        with self._lock:
            try:
                if (self.folder / FILE).stat().st_ino != self._file:
                    self._open()
            except (OSError, GiboError):  # between two runs in one folder: show the old one until the new one exists
                return self._file, -1, 0
            (version,) = self.all("PRAGMA data_version")[0]
        control = held_here(self.folder)
        now = 0 if control is None else hash(tuple(each.query for each in control.underway()))
        return self._file, int(version), now

    def snapshot(self, since: Since) -> dict[str, Any]:
        """See `snapshot`."""
        with self._reading():
            self._connection.execute("BEGIN")  # all queries see the same moment
            try:
                return self._snapshot(since)
            finally:
                self._connection.execute("ROLLBACK")

    def standing(self) -> dict[str, Any]:
        """The state of the run in a few fields."""
        with self._reading():
            return self._standing(self._starts(), self._actions("paused", "continued"))

    def last_episode(self) -> int | None:
        """The evaluation that `gibo play --last` shows; None if this is no training, or no episode is over."""
        if self.spec.training is None:
            return None
        rows = self.all(
            "SELECT q.id FROM evaluations e JOIN queries q ON q.id = e.query WHERE e.failure IS NULL AND q.kind IN "
            "(?, ?) ORDER BY q.kind = ? DESC, q.id DESC LIMIT 1",
            *(ITERATE, QUERY, ITERATE),
        )
        return rows[0][0] if rows else None

    # -- the whole ----------------------------------------------------------------------------------------------------

    def _snapshot(self, since: Since) -> dict[str, Any]:
        spec, now, starts = self.spec, time.time(), self._starts()
        interventions, changes = self._actions("paused", "continued", "abort"), self._actions("undo", "correction")
        standing = self._standing(starts, interventions)
        state, budget, count = (standing[name] for name in ("state", "budget", "count"))
        bodies = self.all("SELECT kind, body FROM views ORDER BY kind", table="views")
        viewed = zlib.crc32("".join(body for _, body in bodies).encode())
        views = {kind: json.loads(body) for kind, body in bodies}
        believed, last = views.get("believed", views.get("verdict", {})), self._last_belief()
        recommended, start = self._belief(last, believed), believed.get("start")
        verdict, *others = judged(self, recommended, believed, by_hand=state == "waiting")
        found = {
            "format": FORMAT,
            "kind": "run",
            "run": f"{self._file}-{starts[0].started if starts else 0}-{changes[-1].time if changes else 0}",
            "name": self.folder.resolve().name,
            "now": now,
            **standing,
            "parameters": self._parameters(),
            "limits": self._limits(believed.get("limits", {})),
            "aborted": safe_point(interventions, spec.naming),
            "evaluations": self._evaluations(since.evaluations),
            "iterations": self._iterations(since.iterations),
            "beliefs": self._beliefs(since.beliefs),
            "belief": recommended and {**recommended, "x": self._user(json.dumps(recommended["x"]))},
            "start": start and {name: start[name] for name in ("value", "low", "high")},
            "best_seen": self._best_seen(),
            "gradient": last and {name: (np.array(last[known]) * self.scale).tolist() for name, known in GRADIENT},
            "lengthscale": last and (np.array(last["lengthscale"]) / self.scale).tolist(),
            "views": views if viewed != since.viewed else None,
            "viewed": viewed,
            "verdict": verdict and {"code": verdict.code, "text": verdict.text},
            "pending": self._pending(),
            "rate": self._rate(starts[-1].started if state == "running" else math.inf, count, budget, now),
            "settings": _settings(spec, starts),
            "versions": starts[-1].versions if starts else {},
            "starts": [start._asdict() for start in starts],
            "replay": self.last_episode(),
            "actions": [each._asdict() for each in self._actions(*BODIES)],
        }
        return {**found, "next": next_step(found), "advice": advice(found, self._recent(), others)}

    def _standing(self, starts: list[Start], interventions: list[Action]) -> dict[str, Any]:
        count, failures = self.all("SELECT count(*), count(failure) FROM evaluations")[0]
        state = state_of(self.folder, starts, interventions)
        reason = starts[-1].reason if state == "ended" else None
        return {
            "state": state,
            "reason": "its process ended without a record; the run can be continued" if state == "gone" else reason,
            "optimizer": self.spec.optimizer,
            "minimize": self.spec.sign < 0,
            "budget": starts[-1].options.get("budget") if starts else None,
            "count": count,
            "failures": failures,
        }

    # -- the model's records ------------------------------------------------------------------------------------------

    def _beliefs(self, first: int) -> dict[str, Any]:
        rows = self.all(
            "SELECT evaluations, json_extract(body, '$.value'), json_extract(body, '$.deviation') FROM beliefs "
            "ORDER BY number LIMIT -1 OFFSET ?",
            first,
            table="beliefs",
        )
        return {"first": first, **_columns(("evaluations", "value", "sd"), rows)}

    def _last_belief(self) -> dict[str, Any] | None:
        """The record of the last update."""
        query = "SELECT body, evaluations FROM beliefs ORDER BY number DESC LIMIT 1"
        for body, evaluations in self.all(query, table="beliefs"):
            return {**checked_belief(json.loads(body), len(self.scale)), "evaluations": evaluations}
        return None

    def _belief(self, last: dict[str, Any] | None, believed: dict[str, Any]) -> dict[str, Any] | None:
        """The recommended point; the views are newer than the record of the last update, or as old."""
        best = believed.get("best")
        if best is not None and (last is None or believed["evaluations"] >= last["evaluations"]):
            sd = None if best["low"] is None else (best["high"] - best["low"]) / (2.0 * Z90)
        elif last is not None:
            best, sd = {name: last[name] for name in ("x", "value", "low", "high")}, last["deviation"]
        else:
            return None
        return {**best, "sd": sd}

    def _limits(self, known: dict[str, float]) -> list[dict[str, Any]]:
        limits = (self.spec.arguments.get("limits") or {}).get("quantities", ())
        return [
            {"name": name, "lower": lower, "upper": upper, "probability": known.get(name)}
            for name, lower, upper in limits
        ]

    # -- rows ---------------------------------------------------------------------------------------------------------

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """One thread at a time; an error in this block is the journal's."""
        with self._lock:
            try:
                yield
            except GiboError:
                raise
            except (sqlite3.Error, KeyError, TypeError, ValueError) as error:
                raise JournalError(f"{self.folder / FILE}: cannot be read: {type(error).__name__}: {error}") from None

    def all(self, query: str, *values: Any, table: str = "facts") -> list[Any]:
        """The rows of a query; none if journals of this version do not have the table."""
        with self._reading():
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
            return self._connection.execute(query, values).fetchall() if version >= SINCE.get(table, 1) else []

    def _user(self, x: str) -> list[float]:
        """A point of the journal in the user's units."""
        entries: list[float] = json.loads(x)
        return entries if self._plain else list(self.spec.naming(np.array(entries)).values())

    def _evaluations(self, first: int) -> dict[str, Any]:
        names = ("id", "iteration", "kind", "value", "failure", "seconds", "told", "x", "info")
        query = (
            "SELECT q.id, q.iteration, q.kind, e.value, e.failure, e.seconds, e.told, q.x, e.info FROM evaluations e "
            "JOIN queries q ON q.id = e.query WHERE e.number >= ? ORDER BY e.number"
        )
        columns = _columns(names, self.all(query, first))
        columns["kind"] = [EXTERNAL if kind == OLD_EXTERNAL else kind for kind in columns["kind"]]
        if not self._plain:
            columns["x"] = [json.dumps(self._user(x)) for x in columns["x"]]
        columns["info"] = [None if text is None else _numbers(json.loads(text)) for text in columns["info"]]
        return {"first": first, **columns}

    def _iterations(self, first: int) -> dict[str, Any]:
        names = ("number", "evaluations", "probability_of_ascent", "certainty", "noise_sd", "step")
        query = (
            "SELECT number, evaluations, probability_of_ascent, certainty, noise, step FROM iterations "
            "ORDER BY number LIMIT -1 OFFSET ?"
        )
        columns = _columns(names, self.all(query, first))
        columns["noise_sd"] = [None if noise is None else math.sqrt(max(0.0, noise)) for noise in columns["noise_sd"]]
        columns["step"] = [float(np.linalg.norm(json.loads(step) / self.scale)) for step in columns["step"]]
        return {"first": first, **columns}

    def _best_seen(self) -> dict[str, Any] | None:
        rows = self.all(
            "SELECT q.x, e.value, q.id FROM evaluations e JOIN queries q ON q.id = e.query "
            "WHERE e.value IS NOT NULL AND e.failure IS NULL AND q.kind != ? ORDER BY ? * e.value DESC LIMIT 1",
            *(SIMULATED, self.spec.sign),
        )
        return {"x": self._user(rows[0][0]), "value": rows[0][1], "id": rows[0][2]} if rows else None

    def _pending(self) -> list[dict[str, Any]]:
        withdrawn = {number for body in self._new_starts() for number in body["withdrawn"]}
        rows = self.all(
            "SELECT q.id, q.kind, q.iteration, q.x, max(b.asked) FROM queries q LEFT JOIN batches b ON b.first <= q.id "
            "WHERE q.id NOT IN (SELECT query FROM evaluations) GROUP BY q.id ORDER BY q.id"
        )
        control, found = held_here(self.folder), []
        said = None if control is None else control.underway()
        now = {each.query: each for each in said or ()}
        for i, kind, n, x, asked in rows:
            if i not in withdrawn:
                each = now.get(i, Underway(i, None, asked or 0.0) if said is None else None)
                known = {"underway": each is not None, "since": each and each.since, "worker": each and each.worker}
                found.append({"id": i, "kind": kind, "iteration": n, "x": self._user(x), **known})
        return found

    def _actions(self, *kinds: str) -> list[Action]:
        """The last actions of these kinds, the oldest first."""
        rows = self.all(
            f"SELECT time, after, kind, body FROM actions WHERE kind IN ({', '.join('?' * len(kinds))}) "
            "ORDER BY number DESC LIMIT ?",
            *kinds,
            RECENT,
            table="actions",
        )
        return [action(at, after, kind, json.loads(body)) for at, after, kind, body in reversed(rows)]

    def _new_starts(self) -> list[dict[str, Any]]:
        """The bodies of the actions that gave the search another start."""
        rows = self.all("SELECT body FROM actions WHERE kind = 'start' ORDER BY number", table="actions")
        return [action(0.0, 0, "start", json.loads(body)).body for (body,) in rows]

    def start(self) -> tuple[list[float], int]:
        """The present start (d,), and the iteration in which the search from it began."""
        given = self._new_starts()
        return (given[-1]["x"], given[-1]["iteration"]) if given else (self.spec.arguments["x0"], 0)

    def bounds(self) -> list[list[float]]:
        """Lower and upper bounds of the optimiser's vector, infinite if there are none."""
        bounds, d = self.spec.arguments.get("bounds") or {}, len(self.scale)
        sides = (np.array(bounds.get(side, end), dtype=float) for side, end in (("lb", -np.inf), ("ub", np.inf)))
        return [np.broadcast_to(side, d).tolist() for side in sides]

    def _starts(self) -> list[Start]:
        rows = self.all(
            "SELECT s.process, s.host, s.started, s.options, s.versions, e.ended, e.reason "
            "FROM starts s LEFT JOIN ends e ON e.start = s.number ORDER BY s.number"
        )
        return [Start(p, h, at, json.loads(o), json.loads(v), ended, why) for p, h, at, o, v, ended, why in rows]

    def _recent(self) -> list[float]:
        """The times of the last evaluations, the oldest first."""
        rows = self.all("SELECT told FROM evaluations ORDER BY number DESC LIMIT ?", RECENT)
        return [told for (told,) in reversed(rows)]

    def _rate(self, since: float, count: int, budget: int | None, now: float) -> dict[str, float | None]:
        times = [told for told in self._recent() if told >= since]
        if len(times) < 3:
            return {"per_minute": None, "seconds_left": None}
        seconds = max(now - times[0], 1e-3) / len(times)
        left = None if budget is None else max(0.0, (budget - count) * seconds)
        return {"per_minute": 60.0 / seconds, "seconds_left": left}

    def _parameters(self) -> list[dict[str, Any]]:
        """The parameters in the user's units, with the present start."""
        naming, found, (start, _) = self.spec.naming, [], self.start()
        rows = zip(naming.names, start, self.scale.tolist(), *self.bounds(), strict=True)
        for i, (name, x0, scale, *sides) in enumerate(rows):
            kind = None if naming.parameters is None else naming.parameters[name]
            is_log = kind is not None and kind.log
            lower, upper = (naming.value(i, end) if math.isfinite(end) else None for end in sides)
            known = {"name": name, "log": is_log, "integer": kind is not None and kind.kind == "integer"}
            known["scale"] = math.exp(scale) if is_log else scale
            found.append({**known, "start": naming.value(i, x0), "lower": lower, "upper": upper})
        return found


def _columns(names: Sequence[str], rows: list[Any]) -> dict[str, Any]:
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


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
