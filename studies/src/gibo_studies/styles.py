"""A method's line, the same in every figure of the studies; a user's own method gets one, too."""

from __future__ import annotations

import zlib
from typing import Any

from gibo.figures.style import BLUE, GREEN, GREY, ORANGE, PINK, SKY, LineStyle

DOTTED_DASHES = (0, (5, 1, 1, 1, 1, 1))
YELLOW, BROWN = "#C9A800", "#8C510A"

# Which methods of several figures share a line.
_SHARED: dict[LineStyle, tuple[str, ...]] = {
    LineStyle(BLUE, "-"): ("GIBO", "GIBO with bound step", "GIBO (fixed mean)", "paper", "active", "M = d"),
    LineStyle(BLUE, "--"): ("GIBO (former default)",),
    LineStyle(SKY, "-"): (
        "GIBO, our defaults", "our defaults, active", "GIBO (decaying)", "iterate re-expressed", "M = d/2",
    ),
    LineStyle(SKY, "--"): ("Optuna TPE",),
    LineStyle(SKY, ":"): ("Optuna GP",),
    LineStyle(ORANGE, "--"): ("ARS", "published", "random", "least gain 0.1"),
    LineStyle(ORANGE, ":"): ("ARS (tuned)",),
    LineStyle(ORANGE, "-"): ("PyBADS",),
    LineStyle(GREEN, "-."): ("CMA-ES", "invariant", "LSPI", "least share 0.05"),
    LineStyle(GREEN, ":"): ("CMA-ES (tuned)", "CMA-ES (noise handling)"),
    LineStyle(GREEN, "-"): ("CMA-ES (half sigma)",),
    LineStyle(GREEN, "--"): ("lq-CMA-ES", "published settings"),
    LineStyle(GREEN, DOTTED_DASHES): ("LRA-CMA-ES",),
    LineStyle(PINK, DOTTED_DASHES): ("Vanilla BO", "LSPI (average cost)"),
    LineStyle(PINK, ":"): ("Vanilla BO (best practice)",),
    LineStyle(PINK, "--"): ("our defaults, random",),
    LineStyle(PINK, "-."): ("least share 0.02", "without state normalisation"),
    LineStyle(PINK, "-"): ("GIBO (published)",),
    LineStyle(GREY, ":"): ("Random search", "off", "without gradient normalisation"),
    LineStyle(GREY, "--"): ("GIBO (paper)",),
    LineStyle(YELLOW, "-"): ("Trust region BO",),
    LineStyle(YELLOW, ":"): ("COBYQA",),
    LineStyle(YELLOW, "--"): ("Py-BOBYQA",),
    LineStyle(BROWN, "--"): ("MPD",),
    LineStyle(BROWN, ":"): ("Local entropy search",),
    LineStyle("black", "-."): ("MinUCB",),
}  # fmt: skip
LINE_STYLES = {name: style for style, names in _SHARED.items() for name in names}
OTHER_STYLES = [
    LineStyle(color, line) for color in ("#A6328C", "#7A7A00", "#5C4CCB") for line in ("-", "--", "-.", ":")
]


def line_style(method: str) -> dict[str, Any]:
    """Color and line, as matplotlib's arguments; of our reading of a method, that of the method."""
    method = method.removesuffix(" (our reading)")
    own = OTHER_STYLES[zlib.crc32(method.encode()) % len(OTHER_STYLES)]
    return LINE_STYLES.get(method, own)._asdict()
