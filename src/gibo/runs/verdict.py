"""The result of a run in a sentence: better than its start, not better, or unknown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from gibo.optimizers.model import Z90
from gibo.outcome import Best
from gibo.runs.advice import Advice, Facts, all_alike, remarks, scale_advice

UNLIKELY = 0.00135  # beyond three standard deviations, on one side
SHARE_ABOVE_FIRST = 0.9  # of the last values are better than the first one
LIKELY = 1.2816  # standard errors that a normal variable exceeds with a probability of 10 %


class Estimate(NamedTuple):
    """A value with its 90 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """``0.98 (0.95 to 1.01)``, with as many digits as the interval justifies."""
        width, largest = self.high - self.low, max(map(abs, self))
        digits = 6 if width <= 0.0 or largest <= 0.0 else max(3, min(9, math.ceil(math.log10(largest / width)) + 1))
        return f"{self.value:.{digits}g} ({self.low:.{digits}g} to {self.high:.{digits}g})"


def estimate(best: Best | None) -> Estimate | None:
    """A model's estimate of a point's value; None without a model."""
    return None if best is None or best.interval is None else Estimate(best.value, *best.interval)


def advise(facts: Facts, start: Best | None, end: Best | None) -> list[Advice]:
    """The verdict, and what to try next."""
    first = verdict(facts, start, end)
    return [first, *(remark for remark in remarks(facts) if remark.code != first.code)]


def verdict(facts: Facts, start: Best | None, end: Best | None) -> Advice:
    """The result of a run in a sentence.

    Args:
        facts: see there.
        start, end: the start and the recommended point, with the model's estimates.
    """
    values, batch = facts.values, facts.batch
    known = [value for value in values if value is not None]
    if not values:
        return Advice("nothing", "Nothing was evaluated.")
    if not known:
        text = f"No value from {_count(len(values), 'evaluation')}; call the objective once by itself."
        return Advice("all_failed", text)
    same = all_alike(facts)
    if same is not None:
        return same
    if not facts.iterations:
        if not batch:
            values_known = _count(len(values), "value is known", "values are known")
            text = f"No query was asked yet. {values_known}; the search starts at the best of them."
            return Advice("nothing_asked", text)
        text = f"No step was made: {facts.evaluated} of the {batch} evaluations that the first iteration takes."
        if not facts.by_hand:
            text += f" Give a budget of several iterations, {10 * batch} say."
        return Advice("budget_small", text)
    begun, reached = estimate(start), estimate(end)
    if begun is None or reached is None:
        return _by_means(facts, known, batch)
    # A model that takes noise for a signal trusts the luckiest point, so the values themselves must have risen, too:
    # those of the iterates, or all values if there are few iterates. Queries are no evidence, because they go farther
    # and fall lower the more the model knows.
    since = [value for value in values[facts.since :] if value is not None]
    if len(since) < 6:
        return _too_few(since)
    if start is not None and end is not None and np.array_equal(start.x, end.x):
        return _no_improvement(facts, f"the start is recommended, {reached}; nothing was surely better")
    witnesses = [each for each in (facts.iterates, since) if len(each) >= 6]
    again = _baseline_now(facts)
    thirds = [(again or each[: len(each) // 3], each[-(len(each) // 3) :]) for each in witnesses]
    risen = any(_rise(facts, _mean(first), _mean(last)) > LIKELY / Z90 for first, last in thirds)
    # By ranks, because one relapse among high values makes means and a model's intervals as wide as the gain.
    worse_and_better = [(last, first) if facts.minimize else (first, last) for first, last in thirds]
    surely = any(lower_by_chance(*each) < UNLIKELY for each in worse_and_better)
    last = thirds[-1][1] if thirds else since  # a run that arrived early also has high values in its first third
    first = fmean(again) if again else since[0]
    better = [value < first if facts.minimize else value > first for value in last]
    risen = risen or sum(better) >= SHARE_ABOVE_FIRST * len(last)
    at_end = "at the recommended point, in the model's 90 % intervals"
    return _compared(facts, begun, reached, _at_start(facts), at_end, risen, surely)


def _by_means(facts: Facts, known: Sequence[float], batch: int) -> Advice:
    """The verdict without a model: the values of the start against the last values.

    The first values of a search are no substitute for the start's: with a far too large scale they are far below.
    """
    k = min(max(batch, len(known) // 10), len(known) // 2)
    if k < 2:
        return _too_few(known)
    first, last = _mean(known[:k]), _mean(known[-k:])
    at_end = f"of the last {k} values, means with their 90 % intervals"
    if not facts.at_start:
        course = f"The values went from {first} of the first {k} to {last} {at_end}"
        unknown = "The value of the start is not known: evaluate x0 too, or give its value in data="
        return Advice("start_unknown", f"{course}. {unknown}.")
    at_start = _baseline_now(facts) or facts.at_start
    half = Z90 * stdev(known[-k:]) / math.sqrt(len(at_start))
    value = fmean(at_start)
    return _compared(facts, Estimate(value, value - half, value + half), last, _at_start(facts), at_end, True)


def _baseline_now(facts: Facts) -> Sequence[float]:
    """The last third of the start's repeated values: its present value, even with a drift."""
    n = len(facts.baseline)
    return facts.baseline[-max(2, n // 3) :] if n >= 2 else ()


def _at_start(facts: Facts) -> str:
    n = min(len(facts.baseline), len(facts.at_start) - 1)  # the first value may be one of them
    return f"at the start (evaluated again {_count(n, 'time')})" if n > 0 else "at the start"


def _too_few(known: Sequence[float]) -> Advice:
    return Advice("too_few", f"{_count(len(known), 'value')}: too few for a verdict.")


def _mean(values: Sequence[float]) -> Estimate:
    mean, half = fmean(values), Z90 * stdev(values) / math.sqrt(len(values))
    return Estimate(mean, mean - half, mean + half)


def _compared(
    facts: Facts, start: Estimate, end: Estimate, at_start: str, at_end: str, risen: bool, surely: bool = False
) -> Advice:
    course = f"from {start} {at_start} to {end} {at_end}"
    rise = _rise(facts, start, end)
    if (risen and rise > 1.0) or (surely and rise > 0.0):
        return Advice("improved", f"Improved by {abs(end.value - start.value):.3g}: {course}.")
    return _no_improvement(facts, course)


def _no_improvement(facts: Facts, course: str) -> Advice:
    scale = scale_advice(facts)
    size = "smaller" if scale is not None and scale.code == "scale_large" else "larger"
    text = f"No improvement beyond the noise: {course}. Try a {size} scale or a larger budget, or average measurements."
    return Advice("no_improvement", text)


def _rise(facts: Facts, start: Estimate, end: Estimate) -> float:
    """The improvement divided by half of its interval; the two estimates count as independent."""
    if (end.high < start.low) if facts.minimize else (end.low > start.high):
        return math.inf  # no matter how far the intervals reach on their other sides
    doubt = math.hypot(start.high - start.low, end.high - end.low) / 2.0
    gain = (end.value - start.value) * (-1.0 if facts.minimize else 1.0)
    return gain / doubt if doubt > 0.0 else math.copysign(math.inf, gain) if gain else 0.0


def _count(n: int, what: str, several: str = "") -> str:
    return f"{n} {what if n == 1 else several or what + 's'}"


def lower_by_chance(some: npt.ArrayLike, others: npt.ArrayLike) -> float:
    """The approximate p-value of Mann and Whitney's test that the first values are lower than the others.

    >>> round(lower_by_chance([1.0, 2.0, 2.5], [3.0, 4.0, 5.0]), 3)
    0.04
    """
    some, ordered = np.asarray(some, dtype=np.float64), np.sort(np.asarray(others, dtype=np.float64))
    m, n = len(some), len(ordered)
    # The number of pairs in which the first value is higher; equal pairs count half.
    above = 0.5 * sum(float(ordered.searchsorted(some, side).sum()) for side in ("left", "right"))
    return float(ndtr((above - 0.5 * m * n + 0.5) / math.sqrt(m * n * (m + n + 1) / 12.0)))
