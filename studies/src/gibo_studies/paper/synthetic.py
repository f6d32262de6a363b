"""The paper's synthetic studies: which methods, with which settings, on which functions (Müller et al. 2021, 4.1, A.5).

A cell is one method on one function. Its result is the regret curve: after each evaluation, the lowest normalised
regret, without noise, of the points that the method had returned as its guess after an update, the start included.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gibo._linalg import Array
from gibo.errors import InputError
from gibo.figures.style import pyplot, save
from gibo.optimizers.ars import ARS
from gibo.optimizers.base import Optimizer
from gibo.optimizers.cma import CMAES
from gibo.optimizers.gibo import GIBO
from gibo.optimizers.moves import GradientStep
from gibo.optimizers.paper import lengthscale_distribution, mean_distance, out_of_model, within_model
from gibo.optimizers.queries import Informative, RandomQueries
from gibo.optimizers.random_search import RandomSearch
from gibo.optimizers.settings import Settings
from gibo.optimizers.vanilla_bo import VanillaBO
from gibo.outcome import Outcome
from gibo.priors import Uniform
from gibo.steps import GradientAscent, GradientScaling
from gibo_studies import report
from gibo_studies.paper.problems import NOISE_SD, GPFunction, gp_function
from gibo_studies.study import Record, iterates
from gibo_studies.styles import line_style

DIMENSIONS = (4, 8, 12, 16, 20, 24, 28, 32, 36)
BOUNDS = (0.0, 1.0)
MARKS = (100, 200, 300)

Maker = Callable[[GPFunction], Optimizer]


def _maker(kind: Callable[..., Optimizer], options: Callable[[GPFunction], Any] = lambda f: {}) -> Maker:
    return lambda f: kind(f.start, bounds=BOUNDS, seed=f.seed, **options(f))


def _ars(f: GPFunction, noise: float, step_size: float = 0.02) -> dict[str, Any]:
    return {"step_size": step_size, "noise": noise, "directions": 1 + f.d // 8}


def _defaults(**changes: Any) -> Maker:
    return _maker(GIBO, lambda f: {"scale": 0.1, "settings": Settings.paper(**changes)})


def _known(**changes: Any) -> Maker:
    """GIBO with the paper's settings for known hyperparameters."""
    return _maker(GIBO, lambda f: {"settings": replace(within_model(f.lengthscale), **changes)})


_VALUES = {"noise": NOISE_SD**2, "mean": 0.0}

# The paper's table 1. The true hyperparameters are known, and the other methods get the lengthscales' mean.
WITHIN_MODEL: dict[str, Maker] = {
    "GIBO": _known(),
    "ARS": _maker(ARS, lambda f: _ars(f, noise=0.1 * 2.0 * mean_distance(f.d))),
    # The best of 50 settings on ten other functions in each of 4, 12, 20 and 36 dimensions, by the mean regret after
    # 100, 200 and 300 values. Of 11 for CMA-ES the paper's was the best that is scaled by the lengthscales.
    "ARS (tuned)": _maker(ARS, lambda f: _ars(f, noise=0.4 * mean_distance(f.d), step_size=0.05)),
    "CMA-ES": _maker(CMAES, lambda f: {"sigma0": 0.3 * mean_distance(f.d)}),
    "Vanilla BO": _maker(VanillaBO, lambda f: {"lengthscale": f.lengthscale, "variance": 1.0, **_VALUES}),
    "Random search": _maker(RandomSearch),
}

# Hyperparameters are fitted under the paper's hyperpriors, and the other methods are not scaled.
OUT_OF_MODEL: dict[str, Maker] = {
    "GIBO": _maker(GIBO, lambda f: {"settings": out_of_model(f.d)}),
    "ARS": _maker(ARS, lambda f: _ars(f, noise=0.01)),
    "ARS (tuned)": _maker(ARS, lambda f: _ars(f, noise=0.1, step_size=0.05)),  # as above, of those not scaled
    "CMA-ES": _maker(CMAES, lambda f: {"sigma0": 0.5, "cap": None}),
    "CMA-ES (tuned)": _maker(CMAES, lambda f: {"sigma0": 0.1}),
    # With fewer values than 5·d the fit settles on the lowest variance, and expected improvement on one corner.
    "Vanilla BO": _maker(
        VanillaBO,
        lambda f: {
            "lengthscale": lengthscale_distribution(f.d),
            "variance": Uniform(0.1, 5.0),
            "fit_from": 5 * f.d,
            **_VALUES,
        },
    ),
    "GIBO, our defaults": _defaults(),
    "Random search": _maker(RandomSearch),
}

_SCALINGS: tuple[GradientScaling, ...] = ("paper", "published", "invariant", "off")
_AXES = Informative(plan_steps=60, basis="axes")
NORMALIZATION: dict[str, Maker] = {
    name: _known(move=GradientStep(GradientAscent(eta=0.25), name)) for name in _SCALINGS
}
SAMPLING = {
    "active": _known(),
    "random": _known(queries=RandomQueries()),
    # With hyperparameters that are not known, as in the out-of-model study.
    "our defaults, active": _defaults(),
    "our defaults, random": _defaults(queries=RandomQueries()),
}
# When an iteration ends: after M = d queries, or when the next one would say, or the last one said, little.
STOPPING = {
    "M = d": _known(),
    "least gain 0.1": _known(queries=replace(_AXES, least_gain=0.1)),
    "least share 0.02": _known(queries=replace(_AXES, least_share=0.02)),
    "least share 0.05": _known(queries=replace(_AXES, least_share=0.05)),
    "M = d/2": _maker(GIBO, lambda f: {"settings": replace(within_model(f.lengthscale), M=max(1, f.d // 2))}),
}

STUDIES: dict[str, dict[str, Maker]] = {
    "within-model": WITHIN_MODEL,
    "out-of-model": OUT_OF_MODEL,
    "ablation-normalisation": NORMALIZATION,
    "ablation-sampling": SAMPLING,
    "stopping": STOPPING,
}


@dataclass(frozen=True)
class SyntheticStudy(report.CurveStudy):
    """A study by name, its methods on `functions` functions in each of the dimensions, `budget` noisy values each."""

    dimensions: tuple[int, ...] = DIMENSIONS
    functions: int = 40
    budget: int = 300
    methods: tuple[str, ...] = ()

    data: ClassVar[str] = "regret.csv"
    columns: ClassVar[report.Columns] = report.Columns(
        arm=("method", "d"), repeat="function", spent="evaluation", value="regret"
    )
    quick: ClassVar[Mapping[str, Any]] = {"dimensions": (4, 8), "functions": 3, "budget": 100}

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(self.dimensions) < 1:
            raise InputError(f"dimensions: must be at least 1, got {min(self.dimensions)}")
        object.__setattr__(self, "dimensions", tuple(sorted(set(self.dimensions))))

    def known_methods(self) -> Collection[str]:
        return STUDIES[self.name]

    def needs(self) -> tuple[str, ...]:
        return ("cma",) if "CMA-ES" in STUDIES[self.name] else ()

    def arms(self) -> list[report.Arm]:
        return [(method, d) for d in self.dimensions for method in self.methods]

    def count(self, arm: report.Arm) -> int:
        return self.functions

    def run_cell(self, cell: Mapping[str, Any]) -> Record:
        """The lowest regret so far after each evaluation, rounded to 6 digits."""
        function = function_of(cell["d"], self.seed_of(cell["function"]))
        curve = regret_curve(STUDIES[self.name][cell["method"]](function), function, self.budget)
        return {"cell": dict(cell), "regret": curve}

    @staticmethod
    def curve(record: Record) -> report.Curve:
        return list(enumerate(record["regret"], start=1))

    def grid(self, arm: report.Arm) -> range:
        return range(1, self.budget + 1)

    def marks(self) -> list[int]:
        return report.reached(MARKS, self.budget)

    def summary(self, curves: report.Curves) -> str:
        head = f"Normalised regret (f* − f)/f*, {self.functions} functions per dimension"
        marks = self.marks()
        rows = [
            (d, method, *(report.spread_text(v, 3) for v in report.sample(each, marks)))
            for (method, d), each in curves.items()
        ]
        return f"{head}: mean ± standard deviation (median).\n\n" + report.table(
            ("d", "method", *report.after(marks)), rows
        )

    @classmethod
    def figures(cls, out: Path) -> list[Path]:
        curves = report.read_curves(out, cls.columns)
        return [
            *regret_figure(curves, out / "regret"),
            *spread_figure(curves, out / "spread"),
            *box_figure(report.read_points(out / "marks.csv", cls.columns), out / "boxes"),
        ]


def regret_curve(optimizer: Optimizer, function: GPFunction, budget: int) -> list[float]:
    """Lowest regret of the method's guesses after each of `budget` evaluations, rounded to 6 digits."""
    rng = np.random.default_rng((function.d, function.seed, 1))
    observed = iterates(optimizer, lambda query, _: Outcome(function.observe(query.x, rng)), budget)
    regrets = {spent: function.regret(x) for spent, x in observed}
    best = regrets[0]
    curve = []
    for n in range(1, budget + 1):
        best = min(best, regrets.get(n, best))
        curve.append(round(best, 6))
    return curve


@functools.lru_cache(maxsize=64)
def function_of(d: int, seed: int) -> GPFunction:
    """The function given by (d, seed), which several cells of a process share."""
    return gp_function(d, seed)


# -- figures ----------------------------------------------------------------------------------------------------------


def regret_figure(curves: dict[report.Arm, dict[str, Array]], path: Path) -> list[Path]:
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


def spread_figure(curves: dict[report.Arm, dict[str, Array]], path: Path) -> list[Path]:
    """Mean and standard deviation of the regret, linear, a panel per dimension (figures 10 and 13 of the paper)."""
    with pyplot() as plt:
        figure, panels = _panels(plt, curves)
        for (method, d), curve in curves.items():
            n, mean, sd, style = curve["evaluation"], curve["mean"], curve["sd"], line_style(method)
            panels[d].plot(n, mean, **style)
            band = {"color": style["color"], "alpha": 0.15, "linewidth": 0, "rasterized": True}
            panels[d].fill_between(n, np.maximum(mean - sd, 0.0), mean + sd, **band)
            panels[d].set_ylim(0.0, 1.3)
        _name_lines(figure, curves, "normalised regret, mean ± standard deviation")
        return save(figure, plt, path)


def box_figure(marks: report.Curves, path: Path) -> list[Path]:
    """Distribution of the regret at the last mark (figures 4, 8 and 12): whiskers 1.5 interquartile ranges."""
    last = max(mark for each in marks.values() for mark, _ in each[0])
    with pyplot() as plt:
        figure, panels = _panels(plt, marks, share=False)
        for d, axes in panels.items():
            regrets = {method: [curve[-1][1] for curve in each] for (method, of), each in marks.items() if of == d}
            marks_of_means = {"marker": "o", "markerfacecolor": "white", "markeredgecolor": "black", "markersize": 4}
            style = {"medianprops": {"color": "black"}, "meanprops": marks_of_means, "flierprops": {"markersize": 3}}
            boxes = axes.boxplot(list(regrets.values()), showmeans=True, widths=0.6, patch_artist=True, **style)
            for box, method in zip(boxes["boxes"], regrets, strict=True):
                box.set_facecolor(line_style(method)["color"])
                box.set_alpha(0.7)
            axes.set_xticks(range(1, len(regrets) + 1), list(regrets), rotation=35, ha="right", fontsize=7)
            axes.set_ylim(bottom=0.0)
        figure.supylabel(f"normalised regret after {last} values", fontsize=10)
        return save(figure, plt, path)


def _panels(plt: Any, arms: Mapping[report.Arm, Any], share: bool = True) -> tuple[Any, dict[int, Any]]:
    """A figure with a panel for each dimension."""
    dimensions = sorted({d for _, d in arms})
    columns = min(3, len(dimensions))
    rows = math.ceil(len(dimensions) / columns)
    options = {"sharex": share, "sharey": share, "squeeze": False, "layout": "constrained"}
    figure, grid = plt.subplots(rows, columns, figsize=(2.0 + 2.6 * columns, 1.0 + 2.2 * rows), **options)
    for axes in grid.ravel()[len(dimensions) :]:
        axes.remove()
    panels = dict(zip(dimensions, grid.ravel(), strict=False))
    for d, axes in panels.items():
        axes.set_title(f"d = {d}", fontsize=9)
    return figure, panels


def _name_lines(figure: Any, arms: Mapping[report.Arm, Any], ylabel: str) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], **line_style(name), label=name) for name in dict.fromkeys(method for method, _ in arms)]
    figure.supylabel(ylabel, fontsize=10)
    figure.supxlabel("evaluations", fontsize=10)
    figure.legend(handles=handles, loc="outside upper center", ncols=min(3, len(handles)))
