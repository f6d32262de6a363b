"""A folder of trials as plain JSON data: each one's learning curve, and mean and band of those that belong together.

    {"format": 1, "kind": "trials", "name": the folder's name, "now": seconds since 1970, "minimize": false,
     "x": "evaluations" or "episodes", "y": "value" or "return",
     "groups": [{"name": what these trials have in common, "of_iterates": whether the curves show iterates alone,
                 "band": {"x": [], "mean": [], "low": [], "high": []},      mean ± standard deviation
                 "trials": [{"name", "state", "reason", "optimizer", "minimize", "count", "failures", "budget",
                             "best_seen", "curve": {"x": [], "y": []}, "best": {"x": [], "y": []} (so far)}, …]}, …]}

A trial's name is its path below the folder, and by it the page asks for the trial's own snapshot.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gibo._checks import as_path
from gibo.errors import GiboError, InputError
from gibo.runs.database import FILE
from gibo.runs.journal import has_journal
from gibo.web.snapshot import FORMAT, Reader

DEPTH = 3  # folders below the given one
MOST_POINTS = 400  # of a curve


@dataclass
class _Trial:
    """What is known of a trial; rows that were read once are not read again."""

    name: str
    reader: Reader
    version: tuple[int, ...] = (0, 0, 0)
    rows: int = 0
    points: list[tuple[int, float]] = field(default_factory=list)  # evaluations spent, value of the iterate
    batch: list[float] = field(default_factory=list)  # where iterates are not evaluated: values of the iteration so far
    iteration: int = 0
    has_iterates: bool = False
    best: float | None = None
    bests: list[tuple[int, float]] = field(default_factory=list)  # evaluations spent, best value so far
    facts: dict[str, Any] = field(default_factory=dict)


class Trials:
    """Reads the runs below a folder again and again; safe to use from many threads.

    Args:
        folder: with runs below it.
        may_be_none: there may be no run yet.
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
        """Let go of all files."""
        with self._lock:
            for trial in self._trials.values():
                trial.reader.close()

    def folder_of(self, name: str) -> Path | None:
        """The folder of a trial that was found here; a name is never made into a path."""
        with self._lock:
            if name not in self._trials:
                self._scan()
            return self._trials[name].reader.folder if name in self._trials else None

    def version(self) -> tuple[Any, ...]:
        """Changes when something was written or a trial began."""
        with self._lock:
            if time.monotonic() - self._scanned > 2.0:
                self._scan()
            return tuple((trial.name, trial.reader.version()) for trial in self._trials.values())

    def snapshot(self) -> dict[str, Any]:
        """All trials; see the module's text."""
        with self._lock:
            self._scan()
            for trial in self._trials.values():
                _update(trial)
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
                    except GiboError as error:  # being made, or damaged: the others are shown
                        self._unreadable = error
        self._trials = dict(sorted(self._trials.items()))


def _grouped(trials: list[_Trial]) -> dict[str, list[_Trial]]:
    """Those that belong together: in one folder, with names that differ by a number at the end alone."""
    found: dict[tuple[str, str], list[_Trial]] = {}
    for trial in trials:
        path = Path(trial.name)
        found.setdefault((str(path.parent), re.sub(r"[-_]?\d+$", "", path.name)), []).append(trial)
    alone = Counter(parent for parent, _ in found)
    return {parent if alone[parent] == 1 else str(Path(parent) / stem): its for (parent, stem), its in found.items()}


def _update(trial: _Trial) -> None:
    """Read what is new."""
    version = trial.reader.version()
    if version == trial.version and trial.facts.get("state") != "running":
        return
    if version[0] != trial.version[0]:  # another run began in its folder
        trial.rows, trial.points, trial.batch, trial.iteration, trial.best, trial.bests = 0, [], [], 0, None, []
    trial.version = version
    rows = trial.reader.outcomes(trial.rows)
    sign = trial.reader.spec.sign
    per = int((trial.reader.spec.training or {}).get("episodes", 1))
    for iteration, kind, value in rows:
        trial.rows += 1
        if value is not None and (trial.best is None or sign * value > sign * trial.best):
            trial.best = value
            trial.bests.append((per * trial.rows, value))
        if kind == "iterate":
            trial.has_iterates = True
            if value is not None:
                trial.points.append((per * trial.rows, value))
            continue
        if trial.has_iterates:
            continue
        if iteration != trial.iteration and trial.batch:
            trial.points.append((per * (trial.rows - 1), float(np.mean(trial.batch))))
            trial.batch = []
        trial.iteration = iteration
        if value is not None:
            trial.batch.append(value)
    trial.facts = {**trial.reader.standing(), "best_seen": trial.best}


def _group(name: str, trials: list[_Trial]) -> dict[str, Any]:
    return {
        "name": "" if name == "." else name,
        "of_iterates": any(trial.has_iterates for trial in trials),
        "band": _band([trial for trial in trials if trial.points]),
        "trials": [
            {"name": trial.name, **trial.facts, "curve": _curve(trial.points), "best": _curve(_to_the_end(trial))}
            for trial in trials
        ],
    }


def _to_the_end(trial: _Trial) -> list[tuple[int, float]]:
    per = int((trial.reader.spec.training or {}).get("episodes", 1))
    return [*trial.bests, (per * trial.rows, trial.bests[-1][1])] if trial.bests else []


def _curve(points: list[tuple[int, float]]) -> dict[str, list[float]]:
    kept = [points[i] for i in _thinned(len(points), MOST_POINTS)]
    return {"x": [x for x, _ in kept], "y": [y for _, y in kept]}


def _band(trials: list[_Trial]) -> dict[str, list[float]]:
    """Mean and standard deviation of the last value seen, as far as all trials have come that have not ended."""
    if len(trials) < 2:
        return {"x": [], "mean": [], "low": [], "high": []}
    grid = np.unique(np.concatenate([[x for x, _ in trial.points] for trial in trials])).astype(float)
    grid = grid[(grid >= max(trial.points[0][0] for trial in trials))]
    grid = grid[(grid <= min(trial.points[-1][0] for trial in trials))]
    grid = grid[_thinned(len(grid), MOST_POINTS)]
    values = []
    for trial in trials:
        x, y = np.array(trial.points, dtype=float).T
        values.append(y[np.searchsorted(x, grid, side="right") - 1])
    mean, sd = np.mean(values, axis=0), np.std(values, axis=0)
    return {"x": grid.tolist(), "mean": mean.tolist(), "low": (mean - sd).tolist(), "high": (mean + sd).tolist()}


def _thinned(n: int, most: int) -> list[int]:
    kept: list[int] = np.unique(np.linspace(0, n - 1, min(n, most)).astype(int)).tolist() if n else []
    return kept
