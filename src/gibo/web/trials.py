"""A folder of trials as plain JSON data: the learning curve of each trial, and mean and band of each group.

    {"format": 1, "kind": "trials", "name": the folder's name, "now": seconds since 1970, "minimize": false,
     "x": "evaluations" or "episodes", "y": "value" or "return",
     "groups": [{"name": what these trials have in common, "of_iterates": whether the curves show iterates alone,
                 "band": {"x": [], "mean": [], "low": [], "high": []},      mean ± standard deviation
                 "trials": [{"name", "state", "reason", "optimizer", "minimize", "count", "failures", "budget",
                             "best_seen", "curve": {"x": [], "y": []}, "best": {"x": [], "y": []} (so far)}, …]}, …]}

A trial's name is its path below the folder; the page requests the trial's snapshot by this name.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from gibo._checks import as_path
from gibo.errors import GiboError, InputError
from gibo.runs.curves import Points, Row, learning_curve
from gibo.runs.journal import has_journal
from gibo.runs.store import FILE
from gibo.web.snapshot import FORMAT, Reader

DEPTH = 3  # folders below the given one
MOST_POINTS = 400  # points of a curve


class _Trial:
    """A trial as it was read last.

    Attributes:
        points: its learning curve, over the episodes spent where it is a training.
        of_iterates: whether these are values of iterates alone.
        data: all that the page gets of it.
    """

    def __init__(self, name: str, reader: Reader) -> None:
        self.name, self.reader = name, reader
        self._version: tuple[int, ...] = ()
        self.points: Points = []
        self.of_iterates = False
        self.data: dict[str, Any] = {}

    def update(self) -> None:
        """Read it again if something is new."""
        version = self.reader.version()
        if version == self._version and self.data["state"] != "running":
            return
        rows = self.reader.all(
            "SELECT q.iteration, q.kind, e.query IS NOT NULL, CASE WHEN e.failure IS NULL THEN "
            "coalesce(json_extract(e.info, '$.return'), e.value) END FROM queries q "
            "LEFT JOIN evaluations e ON e.query = q.id ORDER BY q.id"
        )
        curve = learning_curve((Row(*row) for row in rows), self.reader.spec.sign)
        per = int((self.reader.spec.training or {}).get("episodes", 1))
        best = [*curve.best, *((curve.spent, value) for _, value in curve.best[-1:])]  # up to now
        self._version, self.of_iterates = version, curve.of_iterates
        self.points = [(per * n, value) for n, value in curve.points]
        self.data = {
            "name": self.name,
            **self.reader.standing(),
            "best_seen": best[-1][1] if best else None,
            "curve": _columns(self.points),
            "best": _columns([(per * n, value) for n, value in best]),
        }


class Trials:
    """Reads the runs below a folder repeatedly; thread-safe.

    Args:
        folder: with runs below it.
        may_be_none: whether there may be no run yet.
    """

    def __init__(self, folder: Path | str, may_be_none: bool = False) -> None:
        self.folder = as_path("folder", folder)
        self._lock = threading.Lock()
        self._trials: dict[str, _Trial] = {}
        self._scanned = 0.0
        self._unreadable: GiboError | None = None
        self._scan()
        if not self._trials and self._unreadable is not None and not may_be_none:
            raise self._unreadable
        if not self._trials and not may_be_none:
            raise InputError(f"{folder}: there is no run; expected a folder with {FILE}, or folders with one each")

    def close(self) -> None:
        """Close all files."""
        with self._lock:
            for trial in self._trials.values():
                trial.reader.close()

    def reader(self, name: str) -> Reader | None:
        """The reader of a trial that was found here; a name from a request never becomes a path."""
        with self._lock:
            if name not in self._trials:
                self._scan()
            return self._trials[name].reader if name in self._trials else None

    def version(self) -> tuple[Any, ...]:
        """A number that changes with each write and each new trial."""
        with self._lock:
            if time.monotonic() - self._scanned > 2.0:
                self._scan()
            return tuple((trial.name, trial.reader.version()) for trial in self._trials.values())

    def snapshot(self) -> dict[str, Any]:
        """All trials; see the module's docstring."""
        with self._lock:
            self._scan()
            for trial in self._trials.values():
                trial.update()
            groups = _grouped(list(self._trials.values()))
            specs = [trial.reader.spec for trial in self._trials.values()]
            tasks = bool(specs) and all(each.training is not None for each in specs)
            return {
                "format": FORMAT,
                "kind": "trials",
                "name": self.folder.resolve().name,
                "now": time.time(),
                "minimize": bool(specs) and specs[0].sign < 0,
                "x": "episodes" if tasks else "evaluations",
                "y": "return" if tasks else "value",
                "groups": [_group(name, trials) for name, trials in groups.items()],
            }

    def _scan(self) -> None:
        self._scanned = time.monotonic()
        for depth in range(1, DEPTH + 1):
            for path in sorted(self.folder.glob("*/" * depth + FILE)):
                name = str(path.parent.relative_to(self.folder))
                if name not in self._trials:
                    try:
                        if has_journal(path.parent):
                            self._trials[name] = _Trial(name, Reader(path.parent))
                    except GiboError as error:  # being created, or damaged: the other trials are shown
                        self._unreadable = error
        self._trials = dict(sorted(self._trials.items()))


def _grouped(trials: list[_Trial]) -> dict[str, list[_Trial]]:
    """The groups: trials in one folder whose names differ only by a number at the end."""
    found: dict[tuple[str, str], list[_Trial]] = {}
    for trial in trials:
        path = Path(trial.name)
        found.setdefault((str(path.parent), re.sub(r"[-_]?\d+$", "", path.name)), []).append(trial)
    alone = Counter(parent for parent, _ in found)
    return {parent if alone[parent] == 1 else str(Path(parent) / stem): its for (parent, stem), its in found.items()}


def _group(name: str, trials: list[_Trial]) -> dict[str, Any]:
    return {
        "name": "" if name == "." else name,
        "of_iterates": any(trial.of_iterates for trial in trials),
        "band": _band([trial.points for trial in trials if trial.points]),
        "trials": [trial.data for trial in trials],
    }


def _columns(points: Points) -> dict[str, list[float]]:
    kept = [points[i] for i in _thinned(len(points), MOST_POINTS)]
    return {"x": [x for x, _ in kept], "y": [y for _, y in kept]}


def _band(curves: list[Points]) -> dict[str, list[float]]:
    """Mean and standard deviation over the trials, up to the point that all running trials have reached."""
    if len(curves) < 2:
        return {"x": [], "mean": [], "low": [], "high": []}
    grid = np.unique(np.concatenate([[x for x, _ in points] for points in curves])).astype(float)
    grid = grid[(grid >= max(points[0][0] for points in curves))]
    grid = grid[(grid <= min(points[-1][0] for points in curves))]
    grid = grid[_thinned(len(grid), MOST_POINTS)]
    values = []
    for points in curves:
        x, y = np.array(points, dtype=float).T
        values.append(y[np.searchsorted(x, grid, side="right") - 1])
    mean, sd = np.mean(values, axis=0), np.std(values, axis=0)
    return {"x": grid.tolist(), "mean": mean.tolist(), "low": (mean - sd).tolist(), "high": (mean + sd).tolist()}


def _thinned(n: int, most: int) -> list[int]:
    kept: list[int] = np.unique(np.linspace(0, n - 1, min(n, most)).astype(int)).tolist() if n else []
    return kept
