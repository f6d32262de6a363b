"""Advice for a person who watches a run, and what they can do now; see `gibo.runs.advice` for the rules."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np

from gibo.outcome import Best
from gibo.runs.advice import RECENT, Advice, Facts, Step, Told, remarks
from gibo.runs.verdict import advise

MOST_NAMED = 12  # values in a sentence
SILENCE, LEAST_SILENCE = 10.0, 60.0  # multiples of the usual time between values; seconds


def advice(snapshot: dict[str, Any], times: Sequence[float], found: Sequence[Advice | None]) -> list[dict[str, str]]:
    """The advice for the present moment, as ``[{"code", "text"}, …]``, the most urgent first.

    Args:
        snapshot: of a run, see `gibo.web.snapshot`.
        times: of the last values.
        found: by the rules of `gibo.runs.advice`.
    """
    first = None
    if snapshot["state"] == "gone":
        text = "The process of this run is gone. All its values are kept: start it again to continue."
        first = Advice("process_gone", text)
    if snapshot["state"] == "running":
        first = _silence(snapshot["now"], times)
    return [{"code": each.code, "text": each.text} for each in (first, *found) if each is not None]


def judged(
    reader: Any, recommended: dict[str, Any] | None, believed: dict[str, Any], by_hand: bool
) -> list[Advice | None]:
    """The verdict, or None if the model has not estimated the run's start and end, and what looks wrong.

    Args:
        reader: of the run, see `gibo.web.snapshot`.
        recommended, believed: the recorded estimates.
        by_hand: whether the run waits for values.
    """
    spec, (start, begun), (lower, upper) = reader.spec, reader.start(), reader.bounds()
    told = reader.all(
        "SELECT q.iteration, q.kind, e.value, e.failure, q.x = ? FROM evaluations e JOIN queries q ON q.id = e.query "
        "ORDER BY q.id",
        json.dumps(start),
    )
    columns = "probability_of_ascent, step, variance, noise, lengthscale"
    rows = reader.all(f"SELECT {columns} FROM iterations ORDER BY number DESC LIMIT ?", RECENT)[::-1]
    steps = [
        Step(p, np.array(json.loads(x)), s2 or 0.0, noise or 0.0, json.loads(ell)) for p, x, s2, noise, ell in rows
    ]
    prior = (spec.arguments.get("settings") or {}).get("lengthscale")
    median = prior.get("median") if isinstance(prior, dict) else None
    updates = reader.all("SELECT number FROM views", table="views")
    facts = Facts.of(
        [Told(*row) for row in told],
        steps,
        begun,
        minimize=spec.sign < 0,
        naming=spec.naming,
        scale=reader.scale.tolist(),
        lower=lower,
        upper=upper,
        expected=median if isinstance(median, float) else None,
        recommended=start if recommended is None else recommended["x"],
        violated=believed.get("violated", ()),
        batch=sum(size for (size,) in reader.all("SELECT size FROM batches WHERE iteration = 0")),
        iterations=max((number + 1 for (number,) in updates), default=0),
        by_hand=by_hand,
    )
    if not believed:
        return [None, *remarks(facts)]
    return [*advise(facts, _best(believed["start"]), _best(believed["best"]))]


def _best(known: dict[str, Any] | None) -> Best | None:
    if known is None:
        return None
    return Best(np.array(known["x"]), known["value"], None if known["low"] is None else (known["low"], known["high"]))


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
