"""Finding the scale: a user's guess of it may be wrong by ten or thirty.

Until a signal is found, the lengthscales and their prior are rescaled after each iteration:

    too wide     the iterate's value is above most of its queries', more often than by chance:            × 0.1 to 1
                 by how much their values differ over how far they are below it, see `shrunk`
                 or the last step failed, or the queries' values differ by more than noise and the
                 model does not explain them                                                              × 0.5
    too narrow   the model explains the values hardly better than noise alone does, and the iterate is
                 not above most of its queries                                                            × 2.5

What the fit to a batch has shortened counts: where the start is on a bowl's slope the queries around it lie below it,
and the model sees why. How large the noise is shows in the iterate, which is evaluated twice while the scale is not
found. Once the model beats noise by a quarter of a nat per value the scale counts as found. A step counts as failed
when the new iterate's value is two median absolute deviations of the last batch below the last iterate's and the model
agrees which of the two is better; then the search goes back, found or not.

Where noise is large no scale shows a signal, and the search may end ten times as far away, where values are worse. So
when it has widened the scale for some iterations in vain (`Settings.patience`) and the queries that it asked far away
are lower than the first ones, see `is_lower_far_away`, the given scale is taken for right, and the search ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit

from gibo._linalg import Array
from gibo._ranks import lower_by_chance
from gibo.optimizers.surrogate import Model
from gibo.outcome import ITERATE, QUERY, Evaluation

WIDEN, SHRINK, LEAST = 2.5, 0.5, 0.1
EVIDENCE = 0.25  # nats per value
ABOVE = 0.85  # share of its queries that the iterate beats
CHANCE = 0.15  # how likely that may be where nothing differs: of two queries one beats both in a third of all cases
FAILED = 2.0  # median absolute deviations
VARIES = 2.0  # nats
NEAR, FAR = 1.5, 2.0  # times as far away as the first queries: less, and more
LOWER = 0.1  # how likely it may be by chance that what is asked far away is lower
SURE = 0.8  # how sure it is that a standard deviation of few values is no larger than it is taken for


class Finding(NamedTuple):
    """By which factor to rescale (1: not at all), whether the scale is found, and where to go back to, if anywhere."""

    factor: float
    found: bool
    back: Evaluation | None


def look(
    model: Model,
    planned: Array,
    window: Sequence[Evaluation],
    batch: Sequence[Evaluation],
    last: Sequence[Evaluation],
    found: bool,
) -> Finding:
    """What a batch says about the scale.

    Args:
        model: fitted to the window.
        planned: (d,) the lengthscales with which the batch was planned.
        window: the values that the model sees.
        batch: the iteration's evaluations.
        last: those of the iteration before.
        found: whether the scale was found before.
    """
    here, values, queries = _apart(batch)
    if not queries or here is None:
        return Finding(1.0, found, None)
    back = _failed(model, here, [e for e in last if e.value is not None])
    if found:
        return Finding(1.0, True, back)
    chance = by_chance((values, queries), _apart(last)[1:])
    if back is not None or chance <= CHANCE:
        factor = min(SHRINK if back is not None else 1.0, shrunk(values, queries) if chance <= CHANCE else 1.0)
        return Finding(_left(factor, model, planned), False, back)
    if here.iteration == 0:
        return Finding(1.0, False, None)
    if evidence(model) >= EVIDENCE * model.gp.n:
        return Finding(1.0, True, None)
    if varies(window, queries) > VARIES:
        return Finding(_left(SHRINK, model, planned), False, None)
    return Finding(WIDEN if chance == 1.0 else 1.0, False, None)  # an iterate on top may be a hint of the opposite


def by_chance(*iterations: tuple[Sequence[float], Sequence[float]]) -> float:
    """How likely iterates are to beat their m queries as they did if nothing differs: the product of 1/(m + 1).

    Of iterations (the iterate's values, the queries'), the last one first, as far as the iterate's mean is above most.
    """
    p = 1.0
    for values, queries in iterations:
        if not values or not queries or float(np.mean(np.array(queries) < np.mean(values))) < ABOVE:
            break
        p /= len(queries) + 1
    return p


def shrunk(values: Sequence[float], queries: Sequence[float]) -> float:
    """How many times as far away queries should be that lie below the iterate.

    On a bowl whose top is r away, queries at the distance D are lower by D² on average, with a standard deviation of
    2Dr/√d: the smaller it is beside the drop, the farther away they are from where a slope is seen. That of few values
    is taken for larger than it is, as Student's distribution has it.
    """
    m, drop = len(queries), float(np.mean(values) - np.mean(queries))
    if m < 2:
        return SHRINK
    deviation = float(np.std(queries, ddof=1)) * float(stdtrit(m - 1, SURE) / ndtri(SURE))
    return float(np.clip(deviation / drop, LEAST, 1.0)) if drop > 0.0 else 1.0


def is_lower_far_away(window: Sequence[Evaluation], scale: Array) -> bool:
    """Whether what was asked far away is lower, by more than chance, than what was asked about as near as at first."""
    iterations: dict[int, list[Evaluation]] = {}
    for e in window:
        if e.kind in (ITERATE, QUERY):
            iterations.setdefault(e.iteration, []).append(e)
    distances = {k: _distance(batch, scale) for k, batch in iterations.items()}
    first = distances.get(0)
    if not first:  # it left the window, or is too small for floats
        return False

    def asked(least: float, most: float) -> Array:
        those = (k for k, D in distances.items() if D is not None and least < D / first < most)
        return np.array([value for k in those for value in _apart(iterations[k])[2]])

    near, far = asked(0.0, NEAR), asked(FAR, math.inf)
    return min(len(near), len(far)) > 1 and lower_by_chance(far, near) < LOWER


def _distance(batch: Sequence[Evaluation], scale: Array) -> float | None:
    """Of an iteration's queries from its iterate, their median, in scales; None if it has not both."""
    here, _, queries = _apart(batch)
    if here is None or not queries:
        return None
    X = [e.x for e in batch if e.value is not None and not np.array_equal(e.x, here.x)]
    return float(np.median(np.linalg.norm((X - here.x) / scale, axis=1)))


def _left(factor: float, model: Model, planned: Array) -> float:
    """What is left of shrinking the planned lengthscales by a factor after the fit, which may have shortened them."""
    if factor == 1.0:
        return 1.0
    return min(1.0, factor * math.exp(float(np.log(planned / model.gp.kernel.ell(len(planned))).mean())))


def _apart(batch: Sequence[Evaluation]) -> tuple[Evaluation | None, list[float], list[float]]:
    """The iterate, its values, of which there may be two, and those of its queries."""
    here = next((e for e in batch if e.kind == ITERATE and e.value is not None), None)
    valued = [] if here is None else [(e.value, np.array_equal(e.x, here.x)) for e in batch if e.value is not None]
    return here, [value for value, same in valued if same], [value for value, same in valued if not same]


def repeated(window: Sequence[Evaluation]) -> Array:
    """Differences (p,) between the values of an iterate that was evaluated twice in its iteration."""
    iterates = {e.iteration: e for e in window if e.kind == ITERATE}
    pairs = [(iterates[e.iteration], e) for e in window if e.kind == QUERY and e.iteration in iterates]
    return np.array(
        [
            a.value - b.value
            for a, b in pairs
            if a.value is not None and b.value is not None and np.array_equal(a.x, b.x)
        ]
    )


def varies(window: Sequence[Evaluation], queries: Sequence[float]) -> float:
    """How many nats likelier it is that queries differ truly than by noise alone, by p points that were told twice.

    With v the variance of the queries' values and n that of the noise, half of the mean square of the p differences:
    ``p/2·(log(v/n) − 1 + n/v)`` where n < v, the ratio of the highest likelihoods of the differences.
    """
    differences, v = repeated(window), float(np.var(queries))
    if not len(differences) or v == 0.0:
        return 0.0
    ratio = max(0.5 * float((differences**2).mean()) / v, 1e-6)
    return 0.5 * len(differences) * (-math.log(ratio) - 1.0 + ratio) if ratio < 1.0 else 0.0


def evidence(model: Model) -> float:
    """How many nats likelier the values are under the model than as independent noise of unit variance."""
    data = model.gp.observations
    assert data is not None
    return model.gp.log_likelihood + 0.5 * len(data.y) * math.log(2.0 * math.pi) + 0.5 * float(data.y @ data.y)


def _failed(model: Model, here: Evaluation, last: Sequence[Evaluation]) -> Evaluation | None:
    before = next((e for e in last if e.kind == ITERATE), None)
    if before is None or before.value is None or here.value is None:
        return None
    values = np.array([e.value for e in last], dtype=np.float64)
    deviation = float(np.median(np.abs(values - np.median(values))))
    was, now = model.mean(np.array([before.x, here.x]))
    return before if here.value < before.value - FAILED * deviation and was > now else None
