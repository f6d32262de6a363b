"""The paper's illustrations: the Jacobian model, the sampling process, the lengthscale distribution."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gibo._linalg import Array
from gibo._serialize import to_plain
from gibo.acquisition.information import GradientInformation, maximize
from gibo.figures.style import BLUE, GREEN, GREY, ORANGE, pyplot, save
from gibo.gp import GaussianProcess
from gibo.kernels import SquaredExponential
from gibo.optimizers.paper import lengthscale_distribution, mean_distance
from gibo_studies.study import Record, Study

NOISE = 0.05**2


def objective(x: Array) -> Array:
    return np.sin(3.0 * x) + 0.4 * x


def derivative(x: Array) -> Array:
    return 3.0 * np.cos(3.0 * x) + 0.4


def jacobian_model() -> dict[str, Any]:
    """Figure 1 of the paper: what values alone say about the objective and about its derivative."""
    rng = np.random.default_rng(3)
    X = np.array([0.15, 0.6, 1.3, 1.7, 2.6])
    gp = _model().condition(X[:, None], objective(X) + math.sqrt(NOISE) * rng.standard_normal(len(X)))
    grid = np.linspace(0.0, 3.0, 241)
    value = gp.predict(grid[:, None])
    return {
        "x": grid,
        "objective": objective(grid),
        "derivative": derivative(grid),
        "X": X,
        "y": None if gp.observations is None else gp.observations.y,
        "mean": value.mean,
        "sd": np.sqrt(value.variance),
        **_slopes(gp, grid),
    }


def sampling_process() -> dict[str, Any]:
    """Figure 2 of the paper: two queries by Gradient Information, a step, and the next query."""
    rng = np.random.default_rng(0)
    delta, eta, ell = 0.6, 0.3, 0.6
    t = np.array([0.9])
    X: list[float] = [0.35, 0.9]
    y = [float(objective(np.array([x]))[0] + math.sqrt(NOISE) * rng.standard_normal()) for x in X]
    grid = np.linspace(0.0, 2.0, 161)
    panels = []
    for title in ("first query", "second query", "step", "next query"):
        gp = _model(ell).condition(np.array(X)[:, None], y)
        gi = GradientInformation(gp, at=t)
        query, _ = maximize(gi, t - delta, t + delta, rng)
        stepped = t + eta * ell * np.sign(gp.jacobian(t).mean)
        inside = np.abs(grid - t) <= delta
        panels.append(
            {
                "title": title,
                "t": t[0],
                "X": list(X),
                "y": list(y),
                **_slopes(gp, grid),
                "alpha_x": grid[inside],
                "alpha": gi(grid[inside][:, None]),
                "query": None if title == "step" else query[0],
                "stepped": stepped[0] if title == "step" else None,
            }
        )
        if title == "step":
            t = stepped
        new = t if title == "step" else query
        X.append(float(new[0]))
        y.append(float(objective(new)[0] + math.sqrt(NOISE) * rng.standard_normal()))
    return {"x": grid, "objective": objective(grid), "derivative": derivative(grid), "panels": panels}


def _slopes(gp: GaussianProcess, grid: Array) -> dict[str, list[float]]:
    slopes = [gp.jacobian([x]) for x in grid]
    sd = [math.sqrt(slope.covariance[0, 0]) for slope in slopes]
    return {"slope_mean": [float(slope.mean[0]) for slope in slopes], "slope_sd": sd}


def lengthscales() -> dict[str, Any]:
    """Figure 9 of the paper, the lengthscale distribution: bounds on the mean distance, and what is drawn from."""
    d = np.arange(1, 41)
    ranges = [lengthscale_distribution(int(n)) for n in d]
    return {
        "d": d,
        "lower_bound": np.sqrt(d) / 3.0,
        "upper_bound": np.sqrt(d / 6.0) * np.sqrt((1.0 + 2.0 * np.sqrt(1.0 - 3.0 / (5.0 * d))) / 3.0),
        "scaled_bound": [mean_distance(int(n)) for n in d],
        "lowest": [r.lower for r in ranges],
        "highest": [r.upper for r in ranges],
    }


ILLUSTRATIONS: dict[str, Callable[[], dict[str, Any]]] = {
    each.__name__: each for each in (jacobian_model, sampling_process, lengthscales)
}


@dataclass(frozen=True)
class Illustrations(Study):
    """One cell per illustration."""

    def cells(self) -> list[dict[str, Any]]:
        return [{"illustration": name} for name in ILLUSTRATIONS]

    def run_cell(self, cell: Mapping[str, Any]) -> Record:
        return {"cell": dict(cell), "data": to_plain(ILLUSTRATIONS[cell["illustration"]]())}

    def write(self, records: Sequence[Record], out: Path, footnote: str) -> str:
        """All of them, as a file that the figures are drawn from."""
        data = {record["cell"]["illustration"]: record["data"] for record in records}
        (out / "illustrations.json").write_text(json.dumps(data) + "\n", encoding="utf-8")
        return footnote

    @classmethod
    def figures(cls, out: Path) -> list[Path]:
        data = json.loads((out / "illustrations.json").read_text(encoding="utf-8"))
        return [
            *jacobian_model_figure(data["jacobian_model"], out / "jacobian-model"),
            *sampling_process_figure(data["sampling_process"], out / "sampling-process"),
            *lengthscales_figure(data["lengthscales"], out / "lengthscales"),
        ]


def _model(ell: float = 0.5) -> GaussianProcess:
    return GaussianProcess(SquaredExponential(lengthscale=ell, variance=1.0), noise=NOISE)


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

    lines: dict[str, dict[str, Any]] = {
        "objective, and its derivative (dashed)": {"color": GREY},
        "observed values": {"color": "black", "marker": "x", "linestyle": ""},
        "iterate; model of the derivative": {"color": BLUE},
        "query that maximises α": {"color": GREEN, "linestyle": "--"},
        "iterate after the step": {"color": ORANGE, "linestyle": ":"},
    }
    handles = [Line2D([], [], **style, label=label) for label, style in lines.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=3)
