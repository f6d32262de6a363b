"""The figure of the study of gradients, from saved data alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gibo.figures.style import BLUE, GREEN, GREY, ORANGE, PINK, SKY, Look, look, pyplot, save
from gibo.studies.gradients import LIKELIHOOD_RATIO, LQR_NOISES, NONE, SYNTHETIC_NOISES, TARGET, noise_name
from gibo.studies.gradients_report import Arm, Band, read_gradient_report

# From the least to the most noise.
_NOISES = (Look(BLUE, "-"), Look(GREEN, "--"), Look(ORANGE, "-."), Look(PINK, (0, (5, 1, 1, 1, 1, 1))))
LOOKS = {
    NONE: Look(GREY, "-"),
    LIKELIHOOD_RATIO: Look(SKY, ":"),
    **{noise_name(sd): each for sds in (LQR_NOISES, SYNTHETIC_NOISES) for sd, each in zip(sds, _NOISES, strict=False)},
}


def gradient_figures(out: Path) -> list[Path]:
    """Median relative cost over the episodes, mean regret over the values; a row per problem, a column per M."""
    data = read_gradient_report(out)
    problems = list(dict.fromkeys(problem for problem, _, _ in data))
    with pyplot() as plt:
        figure, grid = plt.subplots(
            len(problems), 2, figsize=(9.0, 3.2 * len(problems)), squeeze=False, layout="constrained", sharey="row"
        )
        for row, problem in zip(grid, problems, strict=True):
            for axes, M in zip(row, dict.fromkeys(M for each, M, _ in data if each == problem), strict=True):
                _panel(axes, data, problem, M)
            row[0].set_ylabel("median relative cost" if problem == "lqr" else "mean normalised regret")
            row[1].legend(loc="upper right", title="gradients", fontsize=8)
        return save(figure, plt, out / "gradients")


def _panel(axes: Any, data: dict[Arm, Band], problem: str, M: int) -> None:
    for (each, m, gradients), band in data.items():
        if (each, m) == (problem, M):
            style = LOOKS.get(gradients, look(gradients))
            values = band.median if problem == "lqr" else band.mean
            axes.step(band.spent, values, where="post", color=style.color, linestyle=style.line, label=gradients)
    axes.set_yscale("log")
    axes.set_xlim(left=0.0)
    if problem == "lqr":
        axes.axhline(TARGET, color="black", linewidth=0.6)
        axes.set_ylim(5e-3, 2e1)
    axes.set_xlabel("episodes" if problem == "lqr" else "values")
    name = "regulator" if problem == "lqr" else "synthetic functions, d = 20"
    axes.set_title(f"{name}, M = {M}", fontsize=9)
