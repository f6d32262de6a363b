"""The figures of the leaderboard, from saved data alone."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gibo._linalg import Array
from gibo.figures.style import pyplot, save
from gibo_studies.leaderboard.study import COLUMNS
from gibo_studies.report import Arm, read_curves
from gibo_studies.styles import line_style

INCHES_PER_NAME = 2.1  # in a legend


def figures(out: Path) -> list[Path]:
    """See the functions below; one of each kind for each scale that was told."""
    curves = read_curves(out, COLUMNS)
    paths: list[Path] = []
    for scale in dict.fromkeys(str(arm[1]) for arm in curves):
        some = {arm: curve for arm, curve in curves.items() if str(arm[1]) == scale}
        suffix = "" if float(scale) == 1.0 else f"-scale-{float(scale):g}"
        paths += learning_figure(some, out / f"learning{suffix}")
        ranks = [row for row in _rows(out / "ranks.csv") if float(row["scale"]) == float(scale)]
        if ranks:
            paths += rank_figure(ranks, out / f"ranks{suffix}")
    return paths + time_figure(list(_rows(out / "times.csv")), out / "times")


def learning_figure(curves: dict[Arm, dict[str, Array]], path: Path) -> list[Path]:
    """Mean share of the possible improvement over the evaluations, a panel per task."""
    tasks = list(dict.fromkeys(str(task) for task, _, _ in curves))
    columns = min(5, len(tasks))
    rows = math.ceil(len(tasks) / columns)
    with pyplot() as plt:
        size = (1.0 + 2.4 * columns, 1.2 + 2.0 * rows)
        figure, grid = plt.subplots(rows, columns, figsize=size, squeeze=False, sharey=True, layout="constrained")
        for axes in grid.ravel()[len(tasks) :]:
            axes.remove()
        panels = dict(zip(tasks, grid.ravel(), strict=False))
        for (task, _, method), curve in curves.items():
            panels[str(task)].plot(curve["evaluations"], curve["mean"], **line_style(str(method)))
        for task, axes in panels.items():
            axes.set_title(task, fontsize=8)
            axes.axhline(0.0, color="black", linewidth=0.5)
            axes.set_ylim(-0.25, 1.05)
        figure.supxlabel("evaluations", fontsize=9)
        figure.supylabel("share of the possible improvement", fontsize=9)
        _legend(figure, dict.fromkeys(str(method) for _, _, method in curves))
        return save(figure, plt, path)


def rank_figure(rows: list[dict[str, str]], path: Path) -> list[Path]:
    """Mean ranks with their intervals, a panel per field of methods; the best is on top."""
    panels = list(dict.fromkeys(row["among"] for row in rows))
    with pyplot() as plt:
        most = max(sum(row["among"] == panel for row in rows) for panel in panels)
        columns = min(3, len(panels))
        lines = math.ceil(len(panels) / columns)
        size = (3.6 * columns, 0.6 + (0.7 + 0.24 * most) * lines)
        figure, grid = plt.subplots(lines, columns, figsize=size, squeeze=False, layout="constrained")
        for axes in grid.ravel()[len(panels) :]:
            axes.remove()
        for among, axes in zip(panels, grid.ravel(), strict=False):
            some = [row for row in rows if row["among"] == among][::-1]
            for i, row in enumerate(some):
                mean, low, high = (float(row[name]) for name in ("mean_rank", "low", "high"))
                color = line_style(row["method"])["color"]
                axes.plot([low, high], [i, i], color=color, linewidth=2.0)
                axes.plot([mean], [i], "o", color=color, markersize=5)
            axes.set_yticks(range(len(some)), [row["method"] for row in some], fontsize=8)
            axes.set_title(f"{among}: {some[0]['tasks']} tasks", fontsize=9)
            axes.set_xlabel("mean rank (95 %)")
        return save(figure, plt, path)


def time_figure(rows: list[dict[str, str]], path: Path) -> list[Path]:
    """A method's own seconds per evaluation."""
    with pyplot() as plt:
        figure, axes = plt.subplots(figsize=(5.5, 0.9 + 0.26 * len(rows)), layout="constrained")
        rows = rows[::-1]
        axes.barh(
            range(len(rows)),
            [float(row["mean"]) for row in rows],
            color=[line_style(r["method"])["color"] for r in rows],
        )
        axes.set_yticks(range(len(rows)), [row["method"] for row in rows], fontsize=8)
        axes.set_xscale("log")
        axes.set_xlabel("the method's own seconds per evaluation")
        return save(figure, plt, path)


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _legend(figure: Any, methods: Iterable[str]) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], **line_style(method), label=method) for method in methods]
    columns = max(1, min(4, len(handles), int(figure.get_figwidth() / INCHES_PER_NAME)))
    figure.legend(handles=handles, loc="outside upper center", ncols=columns, fontsize=8)
