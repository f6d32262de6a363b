"""A result as a small piece of HTML with a figure in it, as notebooks show it; nothing needs to be installed."""

from __future__ import annotations

import html
import math

import numpy as np
import numpy.typing as npt

from gibo._linalg import Array
from gibo.errors import printable

WIDTH, HEIGHT, LEFT, BOTTOM = 420, 150, 52, 22
LINE, FAILURE, DOT = "#0072B2", "#D55E00", "#9a9a9a"


def as_html(text: str, figure: str) -> str:
    """A text of several lines above a figure."""
    lines = "<br>".join(html.escape(line) for line in printable(text, lines=True).splitlines())
    return f'<div style="display:inline-block;font:13px sans-serif">{lines}<br>{figure}</div>'


def values_svg(
    values: Array, is_iterate: npt.NDArray[np.bool_], believed: float, interval: tuple[float, float] | None
) -> str:
    """Each evaluation a dot, strong ones at the iterates, failures at the foot; the line is the believed value."""
    n, known = len(values), values[np.isfinite(values)]
    if not known.size:
        return ""
    levels: list[float] = [*known.tolist(), *([] if math.isnan(believed) else [believed]), *(interval or ())]
    low, high = min(levels), max(levels)
    span = (high - low) or 1.0

    def across(i: float) -> float:
        return round(LEFT + (WIDTH - LEFT - 8) * i / max(n - 1, 1), 1)

    def up(value: float) -> float:
        return round(HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 10) * (value - low) / span, 1)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" role="img">']
    parts.append(f"<title>values of {n} evaluations</title>")
    style = 'font-size="11" font-family="sans-serif" fill="currentColor"'
    for value in (low, high):
        parts.append(f'<text x="{LEFT - 6}" y="{up(value) + 4}" text-anchor="end" {style}>{value:.4g}</text>')
    parts.append(f'<text x="{WIDTH - 8}" y="{HEIGHT - 6}" text-anchor="end" {style}>{n} evaluations</text>')
    if interval is not None:
        top, foot = up(interval[1]), up(interval[0])
        size = f'width="{WIDTH - LEFT - 8}" height="{max(foot - top, 0.5):.1f}"'
        parts.append(f'<rect x="{LEFT}" y="{top}" {size} fill="{LINE}" opacity="0.15"/>')
    if not math.isnan(believed):
        y = up(believed)
        parts.append(f'<line x1="{LEFT}" y1="{y}" x2="{WIDTH - 8}" y2="{y}" stroke="{LINE}"/>')
    for i, (value, strong) in enumerate(zip(values, is_iterate, strict=True)):
        if math.isnan(value):
            y = HEIGHT - BOTTOM + 3
            parts.append(f'<path d="M{across(i) - 3} {y - 3}l6 6m0 -6l-6 6" stroke="{FAILURE}"/>')
        else:
            look = f'r="3" fill="{LINE}"' if strong else f'r="2" fill="{DOT}"'
            parts.append(f'<circle cx="{across(i)}" cy="{up(value)}" {look}/>')
    return "".join([*parts, "</svg>"])
