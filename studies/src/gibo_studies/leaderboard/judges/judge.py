"""A judge: a list of tasks that a rule made before anything was run on it, and at which evaluations it looks.

Running one is a study, `gibo reproduce judge --judge NAME`. It keeps its cells in a folder of its own and writes

    studies/results/judges/NAME.csv   a row per task, trial, method and look; see `ROW`. Rows of other methods stay
    studies/results/judges/NAME.md    the tables of all methods in that file
    studies/results/judges/log.csv    one more line per run, so that the number of looks at a judge is a fact

A judge must not be used to choose anything.
"""

from __future__ import annotations

import csv
import functools
import importlib
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from gibo.errors import InputError
from gibo_studies.engine import Record
from gibo_studies.leaderboard.comparison import interquartile_mean
from gibo_studies.leaderboard.judges.tables import by_task, by_trial, looks_of, summary
from gibo_studies.leaderboard.methods import METHODS, REEVALUATED, chosen_methods, method_of
from gibo_studies.leaderboard.run import Look, look_at_a_run, prepared
from gibo_studies.leaderboard.task import Task
from gibo_studies.leaderboard.tasks import missing
from gibo_studies.options import PER_SEED, Options, choose

NAME = "judge"
# Columns of a judge's file. `share` is the true value as a share of the way from the start's to the best known one;
# `mean` is the mean of what an evaluation gives, which the interval is of; empty where there is none.
ROW = ("task", "trial", "method", "look", "share", "true", "mean", "believed", "low", "high", "at_start")
LOG = ("date", "commit", "judge", "methods", "cells", "result")
DIGITS = 6


@dataclass(frozen=True)
class Judge:
    """See the module's text.

    Attributes:
        name: on the command line.
        rule: that made the list, in a sentence.
        place: of the function that gives the tasks, as ``module:function``, and its arguments.
        trials: per task.
        needs: modules that it needs.
        extra: of gibo-studies that installs these.
        apart: how the names of the tasks end that have tables of their own, because fewer runs are made of them.
    """

    name: str
    rule: str
    place: str
    trials: int
    arguments: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    extra: str = "judges"
    apart: str = ""

    def tasks(self) -> tuple[Task, ...]:
        """All that are installed."""
        module, name = self.place.split(":")
        found: Iterable[Task] = getattr(importlib.import_module(module), name)(*self.arguments)
        return tuple(task for task in found if not missing(task.needs))


_HERE = "gibo_studies.leaderboard.judges"
JUDGES = {
    judge.name: judge
    for judge in (
        Judge(
            "coco-noisy",
            "all 30 functions of COCO's suite bbob-noisy in 5, 10 and 20 dimensions, instances 1 to 5; "
            "after 5d, 10d and 30d values",
            f"{_HERE}.coco:tasks", 5, ("bbob-noisy",), ("cocoex",), apart=" d20",
        ),
        Judge(
            "coco",
            "all 24 functions of COCO's suite bbob in 5, 10 and 20 dimensions, instances 1 to 5; "
            "after 5d, 10d and 30d values",
            f"{_HERE}.coco:tasks", 5, ("bbob",), ("cocoex",), apart=" d20",
        ),
        Judge(
            "gains",
            "eight plants with two to six gains, 20 trials with other starts; after 10, 20 and 40 values",
            f"{_HERE}.gains:tasks", 20,
        ),
        Judge(
            "simopt",
            "all problems of simoptlib with two or more continuous variables between bounds, 10 trials; "
            "after 5d, 10d and 30d values",
            f"{_HERE}.simopt:tasks", 10, (), ("simopt",), "simopt",
        ),
        Judge(
            "policies",
            "linear policies and perceptrons with 4 to 110 parameters in Gymnasium's classic control and MuJoCo "
            "environments; 10 trials with the parameters in random order; after 50, 100 and 200 episodes",
            f"{_HERE}.policies:tasks", 10, (), ("gymnasium", "mujoco"),
        ),
        Judge(
            "control",
            "linear policies and perceptrons with 4 to 110 parameters in the first task of each domain of dm_control's "
            "benchmarking suite; 10 trials with the parameters in random order; after 50, 100 and 200 episodes of 250 "
            "steps",
            f"{_HERE}.control:tasks", 10, (), ("gymnasium", "dm_control"), "dm-control",
        ),
    )
}  # fmt: skip


@dataclass(frozen=True)
class JudgeStudy(Options):
    """Methods before a judge.

    Attributes:
        judge: its name.
        methods: names, or ``module:Class``.
        tasks: some of its tasks by their names; all by default.
        dimensions: only the tasks with so many parameters; all by default.
        trials: fewer than the judge's own; None for these.
        seed: of the trials.
        folder: where the cells are.
    """

    folder: Path
    judge: str = ""
    methods: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    dimensions: tuple[int, ...] = ()
    trials: int | None = None
    seed: int = 0
    name: str = NAME

    reports_unfinished: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.judge not in JUDGES:
            raise InputError(f"judge: expected one of {', '.join(JUDGES)}, got {self.judge!r}")
        lacking = missing(JUDGES[self.judge].needs)
        if lacking:
            extra = JUDGES[self.judge].extra
            raise InputError(f"judge: {self.judge} needs {', '.join(lacking)}: pip install 'gibo-studies[{extra}]'")
        if not self.methods:
            raise InputError('methods: name those to judge, such as --methods "GIBO;CMA-ES"')
        object.__setattr__(self, "methods", chosen_methods(self.methods))
        lacking = [
            f"{name} (needs {', '.join(missing(METHODS[name].needs))})"
            for name in self.methods
            if missing(METHODS[name].needs)
        ]
        if lacking:
            raise InputError(f"methods: not installed: {'; '.join(lacking)}")
        if self.tasks:
            known = [task.name for task in JUDGES[self.judge].tasks()]
            object.__setattr__(self, "tasks", choose(self.tasks, known, self.judge, "tasks"))
        most = JUDGES[self.judge].trials
        if self.trials is not None and self.trials > most:
            raise InputError(f"trials: {self.judge} has {most}, got {self.trials}")

    def definition(self) -> dict[str, Any]:
        """What a cell's result depends on besides the cell."""
        return {"name": self.name, "judge": self.judge, "seed": self.seed, "gibo": version("gibo")}

    def chosen(self) -> tuple[Task, ...]:
        """The judge's tasks with the chosen names and numbers of parameters."""
        found = [task for task in JUDGES[self.judge].tasks() if not self.tasks or task.name in self.tasks]
        return tuple(task for task in found if not self.dimensions or task.d in self.dimensions)

    def cells(self) -> list[dict[str, Any]]:
        """Trial by trial."""
        trials = JUDGES[self.judge].trials if self.trials is None else self.trials
        return [
            {"task": task.name, "method": method, "trial": trial}
            for trial in range(trials)
            for task in self.chosen()
            for method in self.methods
        ]

    def run_cell(self, cell: Mapping[str, Any]) -> Record:
        """The looks of a run."""
        task, problem = prepared(_named(self.judge, cell["task"]), PER_SEED * self.seed + cell["trial"])
        method = method_of(cell["method"])
        if problem.observe is not None:
            folder = self.folder / "coco" / _file_name(cell["method"]) / f"{_file_name(task.name)}-{cell['trial']}"
            problem.observe(folder.absolute(), cell["method"])
        optimizer = method.make(task, task.scale, PER_SEED * self.seed + cell["trial"])
        looked = look_at_a_run(task, problem, optimizer, [0, *task.marks], reevaluate=method.luckiest)
        return {
            "cell": dict(cell),
            "reference": looked.reference,
            "looks": [_as_plain(look) for look in looked.looks],
            "reevaluated": [_as_plain(look) for look in looked.reevaluated],
            "own_seconds": round(looked.own_seconds, 3),
            "commit": commit(),
        }

    # -- what is written ----------------------------------------------------------------------------------------------

    def write(self, records: Sequence[Record], out: Path, footnote: str) -> str:
        """The compact rows, merged with those of other methods; the tables; and a line in the log."""
        folder = results_folder(out)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.judge}.csv"
        new = [row for record in records for row in rows_of(record)]
        rows = merged(read_rows(path), new)
        _write_rows(path, rows)
        text = summary(self.judge, JUDGES[self.judge].rule, rows, JUDGES[self.judge].apart)
        (folder / f"{self.judge}.md").write_text(f"{text}\n{footnote}\n", encoding="utf-8")
        self._log(folder / "log.csv", records, new)
        return text

    def _log(self, path: Path, records: Sequence[Record], rows: Sequence[Mapping[str, str]]) -> None:
        new = not path.exists()
        with path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            if new:
                writer.writerow(LOG)
            date = time.strftime("%Y-%m-%d %H:%M")
            done = f"{len(records)} of {len(self.cells())}"
            commits = ", ".join(sorted({record["commit"] for record in records}))
            writer.writerow((date, commits, self.judge, "; ".join(self.methods), done, self._in_short(rows)))

    def _in_short(self, rows: Sequence[Mapping[str, str]]) -> str:
        """The interquartile mean of these runs at the last look."""
        looks = looks_of(rows)
        last = [row for row in rows if int(row["look"]) == looks[row["task"]][-1]]
        texts = []
        for method in self.methods:
            shares = by_task(by_trial([row for row in last if row["method"] == method]))
            texts.append(f"{method} {100 * interquartile_mean(shares).mean:.0f} %" if shares else f"{method}: none")
        return "; ".join(texts)


def _named(judge: str, name: str) -> Task:
    return next(task for task in JUDGES[judge].tasks() if task.name == name)


def _file_name(text: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in text)


def _as_plain(look: Look) -> dict[str, Any]:
    return {name: getattr(look, name) for name in Look.__dataclass_fields__}


# -- rows -------------------------------------------------------------------------------------------------------------


def rows_of(record: Record) -> list[dict[str, str]]:
    """The rows of a record, as text; those after no evaluation are left out."""
    cell, rows = record["cell"], []
    names = {"looks": cell["method"], "reevaluated": f"{cell['method']}{REEVALUATED}"}
    start = float(record["looks"][0]["truth"])
    for kind, method in names.items():
        for look in record[kind]:
            if look["spent"]:
                share = (look["truth"] - start) / (record["reference"] - start)
                low, high = look["interval"] or (None, None)
                numbers = (share, look["truth"], look["mean"], look["believed"], low, high)
                entries = (
                    cell["task"],
                    cell["trial"],
                    method,
                    look["spent"],
                    *map(_text, numbers),
                    int(look["at_start"]),
                )
                rows.append(dict(zip(ROW, map(str, entries), strict=True)))
    return rows


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.{DIGITS}g}"


def merged(before: Iterable[dict[str, str]], new: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    """New rows replace those of the same task, trial, method and look."""
    rows = {(row["task"], int(row["trial"]), row["method"], int(row["look"])): row for row in (*before, *new)}
    return [rows[key] for key in sorted(rows)]


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a judge's file; none if there is none."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _write_rows(path: Path, rows: Iterable[Mapping[str, str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ROW, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def results_folder(out: Path) -> Path:
    """`studies/results/judges` in a copy of the repository; the study's own folder elsewhere."""
    found = Path(__file__).resolve().parents[4] / "results"
    return found / "judges" if found.is_dir() else out


@functools.lru_cache(maxsize=1)
def commit() -> str:
    """Of the code that ran; with a plus if it was changed since."""
    here = Path(__file__).resolve().parent

    def git(*words: str) -> str:
        return subprocess.run(("git", "-C", str(here), *words), capture_output=True, text=True, check=False).stdout

    name = git("rev-parse", "--short", "HEAD").strip() or "unknown"
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ":/src", ":/studies/src")
    return f"{name}+" if changed else name
