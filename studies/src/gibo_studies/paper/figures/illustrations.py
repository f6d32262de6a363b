"""The paper's illustrations, from saved data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from gibo.figures.style import BLUE, GREEN, GREY, ORANGE, pyplot, save


def figures(out: Path) -> list[Path]:
    """All of them, as PNG and SVG."""
    data = json.loads((out / "illustrations.json").read_text(encoding="utf-8"))
    return [
        *jacobian_model_figure(data["jacobian_model"], out / "jacobian-model"),
        *sampling_process_figure(data["sampling_process"], out / "sampling-process"),
        *lengthscales_figure(data["lengthscales"], out / "lengthscales"),
    ]


def jacobian_model_figure(data: dict[str, Any], path: Path) -> list[Path]:
    """Figure 1 of the paper: values above, the model of the derivative below."""
    with pyplot() as plt:
        figure, (above, below) = plt.subplots(2, 1, figsize=(5.5, 5), sharex=True, layout="constrained")
        above.plot(data["x"], data["objective"], color=GREY, label="objective")
        _band(above, data["x"], data["mean"], data["sd"])
        above.plot(data["X"], data["y"], "x", color="black", label="observed values")
        above.set_ylabel("J(θ)")
        above.legend(loc="best")
        below.plot(data["x"], data["derivative"], "--", color=GREY, label="true derivative")
        _band(below, data["x"], data["slope_mean"], data["slope_sd"])
        for x in data["X"]:
            below.axvline(x, color="black", linewidth=0.5, alpha=0.4)
        below.set_ylabel("∇J(θ)")
        below.set_xlabel("θ")
        below.legend(loc="best")
        return save(figure, plt, path)


def sampling_process_figure(data: dict[str, Any], path: Path) -> list[Path]:
    """Figure 2 of the paper: four moments of the algorithm, each with J, α and the model of the derivative."""
    with pyplot() as plt:
        figure, grid = plt.subplots(
            3, 4, figsize=(10.5, 5.5), sharex=True, height_ratios=(2, 1, 2), layout="constrained"
        )
        for row in (grid[0], grid[2]):  # each α has its own scale: it falls by orders of magnitude
            for axes in row[1:]:
                axes.sharey(row[0])
        for column, panel in zip(grid.T, data["panels"], strict=True):
            J, alpha, slope = column
            J.set_title(panel["title"], fontsize=9)
            J.plot(data["x"], data["objective"], color=GREY)
            J.plot(panel["X"], panel["y"], "x", color="black")
            alpha.plot(panel["alpha_x"], panel["alpha"], color=GREEN)
            slope.plot(data["x"], data["derivative"], "--", color=GREY)
            _band(slope, data["x"], panel["slope_mean"], panel["slope_sd"])
            for axes in column:
                axes.axvline(panel["t"], color=BLUE, linewidth=1.0)
                if panel["query"] is not None:
                    axes.axvline(panel["query"], color=GREEN, linewidth=1.0, linestyle="--")
                if panel["stepped"] is not None:
                    axes.axvline(panel["stepped"], color=ORANGE, linewidth=1.0, linestyle=":")
            slope.set_xlabel("θ")
        for axes, label in zip(grid[:, 0], ("J(θ)", "α(θ)", "∇J(θ)"), strict=True):
            axes.set_ylabel(label)
        _key(figure)
        return save(figure, plt, path)


def lengthscales_figure(data: dict[str, Any], path: Path) -> list[Path]:
    """Figure 9 of the paper: mean distance of random points in the unit cube, and the lengthscales drawn from it."""
    with pyplot() as plt:
        figure, axes = plt.subplots(figsize=(5.5, 3.5), layout="constrained")
        axes.plot(data["d"], data["upper_bound"], color=BLUE, label="upper bound of Δ(d)")
        axes.plot(data["d"], data["lower_bound"], "--", color=ORANGE, label="lower bound of Δ(d)")
        axes.plot(data["d"], data["scaled_bound"], "-.", color=GREEN, label="upper bound, scaled to Δ(2) = 0.1")
        axes.fill_between(
            data["d"], data["lowest"], data["highest"], color=GREY, alpha=0.4, linewidth=0, label="lengthscales ℓ(d)"
        )
        axes.set_xlabel("dimension d")
        axes.set_ylabel("distance")
        axes.legend(loc="upper left")
        return save(figure, plt, path)


def _band(axes: Any, x: list[float], mean: list[float], sd: list[float]) -> None:
    m, s = np.array(mean), np.array(sd)
    axes.plot(x, m, color=BLUE, label="model, mean ± 2 standard deviations")
    axes.fill_between(x, m - 2.0 * s, m + 2.0 * s, color=BLUE, alpha=0.2, linewidth=0)


def _key(figure: Any) -> None:
    from matplotlib.lines import Line2D

    figure.legend(
        handles=[
            Line2D([], [], color=GREY, label="objective, and its derivative (dashed)"),
            Line2D([], [], color="black", marker="x", linestyle="", label="observed values"),
            Line2D([], [], color=BLUE, label="iterate; model of the derivative"),
            Line2D([], [], color=GREEN, linestyle="--", label="query that maximises α"),
            Line2D([], [], color=ORANGE, linestyle=":", label="iterate after the step"),
        ],
        loc="outside upper center",
        ncols=3,
    )
