"""A method's line, the same in every figure of the studies."""

from __future__ import annotations

from typing import Any

from gibo.figures.style import BLUE, GREEN, GREY, ORANGE, PINK, SKY, LineStyle

DOTTED_DASHES = (0, (5, 1, 1, 1, 1, 1))

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
    "GIBO (paper)": LineStyle(GREY, ":"),
    "GIBO (decaying)": LineStyle(SKY, "-"),
    "LSPI": LineStyle(GREEN, "-."),
    "LSPI (average cost)": LineStyle(PINK, DOTTED_DASHES),
}


def line_style(method: str) -> dict[str, Any]:
    """Color and line, as matplotlib's arguments."""
    return LINE_STYLES.get(method, LineStyle("black", "-"))._asdict()
