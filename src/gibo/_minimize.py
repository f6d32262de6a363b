"""L-BFGS-B: the one numerical search that fits hyperparameters and climbs acquisition functions."""

from __future__ import annotations

from collections.abc import Callable

from gibo._linalg import Array


def minimize(
    cost: Callable[[Array], tuple[float, Array]],
    start: Array,
    low: Array,
    high: Array,
    *,
    factr: float,
    pgtol: float,
    maximum_steps: int,
) -> tuple[Array, float]:
    """The lowest point that L-BFGS-B finds within the bounds, and the cost there.

    Args:
        cost: its value and gradient at a point; it must give the same for the same point.
        start: where the search begins; (n,).
        low, high: bounds of each coordinate; infinite where there is none.
        factr: stop when the cost falls by less than this times the machine's precision.
        pgtol: stop when no component of the projected gradient is larger.
        maximum_steps: stop after so many.

    Example:
        >>> import numpy as np
        >>> def cost(z):
        ...     return float(z @ z), 2.0 * z
        >>> low, high = np.array([1.0, 2.0]), np.array([np.inf, np.inf])
        >>> minimize(cost, np.array([3.0, 4.0]), low, high, factr=1e7, pgtol=1e-5, maximum_steps=50)
        (array([1., 2.]), 5.0)
    """
    from scipy.optimize import fmin_l_bfgs_b  # here, because it takes as long to load as all the rest

    bounds = list(zip(low.tolist(), high.tolist(), strict=True))
    x, lowest, _ = fmin_l_bfgs_b(cost, start, bounds=bounds, factr=factr, pgtol=pgtol, maxiter=maximum_steps)
    return x, float(lowest)
