"""Which point a search recommends, and which evaluations it keeps for that beyond its window."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gibo._linalg import Array, solve_lower
from gibo.gp import conditioned
from gibo.optimizers.base import Optimizer
from gibo.optimizers.settings import Settings
from gibo.optimizers.surrogate import Model, Surrogate
from gibo.outcome import ITERATE, Evaluation

# How probable it must be that a point is better than the start, to be recommended in its place. Of 216 runs under large
# noise, most with a wrong scale, 19 ended below the start with it and 57 without; see docs/leaderboard.md.
SURE = 0.95


def recommended(
    optimizer: Optimizer,
    surrogate: Surrogate,
    model: Model,
    window: Sequence[Evaluation],
    first: Sequence[Evaluation],
    iterate: Array,
    failed: bool,
) -> Array:
    """The point (d,) with the highest mean, less `caution` standard deviations, under the model of the window: one of
    the window's within the bounds, or the iterate.

    But not the iterate, which is yet to be evaluated, if evaluations `failed` since the window's first. And where the
    start is remembered it stays the recommended point until the other one is `SURE` to be better: by the window, or, as
    a window forgets what was around the start, by the `first` values that are not in it and the window together.
    """
    settings, inside = surrogate.settings, [e for e in window if np.array_equal(optimizer.clip(e.x), e.x)]
    X = [e.x for e in inside] + ([] if failed and inside else [optimizer.evaluated(iterate)])
    best: Array = X[int(model.lower_bound(np.array(X), settings.caution).argmax())]
    start = next((e.x for e in inside if e.kind == ITERATE and e.iteration == 0), best)
    if not settings.remember or probability_above(model, best, start) >= SURE:
        return best
    if first and probability_above(surrogate.given([*first, *window], settings.sizes[2]), best, start) >= SURE:
        return best
    return start


def probability_above(model: Model, x: Array, y: Array) -> float:
    """Probability that the objective is higher at x than at y, (d,) both; ½ if they are the same point."""
    Z, gp = model.coordinates.to(np.array([x, y])), model.gp
    W = solve_lower(conditioned(gp)[1].L, gp.cross(Z))
    higher, lower = np.asarray(gp.predict(Z).mean)
    variance = float(np.array([1.0, -1.0]) @ (gp.prior_covariance(Z, Z) - W.T @ W) @ np.array([1.0, -1.0]))
    if higher == lower or variance <= 0.0:
        return 0.5 + 0.5 * float(np.sign(higher - lower))
    return 0.5 * math.erfc((lower - higher) / math.sqrt(2.0 * variance))


def worth_keeping(settings: Settings, model: Model, window: Sequence[Evaluation], first: int) -> tuple[int, ...]:
    """Ids of the first value, the start's, and of the point of the window that is best by its lower bound."""
    bound = model.lower_bound(np.array([e.x for e in window]), max(settings.caution, 1.0))
    return tuple(sorted({first, window[int(bound.argmax())].id}))
