"""What a model believes of the start, for a run to say by how much it improved."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gibo._linalg import Array
from gibo.optimizers.log import Log, Reparametrized
from gibo.optimizers.surrogate import Z90, Model, Surrogate
from gibo.outcome import Best


def belief_at_start(present: Model, surrogate: Surrogate, log: Log, x0: Array) -> Best | None:
    """What is believed of x0; None where nothing is known of it.

    It is what a model says that is fitted to the first few batches alone: the present hyperparameters belong to the
    present window, whose values spread otherwise. But where most of what was asked first is far worse than the start,
    such a model says of the start what holds around it. So

    - if what was told of x0 itself, with the noise that the `present` model sees, contradicts it, that is believed: of
      ten runs of LunarLander-v3, whose linear policies start at −132, five had an interval that was too low, up to
      −309, and with it none;
    - else, if the `present` model still has a value of x0, that model of the two is believed to which what was told of
      x0 is nearer. Of 215 runs that it was not chosen by the start's value was in the interval of 192, and with it of
      195; it was off by 6.2 % of what there was to gain, and with it by 5.0 (median).
    """
    first = log.valued[: surrogate.settings.beginning]
    if not first or any(isinstance(event, Reparametrized) for event in log.events):
        return None  # in the latter case what was told first is not where it was
    believed = Surrogate.initial(surrogate.settings, surrogate.coordinates.scale).fit(first).given(first).at(x0)
    told = [e.value for e in log.valued if e.value is not None and np.array_equal(e.x, x0)]
    if not told:
        return believed
    value, (low, high) = _mean(told, present.units.spread * math.sqrt(present.gp.noise))
    least, most = believed.interval or (-math.inf, math.inf)
    if low > most or high < least:
        return Best(x0.copy(), value, (low, high))
    data = present.gp.observations
    if data is None or not (present.coordinates.to(x0) == data.X).all(axis=1).any():
        return believed
    return min(believed, present.at(x0), key=lambda each: abs(each.value - value))


def _mean(values: Sequence[float], deviation: float) -> tuple[float, tuple[float, float]]:
    """The mean of values with noise of that standard deviation, and the interval that holds it with 90 %."""
    mean, half = float(np.mean(values)), Z90 * deviation / math.sqrt(len(values))
    return mean, (mean - half, mean + half)
