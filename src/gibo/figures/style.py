"""How all figures look: colours, lines, and how a figure gets into files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from gibo.errors import InputError, missing_extra

# Okabe and Ito 2008: distinguishable with any kind of colour vision.
BLUE, ORANGE, GREEN, PINK, SKY, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#7A7A7A"


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


def save(figure: Any, plt: Any, path: Path) -> list[Path]:
    """As PNG and SVG; the ending of `path`, if it is one of these, is left out."""
    path.parent.mkdir(parents=True, exist_ok=True)
    stem = path.stem if path.suffix in (".png", ".svg") else path.name
    paths = [path.with_name(stem + ".png"), path.with_name(stem + ".svg")]
    figure.savefig(paths[0], dpi=150)
    figure.savefig(paths[1], metadata={"Date": None})
    plt.close(figure)
    return paths
