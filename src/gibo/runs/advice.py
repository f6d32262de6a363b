"""Advice on a run in words: what looks wrong and what to try next. The result itself is in `gibo.runs.verdict`.

Good runs stay far from each threshold, because nobody reads advice that appears too often.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gibo._linalg import Array
from gibo.errors import printable
from gibo.optimizers.log import Iteration
from gibo.outcome import BASELINE, EXTERNAL, ITERATE, SIMULATED
from gibo.runs.spec import Naming

IN_A_ROW = 5  # failures, or uncertain steps
RECENT = 50  # last evaluations whose failures are counted
FAILING_SHARE = 0.3  # of the last evaluations
UNSURE_ASCENT = 0.6  # probability of ascent; a guess has 0.5
LENGTHSCALE_RATIO = 4.0  # ratio of the fitted lengthscales to those expected from the scale
# The signal in standard deviations of the noise, from −‖x − 1‖² with noise 0.03 and from noise alone.
CLEAR_SIGNAL = 1.5  # above it, lengthscales are reliable
VISIBLE_CHANGE = 2.0  # of the value within one scale
FAINT_SIGNAL = 1.0  # from the fifth step on, below it with noise alone
# The net length of a walk as a share of its path, and the mean cosine between successive steps.
MARCHING, JUMPING, OPPOSED = 0.55, 0.1, -0.4
LONG_MARCH = 5.0  # scales per parameter; every search marches at the beginning
LEAST_STEPS = 6
# Standard errors of a trend in time; at most 2 on still hills, 7 and more on moving ones.
DRIFT = 4.0
LEAST_ALIKE = 3  # equal values that are no coincidence


@dataclass(frozen=True)
class Advice:
    """A sentence about a run, for a person to read, and a code for a program.

    Attributes:
        code: "improved", "no_improvement", "scale_small", …; docs/troubleshooting.md has them all.
        text: the observation, and what to try.
    """

    code: str
    text: str

    def __str__(self) -> str:
        return self.text


class Told(NamedTuple):
    """An evaluation: its value in the objective's sign, why it failed, and whether it was at the start."""

    iteration: int
    kind: str
    value: float | None
    failure: str | None
    is_start: bool


class Step(NamedTuple):
    """The fields of an `Iteration` that the rules use."""

    probability_of_ascent: float | None
    step: Array
    variance: float
    noise: float
    lengthscale: npt.ArrayLike


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The facts that the rules use. Values have the objective's sign."""

    minimize: bool
    naming: Naming
    scale: Sequence[float]  # one number per parameter, as of the bounds; missing bounds are infinite
    lower: Sequence[float]
    upper: Sequence[float]
    count: int  # evaluations so far
    failures: int
    recent: Sequence[str | None]  # for each of the last `RECENT` evaluations the reason of its failure, or None
    alike: float | None  # the common value of all evaluations; None if they differ or are few
    ascents: Sequence[float | None]  # probabilities of ascent of the last `RECENT` iterations, if there is a model
    steps: Sequence[Sequence[float]]  # of these iterations
    lengthscale: Sequence[float] | None  # (d,) of the model
    expected: float | None  # the settings' expected lengthscale in scales; None if it is fixed
    signal: float | None  # the model's signal in standard deviations of the noise
    recommended: Sequence[float]  # (d,)
    values: Sequence[float | None] = ()  # by id, None for a failure; without repeated evaluations of the start
    iterates: Sequence[float] = ()  # values of the iterates
    at_start: Sequence[float] = ()  # values of the start
    baseline: Sequence[float] = ()  # those among them of its repeated evaluations
    since: int = 0  # the index of the first one of `values` of the search from the present start
    violated: Sequence[str] = ()  # which limits the start violates, in words, if it is the recommended point
    batch: int = 1  # evaluations of the first iteration; 0 before the first query is asked
    evaluated: int = 0  # evaluated queries; the others in `count` are points that the run did not ask for
    by_hand: bool = False  # whether a person or another program evaluates, query by query
    iterations: int = 0  # finished ones
    trend: float | None = None  # upward trend of the values in time, in standard errors

    @classmethod
    def of(
        cls, told: Sequence[Told], steps: Sequence[Step | Iteration], begun: int, of_rest: bool = False, **known: Any
    ) -> Facts:
        """The facts of a run.

        Args:
            told: the evaluations, by id.
            steps: of the last iterations at least.
            begun: the iteration in which the search from the present start began.
            of_rest: whether the model's variance is that of what a mean does not explain.
            **known: the other fields.
        """
        machine = [e for e in told if e.kind != SIMULATED]
        own = [e for e in machine if e.kind != BASELINE]
        values, signal = [e.value for e in told if e.value is not None], None
        if steps and not of_rest and steps[-1].variance > 0.0 and steps[-1].noise > 0.0:
            signal = math.sqrt(steps[-1].variance / steps[-1].noise)
        return cls(
            count=len(told),
            failures=sum(e.failure is not None for e in told),
            recent=[e.failure for e in told[-RECENT:]],
            alike=values[0] if len(values) >= LEAST_ALIKE and min(values) == max(values) else None,
            ascents=[step.probability_of_ascent for step in steps[-RECENT:]],
            steps=[step.step.tolist() for step in steps[-RECENT:]],
            lengthscale=np.broadcast_to(steps[-1].lengthscale, len(known["scale"])).tolist() if steps else None,
            signal=signal,
            values=[e.value for e in own],
            iterates=[e.value for e in own if e.kind == ITERATE and e.iteration >= begun and e.value is not None],
            at_start=[e.value for e in machine if e.is_start and e.value is not None],
            baseline=[e.value for e in machine if e.is_start and e.kind == BASELINE and e.value is not None],
            since=sum(e.iteration < begun for e in own),
            evaluated=sum(e.kind != EXTERNAL for e in machine),
            **known,
        )


def start_violates(violated: Sequence[str]) -> Advice:
    """What to do about a start that violates limits."""
    text = (
        f"The start violates a limit: {', '.join(violated)}. The search looks for a point where all limits hold, and "
        "recommends the start until it has found one. Begin at a point that satisfies them, or check the limits."
    )
    return Advice("start_violates", text)


def remarks(facts: Facts) -> list[Advice]:
    """What looks wrong and what to try, the most urgent first."""
    found = [_failures(facts), all_alike(facts), scale_advice(facts), _ascent(facts), _bounds(facts), _drift(facts)]
    if found[1] is not None:  # equal values allow no other advice
        found[2:4] = []
    if facts.violated:
        found.insert(0, start_violates(facts.violated))
    return [advice for advice in found if advice is not None]


# -- what is off ------------------------------------------------------------------------------------------------------


def _failures(facts: Facts) -> Advice | None:
    row = sum(1 for _ in takewhile(lambda failure: failure is not None, reversed(facts.recent)))
    failed = [failure for failure in facts.recent if failure is not None]
    if not failed:
        return None
    reason = f"Last reason: {_short(failed[-1])}"
    if row >= IN_A_ROW:
        return Advice("all_failing", f"The last {row} evaluations failed. {reason}")
    if 2 * facts.failures > facts.count:
        return Advice("most_failed", f"{facts.failures} of {facts.count} evaluations failed. {reason}")
    if len(facts.recent) >= 10 and len(failed) > FAILING_SHARE * len(facts.recent):
        return Advice("many_failing", f"{len(failed)} of the last {len(facts.recent)} evaluations failed. {reason}")
    return None


def all_alike(facts: Facts) -> Advice | None:
    if facts.alike is None:
        return None
    text = (
        f"No improvement: all {facts.count - facts.failures} values are {facts.alike:.6g}, so the search cannot "
        "learn. Try a larger scale, another start, or an objective that also rewards small progress."
    )
    return Advice("all_alike", text)


def _ascent(facts: Facts) -> Advice | None:
    last = facts.ascents[-IN_A_ROW:]
    if len(last) >= IN_A_ROW and all(p is not None and p < UNSURE_ASCENT for p in last):
        verb = "descends" if facts.minimize else "ascends"
        each = f"each {verb} with less than {UNSURE_ASCENT:.0%}"
        seen = f"The last {IN_A_ROW} steps were hardly better than a guess ({each})"
    elif len(facts.steps) >= LEAST_STEPS and _is_fitted(facts) and (facts.signal or math.inf) < FAINT_SIGNAL:
        seen = "The model finds more noise than signal in the values"
    else:
        return None
    text = "the search may have arrived, or the noise hides the slope; average more per evaluation, or stop here."
    return Advice("no_ascent", f"{seen}: {text}")


def scale_advice(facts: Facts) -> Advice | None:
    """Advice on the scale, from the steps and, if the values are clear of the noise, from the lengthscales."""
    ratio, (share, cosine, march) = _found(facts), _walk(facts)
    if ratio is not None and ratio > LENGTHSCALE_RATIO:
        factor = float(f"{ratio:.1g}")
        text = f"The value hardly changes within one scale: the scale looks too small. Try {factor:g} times it."
        return Advice("scale_small", text)
    if share > MARCHING and march > LONG_MARCH and (facts.signal or math.inf) > CLEAR_SIGNAL:
        text = "The search still marches in one direction: the scale looks too small. Try 3 to 10 times it, or go on."
        return Advice("scale_small", text)
    if share < JUMPING and cosine < OPPOSED:
        text = "The search jumps back and forth: the scale looks too large. Try a third to a tenth of it."
        return Advice("scale_large", text)
    return None


def _is_fitted(facts: Facts) -> bool:
    """Whether the hyperparameters depend on enough data and not only on the settings."""
    return facts.count - facts.failures >= 2 * len(facts.scale) + 5


def _found(facts: Facts) -> float | None:
    """The lengthscales relative to the expected ones; None if they are not reliable or the value clearly changes."""
    ell, expected, clear = facts.lengthscale, facts.expected, facts.signal
    if ell is None or expected is None or clear is None or not _is_fitted(facts) or clear <= CLEAR_SIGNAL:
        return None
    ratio = median(length / (scale * expected) for length, scale in zip(ell, facts.scale, strict=True))
    return ratio if clear < VISIBLE_CHANGE * ratio * expected else None


def _walk(facts: Facts) -> tuple[float, float, float]:
    """Net length over path length of the last steps, mean cosine of successive ones, and net length per parameter."""
    steps = np.array(facts.steps).reshape(-1, len(facts.scale)) / np.array(facts.scale)
    lengths = np.linalg.norm(steps, axis=1)
    steps, lengths = steps[lengths > 0.0], lengths[lengths > 0.0]
    if len(steps) < LEAST_STEPS:
        return math.nan, math.nan, math.nan
    cosines = (steps[1:] * steps[:-1]).sum(axis=1) / (lengths[1:] * lengths[:-1])
    net = float(np.linalg.norm(steps.sum(axis=0)))
    share = net / float(lengths.sum())
    most = np.arange(len(steps)) != lengths.argmax()
    without = float(np.linalg.norm(steps[most].sum(axis=0)) / lengths[most].sum())
    arrived = lengths[-LEAST_STEPS // 2 :].mean() < lengths.mean() / 3.0
    if arrived or without <= MARCHING:  # one jump to a far better point, such as a policy that stands, is no march
        share = min(share, MARCHING)
    return share, float(cosines.mean()), net / math.sqrt(steps.shape[1])


def _bounds(facts: Facts) -> Advice | None:
    if facts.count < 20:
        return None
    at = []
    for i, (x, scale, *sides) in enumerate(zip(facts.recommended, facts.scale, facts.lower, facts.upper, strict=True)):
        for side, bound in zip(("lower", "upper"), sides, strict=True):
            if math.isfinite(bound) and abs(x - bound) < 1e-9 * max(scale, abs(bound)):
                at.append(f"{facts.naming.names[i]} (its {side} bound {facts.naming.value(i, bound):.6g})")
    if not at:
        return None
    names = ", ".join(at[:3]) + (f" and {len(at) - 3} more" if len(at) > 3 else "")
    text = f"The recommended point lies on a bound: {names}. If the machine allows more, widen the bounds."
    return Advice("at_bound", text)


def _drift(facts: Facts) -> Advice | None:
    if facts.trend is None or abs(facts.trend) < DRIFT:
        return None
    rising = (facts.trend > 0.0) != facts.minimize
    text = (
        f"The values {'rise' if rising else 'fall'} with time, and the parameters do not explain it: the objective "
        "drifts. Use Settings(drift=True): the search then follows the present objective."
    )
    return Advice("drift", text)


def _short(text: str) -> str:
    line = printable(" ".join(text.split()))
    return line if len(line) <= 160 else line[:159] + "…"
