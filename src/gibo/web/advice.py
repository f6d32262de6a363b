"""A sentence where something is off while a run goes on, from a snapshot alone; see `gibo.runs.advice`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from gibo.runs.advice import Advice, Facts, remarks, signal
from gibo.runs.spec import Naming

SILENCE, LEAST_SILENCE = 10.0, 60.0  # times the usual time between values, and seconds


def advice(
    snapshot: dict[str, Any],
    recent: Sequence[tuple[float, str | None]],
    steps: Sequence[tuple[float | None, Sequence[float], float | None, float | None]],
    alike: float | None,
    naming: Naming,
) -> list[dict[str, str]]:
    """What a person should know now.

    Args:
        snapshot: of a run, see `gibo.web.snapshot`.
        recent: of the last evaluations: when they were told, and their failure or None.
        steps: of the last iterations: probability of ascent, step, variance and noise of the model.
        alike: the value that all evaluations had, if they had only one.
        naming: of the parameters.

    Returns:
        ``[{"code": ..., "text": ...}]``, the most urgent first.
    """
    found = [*_process(snapshot), *_silence(snapshot, recent), *remarks(_facts(snapshot, recent, steps, alike, naming))]
    return [{"code": each.code, "text": each.text} for each in found]


def _facts(
    s: dict[str, Any],
    recent: Sequence[tuple[float, str | None]],
    steps: Sequence[tuple[float | None, Sequence[float], float | None, float | None]],
    alike: float | None,
    naming: Naming,
) -> Facts:
    parameters = s["parameters"]
    prior = s["settings"].get("settings", {}).get("lengthscale")
    expected = prior.get("median") if isinstance(prior, dict) else None
    return Facts(
        minimize=s["minimize"],
        naming=naming,
        scale=[p["scale"] for p in parameters],
        lower=[-math.inf if p["lower"] is None else p["lower"] for p in parameters],
        upper=[math.inf if p["upper"] is None else p["upper"] for p in parameters],
        count=s["count"],
        failures=s["failures"],
        recent=[failure for _, failure in recent],
        alike=alike,
        ascents=[p for p, *_ in steps],
        steps=[step for _, step, *_ in steps],
        lengthscale=s["lengthscale"],
        expected=expected if isinstance(expected, float) else None,
        signal=signal(steps[-1][2] or 0.0, steps[-1][3] or 0.0) if steps else None,
        recommended=None if s["belief"] is None else s["belief"]["x"],
    )


def _process(s: dict[str, Any]) -> list[Advice]:
    if s["state"] != "gone":
        return []
    text = "The process of this run is gone. All it was told is kept: start it again to continue."
    return [Advice("process_gone", text)]


def _silence(s: dict[str, Any], recent: Sequence[tuple[float, str | None]]) -> list[Advice]:
    times = [told for told, _ in recent]
    if s["state"] != "running" or len(times) < 5:
        return []
    usual, since = median(b - a for a, b in pairwise(times)), s["now"] - times[-1]
    if since < max(SILENCE * usual, LEAST_SILENCE):
        return []
    return [Advice("silence", f"No value for {_duration(since)}; usually one comes every {_duration(usual)}.")]


def _duration(seconds: float) -> str:
    if seconds < 90.0:
        return f"{seconds:.2g} s" if seconds < 10.0 else f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"
