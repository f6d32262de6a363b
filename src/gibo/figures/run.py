"""A run of GIBO as a figure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from gibo._checks import as_path, describe, finite, instance
from gibo._linalg import Array
from gibo.errors import InputError
from gibo.figures.style import BLUE, GREEN, GREY, ORANGE, pyplot
from gibo.runs.result import Result


def run_figure(
    result: Result,
    path: str | Path,
    *,
    truth: Callable[[Array], float] | None = None,
    optimum: float | None = None,
    title: str | None = None,
) -> Path:
    """A run over its evaluations: the values above, the gradient's uncertainty below.

    Args:
        result: of a run of GIBO.
        path: of the file; its ending gives the format (.png, .svg, .pdf).
        truth: the objective without noise, if there is such a thing: drawn at the iterates.
        optimum: its best value, if known.
        title: of the figure.

    Returns:
        The path.

    Example:
        >>> import gibo, tempfile, pathlib
        >>> from gibo.figures import run_figure
        >>> result = gibo.maximize(lambda x: -(x**2).sum(), [1.0, 1.0], budget=20)
        >>> run_figure(result, pathlib.Path(tempfile.mkdtemp()) / "run.png").stat().st_size > 0
        True
    """
    history, path = instance("result", result, Result, "a gibo.Result").history, as_path("path", path)
    if truth is not None and not callable(truth):
        raise InputError(f"truth: expected a function of a vector, got {describe(truth)}")
    if not len(history.evaluations):
        raise InputError("result: it has no finished iteration to draw; run it with a larger budget")
    with pyplot() as plt:
        figure, (above, below) = plt.subplots(2, 1, figsize=(7, 6), sharex=True, layout="constrained")
        count = np.arange(1, len(history.value) + 1)
        above.plot(count, history.value, ".", color=GREY, markersize=4, label="observed value of a query")
        at = history.is_iterate
        above.plot(count[at], history.value[at], "o", color=BLUE, markersize=4, label="observed value of an iterate")
        if truth is not None:
            values = [_at(truth, x) for x in history.x[at]]
            above.plot(count[at], values, "-", color=BLUE, label="value of the iterate, without noise")
        if optimum is not None:
            above.axhline(finite("optimum", optimum), color=GREEN, linestyle="--", label="optimum")
        above.set_ylabel("value")
        above.legend(loc="best", frameon=False, fontsize=8)
        below.semilogy(history.evaluations, history.uncertainty, "-", color=ORANGE)
        below.set_ylabel("uncertainty of the gradient\n(trace of its covariance)")
        below.set_xlabel("evaluations")
        if title is not None:
            figure.suptitle(instance("title", title, str, "a text"))
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
        plt.close(figure)
    return path


def _at(truth: Callable[[Array], float], x: Array) -> float:
    try:
        value = truth(x)
    except (Exception, SystemExit) as error:
        raise InputError(f"truth: it raised {type(error).__name__}: {error}") from error
    return finite("truth(x)", value)
