"""The figure of the study of gradients, from saved data alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gibo.figures.style import BLUE, GREEN, GREY, ORANGE, PINK, SKY, LineStyle, pyplot, save
from gibo_studies.paper.gradients import (
    COLUMNS,
    LIKELIHOOD_RATIO,
    LQR_NOISES,
    NONE,
    SYNTHETIC_NOISES,
    TARGET,
    noise_name,
)
from gibo_studies.report import read_curves
from gibo_studies.styles import DOTTED_DASHES

# From the least to the most noise.
_NOISES = (LineStyle(BLUE, "-"), LineStyle(GREEN, "--"), LineStyle(ORANGE, "-."), LineStyle(PINK, DOTTED_DASHES))
LINE_STYLES = {
    NONE: LineStyle(GREY, "-"),
    LIKELIHOOD_RATIO: LineStyle(SKY, ":"),
    **{noise_name(sd): each for sds in (LQR_NOISES, SYNTHETIC_NOISES) for sd, each in zip(sds, _NOISES, strict=False)},
}


def figures(out: Path) -> list[Path]:
    """Median relative cost over the episodes, mean regret over the values; a row per problem, a column per M."""
    curves = read_curves(out, COLUMNS)
    problems = list(dict.fromkeys(problem for problem, _, _ in curves))
    size = (9.0, 3.2 * len(problems))
    with pyplot() as plt:
        figure, grid = plt.subplots(len(problems), 2, figsize=size, squeeze=False, layout="constrained", sharey="row")
        for row, problem in zip(grid, problems, strict=True):
            for axes, M in zip(row, dict.fromkeys(M for each, M, _ in curves if each == problem), strict=True):
                for (each, m, gradients), curve in curves.items():
                    if (each, m) == (problem, M):
                        values = curve["median" if problem == "lqr" else "mean"]
                        style = LINE_STYLES.get(gradients, LineStyle("black", "-"))._asdict()
                        axes.step(curve["spent"], values, where="post", **style, label=gradients)
                _finish(axes, problem, M)
            row[0].set_ylabel("median relative cost" if problem == "lqr" else "mean normalised regret")
            row[1].legend(loc="upper right", title="gradients", fontsize=8)
        return save(figure, plt, out / "gradients")


def _finish(axes: Any, problem: str, M: int) -> None:
    axes.set_yscale("log")
    axes.set_xlim(left=0.0)
    if problem == "lqr":
        axes.axhline(TARGET, color="black", linewidth=0.6)
        axes.set_ylim(5e-3, 2e1)
    axes.set_xlabel("episodes" if problem == "lqr" else "values")
    name = "regulator" if problem == "lqr" else "synthetic functions, d = 20"
    axes.set_title(f"{name}, M = {M}", fontsize=9)
