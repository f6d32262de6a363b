"""The figures of the synthetic studies, from saved data alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gibo._linalg import Array
from gibo.figures.style import pyplot, save
from gibo_studies.paper.synthetic import COLUMNS
from gibo_studies.report import Arm, Curves, read_curves, read_points
from gibo_studies.styles import line_style


def figures(out: Path) -> list[Path]:
    """See the functions below."""
    curves = read_curves(out, COLUMNS)
    return [
        *regret_figure(curves, out / "regret"),
        *spread_figure(curves, out / "spread"),
        *box_figure(read_points(out / "marks.csv", COLUMNS), out / "boxes"),
    ]


def regret_figure(curves: dict[Arm, dict[str, Array]], path: Path) -> list[Path]:
    """Mean regret over the evaluations, logarithmic, a panel per dimension (figures 3, 8 and 11 of the paper)."""
    with pyplot() as plt:
        from matplotlib import ticker

        figure, panels = _panels(plt, curves)
        for (method, d), curve in curves.items():
            panels[d].semilogy(curve["evaluation"], np.maximum(curve["mean"], 1e-4), **line_style(method))
        for axes in panels.values():
            axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
            axes.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
            axes.yaxis.set_minor_formatter(ticker.NullFormatter())
        _name_lines(figure, curves, "mean normalised regret")
        return save(figure, plt, path)


def spread_figure(curves: dict[Arm, dict[str, Array]], path: Path) -> list[Path]:
    """Mean and standard deviation of the regret, linear, a panel per dimension (figures 10 and 13 of the paper)."""
    with pyplot() as plt:
        figure, panels = _panels(plt, curves)
        for (method, d), curve in curves.items():
            n, mean, sd, style = curve["evaluation"], curve["mean"], curve["sd"], line_style(method)
            panels[d].plot(n, mean, **style)
            band = {"color": style["color"], "alpha": 0.15, "linewidth": 0, "rasterized": True}
            panels[d].fill_between(n, np.maximum(mean - sd, 0.0), mean + sd, **band)
        for axes in panels.values():
            axes.set_ylim(0.0, 1.3)
        _name_lines(figure, curves, "normalised regret, mean ± standard deviation")
        return save(figure, plt, path)


def box_figure(marks: Curves, path: Path) -> list[Path]:
    """Distribution of the regret at the last mark (figures 4, 8 and 12): whiskers 1.5 interquartile ranges."""
    last = max(mark for each in marks.values() for mark, _ in each[0])
    with pyplot() as plt:
        figure, panels = _panels(plt, marks, share=False)
        for d, axes in panels.items():
            regrets = {method: [curve[-1][1] for curve in each] for (method, of), each in marks.items() if of == d}
            boxes = axes.boxplot(
                list(regrets.values()),
                showmeans=True,
                widths=0.6,
                patch_artist=True,
                medianprops={"color": "black"},
                meanprops={"marker": "o", "markerfacecolor": "white", "markeredgecolor": "black", "markersize": 4},
                flierprops={"markersize": 3},
            )
            for box, method in zip(boxes["boxes"], regrets, strict=True):
                box.set_facecolor(line_style(method)["color"])
                box.set_alpha(0.7)
            axes.set_xticks(range(1, len(regrets) + 1), list(regrets), rotation=35, ha="right", fontsize=7)
            axes.set_ylim(bottom=0.0)
        figure.supylabel(f"normalised regret after {last} values", fontsize=10)
        return save(figure, plt, path)


def _panels(plt: Any, arms: Mapping[Arm, Any], share: bool = True) -> tuple[Any, dict[int, Any]]:
    """A figure with a panel for each dimension."""
    dimensions = sorted({d for _, d in arms})
    columns = min(3, len(dimensions))
    rows = math.ceil(len(dimensions) / columns)
    size = (2.0 + 2.6 * columns, 1.0 + 2.2 * rows)
    figure, grid = plt.subplots(
        rows, columns, figsize=size, sharex=share, sharey=share, squeeze=False, layout="constrained"
    )
    for axes in grid.ravel()[len(dimensions) :]:
        axes.remove()
    panels = dict(zip(dimensions, grid.ravel(), strict=False))
    for d, axes in panels.items():
        axes.set_title(f"d = {d}", fontsize=9)
    return figure, panels


def _name_lines(figure: Any, arms: Mapping[Arm, Any], ylabel: str) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], **line_style(name), label=name) for name in dict.fromkeys(method for method, _ in arms)]
    figure.supylabel(ylabel, fontsize=10)
    figure.supxlabel("evaluations", fontsize=10)
    figure.legend(handles=handles, loc="outside upper center", ncols=min(3, len(handles)))
