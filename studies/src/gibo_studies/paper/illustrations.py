"""The data of the paper's illustrations: the Jacobian model, the sampling process, the lengthscale distribution.

They are saved, so that the figures can be drawn again.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from gibo._linalg import Array
from gibo._serialize import to_plain
from gibo.acquisition.information import GradientInformation
from gibo.acquisition.plan import maximize
from gibo.gp import GaussianProcess
from gibo.kernels import SquaredExponential
from gibo.optimizers.paper import lengthscale_distribution, mean_distance

NOISE = 0.05**2


def objective(x: Array) -> Array:
    """A function of one parameter to look at."""
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
    slopes = [gp.jacobian([x]) for x in grid]
    return {
        "x": grid,
        "objective": objective(grid),
        "derivative": derivative(grid),
        "X": X,
        "y": None if gp.observations is None else gp.observations.y,
        "mean": value.mean,
        "sd": np.sqrt(value.variance),
        "slope_mean": [slope.mean[0] for slope in slopes],
        "slope_sd": [math.sqrt(slope.covariance[0, 0]) for slope in slopes],
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
        slopes = [gp.jacobian([x]) for x in grid]
        here = gp.jacobian(t)
        stepped = t + eta * ell * np.sign(here.mean)
        inside = np.abs(grid - t) <= delta
        panels.append(
            {
                "title": title,
                "t": t[0],
                "X": list(X),
                "y": list(y),
                "slope_mean": [slope.mean[0] for slope in slopes],
                "slope_sd": [math.sqrt(slope.covariance[0, 0]) for slope in slopes],
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


def illustration_data() -> dict[str, Any]:
    """All three, as lists and numbers."""
    plain: dict[str, Any] = to_plain(
        {"jacobian_model": jacobian_model(), "sampling_process": sampling_process(), "lengthscales": lengthscales()}
    )
    return plain


def write_illustrations(out: Path) -> None:
    """All three, as a file that the figures are drawn from."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "illustrations.json").write_text(json.dumps(illustration_data()) + "\n", encoding="utf-8")


def _model(ell: float = 0.5) -> GaussianProcess:
    return GaussianProcess(SquaredExponential(lengthscale=ell, variance=1.0), noise=NOISE)
