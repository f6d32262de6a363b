"""Learning curves of several runs from their journals, also during the runs."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gibo._linalg import Array
from gibo.errors import InputError
from gibo.figures.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    SKY,
    LineStyle,
    legend_below,
    plain_ticks,
    pyplot,
    save,
    smoothed,
)
from gibo.optimizers.base import Optimizer
from gibo.outcome import ITERATE
from gibo.runs.curves import Row, learning_curve
from gibo.runs.journal import Journal

# Used in this order; the dashes distinguish them without colour.
LINE_STYLES = [
    *(LineStyle(BLUE, "-"), LineStyle(ORANGE, "--"), LineStyle(GREEN, "-.")),
    *(LineStyle(PINK, ":"), LineStyle(SKY, (0, (5, 1))), LineStyle(GREY, "-")),
]
MOST_AXES = 6  # number of parameters with their own axes


class Trial(NamedTuple):
    """A trial's learning curve, see `gibo.runs.curves`, over the evaluations or episodes spent.

    Attributes:
        environment: the trained environment; "" for another objective.
        episodes, returns: (n,) number of episodes up to each return, inclusive, and the return.
        spent: episodes so far.
        best_at, best: (m,) number of episodes at each new best value, and this value.
        parameters: (n,) values of each parameter at the iterates, in the user's units; empty for a run without names.
        logs: the parameters that are on a log scale.
    """

    environment: str
    method: str
    of_iterates: bool
    episodes: Array
    returns: Array
    spent: int
    best_at: Array
    best: Array
    parameters: dict[str, Array]
    logs: frozenset[str] = frozenset()

    def at(self, episodes: Array) -> Array:
        """The last return until then; NaN before the first one and after the trial's last one."""
        i = np.searchsorted(self.episodes, episodes, side="right") - 1
        known = (i >= 0) & (episodes <= self.spent)
        return np.where(known, self.returns[np.maximum(i, 0)], np.nan)


def training_figure(runs: Mapping[str, Sequence[Path]], path: Path) -> list[Path]:
    """A line per run: the mean over its trials with a band of one standard deviation; a single trial's returns.

    Below it are the best value so far, and the parameters at the iterates if all runs have the same few parameters.
    `runs` has the folders of each run's trials by the run's name. Returns the files.
    """
    curves = {name: [trial for folder in folders if (trial := read_curve(folder))] for name, folders in runs.items()}
    for name, found in curves.items():
        if not found:
            raise InputError(f"{name}: nothing to draw yet; no iteration has a value")
    every = [curve for found in curves.values() for curve in found]
    first, environments = every[0], list(dict.fromkeys(curve.environment for curve in every))
    same = len(first.parameters) <= MOST_AXES and all(c.parameters.keys() == first.parameters.keys() for c in every)
    shared = list(first.parameters) if same else []
    rows = 2 + len(shared)
    options: Any = {"layout": "constrained", "sharex": True, "height_ratios": [2.5] + [1] * (rows - 1)}
    with pyplot() as plt:
        figure, grid = plt.subplots(rows, 1, figsize=(6.4, 4.4 + 1.2 * (rows - 1)), squeeze=False, **options)
        axes, best, paths = grid[0, 0], grid[1, 0], grid[2:, 0]
        for i, (name, found) in enumerate(curves.items()):
            style = LINE_STYLES[i % len(LINE_STYLES)]
            environment = f", {found[0].environment}" if len(environments) > 1 and found[0].environment else ""
            _draw(axes, found, style, f"{name}: {found[0].method}{environment}")
            for curve in found:
                _draw_course(best, paths, curve, shared, style, 1.2 if len(found) == 1 else 0.6)
        axes.set_title("\n".join(textwrap.wrap(", ".join(filter(None, environments)), 70)))
        what = "value" if "" in environments else "return"
        axes.set_ylabel(what)
        best.set_ylabel(f"best {what}\nso far")
        for path_axes, name in zip(paths, shared, strict=True):
            path_axes.set_ylabel(name)
            if name in first.logs:
                path_axes.set_yscale("log")
                plain_ticks(path_axes.yaxis)
        grid[-1, 0].set_xlabel("evaluations" if "" in environments else "episodes")
        legend_below(figure, [axes])
        return save(figure, plt, path)


def _draw_course(best: Any, paths: Any, curve: Trial, names: list[str], style: LineStyle, width: float) -> None:
    line = {"color": style.color, "linestyle": style.linestyle, "linewidth": width}
    best.step([*curve.best_at, curve.spent], [*curve.best, curve.best[-1]], where="post", **line)
    for axes, name in zip(paths, names, strict=True):
        axes.plot(curve.episodes, curve.parameters[name], **line)


def _draw(axes: Any, curves: list[Trial], style: LineStyle, label: str) -> None:
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
    low, high = np.nanmin(returns, axis=0), np.nanmax(returns, axis=0)  # a band ends where the shortest trial ends
    axes.fill_between(
        episodes, np.maximum(mean - sd, low), np.minimum(mean + sd, high), color=color, alpha=0.15, linewidth=0
    )


def read_curve(folder: Path) -> Trial | None:
    """A trial from its journal; None if its curve has no point yet."""
    with Journal.read(folder) as journal:
        spec, queries = journal.spec(), [query for query, _ in journal.queries().values()]
        told = [e for e, _ in journal.evaluations()]
    # The return; None for a failed evaluation; the value if it is no episode.
    returns = {e.id: None if e.failure is not None else float(e.outcome.info.get("return", e.value)) for e in told}
    curve = learning_curve((Row(q.iteration, q.kind, q.id in returns, returns.get(q.id)) for q in queries), spec.sign)
    if not curve.points:
        return None
    task, kind = spec.training or {}, Optimizer.registry.get(spec.optimizer)
    per, method = int(task.get("episodes", 1)), spec.optimizer if kind is None else kind.title
    count, values = np.array(curve.points, dtype=np.float64).T
    best_at, best = np.array(curve.best, dtype=np.float64).T
    kinds = spec.naming.parameters
    names = [] if spec.names is None or task or not curve.of_iterates else spec.naming.names
    rows = [spec.naming(q.x) for q in queries if q.kind == ITERATE and returns.get(q.id) is not None]
    parameters = {name: np.array([row[name] for row in rows], dtype=np.float64) for name in names}
    logs = frozenset(name for name in names if kinds is not None and kinds[name].log)
    about = (task.get("environment", ""), method, curve.of_iterates)
    return Trial(*about, per * count, values, per * curve.spent, per * best_at, best, parameters, logs)
