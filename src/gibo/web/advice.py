"""Advice for a person who watches a run, and what they can do now; see `gibo.runs.advice` for the rules."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from gibo.runs.advice import Advice, failure_advice

MOST_NAMED = 12  # values in a sentence
SILENCE, LEAST_SILENCE = 10.0, 60.0  # multiples of the usual time between values; seconds


def advice(
    snapshot: dict[str, Any], recent: Sequence[tuple[float, str | None]], recorded: Sequence[dict[str, str]]
) -> list[dict[str, str]]:
    """The advice for the present moment, as ``[{"code", "text"}, …]``, the most urgent first.

    Args:
        snapshot: of a run, see `gibo.web.snapshot`.
        recent: the last evaluations: the time of the value, and the failure or None.
        recorded: the advice after the last update.
    """
    found: list[Advice | None] = []
    if snapshot["state"] == "gone":
        text = "The process of this run is gone. All its values are kept: start it again to continue."
        found.append(Advice("process_gone", text))
    if snapshot["state"] == "running":
        found.append(_silence(snapshot["now"], [told for told, _ in recent]))
    failing = failure_advice([failure for _, failure in recent], snapshot["failures"], snapshot["count"])
    now = [{"code": each.code, "text": each.text} for each in (*found, failing) if each is not None]
    return [*now, *(each for each in recorded if "fail" not in each["code"])]


def next_step(s: dict[str, Any]) -> str:
    """A sentence about what a person can do now."""
    pending = len(s["pending"])
    if s["aborted"] is not None:
        values = ", ".join(f"{name} = {value:.6g}" for name, value in list(s["aborted"].items())[:MOST_NAMED])
        more = " …" if len(s["aborted"]) > MOST_NAMED else ""
        return f"Set {values}{more} on the machine. To go on: gibo abort RUN --revoke."
    if s["state"] == "gone":
        return "Start the run's program again: it continues where it stopped."
    if s["state"] == "paused":
        return "Nothing new begins until the run is continued."
    if s["state"] == "running":
        left = s["rate"]["seconds_left"]
        return "Nothing to do." if left is None else f"Nothing to do. The run ends in about {_duration(left)}."
    if s["state"] == "waiting":
        if not pending:
            return "Run gibo ask (or POST /ask) for the next parameters to measure."
        first, more = s["pending"][0]["id"], f"; {pending - 1} more queries wait" if pending > 1 else ""
        return f"Set the parameters of query {first}, measure, and tell its value{more}."
    if "training" in s["settings"]:
        return "Measure the policy: gibo evaluate. To train it further, start the same command with a larger budget."
    if s["verdict"] is not None and s["verdict"]["code"] == "improved":
        return "Set the recommended parameters. Measure there a few times before you rely on the value."
    return "Read the advice below, or continue the run with a larger budget."


def _silence(now: float, times: Sequence[float]) -> Advice | None:
    if len(times) < 5:
        return None
    usual, since = median(b - a for a, b in pairwise(times)), now - times[-1]
    if since < max(SILENCE * usual, LEAST_SILENCE):
        return None
    return Advice("silence", f"No value for {_duration(since)}; usually a value comes every {_duration(usual)}.")


def _duration(seconds: float) -> str:
    if seconds < 90.0:
        return f"{seconds:.2g} s" if seconds < 10.0 else f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"
