"""A figure of a run of any kind, from its result or from its journal, also during the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gibo._checks import as_path, describe_error, finite, instance
from gibo._linalg import Array
from gibo.errors import InputError, printable
from gibo.figures.style import BLUE, GREEN, GREY, ORANGE, legend_below, plain_ticks, pyplot, save, smoothed
from gibo.optimizers.log import Iteration, Stepped
from gibo.outcome import ITERATE
from gibo.runs.journal import Journal
from gibo.runs.result import Result
from gibo.runs.spec import RunSpec
from gibo.web.snapshot import snapshot

NORMAL_90 = 1.6449  # standard deviations of the 90 % interval of a normal distribution
NAMED = 6  # number of lengthscales drawn by name; for more, the median and an 80 % band


def run_figure(
    result: Result,
    path: str | Path,
    *,
    truth: Callable[[Array], float] | None = None,
    optimum: float | None = None,
    title: str | None = None,
) -> Path:
    """A run over its evaluations: the values, the gradient's uncertainty, the lengthscales.

    Args:
        result: of a run of GIBO.
        path: of the file; its ending gives the format (.png, .svg, .pdf).
        truth: the objective without noise, if it exists; drawn at the iterates.
        optimum: its best value, if known.
        title: of the figure.

    Returns:
        The path.
    """
    history, path = instance("result", result, Result, "a gibo.Result").history, as_path("path", path)
    if not len(history.evaluations) or not np.isfinite(history.value).any():
        raise InputError("result: no finished iteration has a value to draw; run it with a larger budget")
    with pyplot() as plt:
        figure, axes = _panels(plt, 3)
        axes[0].set_ylabel("value")
        _draw_values(axes[0], history.value, history.is_iterate, result._sign < 0)
        if truth is not None:
            at = history.is_iterate
            try:
                true = [finite("truth(x)", truth(x)) for x in history.x[at]]
            except (Exception, SystemExit) as error:
                raise InputError(f"truth: it raised {describe_error(error)}") from error
            axes[0].plot(np.flatnonzero(at) + 1, true, "-", color=ORANGE, label="value of the iterate, without noise")
        if optimum is not None:
            axes[0].axhline(finite("optimum", optimum), color=GREEN, linestyle="--", label="optimum")
        _draw_model(axes[1], axes[2], result._steps, result._naming.names, result._optimizer.scale)
        if title is not None:
            axes[0].set_title(printable(instance("title", title, str, "a text"), lines=True))
        legend_below(figure, [axes[0]])
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
        plt.close(figure)
    return path


def journal_figure(folder: Path, path: Path) -> list[Path]:
    """The same from a run's journal, with the model's predictions of the recommended point; returns the files.

    For a run of gibo train, the values are the environment's returns. An optimiser without a model has only values.
    """
    with Journal.read(folder) as journal:
        spec, told = journal.spec(), [e for e, _ in journal.evaluations()]
        steps = [event.record for event in journal.events() if isinstance(event, Stepped)]
    values = np.array([e.outcome.info.get("return", e.value) for e in told], dtype=np.float64)  # NaN: failed
    if not np.isfinite(values).any():
        raise InputError(f"{folder}: nothing to draw yet; no evaluation has a value")
    with pyplot() as plt:
        figure, axes = _panels(plt, 3 if steps else 1)
        axes[0].set_title(folder.resolve().name if spec.training is None else spec.training["environment"])
        axes[0].set_ylabel("value" if spec.training is None else "return")
        _draw_values(axes[0], values, np.array([e.kind == ITERATE for e in told]), spec.sign < 0)
        _draw_beliefs(axes[0], folder, spec, values)
        if steps:
            _draw_model(axes[1], axes[2], steps, spec.naming.names, np.array(spec.arguments["scale"]))
        legend_below(figure, [axes[0]])
        return save(figure, plt, path)


def _panels(plt: Any, count: int) -> tuple[Any, Any]:
    """A figure with axes over the evaluations, the first one large."""
    size, heights = (7.0, 2.6 + 1.6 * count), [2] + [1] * (count - 1)
    figure, axes = plt.subplots(
        count, 1, figsize=size, sharex=True, layout="constrained", squeeze=False, height_ratios=heights
    )
    axes[-1, 0].set_xlabel("evaluations")
    axes[-1, 0].xaxis.get_major_locator().set_params(integer=True)
    return figure, axes[:, 0]


def _draw_values(axes: Any, values: Array, is_iterate: Any, minimize: bool) -> None:
    count = np.arange(1, len(values) + 1)
    failed = ~np.isfinite(values)
    axes.plot(count[~is_iterate], values[~is_iterate], ".", color=GREY, markersize=4, label="value of a query")
    shown = is_iterate if is_iterate.any() else np.ones(len(values), dtype=bool)
    if is_iterate.any():
        axes.plot(count[is_iterate], values[is_iterate], "o", color=BLUE, markersize=4, label="value of an iterate")
    known = shown & ~failed
    mean, width = smoothed(values[known])
    if width > 1:
        axes.plot(count[known], mean, "-", color=BLUE, linewidth=1, label=f"running mean of {width} of them")
    if failed.any():
        worst = np.nanmax(values) if minimize else np.nanmin(values)
        axes.plot(count[failed], np.full(failed.sum(), worst), "x", color=ORANGE, markersize=5, label="failed")


def _draw_beliefs(axes: Any, folder: Path, spec: RunSpec, values: Array) -> None:
    """Draw the model's predictions of the recommended point, during the run and now."""
    training = spec.training or {}
    if training.get("reward_shift"):
        return  # the optimiser's value is no return then
    unit, found = float(training.get("reward_scale", 1.0)), snapshot(folder)
    beliefs, last = found["beliefs"], found["belief"]
    at, mean = np.array(beliefs["evaluations"]), np.array(beliefs["value"], dtype=np.float64) / unit
    half = NORMAL_90 * np.array(beliefs["sd"], dtype=np.float64) / unit
    # The wide band of an uninformed model would hide everything else.
    least, most = (2.0 * np.nanmin(values) - np.nanmax(values), 2.0 * np.nanmax(values) - np.nanmin(values))
    if len(at):
        label = "value of the recommended point by the model, 90 %"
        axes.plot(at, mean, "--", color=GREEN, linewidth=1.2, label=label)
        low, high = np.clip(mean - half, least, most), np.clip(mean + half, least, most)
        axes.fill_between(at, low, high, color=GREEN, alpha=0.15, linewidth=0)
    if last is not None and last["value"] is not None:
        value, sd = last["value"] / unit, NORMAL_90 * (last["sd"] or 0.0) / unit
        ends = np.clip([[min(sd, value - least)], [min(sd, most - value)]], 0.0, None)
        label = f"value of the recommended point by the model: {value:.4g}"
        axes.errorbar([len(values) + 0.5], [value], yerr=ends, fmt="D", color=ORANGE, label=label)


def _draw_model(
    uncertainty: Any, lengthscales: Any, steps: Sequence[Iteration], names: list[str], scale: Array
) -> None:
    at = np.array([step.evaluations for step in steps])
    uncertainty.semilogy(at, [step.uncertainty for step in steps], "-", color=ORANGE)
    uncertainty.set_ylabel("uncertainty of\nthe gradient")
    plain_ticks(uncertainty.yaxis)
    lengthscales.set_ylabel("lengthscale\nin scales")
    ell = np.array([np.broadcast_to(step.lengthscale, len(names)) for step in steps]) / scale
    if (ell == ell[:, :1]).all():
        lengthscales.semilogy(at, ell[:, 0], "-", color=BLUE, label="one for all")
    elif len(names) <= NAMED:
        for i, name in enumerate(names):
            lengthscales.semilogy(at, ell[:, i], linestyle=["-", "--", ":"][i % 3], label=name)
    else:
        low, middle, high = np.quantile(ell, [0.1, 0.5, 0.9], axis=1)
        lengthscales.semilogy(at, middle, "-", color=BLUE, label=f"median of {len(names)}, and 80 % of them")
        lengthscales.fill_between(at, low, high, color=BLUE, alpha=0.15, linewidth=0)
    plain_ticks(lengthscales.yaxis)
    lengthscales.legend(loc="best", fontsize=7, ncols=3)
