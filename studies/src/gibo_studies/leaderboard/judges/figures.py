"""A judge's figure: the interquartile mean of the shares at each look, with its interval.

The points that were evaluated again are in the tables alone; their lines would hide those of the methods.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gibo.figures.style import pyplot, save
from gibo_studies.engine import read_definition
from gibo_studies.leaderboard.comparison import interquartile_mean
from gibo_studies.leaderboard.judges.judge import read_rows, results_folder
from gibo_studies.leaderboard.judges.tables import by_task, by_trial, looks_of
from gibo_studies.leaderboard.methods import REEVALUATED
from gibo_studies.styles import line_style


def figures(out: Path) -> list[Path]:
    """Draw it from the rows of the judge that a study's folder names."""
    judge = read_definition(out)["judge"]
    folder = results_folder(out)
    rows = read_rows(folder / f"{judge}.csv")
    looks = looks_of(rows)
    with pyplot() as plt:
        figure, axes = plt.subplots(figsize=(7.0, 4.0), layout="constrained")
        for method in dict.fromkeys(row["method"] for row in rows if not row["method"].endswith(REEVALUATED)):
            own = [row for row in rows if row["method"] == method]
            at = [[row for row in own if looks[row["task"]].index(int(row["look"])) == k] for k in range(3)]
            intervals = np.array([interquartile_mean(by_task(by_trial(some))) for some in at if some])
            x = np.arange(1, len(intervals) + 1)
            axes.plot(x, intervals[:, 0], label=method, **line_style(method))
            axes.fill_between(x, intervals[:, 1], intervals[:, 2], color=line_style(method)["color"], alpha=0.12)
        axes.set_xticks([1, 2, 3], [_text(looks, k) for k in range(3)])
        axes.set_xlabel("values")
        axes.set_ylabel("interquartile mean of the share")
        axes.set_title(judge, fontsize=10)
        figure.legend(loc="outside right center", fontsize=7)
        return save(figure, plt, folder / judge)


def _text(looks: dict[str, list[int]], k: int) -> str:
    found = sorted({each[k] for each in looks.values()})
    return str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}"
