"""Learning curves of runs of `gibo train`, from their journals alone, also while they are running."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gibo._linalg import Array
from gibo.errors import InputError
from gibo.figures.style import BLUE, GREEN, GREY, ORANGE, PINK, SKY, LineStyle, pyplot, save
from gibo.optimizers import methods
from gibo.outcome import Evaluation
from gibo.runs.journal import Journal

# One after the other; the lines tell them apart without colour.
LINE_STYLES = [
    *(LineStyle(BLUE, "-"), LineStyle(ORANGE, "--"), LineStyle(GREEN, "-.")),
    *(LineStyle(PINK, ":"), LineStyle(SKY, (0, (5, 1))), LineStyle(GREY, "-")),
]


class Curve(NamedTuple):
    """A trial: the iterate's returns, or what stands for them, over the episodes spent.

    Attributes:
        environment, method: what was trained and how.
        of_iterates: False if the method never evaluates its iterate; then a return is the mean of a batch around it.
        episodes: (n,) spent when the return was seen, its own included.
        returns: (n,)
        spent: episodes so far.
    """

    environment: str
    method: str
    of_iterates: bool
    episodes: Array
    returns: Array
    spent: int

    def at(self, episodes: Array) -> Array:
        """The last return seen by then; NaN before the first one, and where the trial has not come to yet."""
        i = np.searchsorted(self.episodes, episodes, side="right") - 1
        known = (i >= 0) & (episodes <= self.spent)
        return np.where(known, self.returns[np.maximum(i, 0)], np.nan)


def training_figure(runs: Mapping[str, Sequence[Path]], path: Path) -> list[Path]:
    """A line per run: the mean over its trials, with a band of one standard deviation; of a single trial each return.

    Args:
        runs: the folders of each run's trials, by the name that the run has in the legend.
        path: of the files; its ending, if it has one, becomes .png and .svg.

    Returns:
        The files, PNG and SVG.
    """
    curves = {name: [curve for folder in folders if (curve := read_curve(folder))] for name, folders in runs.items()}
    for name, found in curves.items():
        if not found:
            raise InputError(f"{name}: nothing to draw yet; no iteration has a return")
    environments = list(dict.fromkeys(curve.environment for found in curves.values() for curve in found))
    with pyplot() as plt:
        figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
        for i, (name, found) in enumerate(curves.items()):
            environment = f", {found[0].environment}" if len(environments) > 1 else ""
            _draw(axes, found, LINE_STYLES[i % len(LINE_STYLES)], f"{name}: {_title(found[0].method)}{environment}")
        axes.set_title(", ".join(environments))
        axes.set_xlabel("episodes")
        axes.set_ylabel("return")
        figure.legend(loc="outside lower center")
        return save(figure, plt, path)


def _draw(axes: Any, curves: list[Curve], style: LineStyle, label: str) -> None:
    note = "" if curves[0].of_iterates else " (batch means; the iterate is not evaluated)"
    color, line = style
    if len(curves) == 1:
        episodes, mean = curves[0].episodes, curves[0].returns
        axes.plot(
            episodes, mean, marker=".", color=color, linestyle=line, linewidth=1, label=f"{label}, one trial{note}"
        )
        return
    episodes = np.unique(np.concatenate([curve.episodes for curve in curves]))
    returns = np.array([curve.at(episodes) for curve in curves])
    mean, sd = np.nanmean(returns, axis=0), np.nanstd(returns, axis=0)
    label = f"{label}, mean ± standard deviation of {len(curves)} trials{note}"
    axes.plot(episodes, mean, color=color, linestyle=line, label=label)
    axes.fill_between(episodes, mean - sd, mean + sd, color=color, alpha=0.15, linewidth=0)


def _title(method: str) -> str:
    kind = methods().get(method)
    return method if kind is None else kind.title


def read_curve(folder: Path) -> Curve | None:
    """A trial's curve, from its journal; None if there is nothing yet."""
    with Journal.read(folder) as journal:
        task = journal.spec().training
        if task is None:
            raise InputError(f"{folder}: a run, but not one of gibo train")
        told = sorted((e for e, _ in journal.evaluations()), key=lambda e: e.id)
        asked = Counter(query.iteration for query, _ in journal.queries().values())
    of_iterates = task["method"] == "gibo"
    points = _iterates(told) if of_iterates else _batches(told, asked)
    if not points:
        return None
    count, returns = np.array(points, dtype=np.float64).T
    per = int(task["episodes"])
    spent = per * (told[-1].id + 1)
    return Curve(task["environment"], task["method"], of_iterates, per * count, returns, spent)


def _return(e: Evaluation) -> float | None:
    """None for a failed evaluation."""
    return float(e.outcome.info["return"]) if "return" in e.outcome.info else None


def _iterates(told: list[Evaluation]) -> list[tuple[int, float]]:
    """Evaluations spent, and the return of each iterate."""
    seen = [(e.id + 1, _return(e)) for e in told if e.kind == "iterate"]
    return [(n, value) for n, value in seen if value is not None]


def _batches(told: list[Evaluation], asked: Counter[int]) -> list[tuple[int, float]]:
    """Evaluations spent, and the mean return of each iteration of which all is there."""
    batches: dict[int, list[Evaluation]] = {}
    for e in told:
        batches.setdefault(e.iteration, []).append(e)
    points = []
    for iteration, batch in batches.items():
        values = [value for e in batch if (value := _return(e)) is not None]
        if values and len(batch) == asked[iteration]:
            points.append((batch[-1].id + 1, float(np.mean(values))))
    return points
