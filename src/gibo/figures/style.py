"""The style of all figures, and writing them to files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gibo._linalg import Array
from gibo.errors import InputError, missing_extra

# Okabe and Ito 2008: distinguishable with any kind of colour vision.
BLUE, ORANGE, GREEN, PINK, SKY, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#7A7A7A"
MOST_ENTRIES = 6  # labels of a legend


class LineStyle(NamedTuple):
    """A line's color and dashes; the dashes also tell lines apart without color."""

    color: str
    linestyle: Any


@contextmanager
def pyplot() -> Iterator[Any]:
    """matplotlib.pyplot in our style, drawing to files, also on a machine without a display."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        raise missing_extra("figures need matplotlib", "figures") from None
    style: Any = {
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "svg.hashsalt": "gibo",  # the same figure gives the same file
    }
    with plt.rc_context(style):
        try:
            yield plt
        except OSError as error:
            raise InputError(f"a figure could not be written: {error}") from error


def plain_ticks(axis: Any) -> None:
    """Ticks of a logarithmic axis as plain numbers, such as 0.2 and 500."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=9))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def legend_below(figure: Any, axes: Any = None) -> None:
    """A legend below these axes (all if None).

    Long labels are wrapped, the figure grows with the legend, and after six labels only the number of the others is
    shown.
    """
    import textwrap  # imported here, because rarely needed

    width, height = figure.get_size_inches()
    found = [each.get_legend_handles_labels() for each in (figure.axes if axes is None else axes)]
    handles = [handle for each, _ in found for handle in each]
    labels = ["\n".join(textwrap.wrap(label, int(13 * width))) for _, each in found for label in each]
    if len(labels) > MOST_ENTRIES:
        more = f"and {len(labels) - MOST_ENTRIES + 1} more"
        handles, labels = handles[:MOST_ENTRIES], [*labels[: MOST_ENTRIES - 1], more]
    columns = 2 if labels and max(map(len, labels)) <= 6.5 * width else 1
    lines = sum(label.count("\n") + 1 for label in labels) / columns
    figure.set_size_inches(width, height + 0.17 * lines)
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=8)


def smoothed(values: Array) -> tuple[Array, int]:
    """The running mean of values over a tenth of them, and its width; few values are returned unchanged."""
    if len(values) < 8:
        return values, 1
    width = max(3, len(values) // 10 | 1)
    padded = np.concatenate([[0.0], np.cumsum(values)])
    i = np.arange(len(values))
    first, last = np.maximum(i - width // 2, 0), np.minimum(i + width // 2 + 1, len(values))
    return (padded[last] - padded[first]) / (last - first), width


def save(figure: Any, plt: Any, path: Path) -> list[Path]:
    """Write PNG and SVG; one of these endings of `path` is dropped."""
    path.parent.mkdir(parents=True, exist_ok=True)
    stem = path.stem if path.suffix in (".png", ".svg") else path.name
    paths = [path.with_name(stem + ".png"), path.with_name(stem + ".svg")]
    figure.savefig(paths[0], dpi=150)
    figure.savefig(paths[1], metadata={"Date": None})
    plt.close(figure)
    return paths
