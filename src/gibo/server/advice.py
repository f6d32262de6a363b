"""A sentence where something is off, from a snapshot alone: what was seen, and what to try."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Any

# Each threshold is one that good runs stay clear of; a sentence that comes too often is not read.
IN_A_ROW = 5  # failures, or uncertain steps
OFTEN = 0.3  # share of failures
UNSURE = 0.6  # probability of ascent; a coin has 0.5
FAR = 4.0  # factor between lengthscales and what the scale promises
SILENCE, LEAST_SILENCE = 10.0, 60.0  # times the usual time between values, and seconds


def advice(
    snapshot: dict[str, Any], recent: Sequence[tuple[float, str | None]], ascents: Sequence[float | None]
) -> list[dict[str, str]]:
    """What a person should know now.

    Args:
        snapshot: of a run, see `gibo.server.snapshot`.
        recent: of the last evaluations: when they were told, and their failure or None.
        ascents: probabilities of ascent of the last steps.

    Returns:
        ``[{"code": ..., "text": ...}]``, the most urgent first.
    """
    found = [
        *_process(snapshot),
        *_failures(recent),
        *_silence(snapshot, recent),
        *_ascent(snapshot, ascents),
        *_scale(snapshot),
        *_bounds(snapshot),
    ]
    return [{"code": code, "text": text} for code, text in found]


def _process(s: dict[str, Any]) -> list[tuple[str, str]]:
    if s["state"] != "gone":
        return []
    return [("process_gone", "The process of this run is gone. All it was told is kept: start it again to continue.")]


def _failures(recent: Sequence[tuple[float, str | None]]) -> list[tuple[str, str]]:
    failures = [failure for _, failure in recent]
    row = 0
    while row < len(failures) and failures[-1 - row] is not None:
        row += 1
    if row >= IN_A_ROW:
        return [("all_failing", f"The last {row} evaluations failed. Last reason: {_short(failures[-1])}")]
    failed = [failure for failure in failures if failure is not None]
    if len(failures) >= 10 and len(failed) > OFTEN * len(failures):
        text = f"{len(failed)} of the last {len(failures)} evaluations failed. Last reason: {_short(failed[-1])}"
        return [("many_failing", text)]
    return []


def _silence(s: dict[str, Any], recent: Sequence[tuple[float, str | None]]) -> list[tuple[str, str]]:
    times = [told for told, _ in recent]
    if s["state"] != "running" or len(times) < 5:
        return []
    usual, since = median(b - a for a, b in pairwise(times)), s["now"] - times[-1]
    if since < max(SILENCE * usual, LEAST_SILENCE):
        return []
    return [("silence", f"No value for {_duration(since)}; usually one comes every {_duration(usual)}.")]


def _ascent(s: dict[str, Any], ascents: Sequence[float | None]) -> list[tuple[str, str]]:
    last = ascents[-IN_A_ROW:]
    if len(last) < IN_A_ROW or any(p is None or p >= UNSURE for p in last):
        return []
    verb = "descends" if s["minimize"] else "ascends"
    text = (
        f"The last {IN_A_ROW} steps were hardly better than a guess (each {verb} with less than {UNSURE:.0%}): "
        "the search may have arrived, or the noise hides the slope; average more per evaluation, or stop here."
    )
    return [("no_ascent", text)]


def _scale(s: dict[str, Any]) -> list[tuple[str, str]]:
    ell, settings = s["lengthscale"], s["settings"].get("settings", {})
    prior = settings.get("lengthscale")
    expected = prior.get("median") if isinstance(prior, dict) else None  # in scales; fixed lengthscales say nothing
    # Before the model was fitted to some data the lengthscales say nothing but the settings.
    if ell is None or not isinstance(expected, float) or s["count"] - s["failures"] < 2 * len(ell) + 5:
        return []
    ratio = median(length / (p["scale"] * expected) for length, p in zip(ell, s["parameters"], strict=True))
    if ratio > FAR:
        text = f"The value hardly changes within one scale: the scale may be too small. Try {ratio:.2g} times it."
        return [("scale_small", text)]
    if ratio < 1.0 / FAR:
        text = f"The value changes much within one scale: the scale may be too large. Try {ratio:.1g} times it."
        return [("scale_large", text)]
    return []


def _bounds(s: dict[str, Any]) -> list[tuple[str, str]]:
    if s["belief"] is None or s["count"] < 20:
        return []
    at = []
    for x, p in zip(s["belief"]["x"], s["parameters"], strict=True):
        for side in ("lower", "upper"):
            if p[side] is not None and abs(x - p[side]) < 1e-9 * max(p["scale"], abs(p[side])):
                at.append(f"{p['name']} (its {side} bound {p[side]:.6g})")
    if not at:
        return []
    names = ", ".join(at[:3]) + (f" and {len(at) - 3} more" if len(at) > 3 else "")
    return [("at_bound", f"The recommended point lies on a bound: {names}. If it may go further, widen the bounds.")]


def _short(text: str | None) -> str:
    line = " ".join((text or "").split())
    return line if len(line) <= 160 else line[:159] + "…"


def _duration(seconds: float) -> str:
    if seconds < 90.0:
        return f"{seconds:.2g} s" if seconds < 10.0 else f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"
