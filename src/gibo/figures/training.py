"""Learning curves of runs beside each other, from their journals alone, also while they are running."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gibo._linalg import Array
from gibo.errors import InputError
from gibo.figures.style import BLUE, GREEN, GREY, ORANGE, PINK, SKY, LineStyle, legend_below, pyplot, save, smoothed
from gibo.optimizers.base import Optimizer
from gibo.outcome import ITERATE, Evaluation
from gibo.runs.journal import Journal

# One after the other; the lines tell them apart without colour.
LINE_STYLES = [
    *(LineStyle(BLUE, "-"), LineStyle(ORANGE, "--"), LineStyle(GREEN, "-.")),
    *(LineStyle(PINK, ":"), LineStyle(SKY, (0, (5, 1))), LineStyle(GREY, "-")),
]


class Curve(NamedTuple):
    """A trial: the iterate's values or returns, or what stands for them, over the evaluations or episodes spent.

    Attributes:
        environment: what was trained; "" for an objective of one's own.
        method: how, as a person calls it.
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
            raise InputError(f"{name}: nothing to draw yet; no iteration has a value")
    environments = list(dict.fromkeys(curve.environment for found in curves.values() for curve in found))
    with pyplot() as plt:
        figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
        for i, (name, found) in enumerate(curves.items()):
            environment = f", {found[0].environment}" if len(environments) > 1 and found[0].environment else ""
            _draw(axes, found, LINE_STYLES[i % len(LINE_STYLES)], f"{name}: {found[0].method}{environment}")
        axes.set_title("\n".join(textwrap.wrap(", ".join(filter(None, environments)), 70)))
        axes.set_xlabel("evaluations" if "" in environments else "episodes")
        axes.set_ylabel("value" if "" in environments else "return")
        legend_below(figure)
        return save(figure, plt, path)


def _draw(axes: Any, curves: list[Curve], style: LineStyle, label: str) -> None:
    note = "" if curves[0].of_iterates else " (batch means; the iterate is not evaluated)"
    color, line = style
    if len(curves) == 1:
        episodes, returns = curves[0].episodes, curves[0].returns
        mean, width = smoothed(returns)
        how = f", running mean of {width}" if width > 1 else ""
        axes.plot(episodes, returns, ".", color=color, markersize=3, alpha=0.5)
        axes.plot(episodes, mean, color=color, linestyle=line, linewidth=1.2, label=f"{label}, one trial{how}{note}")
        return
    episodes = np.unique(np.concatenate([curve.episodes for curve in curves]))
    returns = np.array([curve.at(episodes) for curve in curves])
    mean, sd = np.nanmean(returns, axis=0), np.nanstd(returns, axis=0)
    label = f"{label}, mean ± standard deviation of {len(curves)} trials{note}"
    axes.plot(episodes, mean, color=color, linestyle=line, label=label)
    low, high = np.nanmin(returns, axis=0), np.nanmax(returns, axis=0)  # a band goes no farther than any trial did
    axes.fill_between(
        episodes, np.maximum(mean - sd, low), np.minimum(mean + sd, high), color=color, alpha=0.15, linewidth=0
    )


def read_curve(folder: Path) -> Curve | None:
    """A trial's curve, from its journal; None if there is nothing yet."""
    with Journal.read(folder) as journal:
        spec = journal.spec()
        told = sorted((e for e, _ in journal.evaluations()), key=lambda e: e.id)
        asked = Counter(query.iteration for query, _ in journal.queries().values())
    of_iterates = any(e.kind == ITERATE for e in told)
    points = _iterates(told) if of_iterates else _batches(told, asked)
    if not points:
        return None
    count, returns = np.array(points, dtype=np.float64).T
    task, kind = spec.training or {}, Optimizer.registry.get(spec.optimizer)
    per, method = int(task.get("episodes", 1)), spec.optimizer if kind is None else kind.title
    spent = per * (told[-1].id + 1)
    return Curve(task.get("environment", ""), method, of_iterates, per * count, returns, spent)


def _return(e: Evaluation) -> float | None:
    """None for a failed evaluation; the value where it is no episode."""
    found = e.outcome.info.get("return", e.value)
    return None if found is None else float(found)


def _iterates(told: list[Evaluation]) -> list[tuple[int, float]]:
    """Evaluations spent, and the return of each iterate."""
    seen = [(e.id + 1, _return(e)) for e in told if e.kind == ITERATE]
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
