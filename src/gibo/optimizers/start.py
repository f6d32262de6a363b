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
    """What a model that is fitted to the first few batches alone believes of x0; None where nothing is known of it.

    The present hyperparameters belong to the present window, whose values spread otherwise. But where most of what was
    asked first ends in a crash, such a model says of the start what holds around it. So if what was told of x0 itself,
    with the noise that the `present` model sees, contradicts it, that is believed: of ten runs of LunarLander-v3, whose
    linear policies start at −132, five had an interval that was too low, up to −309, and with it none.
    """
    first = log.valued[: surrogate.settings.beginning]
    if not first or any(isinstance(event, Reparametrized) for event in log.events):
        return None  # in the latter case what was told first is not where it was
    believed = Surrogate.initial(surrogate.settings, surrogate.scale).fit(first).given(first).at(x0)
    told = [e.value for e in log.valued if e.value is not None and np.array_equal(e.x, x0)]
    if not told:
        return believed
    value, (low, high) = _mean(told, present.units.spread * math.sqrt(present.gp.noise))
    least, most = believed.interval or (-math.inf, math.inf)
    return Best(x0.copy(), value, (low, high)) if low > most or high < least else believed


def _mean(values: Sequence[float], deviation: float) -> tuple[float, tuple[float, float]]:
    """The mean of values with noise of that standard deviation, and the interval that holds it with 90 %."""
    mean, half = float(np.mean(values)), Z90 * deviation / math.sqrt(len(values))
    return mean, (mean - half, mean + half)
