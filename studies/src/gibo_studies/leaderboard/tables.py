"""The leaderboard's tables, as Markdown and as CSV."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gibo_studies.leaderboard.methods import METHODS
from gibo_studies.leaderboard.statistics import (
    Interval,
    Run,
    evaluations_to_reach,
    mean_ranks,
    of,
    task_ranks,
)
from gibo_studies.leaderboard.tasks import TASKS
from gibo_studies.report import Curves, More, Table, sample, table

RIVAL = "CMA-ES"


def improvements(curves: Curves, budget: int | None) -> str:
    """A table per task: the mean share of the possible improvement at its marks."""
    text = (
        "Share of the improvement from the start to the best known value, by the value without noise of the "
        "recommended point: mean (lowest) over the trials, in percent.\n"
    )
    for task, scale in dict.fromkeys((task, scale) for task, scale, _ in curves):
        marks = TASKS[task].table_marks(budget)
        rows = [
            (method, *(f"{100 * v.mean():.0f} ({100 * v.min():.0f})" for v in sample(each, marks)), len(each))
            for (name, factor, method), each in curves.items()
            if (name, factor) == (task, scale)
        ]
        kind = f"d = {TASKS[task].d}, noise {TASKS[task].noise}{_told(float(scale))}"
        text += f"\n**{task}** ({kind})\n\n" + table(("method", *(str(mark) for mark in marks), "trials"), rows)
    return text


def all_tables(runs: Sequence[Run]) -> More:
    """What is said of all tasks together."""
    ranks, needed = ranks_table(runs), needed_table(runs)
    files = {"ranks.csv": ranks, "needed.csv": needed, "times.csv": times(runs)}
    header = ["scale", "among", "method", "tasks", "mean rank (95 %)"]
    rows = [(*row[:4], f"{row[4]:.2f} ({row[5]:.2f} to {row[6]:.2f})") for row in ranks.rows]
    text = "\n**Mean rank** of the last recommended points, 1 is best; interval by bootstrap over the tasks.\n\n"
    text += table(header, rows)
    if needed.rows:
        text += f"\n**Evaluations until the mean recommended value is that of {RIVAL} at its end**; — never.\n\n"
        text += table(needed.header, [tuple("—" if cell == "" else cell for cell in row) for row in needed.rows])
    text += "\n**Seconds of the method itself per evaluation**, without the evaluations; mean over all runs.\n\n"
    text += table(files["times.csv"].header, files["times.csv"].rows)
    return More(files, text)


def ranks_table(runs: Sequence[Run]) -> Table:
    """Of all methods, on the tasks that all of them ran, and of those that run everywhere, on all tasks."""
    rows: list[Sequence[Any]] = []
    for scale in sorted({run.scale for run in runs}):
        some = of(runs, scale=scale)
        for among, methods in _fields(some).items():
            ranks = task_ranks(some, methods)
            intervals = mean_ranks(ranks, methods)
            for method in sorted(intervals, key=lambda name: intervals[name].mean):
                rows.append((f"{scale:g}", among, method, len(ranks), *_rounded(intervals[method])))
    return Table(("scale", "among", "method", "tasks", "mean_rank", "low", "high"), rows)


def _fields(runs: Sequence[Run]) -> dict[str, list[str]]:
    """Which methods are ranked together: all but those that apply to a few tasks only; and those run everywhere."""
    ran = [name for name in METHODS if any(run.method == name for run in runs)]
    general = [name for name in ran if all(METHODS[name].applies(TASKS[run.task]) for run in runs)]
    everywhere = [name for name in general if METHODS[name].everywhere]
    fields = {"all": general, "run everywhere": everywhere}
    if set(everywhere) == set(general):
        del fields["run everywhere"]
    return {name: methods for name, methods in fields.items() if len(methods) > 1}


def needed_table(runs: Sequence[Run]) -> Table:
    """Evaluations until a method's mean curve is where the rival's ends."""
    methods = [name for name in METHODS if any(run.method == name for run in runs)]
    rows = []
    for task, scale in dict.fromkeys((run.task, run.scale) for run in runs):
        rival = of(runs, task=task, scale=scale, method=RIVAL)
        if rival:
            here = [of(runs, task=task, scale=scale, method=name) for name in methods]
            found = [evaluations_to_reach(each, rival) if each else math.inf for each in here]
            rows.append((task, f"{scale:g}", *("" if math.isinf(n) else int(n) for n in found)))
    return Table(("task", "scale", *methods), rows)


def times(runs: Sequence[Run]) -> Table:
    """A method's own time."""
    rows = []
    for method in METHODS:
        each = [run.seconds / float(run.spent[-1]) for run in runs if run.method == method]
        if each:
            rows.append((method, f"{np.mean(each):.2g}", f"{np.max(each):.2g}", len(each)))
    return Table(("method", "mean", "slowest run", "runs"), rows)


def _rounded(interval: Interval) -> tuple[float, ...]:
    return tuple(round(value, 4) for value in interval)


def _told(scale: float) -> str:
    return "" if scale == 1.0 else f", told {scale:g} times the right scale"
