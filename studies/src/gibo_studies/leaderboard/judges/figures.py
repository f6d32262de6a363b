"""A judge's figure: the interquartile mean of the shares at each look, with the interval of the first method alone.

The other intervals and the points that were evaluated again are in the tables; they would hide the lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gibo.figures.style import pyplot, save
from gibo_studies.engine import read_definition
from gibo_studies.leaderboard.comparison import interquartile_mean
from gibo_studies.leaderboard.judges.judge import JUDGES, read_rows, results_folder
from gibo_studies.leaderboard.judges.tables import Row, by_task, by_trial, in_order, looks_of, parts
from gibo_studies.leaderboard.methods import REEVALUATED
from gibo_studies.styles import line_style


def figures(out: Path) -> list[Path]:
    """Draw it from the rows of the judge that a study's folder names."""
    judge = read_definition(out)["judge"]
    folder = results_folder(out)
    rows = [row for row in read_rows(folder / f"{judge}.csv") if not row["method"].endswith(REEVALUATED)]
    panels = parts(rows, JUDGES[judge].apart)
    with pyplot() as plt:
        size = (3.5 + 3.5 * len(panels), 4.0)
        figure, every_axes = plt.subplots(1, len(panels), figsize=size, layout="constrained", squeeze=False)
        for axes, (part, some) in zip(every_axes[0], panels, strict=True):
            _draw(axes, some)
            axes.set_title(f"{judge}, {part}" if part else judge, fontsize=10)
        lines = {line.get_label(): line for axes in every_axes[0] for line in axes.get_lines()}
        names = in_order(rows)
        figure.legend([lines[name] for name in names], names, loc="outside right center", fontsize=7)
        return save(figure, plt, folder / judge)


def _draw(axes: Any, rows: Sequence[Row]) -> None:
    looks = looks_of(rows)
    first, *_ = methods = in_order(rows)
    for method in methods:
        own = [row for row in rows if row["method"] == method]
        at = [[row for row in own if looks[row["task"]].index(int(row["look"])) == k] for k in range(3)]
        intervals = np.array([interquartile_mean(by_task(by_trial(some))) for some in at if some])
        x = np.arange(1, len(intervals) + 1)
        axes.plot(x, intervals[:, 0], label=method, **line_style(method))
        if method == first:
            axes.fill_between(x, intervals[:, 1], intervals[:, 2], color=line_style(method)["color"], alpha=0.12)
    axes.set_xticks([1, 2, 3], [_text(looks, k) for k in range(3)])
    axes.set_xlabel("values")
    axes.set_ylabel("interquartile mean of the share")


def _text(looks: dict[str, list[int]], k: int) -> str:
    found = sorted({each[k] for each in looks.values()})
    return str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}"
