"""Maximises an acquisition function over a box: L-BFGS-B from the best of several starts.

An acquisition function rates a query at x. It needs a method for the values at many points and one for the value and
exact gradient at one point. `GradientInformation` and `LogExpectedImprovement` are two; any object with both methods is
another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from gibo._linalg import Array, minimize

# A climb ends when a step gains less than FACTR times the machine's precision, when no component of the slope is above
# PGTOL, or after so many steps.
FACTR, PGTOL, MAXIMUM_STEPS = 1e10, 1e-4, 60


class Acquisition(Protocol):
    """The interface of acquisition functions for `climb`."""

    def __call__(self, x: Array, /) -> Any:
        """Its values (p,) at points (p, d)."""
        ...

    def value_and_gradient(self, x: Array, /) -> tuple[float, Array]:
        """Its value and its gradient (d,) at one point (d,)."""
        ...


def climb(
    acquisition: Acquisition,
    groups: Sequence[Array],
    lower: Array,
    upper: Array,
    *,
    scale: float | Array = 1.0,
    maximum_steps: int = MAXIMUM_STEPS,
) -> tuple[Array, float]:
    """The highest point that is found in the box, and its value.

    All starts are evaluated in one batch; from the best one of each group L-BFGS-B climbs to a local maximum.

    Args:
        acquisition: see the module's docstring; of about unit size, because a climb ends at gains below 1e-6.
        groups: starts inside the box, each group an array (p, d) with p ≥ 1; more groups, more climbs.
        lower, upper: (d,) the box.
        scale: of the parameters, such as their lengthscales; climbs are faster in such units.
        maximum_steps: of one climb.

    Example:
        >>> class Hill:
        ...     def __call__(self, x):
        ...         return -((x - 0.3) ** 2).sum(axis=1)
        ...     def value_and_gradient(self, x):
        ...         return -float(((x - 0.3) ** 2).sum()), -2.0 * (x - 0.3)
        >>> x, value = climb(Hill(), [np.array([[0.9, 0.9], [0.5, 0.1]])], np.zeros(2), np.ones(2))
        >>> x.round(4)
        array([0.3, 0.3])
    """
    starts = np.concatenate(groups)
    # A single start needs no comparison, and a climb never ends below its start.
    values = np.asarray(acquisition(starts)) if len(starts) > 1 else np.array([-np.inf])
    first = int(values.argmax())
    best, highest = starts[first], float(values[first])

    def cost(u: Array) -> tuple[float, Array]:
        value, gradient = acquisition.value_and_gradient(u * scale)
        return -value, gradient * -scale

    end = 0
    for group in groups:
        begin, end = end, end + len(group)
        start = group[int(values[begin:end].argmax())]
        u, lowest = minimize(
            cost, start / scale, lower / scale, upper / scale, factr=FACTR, pgtol=PGTOL, maximum_steps=maximum_steps
        )
        if -lowest > highest:
            best, highest = u * scale, -lowest
    return np.clip(best, lower, upper), highest
