"""The leaderboard as a study: which cells there are, what running one gives, how all of them are reported.

A cell is one method on one instance of a task, told a scale that is the right one times a factor. Every method is run
by `gibo.run`; at some of its evaluations it is looked at: the value without noise of the point it recommends then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from gibo.errors import InputError
from gibo_studies.engine import Record
from gibo_studies.leaderboard import tables
from gibo_studies.leaderboard.methods import METHODS, chosen_methods, method_of
from gibo_studies.leaderboard.run import look_at_a_run
from gibo_studies.leaderboard.statistics import Run
from gibo_studies.leaderboard.task import Task
from gibo_studies.leaderboard.tasks import TASKS, chosen_tasks, missing, task_of
from gibo_studies.options import PER_SEED, Options
from gibo_studies.report import Columns, Curve, Curves, More, Report, record_of

NAME = "leaderboard"
COLUMNS = Columns(arm=("task", "scale", "method"), repeat="trial", spent="evaluations", value="improvement")


@dataclass(frozen=True)
class Leaderboard(Options):
    """Tasks × scales × methods × trials.

    Which of them are run is no part of what the study is: the folder of a few is continued with more.

    Attributes:
        tasks: names, or "cheap"; all by default.
        methods: names; by default all on the cheap tasks, and on the others those that run everywhere. Tasks and
            methods of a user's own are named by ``module:Name``.
        scales: factors on the right scale.
        trials: per task, scale and method; None for the task's own number.
        budget: cuts the tasks' budgets off; None for their own.
        seed: of the trials.
    """

    tasks: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    scales: tuple[float, ...] = (1.0,)
    trials: int | None = None
    budget: int | None = None
    seed: int = 0
    name: str = NAME

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.methods:
            object.__setattr__(self, "methods", chosen_methods(self.methods))
        object.__setattr__(self, "tasks", chosen_tasks(self.tasks))
        if not self.scales or not all(np.isfinite(factor) and factor > 0 for factor in self.scales):
            raise InputError(f"scales: expected positive factors on the right scale, got {self.scales}")
        object.__setattr__(self, "scales", tuple(sorted({float(factor) for factor in self.scales})))

    def definition(self) -> dict[str, Any]:
        """What a cell's result depends on besides the cell."""
        return {"name": self.name, "budget": self.budget, "seed": self.seed, "gibo": version("gibo")}

    # -- cells --------------------------------------------------------------------------------------------------------

    def cells(self) -> list[dict[str, Any]]:
        """Trial by trial, and in each the cheap tasks first; what is not installed is left out."""
        chosen = [TASKS[name] for name in self.tasks if not missing(TASKS[name].needs)]
        trials = {task.name: task.trials if self.trials is None else self.trials for task in chosen}
        return [
            {"task": task.name, "scale": factor, "method": method, "trial": trial}
            for trial in range(max(trials.values(), default=0))
            for task in sorted(chosen, key=lambda task: task.expensive)
            if trial < trials[task.name]
            for factor in self.scales
            for method in self.methods_of(task)
        ]

    def methods_of(self, task: Task) -> list[str]:
        """Those that run on a task."""
        named = self.methods or [name for name, each in METHODS.items() if each.everywhere or not task.expensive]
        return [name for name in named if METHODS[name].applies(task) and not missing(METHODS[name].needs)]

    def left_out(self) -> list[str]:
        """Tasks and methods that were asked for, and what they would need."""
        lacking = {name: missing(TASKS[name].needs) for name in self.tasks}
        lacking |= {name: missing(METHODS[name].needs) for name in self.methods or METHODS}
        return [f"{name} (needs {', '.join(modules)})" for name, modules in lacking.items() if modules]

    def run_cell(self, cell: Mapping[str, Any]) -> Record:
        """What the recommended point was worth along the run, and what the run took."""
        task = task_of(cell["task"])
        seed = PER_SEED * self.seed + cell["trial"]
        optimizer = method_of(cell["method"]).make(task, task.scale * cell["scale"], seed)
        looked = look_at_a_run(task, task.make(seed), optimizer, task.looks(self.budget))
        return {
            **record_of(cell, [(look.spent, look.truth) for look in looked.looks]),
            "reference": looked.reference,
            "believed": [look.believed for look in looked.looks],
            "own_seconds": round(looked.own_seconds, 3),
            "interval_held": looked.looks[-1].interval_held,
        }

    # -- the report ---------------------------------------------------------------------------------------------------

    def report(self) -> Report:
        """Shares of the possible improvement."""
        return Report(
            "improvement.csv",
            COLUMNS,
            grid=lambda arm: TASKS[arm[0]].looks(self.budget),
            summary=self._summary,
            curve=improvement,
            more=self._more,
        )

    def _summary(self, curves: Curves) -> str:
        note = f"Left out, because not installed: {'; '.join(self.left_out())}.\n\n" if self.left_out() else ""
        return note + tables.improvements(curves, self.budget)

    def _more(self, records: Sequence[Record]) -> More:
        return tables.all_tables([run_of(record) for record in records])


def improvement(record: Record) -> Curve:
    """A record's curve as shares of the way from the start's value to the best known one."""
    start = float(record["curve"][0][1])
    return [(int(n), (float(value) - start) / (float(record["reference"]) - start)) for n, value in record["curve"]]


def run_of(record: Record) -> Run:
    """A record as a run."""
    spent, share = np.array(improvement(record), dtype=np.float64).T
    cell = record["cell"]
    return Run(cell["task"], cell["scale"], cell["method"], cell["trial"], spent, share, record["own_seconds"])
