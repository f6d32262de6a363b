"""A method's line, the same in every figure of the leaderboard and of the judges; a user's own method gets one, too."""

from __future__ import annotations

import zlib
from typing import Any

from gibo.figures.style import BLUE, GREEN, GREY, ORANGE, PINK, SKY, LineStyle
from gibo_studies.styles import DOTTED_DASHES

YELLOW, BROWN = "#C9A800", "#8C510A"
LINE_STYLES = {
    "GIBO": LineStyle(BLUE, "-"),
    "GIBO (gradient steps)": LineStyle(BLUE, "--"),
    "GIBO (paper)": LineStyle(SKY, "-"),
    "CMA-ES": LineStyle(GREEN, "-."),
    "CMA-ES (noise handling)": LineStyle(GREEN, ":"),
    "ARS": LineStyle(ORANGE, "--"),
    "Vanilla BO": LineStyle(PINK, ":"),
    "Vanilla BO (best practice)": LineStyle(PINK, DOTTED_DASHES),
    "Trust region BO": LineStyle(YELLOW, "-"),
    "MPD": LineStyle(BROWN, "--"),
    "MinUCB": LineStyle("black", "-."),
    "Local entropy search": LineStyle(BROWN, ":"),
    "Random search": LineStyle(GREY, ":"),
    "Optuna TPE": LineStyle(SKY, "--"),
    "Optuna GP": LineStyle(SKY, ":"),
    "BoTorch": LineStyle(PINK, "-"),
    "nevergrad": LineStyle(ORANGE, ":"),
    "COBYQA": LineStyle(YELLOW, ":"),
    "CMA-ES (half sigma)": LineStyle(GREEN, "-"),
    "lq-CMA-ES": LineStyle(GREEN, "--"),
    "LRA-CMA-ES": LineStyle(GREEN, DOTTED_DASHES),
    "PyBADS": LineStyle(ORANGE, "-"),
    "Py-BOBYQA": LineStyle(YELLOW, "--"),
}
OTHER_STYLES = [
    LineStyle(color, line) for color in ("#A6328C", "#7A7A00", "#5C4CCB") for line in ("-", "--", "-.", ":")
]


def line_style(method: str) -> dict[str, Any]:
    """Color and line, as matplotlib's arguments; of our reading of a method, that of the method."""
    method = method.removesuffix(" (our reading)")
    own = OTHER_STYLES[zlib.crc32(method.encode()) % len(OTHER_STYLES)]
    return LINE_STYLES.get(method, own)._asdict()
