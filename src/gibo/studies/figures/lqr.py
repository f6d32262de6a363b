"""The figure of the linear quadratic regulator, from saved data alone."""

from __future__ import annotations

from pathlib import Path

from gibo.figures.style import BLUE, GREEN, GREY, ORANGE, PINK, SKY, Look, look, pyplot, save
from gibo.studies.lqr_report import read_lqr_report

LOOKS = {
    "GIBO (published)": Look(BLUE, "-"),
    "GIBO (paper)": Look(GREY, ":"),
    "GIBO (decaying)": Look(SKY, "-"),
    "ARS": Look(ORANGE, "--"),
    "LSPI": Look(GREEN, "-."),
    "LSPI (average cost)": Look(PINK, (0, (5, 1, 1, 1, 1, 1))),
}


def lqr_figures(out: Path) -> list[Path]:
    """Share of stable controllers, and relative cost of the stable ones: median, 2nd to 98th percentile."""
    data = read_lqr_report(out)
    with pyplot() as plt:
        figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.6), layout="constrained")
        for method, curve in data.items():
            own = LOOKS.get(method, look(method))
            color, line = own.color, own.line
            left.step(curve.steps, curve.stable, where="post", color=color, linestyle=line, label=method)
            right.step(curve.steps, curve.median, where="post", color=color, linestyle=line)
            right.fill_between(curve.steps, curve.low, curve.high, step="post", color=color, alpha=0.1, linewidth=0)
        left.set_ylim(0.0, 1.03)
        left.set_ylabel("frequency of stable controllers")
        right.set_yscale("log")
        right.set_ylim(1e-3, 1e1)
        right.set_ylabel("relative cost (median, 2 to 98 %)")
        for axes in (left, right):
            axes.set_xlim(0.0, max(curve.steps[-1] for curve in data.values()))
            axes.set_xlabel("steps of the environment")
        figure.legend(loc="outside upper center", ncols=3)
        return save(figure, plt, out / "controllers")
