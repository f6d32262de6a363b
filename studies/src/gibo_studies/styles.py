"""A method's line, the same in every figure of the studies; a user's own method gets one, too."""

from __future__ import annotations

import zlib
from typing import Any

from gibo.figures.style import BLUE, GREEN, GREY, ORANGE, PINK, SKY, LineStyle

DOTTED_DASHES = (0, (5, 1, 1, 1, 1, 1))
YELLOW, BROWN = "#C9A800", "#8C510A"

LINE_STYLES = {
    "GIBO": LineStyle(BLUE, "-"),
    "GIBO, our defaults": LineStyle(SKY, "-"),
    "ARS": LineStyle(ORANGE, "--"),
    "ARS (tuned)": LineStyle(ORANGE, ":"),
    "CMA-ES": LineStyle(GREEN, "-."),
    "CMA-ES (tuned)": LineStyle(GREEN, ":"),
    "Vanilla BO": LineStyle(PINK, DOTTED_DASHES),
    "Random search": LineStyle(GREY, ":"),
    "paper": LineStyle(BLUE, "-"),
    "published": LineStyle(ORANGE, "--"),
    "invariant": LineStyle(GREEN, "-."),
    "off": LineStyle(GREY, ":"),
    "active": LineStyle(BLUE, "-"),
    "random": LineStyle(ORANGE, "--"),
    "our defaults, active": LineStyle(SKY, "-"),
    "our defaults, random": LineStyle(PINK, "--"),
    "M = d": LineStyle(BLUE, "-"),
    "least gain 0.1": LineStyle(ORANGE, "--"),
    "least share 0.02": LineStyle(PINK, "-."),
    "least share 0.05": LineStyle(GREEN, "-."),
    "M = d/2": LineStyle(SKY, "-"),
    "without gradient normalisation": LineStyle(GREY, ":"),
    "without state normalisation": LineStyle(PINK, "-."),
    "iterate re-expressed": LineStyle(SKY, "-"),
    "published settings": LineStyle(GREEN, "--"),
    "GIBO (published)": LineStyle(PINK, "-"),
    "GIBO (fixed mean)": LineStyle(BLUE, "-"),
    "GIBO (paper)": LineStyle(GREY, "--"),
    "GIBO (decaying)": LineStyle(SKY, "-"),
    "LSPI": LineStyle(GREEN, "-."),
    "LSPI (average cost)": LineStyle(PINK, DOTTED_DASHES),
    # of the leaderboard and of the judges
    "GIBO with bound step": LineStyle(BLUE, "-"),
    "GIBO (former default)": LineStyle(BLUE, "--"),
    "CMA-ES (noise handling)": LineStyle(GREEN, ":"),
    "CMA-ES (half sigma)": LineStyle(GREEN, "-"),
    "lq-CMA-ES": LineStyle(GREEN, "--"),
    "LRA-CMA-ES": LineStyle(GREEN, DOTTED_DASHES),
    "Vanilla BO (best practice)": LineStyle(PINK, ":"),
    "Trust region BO": LineStyle(YELLOW, "-"),
    "MPD": LineStyle(BROWN, "--"),
    "MinUCB": LineStyle("black", "-."),
    "Local entropy search": LineStyle(BROWN, ":"),
    "Optuna TPE": LineStyle(SKY, "--"),
    "Optuna GP": LineStyle(SKY, ":"),
    "COBYQA": LineStyle(YELLOW, ":"),
    "Py-BOBYQA": LineStyle(YELLOW, "--"),
    "PyBADS": LineStyle(ORANGE, "-"),
}
OTHER_STYLES = [
    LineStyle(color, line) for color in ("#A6328C", "#7A7A00", "#5C4CCB") for line in ("-", "--", "-.", ":")
]


def line_style(method: str) -> dict[str, Any]:
    """Color and line, as matplotlib's arguments; of our reading of a method, that of the method."""
    method = method.removesuffix(" (our reading)")
    own = OTHER_STYLES[zlib.crc32(method.encode()) % len(OTHER_STYLES)]
    return LINE_STYLES.get(method, own)._asdict()
