"""The figures of the synthetic studies, from saved data alone."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from gibo.figures.style import look, pyplot, save
from gibo.studies.report import StudyData, read_report


def study_figures(out: Path) -> list[Path]:
    """Draw the figures of the study in a folder into it; see the functions below."""
    data = read_report(out)
    return [
        *regret_figure(data, out / "regret"),
        *spread_figure(data, out / "spread"),
        *box_figure(data, out / "boxes"),
    ]


def regret_figure(data: StudyData, path: Path) -> list[Path]:
    """Mean regret over the evaluations, logarithmic, a panel per dimension (figure 3 of the paper)."""
    with pyplot() as plt:
        from matplotlib import ticker

        figure, panels = _panels(plt, data)
        for axes, d in zip(panels, data.dimensions, strict=False):
            for method in data.methods:
                if (method, d) in data.curves:
                    mean = data.curves[method, d].mean
                    axes.semilogy(
                        _count(mean), np.maximum(mean, 1e-4), linestyle=look(method).line, color=look(method).color
                    )
            axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
            axes.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
            axes.yaxis.set_minor_formatter(ticker.NullFormatter())
        _finish(figure, panels, data, "mean normalised regret")
        return save(figure, plt, path)


def spread_figure(data: StudyData, path: Path) -> list[Path]:
    """Mean and standard deviation of the regret, linear, a panel per dimension (figure 8 of the paper)."""
    with pyplot() as plt:
        figure, panels = _panels(plt, data)
        for axes, d in zip(panels, data.dimensions, strict=False):
            for method in data.methods:
                if (method, d) not in data.curves:
                    continue
                mean, sd, _ = data.curves[method, d]
                n, color = _count(mean), look(method).color
                axes.plot(n, mean, linestyle=look(method).line, color=color)
                low, high = np.maximum(mean - sd, 0.0), mean + sd
                axes.fill_between(n, low, high, color=color, alpha=0.15, linewidth=0, rasterized=True)
            axes.set_ylim(0.0, 1.3)
        _finish(figure, panels, data, "normalised regret, mean ± standard deviation")
        return save(figure, plt, path)


def box_figure(data: StudyData, path: Path) -> list[Path]:
    """Distribution of the regret at the last mark (figure 4 of the paper): whiskers 1.5 interquartile ranges."""
    last = max(mark for at in data.marks.values() for mark in at)
    with pyplot() as plt:
        figure, panels = _panels(plt, data, sharey=False)
        for axes, d in zip(panels, data.dimensions, strict=False):
            methods = [method for method in data.methods if last in data.marks.get((method, d), {})]
            boxes = axes.boxplot(
                [data.marks[method, d][last] for method in methods],
                showmeans=True,
                widths=0.6,
                patch_artist=True,
                medianprops={"color": "black"},
                meanprops={"marker": "o", "markerfacecolor": "white", "markeredgecolor": "black", "markersize": 4},
                flierprops={"markersize": 3},
            )
            for box, method in zip(boxes["boxes"], methods, strict=True):
                box.set_facecolor(look(method).color)
                box.set_alpha(0.7)
            axes.set_xticks(range(1, len(methods) + 1), methods, rotation=35, ha="right", fontsize=7)
            axes.set_ylim(bottom=0.0)
        _finish(figure, panels, data, f"normalised regret after {last} values", boxes=True)
        return save(figure, plt, path)


def _count(curve: Any) -> Any:
    return np.arange(1, len(curve) + 1)


def _panels(plt: Any, data: StudyData, sharey: bool = True) -> tuple[Any, list[Any]]:
    columns = min(3, len(data.dimensions))
    rows = math.ceil(len(data.dimensions) / columns)
    figure, grid = plt.subplots(
        rows,
        columns,
        figsize=(2.0 + 2.6 * columns, 1.0 + 2.2 * rows),
        sharex=sharey,
        sharey=sharey,
        squeeze=False,
        layout="constrained",
    )
    panels = list(grid.ravel())
    for axes in panels[len(data.dimensions) :]:
        axes.remove()
    return figure, panels


def _finish(figure: Any, panels: list[Any], data: StudyData, ylabel: str, boxes: bool = False) -> None:
    from matplotlib.lines import Line2D

    for axes, d in zip(panels, data.dimensions, strict=False):
        axes.set_title(f"d = {d}", fontsize=9)
    handles = [
        Line2D([], [], color=look(method).color, linestyle=look(method).line, label=method) for method in data.methods
    ]
    figure.supylabel(ylabel, fontsize=10)
    if not boxes:
        figure.supxlabel("evaluations", fontsize=10)
    if not boxes:  # boxes have their names below them
        figure.legend(handles=handles, loc="outside upper center", ncols=min(3, len(handles)))
