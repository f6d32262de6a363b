"""What observations of the gradient are worth (Müller et al. 2021, algorithm 1, line 10).

Two problems, and on each GIBO with the settings of its study, with and without gradients at the iterates:

lqr          The linear quadratic regulator. A gradient is the exact one of the expected return, with noise, or the
             likelihood-ratio estimate from episodes with noise on the actions, whose episodes count like all others.
synthetic    Functions of the within-model comparison in 20 dimensions, with their exact gradient and noise.

M queries per iteration are the study's own, or fewer: with a gradient for nothing there is less to ask. A cell is one
trial, or one function. Its result is a curve: episodes or values spent, and the relative cost of the gain that the
method held then (infinite if it is unstable), or the lowest normalised regret of its guesses so far.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gibo._linalg import Array, single_thread
from gibo.figures.style import BLUE, GREEN, GREY, ORANGE, PINK, SKY, LineStyle, pyplot, save
from gibo.optimizers.gibo import GIBO
from gibo.optimizers.paper import within_model
from gibo.outcome import Outcome
from gibo_studies import report
from gibo_studies.paper.control.lqr import LQR
from gibo_studies.paper.control.oracle import LQRObjective
from gibo_studies.paper.lqr import FIXED_MEAN, trial_seeds
from gibo_studies.paper.problems import GPFunction
from gibo_studies.paper.synthetic import BOUNDS, function_of
from gibo_studies.study import Record, iterates
from gibo_studies.styles import DOTTED_DASHES

NONE, LIKELIHOOD_RATIO = "none", "likelihood ratio"

# Standard deviations of the noise on each entry of a gradient. A gradient of the regulator's return has entries of
# about 100 where steps are made and 10 near the optimum, one of the synthetic functions entries of about 1.
LQR_NOISES = (1.0, 10.0, 100.0)
SYNTHETIC_NOISES = (0.001, 0.5, 5.0, 1000.0)  # exact, worth many queries, worth little, worth nothing

# Likelihood ratio: of the noise on the actions, and episodes per gradient.
ACTION_NOISE, EPISODES = 0.3, 8

D = 20
TARGET = 0.05  # relative cost
MARKS = {"lqr": (20, 40, 60, 90, 130), "synthetic": (100, 200, 300)}


def noise_name(sd: float) -> str:
    """How tables and figures name gradients with this noise."""
    return f"noise {sd:g}"


# From the least to the most noise.
_NOISES = (LineStyle(BLUE, "-"), LineStyle(GREEN, "--"), LineStyle(ORANGE, "-."), LineStyle(PINK, DOTTED_DASHES))
LINE_STYLES = {
    NONE: LineStyle(GREY, "-"),
    LIKELIHOOD_RATIO: LineStyle(SKY, ":"),
    **{noise_name(sd): each for sds in (LQR_NOISES, SYNTHETIC_NOISES) for sd, each in zip(sds, _NOISES, strict=False)},
}

# By problem: the numbers M of queries, and the gradients that are told.
ARMS: dict[str, tuple[tuple[int, int], tuple[str, ...]]] = {
    "lqr": ((9, 3), (NONE, *map(noise_name, LQR_NOISES), LIKELIHOOD_RATIO)),
    "synthetic": ((D, 5), (NONE, *map(noise_name, SYNTHETIC_NOISES))),
}


@dataclass(frozen=True)
class GradientStudy(report.CurveStudy):
    """Each arm of `ARMS`: trials of the regulator and functions of the within-model comparison."""

    trials: int = 20
    episodes: int = 130  # per trial
    functions: int = 20
    budget: int = 300  # values per function

    data: ClassVar[str] = "gradients.csv"
    columns: ClassVar[report.Columns] = report.Columns(
        arm=("problem", "M", "gradients"), repeat="trial", spent="spent", value="value"
    )
    quick: ClassVar[Mapping[str, Any]] = {"trials": 2, "episodes": 40, "functions": 2, "budget": 60}

    def needs(self) -> tuple[str, ...]:
        return ("gymnasium",)

    def arms(self) -> list[report.Arm]:
        return [(problem, *arm) for problem, numbers in ARMS.items() for arm in itertools.product(*numbers)]

    def count(self, arm: report.Arm) -> int:
        return self.trials if arm[0] == "lqr" else self.functions

    def run_cell(self, cell: Mapping[str, Any]) -> Record:
        """What was spent, and the relative cost or the regret then; None for an unstable gain."""
        number = self.seed_of(cell["trial"])
        if cell["problem"] == "lqr":
            curve = lqr_curve(cell["M"], cell["gradients"], number, self.episodes)
        else:
            curve = regret_curve(cell["M"], cell["gradients"], function_of(D, number), self.budget)
        return report.record_of(cell, curve)

    def grid(self, arm: report.Arm) -> range:
        return report.checkpoints(self.episodes if arm[0] == "lqr" else self.budget)

    def summary(self, curves: report.Curves) -> str:
        return f"{self._regulator(curves)}\n{self._synthetic(curves)}"

    def _regulator(self, curves: report.Curves) -> str:
        marks = report.reached(MARKS["lqr"], self.episodes)
        rows = []
        for (problem, M, gradients), each in curves.items():
            if problem == "lqr":
                until = episodes_until(each, TARGET)
                medians = np.median(report.sample(each, marks), axis=1)
                cells = [f"{value:.3f}" if math.isfinite(value) else "unstable" for value in medians]
                rows.append((M, gradients, "—" if until is None else until, *cells))
        head = (
            f"**Regulator.** Episodes until the median relative cost (J − J*)/J* over {self.trials} trials is below "
            f"{TARGET}, and the median after so many episodes. Those of a likelihood-ratio estimate are counted; the "
            "noise is the standard deviation on each entry of the exact gradient.\n\n"
        )
        return head + report.table(("M", "gradients", f"episodes until {TARGET}", *report.after(marks)), rows)

    def _synthetic(self, curves: report.Curves) -> str:
        marks = report.reached(MARKS["synthetic"], self.budget)
        rows = []
        for (problem, M, gradients), each in curves.items():
            if problem == "synthetic":
                pairs = zip(report.sample(each, marks), report.sample(curves[problem, M, NONE], marks), strict=True)
                cells = [_mean_and_difference(values, None if gradients == NONE else those) for values, those in pairs]
                rows.append((M, gradients, *cells))
        head = (
            f"**Synthetic functions.** Normalised regret (f* − f)/f* of {self.functions} functions of {D} dimensions "
            "after so many values: mean; and in brackets the mean difference from the run without gradients on the "
            "same function, ± its standard error. The noise is the standard deviation on each entry of the gradient."
            "\n\n"
        )
        return head + report.table(("M", "gradients", *report.after(marks)), rows)

    @classmethod
    def figures(cls, out: Path) -> list[Path]:
        """Median relative cost over the episodes, mean regret over the values; a row per problem, a column per M."""
        curves = report.read_curves(out, cls.columns)
        with pyplot() as plt:
            figure, grid = plt.subplots(2, 2, figsize=(9.0, 6.4), layout="constrained", sharey="row")
            for row, problem in zip(grid, ARMS, strict=True):
                for axes, M in zip(row, ARMS[problem][0], strict=True):
                    for gradients in ARMS[problem][1]:
                        curve, style = curves[problem, M, gradients], LINE_STYLES[gradients]._asdict()
                        values = curve["median" if problem == "lqr" else "mean"]
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


# -- a cell -----------------------------------------------------------------------------------------------------------


def lqr_curve(M: int, gradients: str, trial: int, budget: int) -> report.Curve:
    """Episodes spent, and the relative cost of the gain then.

    The episode that is run after so many others has the same seed in every arm of a trial.
    """
    lqr = LQR.paper()
    own, *seeds = trial_seeds(trial, budget)
    optimizer = GIBO(np.zeros(lqr.p * lqr.n), seed=own, settings=replace(FIXED_MEAN, M=M))
    with _objective(lqr, gradients) as objective, single_thread():

        def evaluate(query: Any, spent: int) -> Outcome:
            outcome: Outcome = objective(query.x, seed=seeds[spent], kind=query.kind)
            return outcome

        return [(spent, lqr.relative_cost(K)) for spent, K in iterates(optimizer, evaluate, budget)]


def _objective(lqr: LQR, gradients: str) -> AbstractContextManager[Any]:
    if gradients != LIKELIHOOD_RATIO:
        return nullcontext(LQRObjective(lqr, _noise(gradients)))
    from gibo.policies.task import Task
    from gibo_studies.paper.policy_gradient import PolicyGradient

    task = Task("gibo_studies.paper.control.lqr_env:gibo/LQR-v0", policy="linear")
    return PolicyGradient(task, noise=ACTION_NOISE, episodes=EPISODES)


def regret_curve(M: int, gradients: str, function: GPFunction, budget: int) -> report.Curve:
    """Values spent, and the lowest regret of the guesses until then; the values' noise is the same in all arms."""
    settings = replace(within_model(function.lengthscale), M=M)
    optimizer = GIBO(function.start, bounds=BOUNDS, seed=function.seed, settings=settings)
    values, slopes = (np.random.default_rng((function.d, function.seed, stream)) for stream in (1, 3))
    sd = _noise(gradients)

    def evaluate(query: Any, spent: int) -> Outcome:
        value = function.observe(query.x, values)
        if sd is None or query.kind != "iterate":
            return Outcome(value)
        return Outcome(value, function.gradient(query.x) + sd * slopes.standard_normal(function.d), sd**2)

    with single_thread():
        points = [(spent, function.regret(x)) for spent, x in iterates(optimizer, evaluate, budget)]
    lowest = np.minimum.accumulate([regret for _, regret in points])
    return [(spent, float(regret)) for (spent, _), regret in zip(points, lowest, strict=True)]


def _noise(gradients: str) -> float | None:
    return None if gradients == NONE else float(gradients.removeprefix("noise "))


# -- its statistics ---------------------------------------------------------------------------------------------------


def episodes_until(curves: Sequence[report.Curve], target: float) -> int | None:
    """The fewest episodes after which the median over the trials is below the target, or None."""
    spent = sorted({n for curve in curves for n, _ in curve})
    below = np.median(report.sample(curves, spent), axis=1) < target
    return spent[int(below.argmax())] if below.any() else None


def paired(these: Array, those: Array) -> tuple[float, float]:
    """The mean of the differences, and its standard error (0 if there is only one)."""
    differences = these - those
    error = differences.std(ddof=1) / math.sqrt(len(differences)) if len(differences) > 1 else 0.0
    return float(differences.mean()), float(error)


def _mean_and_difference(values: Array, those: Array | None) -> str:
    if those is None:
        return f"{values.mean():.3f}"
    difference, error = paired(values, those)
    return f"{values.mean():.3f} ({difference:+.3f} ± {error:.3f})"
