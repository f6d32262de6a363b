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
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from gibo.errors import InputError
from gibo_studies.engine import read_definition
from gibo_studies.leaderboard.judges import coco, gains, policies, simopt, tables
from gibo_studies.leaderboard.methods import METHODS, REEVALUATED, chosen_methods, method_of
from gibo_studies.leaderboard.run import Look, look_at_a_run
from gibo_studies.leaderboard.task import Task, prepared
from gibo_studies.report import read_csv, write_csv
from gibo_studies.study import Record, Study, choose, missing, results_folder

# Columns of a judge's file. `share` is the true value as a share of the way from the start's to the best known one;
# `mean` is the mean of what an evaluation gives, which the interval is of; empty where there is none.
ROW = ("task", "trial", "method", "look", "share", "true", "mean", "believed", "low", "high", "at_start")
LOG = ("date", "commit", "judge", "methods", "cells", "result")
DIGITS = 6


@dataclass(frozen=True)
class Judge:
    """See the module's text."""

    rule: str  # that made the list, in a sentence
    tasks: Callable[[], tuple[Task, ...]]
    trials: int  # per task
    needs: tuple[str, ...] = ()  # modules
    extra: str = "judges"  # of gibo-studies that installs these
    apart: str = ""  # how the names of the tasks end that have tables of their own, because fewer runs are made of them


JUDGES = {
    "coco-noisy": Judge(
        "all 30 functions of COCO's suite bbob-noisy in 5, 10 and 20 dimensions, instances 1 to 5; "
        "after 5d, 10d and 30d values",
        functools.partial(coco.tasks, "bbob-noisy"), 5, ("cocoex",), apart=" d20",
    ),
    "coco": Judge(
        "all 24 functions of COCO's suite bbob in 5, 10 and 20 dimensions, instances 1 to 5; "
        "after 5d, 10d and 30d values",
        functools.partial(coco.tasks, "bbob"), 5, ("cocoex",), apart=" d20",
    ),
    "gains": Judge(
        "eight plants with two to six gains, 20 trials with other starts; after 10, 20 and 40 values", gains.tasks, 20
    ),
    "simopt": Judge(
        "all problems of simoptlib with two or more continuous variables between bounds, 10 trials; "
        "after 5d, 10d and 30d values",
        simopt.tasks, 10, ("simopt",), "simopt",
    ),
    "policies": Judge(
        "linear policies and perceptrons with 4 to 110 parameters in Gymnasium's classic control and MuJoCo "
        "environments; 10 trials with the parameters in random order; after 50, 100 and 200 episodes",
        functools.partial(policies.tasks, policies.GYMNASIUM), 10, ("gymnasium", "mujoco"),
    ),
    "control": Judge(
        "linear policies and perceptrons with 4 to 110 parameters in the first task of each domain of dm_control's "
        "benchmarking suite; 10 trials with the parameters in random order; after 50, 100 and 200 episodes of 250 "
        "steps",
        functools.partial(policies.tasks, policies.DM_CONTROL, policies.from_dm_control), 10,
        ("gymnasium", "dm_control"), "dm-control",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class JudgeStudy(Study):
    folder: Path  # where the cells are
    judge: str = ""
    methods: tuple[str, ...] = ()  # names, or ``module:Class``
    tasks: tuple[str, ...] = ()  # some of its tasks by their names; all by default
    dimensions: tuple[int, ...] = ()  # only the tasks with so many parameters; all by default
    trials: int | None = None  # fewer than the judge's own; None for these

    reports_unfinished: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.judge not in JUDGES:
            raise InputError(f"judge: expected one of {', '.join(JUDGES)}, got {self.judge!r}")
        judge = JUDGES[self.judge]
        if lacking := missing(judge.needs):
            install = f"pip install 'gibo-studies[{judge.extra}]'"
            raise InputError(f"judge: {self.judge} needs {', '.join(lacking)}: {install}")
        if not self.methods:
            raise InputError('methods: name those to judge, such as --methods "GIBO;CMA-ES"')
        object.__setattr__(self, "methods", chosen_methods(self.methods))
        without = {name: ", ".join(missing(METHODS[name].needs)) for name in self.methods}
        if lacking := [f"{name} (needs {modules})" for name, modules in without.items() if modules]:
            raise InputError(f"methods: not installed: {'; '.join(lacking)}")
        if self.tasks:
            known = [task.name for task in judge.tasks()]
            object.__setattr__(self, "tasks", choose(self.tasks, known, self.judge, "tasks"))
        if self.trials is not None and self.trials > judge.trials:
            raise InputError(f"trials: {self.judge} has {judge.trials}, got {self.trials}")

    def definition(self) -> dict[str, Any]:
        found = super().definition()
        return {name: found[name] for name in ("name", "judge", "seed", "gibo")}

    def cells(self) -> list[dict[str, Any]]:
        chosen = [
            task.name
            for task in JUDGES[self.judge].tasks()
            if (not self.tasks or task.name in self.tasks) and (not self.dimensions or task.d in self.dimensions)
        ]
        return [
            {"task": task, "method": method, "trial": trial}
            for trial in range(self.trials or JUDGES[self.judge].trials)
            for task in chosen
            for method in self.methods
        ]

    def run_cell(self, cell: Mapping[str, Any]) -> Record:
        number = self.seed_of(cell["trial"])
        known = {task.name: task for task in JUDGES[self.judge].tasks()}
        task, problem = prepared(known[cell["task"]], number)
        method = method_of(cell["method"])
        if problem.observe is not None:
            folder = self.folder / "coco" / _file_name(cell["method"]) / f"{_file_name(task.name)}-{cell['trial']}"
            problem.observe(folder.absolute(), cell["method"])
        optimizer = method.make(task, task.scale, number)
        looked = look_at_a_run(task, problem, optimizer, task.marks, reevaluate=method.luckiest)
        rows = [_row(cell, cell["method"], look) for look in looked.looks]
        rows += [_row(cell, f"{cell['method']}{REEVALUATED}", look) for look in looked.reevaluated]
        return {"cell": dict(cell), "rows": rows, "commit": commit()}

    # -- what is written ----------------------------------------------------------------------------------------------

    def write(self, records: Sequence[Record], out: Path, footnote: str) -> str:
        """The rows, merged with those of other methods; the tables; and a line in the log."""
        folder, judge = results_folder("judges", out), JUDGES[self.judge]
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.judge}.csv"
        new = [row for record in records for row in record["rows"]]
        rows = merged(read_rows(path), new)
        write_csv(path, ROW, ([row[name] for name in ROW] for row in rows))
        text = tables.summary(self.judge, judge.rule, rows, judge.apart)
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
            result = tables.in_short(rows, self.methods)
            writer.writerow((date, commits, self.judge, "; ".join(self.methods), done, result))

    @classmethod
    def figures(cls, out: Path) -> list[Path]:
        """From the rows of the judge that a study's folder names; without the points that were evaluated again."""
        name, folder = read_definition(out)["judge"], results_folder("judges", out)
        rows = [row for row in read_rows(folder / f"{name}.csv") if not row["method"].endswith(REEVALUATED)]
        return tables.figure(name, rows, JUDGES[name].apart, folder / name)


def _file_name(text: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in text)


def _row(cell: Mapping[str, Any], method: str, look: Look) -> dict[str, str]:
    low, high = look.interval or (None, None)
    numbers = (look.share, look.truth, look.mean, look.believed, low, high)
    texts = ["" if value is None else f"{value:.{DIGITS}g}" for value in numbers]
    entries = (cell["task"], cell["trial"], method, look.spent, *texts, int(look.at_start))
    return dict(zip(ROW, map(str, entries), strict=True))


def merged(before: Iterable[dict[str, str]], new: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    """New rows replace those of the same task, trial, method and look."""
    rows = {(row["task"], int(row["trial"]), row["method"], int(row["look"])): row for row in (*before, *new)}
    return [rows[key] for key in sorted(rows)]


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a judge's file; none if there is none."""
    return read_csv(path) if path.exists() else []


@functools.lru_cache(maxsize=1)
def commit() -> str:
    """Of the code that ran; with a plus if it was changed since."""
    here = Path(__file__).resolve().parent

    def git(*words: str) -> str:
        return subprocess.run(("git", "-C", str(here), *words), capture_output=True, text=True, check=False).stdout

    name = git("rev-parse", "--short", "HEAD").strip() or "unknown"
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ":/src", ":/studies/src")
    return f"{name}+" if changed else name
