"""A run as plain JSON data, read from its journal, whole or only what is new. The page knows nothing else of a run.

    {"format": 1, "kind": "run", "run": an id that changes when another run begins in the folder, or rows changed,
     "name": the folder's name, "now": seconds since 1970,
     "state": "running" | "waiting" (for somebody to tell) | "paused" | "ended" | "gone", "reason": text or null,
     "optimizer": "GIBO", "minimize": false, "budget": 300 or null, "count": 120, "failures": 3,
     "parameters": [{"name", "start", "scale", "lower", "upper"}, …]    bounds null where there are none
     "evaluations": {"first": n, "id": [], "iteration": [], "kind": [], "value": [], "failure": [], "seconds": [],
                     "told": [], "x": []}                  columns, in the order of arrival, from row n on; each x
                     is a JSON text, as the journal has it: few of them are ever looked at
     "iterations": {"first": n, "number": [], "evaluations": [], "probability_of_ascent": [], "certainty": [],
                    "noise_sd": [], "step": [] (length, in scales), "belief": [], "belief_sd": []}
     "belief": {"x", "value", "sd", "low", "high"} or null, of the recommended point: between low and high with 90 %;
                without a model x alone, the others null
     "best_seen": {"x", "value", "id"} or null, "gradient": {"mean": [], "sd": []} or null, "lengthscale": [] or null,
     "pending": [{"id", "kind", "iteration", "x", "underway", "since", "worker"}, …]    being evaluated (since, worker
                where known), waiting for its turn, or for somebody to tell its value (since it was asked)
     "rate": {"per_minute", "seconds_left"}, each null where unknown
     "settings": {name: plain data}, "versions": {name: text}, "starts": [{"process", "host", "started", …}]
     "replay": id of the evaluation whose episode can be shown, or null where there is none, see `gibo.web.replay`
     "actions": [{"time", "after", "kind", "body"}, …]     what people did last, see `gibo.runs.records`
     "advice": [{"code", "text"}]}

Values, gradients and points are in the objective's own units and sign.
"""

from __future__ import annotations

import json
import math
import os
import platform
import sqlite3
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gibo._checks import as_path, instance, natural
from gibo.errors import GiboError, JournalError
from gibo.outcome import EXTERNAL, ITERATE, QUERY
from gibo.runs.advice import RECENT, alike
from gibo.runs.control import held_here
from gibo.runs.journal import Journal
from gibo.runs.lock import in_use
from gibo.runs.pools import Underway
from gibo.runs.records import BY_HAND, OLD_EXTERNAL, Action, Start, action
from gibo.runs.spec import RunSpec
from gibo.runs.store import FILE, SINCE, connect_to_read
from gibo.web.advice import advice
from gibo.web.belief import Belief
from gibo.web.window import Window

FORMAT = 1
_NO_RATE: dict[str, float | None] = {"per_minute": None, "seconds_left": None}


class Since(NamedTuple):
    """How much of a run is known already: rows of evaluations and of iterations."""

    evaluations: int = 0
    iterations: int = 0


def snapshot(folder: Path | str, since: Since | None = None) -> dict[str, Any]:
    """A run as plain data; see the module's text. With `since`, evaluations and iterations from there on only."""
    since = instance("since", Since() if since is None else since, Since, "a Since")
    since = Since(*(natural(f"since.{name}", number) for name, number in since._asdict().items()))
    with Reader(folder) as reader:
        return reader.snapshot(since)


class Reader:
    """Reads a run's journal again and again, while others write; never writes itself.

    Args:
        folder: of the run.
        known: the `file` of a reader that found it whole before; then it is not read through again.
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
        """Let go of the file."""
        self._closing.close()

    def _open(self) -> None:
        self.close()
        # Missing is said by the journal.
        file = (self.folder / FILE).stat().st_ino if (self.folder / FILE).exists() else -1
        with Journal.read(self.folder, whole=file != self.file or file < 0) as journal:
            self.spec: RunSpec = journal.spec()
        self.file = file
        self._closing.enter_context(in_use(self.folder / FILE))  # a run of this process may have it
        self._connection = connect_to_read(self.folder, self._closing)
        belief = Belief.of(self.spec)
        self.model = None if belief is None else Window(self.spec, belief, self._connection)

    def version(self) -> tuple[int, int, int]:
        """Changes when something was written; costs next to nothing."""
        try:
            if (self.folder / FILE).stat().st_ino != self.file:
                self._open()
        except (OSError, GiboError):  # between two runs in one folder; the old one is shown until the new one is there
            return self.file, -1, 0
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        control = held_here(self.folder)
        now = 0 if control is None else hash(tuple(each.query for each in control.underway()))
        return self.file, int(version), now

    def snapshot(self, since: Since) -> dict[str, Any]:
        """See `snapshot`."""
        try:
            self._connection.execute("BEGIN")  # all as it is at this moment
            try:
                return self._snapshot(since)
            finally:
                self._connection.execute("ROLLBACK")
        except (sqlite3.Error, KeyError, TypeError, ValueError) as error:
            if isinstance(error, GiboError):
                raise
            raise JournalError(f"{self.folder / FILE}: cannot be read: {type(error).__name__}: {error}") from None

    def _snapshot(self, since: Since) -> dict[str, Any]:
        spec, now = self.spec, time.time()
        starts = self._starts()
        pending, iterate = self._pending(starts), self._iterate()
        count, failures = self._one("SELECT count(*), count(failure) FROM evaluations")
        actions, amended = self._actions()
        state, reason = _state(starts, actions)
        budget = starts[-1].options.get("budget") if starts else None
        gradient = lengthscale = belief = None
        believed = None if self.model is None else self.model.now()
        if believed is not None:
            belief, gradient, lengthscale = believed
        elif self.model is None and iterate is not None and count > failures:
            belief = {"x": iterate, **dict.fromkeys(("value", "sd", "low", "high"))}
        found = {
            "format": FORMAT,
            "kind": "run",
            "run": f"{self.file}-{starts[0].started if starts else 0}-{amended}",
            "name": self.folder.resolve().name,
            "now": now,
            "state": state,
            "reason": reason,
            "optimizer": spec.optimizer,
            "minimize": spec.sign < 0,
            "budget": budget,
            "count": count,
            "failures": failures,
            "parameters": _parameters(spec),
            "evaluations": self._evaluations(since.evaluations),
            "iterations": self._iterations(since.iterations),
            "belief": belief,
            "best_seen": self._best_seen(),
            "gradient": gradient,
            "lengthscale": lengthscale,
            "pending": pending,
            "rate": self._rate(starts, count, budget, now) if state == "running" else _NO_RATE,
            "settings": _settings(spec, starts),
            "versions": starts[-1].versions if starts else {},
            "starts": [start._asdict() for start in starts],
            "replay": self.last_episode(),
            "actions": [each._asdict() for each in actions],
        }
        return {**found, "advice": advice(found, self._recent(), self._steps(), self._alike(), spec.naming)}

    def standing(self) -> dict[str, Any]:
        """How the run stands, in a line."""
        starts = self._starts()
        count, failures = self._one("SELECT count(*), count(failure) FROM evaluations")
        state, reason = _state(starts, self._actions()[0])
        return {
            "state": state,
            "reason": reason,
            "optimizer": self.spec.optimizer,
            "count": count,
            "failures": failures,
            "budget": starts[-1].options.get("budget") if starts else None,
        }

    def outcomes(self, first: int) -> list[tuple[int, str, float | None]]:
        """Iteration, kind and value of each evaluation from row `first` on; of an episode, its return."""
        return self._all(
            "SELECT q.iteration, q.kind, CASE WHEN e.failure IS NULL THEN "
            "coalesce(json_extract(e.info, '$.return'), e.value) END FROM evaluations e "
            "JOIN queries q ON q.id = e.query WHERE e.number >= ? ORDER BY e.number",
            first,
        )

    def last_episode(self) -> int | None:
        """The evaluation that `gibo play --last` shows; None if this is no training, or no episode is over."""
        row = self.spec.training and self._one(
            "SELECT q.id FROM evaluations e JOIN queries q ON q.id = e.query WHERE e.failure IS NULL AND q.kind IN "
            "(?, ?) ORDER BY q.kind = ? DESC, q.id DESC LIMIT 1",
            *(ITERATE, QUERY, ITERATE),
        )
        return row[0] if row else None

    # -- rows ---------------------------------------------------------------------------------------------------------

    def _all(self, query: str, *values: Any) -> list[Any]:
        return self._connection.execute(query, values).fetchall()

    def _one(self, query: str, *values: Any) -> Any:
        return self._connection.execute(query, values).fetchone()

    def _evaluations(self, first: int) -> dict[str, Any]:
        rows = self._all(
            "SELECT q.id, q.iteration, q.kind, e.value, e.failure, e.seconds, e.told, q.x FROM evaluations e "
            "JOIN queries q ON q.id = e.query WHERE e.number >= ? ORDER BY e.number",
            first,
        )
        names = ("id", "iteration", "kind", "value", "failure", "seconds", "told", "x")
        columns: dict[str, Any] = {name: [row[i] for row in rows] for i, name in enumerate(names)}
        columns["kind"] = [EXTERNAL if kind == OLD_EXTERNAL else kind for kind in columns["kind"]]
        return {"first": first, **columns}

    def _iterations(self, first: int) -> dict[str, Any]:
        rows = self._all(
            "SELECT number, evaluations, probability_of_ascent, certainty, noise, step FROM iterations "
            "WHERE number >= ? ORDER BY number",
            first,
        )
        scale = np.array(self.spec.arguments["scale"])
        names = ("number", "evaluations", "probability_of_ascent", "certainty")
        columns: dict[str, Any] = {name: [row[i] for row in rows] for i, name in enumerate(names)}
        columns["noise_sd"] = [None if row[4] is None else math.sqrt(max(0.0, row[4])) for row in rows]
        steps = np.array(json.loads(f"[{','.join(row[5] for row in rows)}]"), dtype=np.float64)
        columns["step"] = np.linalg.norm(steps.reshape(len(rows), -1) / scale, axis=1).tolist() if rows else []
        columns["belief"], columns["belief_sd"] = [None] * len(rows), [None] * len(rows)
        for number, pair in () if self.model is None else self.model.course(first):
            columns["belief"][number - first], columns["belief_sd"][number - first] = pair
        return {"first": first, **columns}

    def _iterate(self) -> list[float] | None:
        row = self._one("SELECT iterate FROM batches ORDER BY number DESC LIMIT 1")
        return None if row is None else json.loads(row[0])

    def _best_seen(self) -> dict[str, Any] | None:
        row = self._one(
            "SELECT q.x, e.value, q.id FROM evaluations e JOIN queries q ON q.id = e.query "
            "WHERE e.value IS NOT NULL AND e.failure IS NULL ORDER BY ? * e.value DESC LIMIT 1",
            self.spec.sign,
        )
        return None if row is None else {"x": json.loads(row[0]), "value": row[1], "id": row[2]}

    def _pending(self, starts: list[Start]) -> list[dict[str, Any]]:
        rows = self._all(
            "SELECT id, kind, iteration, x FROM queries WHERE id NOT IN (SELECT query FROM evaluations) ORDER BY id"
        )
        control = held_here(self.folder)
        said = None if control is None else control.underway()
        now = {each.query: each for each in said or []}
        found = []
        for i, kind, n, x in rows:
            each = now.get(i, Underway(i, None, self._asked(i) or 0.0) if said is None else None)
            known = {"underway": each is not None, "since": each and each.since, "worker": each and each.worker}
            found.append({"id": i, "kind": kind, "iteration": n, "x": json.loads(x), **known})
        return found

    def _actions(self) -> tuple[list[Action], int]:
        """What people did last, and how often they changed a row; journals of the first version have none."""
        if self._one("PRAGMA user_version")[0] < SINCE["actions"]:
            return [], 0
        rows = self._all("SELECT time, after, kind, body FROM actions ORDER BY number DESC LIMIT ?", RECENT)
        (amended,) = self._one("SELECT count(*) FROM actions WHERE kind IN ('undo', 'correction')")
        return [action(at, after, kind, json.loads(body)) for at, after, kind, body in reversed(rows)], amended

    def _asked(self, query: int) -> float | None:
        row = self._one("SELECT asked FROM batches WHERE first <= ? ORDER BY first DESC LIMIT 1", query)
        return None if row is None else float(row[0])

    def _starts(self) -> list[Start]:
        rows = self._all(
            "SELECT s.process, s.host, s.started, s.options, s.versions, e.ended, e.reason "
            "FROM starts s LEFT JOIN ends e ON e.start = s.number ORDER BY s.number"
        )
        return [Start(p, h, at, json.loads(o), json.loads(v), ended, why) for p, h, at, o, v, ended, why in rows]

    def _recent(self) -> list[tuple[float, str | None]]:
        """When the last evaluations were told, and their failures; the oldest first."""
        rows = self._all("SELECT told, failure FROM evaluations ORDER BY number DESC LIMIT ?", RECENT)
        return [(told, failure) for told, failure in reversed(rows)]

    def _steps(self) -> list[tuple[float | None, list[float], float | None, float | None]]:
        """Of the last iterations: probability of ascent, step, variance and noise of the model."""
        columns = "probability_of_ascent, step, variance, noise"
        rows = self._all(f"SELECT {columns} FROM iterations ORDER BY number DESC LIMIT ?", RECENT)
        return [(p, json.loads(step), variance, noise) for p, step, variance, noise in reversed(rows)]

    def _alike(self) -> float | None:
        """The one value that all evaluations had; None if they differ, or are few."""
        rows = self._all("SELECT value, count(*) FROM evaluations WHERE value IS NOT NULL GROUP BY value LIMIT 2")
        return alike([value for value, count in rows for _ in range(min(count, RECENT))])

    def _rate(self, starts: list[Start], count: int, budget: int | None, now: float) -> dict[str, float | None]:
        times = [told for told, _ in self._recent() if told >= starts[-1].started]
        if len(times) < 3:
            return _NO_RATE
        seconds = max(now - times[0], 1e-3) / len(times)
        left = None if budget is None else max(0.0, (budget - count) * seconds)
        return {"per_minute": 60.0 / seconds, "seconds_left": left}


def _state(starts: list[Start], actions: list[Action]) -> tuple[str, str | None]:
    if not starts:
        return "waiting", None
    last = starts[-1]
    if last.ended is not None:
        return ("waiting", None) if last.reason == BY_HAND else ("ended", last.reason)
    if last.host == platform.node() and not _lives(last.process):
        return "gone", "its process has gone without a word; it can be continued"
    pauses = [each.kind for each in actions if each.time >= last.started and each.kind in ("paused", "continued")]
    return "paused" if pauses[-1:] == ["paused"] else "running", None


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    with suppress(OSError):  # one that has ended, and whose parent has not asked how, still has its number
        state = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[:1]
        return state != [b"Z"]
    return True


def _parameters(spec: RunSpec) -> list[dict[str, Any]]:
    arguments, kinds = spec.arguments, spec.parameters or {}
    # The page has the numbers as the optimiser has them.
    names = [f"ln {name}" if _is_log(kinds.get(name, {})) else name for name in spec.naming.names]
    bounds = arguments.get("bounds") or {}
    lower, upper = (
        np.broadcast_to(np.array(bounds.get(side, none), dtype=float), len(names))
        for side, none in (("lb", -math.inf), ("ub", math.inf))
    )
    ends = [[float(end) if math.isfinite(end) else None for end in side] for side in (lower, upper)]
    columns = (names, arguments["x0"], arguments["scale"], *ends)
    return [
        dict(zip(("name", "start", "scale", "lower", "upper"), row, strict=True)) for row in zip(*columns, strict=True)
    ]


def _is_log(kind: dict[str, Any]) -> bool:
    return kind.get("kind") == "log" or bool(kind.get("log"))


def _settings(spec: RunSpec, starts: list[Start]) -> dict[str, Any]:
    known = {"optimizer": spec.optimizer, "sign": spec.sign, "penalty": spec.penalty, "quorum": spec.quorum}
    rest = {name: value for name, value in spec.arguments.items() if name not in ("x0", "scale", "bounds")}
    training = {} if spec.training is None else {"training": spec.training}
    return {**known, **rest, **training, **({"last start": starts[-1].options} if starts else {})}
