"""The figure of the linear quadratic regulator, from saved data alone."""

from __future__ import annotations

from pathlib import Path

from gibo.figures.style import pyplot, save
from gibo_studies.paper.lqr import COLUMNS
from gibo_studies.report import read_curves
from gibo_studies.styles import line_style


def figures(out: Path) -> list[Path]:
    """Share of stable controllers, and relative cost of the stable ones: median, 2nd to 98th percentile (figure 5)."""
    curves = read_curves(out, COLUMNS)
    with pyplot() as plt:
        figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.6), layout="constrained")
        for (method,), curve in curves.items():
            steps, style = curve["steps"], line_style(method)
            left.step(steps, curve["stable"], where="post", **style, label=method)
            right.step(steps, curve["median"], where="post", **style)
            band = {"step": "post", "color": style["color"], "alpha": 0.1, "linewidth": 0}
            right.fill_between(steps, curve["p2"], curve["p98"], **band)
        left.set_ylim(0.0, 1.03)
        left.set_ylabel("frequency of stable controllers")
        right.set_yscale("log")
        right.set_ylim(1e-3, 1e1)
        right.set_ylabel("relative cost (median, 2 to 98 %)")
        for axes in (left, right):
            axes.set_xlim(0.0, max(curve["steps"][-1] for curve in curves.values()))
            axes.set_xlabel("steps of the environment")
        figure.legend(loc="outside upper center", ncols=3)
        return save(figure, plt, out / "controllers")
