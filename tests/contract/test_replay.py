"""Every optimiser: its log, saved or in memory, brings another one to the same place, at any time.

A replay loads what came before the last memo and repeats the rest; here both ways are taken for the same histories.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from every_optimizer import IMPATIENT, OPTIMIZERS, X0, D, every_class

from gibo import GIBO, InputError, Optimizer
from gibo._serialize import Serializable
from gibo.optimizers.log import Asked, Proceeded, Reparametrized, Started, Stepped, Told
from gibo.optimizers.state import repeat
from optimizer_helpers import advance, as_data, noisy, same_from_here_on, snapshot


@dataclass(frozen=True)
class Linear(Serializable):
    """``x' = T x``."""

    matrix: list[list[float]]

    def parameters(self, theta):
        return np.asarray(theta) @ np.array(self.matrix).T

    def gradients(self, g):
        return np.asarray(g) @ np.linalg.inv(np.array(self.matrix))


BOUNDS = ([-1.0, -1.0, -0.3, -0.3], [1.0, np.inf, 0.9, 0.4])
# What may happen, as often as it is to come.
EVENTS = [
    *["point", "failed point", "point with gradient", "start"],
    *["proceed"] * 5,
    *["reparametrize", "reparametrize and move"] * 2,
    *["failed"] * 3,
    *["gradient"] * 4,
    *["value"] * 14,
]


def happens(optimizer, event, rng):
    """One event; where it cannot be now, a value of any query that is pending, after an ask if none is."""
    x = rng.uniform(-0.2, 0.35, D)
    points = {
        "point": {"value": 0.3},
        "failed point": {"failed": "it broke"},
        "point with gradient": {"value": -1.0, "gradient": x, "gradient_noise": 0.1},
    }
    if event in points:
        optimizer.tell(x, **points[event])
        return
    if event == "start" and optimizer.can_start_again:
        optimizer.start_at(x)
        return
    if event == "proceed" and optimizer.uses_late_values and optimizer.is_pending and optimizer.told_share > 0.0:
        optimizer.proceed()
        return
    if event.startswith("reparametrize"):
        for query in optimizer.pending:
            optimizer.tell(query, noisy(query))
        T = np.eye(D) + 0.1 * rng.standard_normal((D, D))
        optimizer.reparametrize(Linear(T.tolist()), move_iterate=event.endswith("move"))
        return
    queries = optimizer.ask()
    query = queries[rng.integers(len(queries))]
    if event == "failed":
        optimizer.tell(query, failed="the robot fell" if query.id % 2 else True)
    elif event == "gradient":
        optimizer.tell(query, noisy(query), gradient=-2.0 * (query.x - 0.3), gradient_noise=[0.01] * D)
    else:
        optimizer.tell(query, noisy(query))


def view(optimizer):
    """All that is seen of an optimiser besides its state."""
    best, seen, jacobian = optimizer.best, optimizer.best_seen, optimizer.jacobian()
    return {
        "iterate": optimizer.iterate.tolist(),
        "iteration": optimizer.iteration,
        "best": None if best is None else (best.x.tolist(), best.value),
        "best seen": None if seen is None else (seen.x.tolist(), seen.value),
        "jacobian": None if jacobian is None else (jacobian.mean.tolist(), jacobian.covariance.tolist()),
        "evaluations": [(e.id, e.x.tolist(), e.value, e.failure, e.kind, e.iteration) for e in optimizer.evaluations],
        "pending": as_data(optimizer.pending),
        "generator": optimizer._rng.bit_generator.state,
        "iterations": [repr(record) for record in optimizer.iterations],
    }


def copies(make, bounds, optimizer):
    """Others that are brought to the same place: by the state, by a replay, by repeating each event."""
    events, text = optimizer.log.events, snapshot(optimizer)
    loaded, repeated, computed_again = (make(X0, bounds, seed=4) for _ in range(3))
    loaded.replay(events)
    for event in events:
        repeat(repeated, event)
        repeat(computed_again, replace(event, memo=None) if isinstance(event, Asked) else event)
    return Optimizer.from_state(text), loaded, repeated, computed_again


@pytest.mark.parametrize(
    ("make", "seed", "bounds"),
    [
        *(pytest.param(*each.values, 1, BOUNDS, id=f"{each.id}-bounds") for each in OPTIMIZERS),
        *(pytest.param(*each.values, 0, None, id=each.id) for each in IMPATIENT),
    ],
)
def test_a_saved_or_repeated_one_is_the_same_at_any_time(make, seed, bounds):
    optimizer, rng = make(X0, bounds, seed=4), np.random.default_rng(seed)
    for i, event in enumerate(rng.permutation(EVENTS)):
        happens(optimizer, event, rng)
        if i % 3 == 0 and not optimizer.is_pending:
            optimizer.ask()
        if (i + seed) % 3:  # other moments with the other seed
            continue
        text, seen = snapshot(optimizer), view(optimizer)
        others = copies(make, bounds, optimizer) if i % 4 == 3 else [Optimizer.from_state(text)]
        for other in others:
            assert snapshot(other) == text
            assert view(other) == seen
        if len(others) > 1:
            asked = as_data(advance(others[0], 1))
            assert all(as_data(advance(other, 1)) == asked for other in others[1:])
    same_from_here_on(Optimizer.from_state(snapshot(optimizer)), optimizer)
    kinds = {type(event) for event in optimizer.log.events}
    assert kinds >= {Asked, Told, Reparametrized}
    assert not isinstance(optimizer, GIBO) or {Stepped, Proceeded, Started} <= kinds


# -- events that cannot be --------------------------------------------------------------------------------------------


@every_class
@pytest.mark.parametrize("matrix", [[[1.0] * D], [[np.nan] * D] * D, np.eye(D + 1).tolist()], ids=["one", "nan", "d+1"])
def test_a_map_into_another_space_is_refused(make, matrix):
    optimizer = make(X0)
    advance(optimizer, 1)
    before = snapshot(optimizer)
    with pytest.raises(ValueError, match=r"the transform's parameters: expected|mismatch"):
        optimizer.reparametrize(Linear(matrix))
    assert snapshot(optimizer) == before
    advance(optimizer, 1)


@pytest.mark.parametrize("make", [p for p in OPTIMIZERS if p.id in ("ars", "cma-es", "random-search")])
def test_those_that_draw_their_points_again_notice_other_points(make):
    told = make(X0, seed=3)
    advance(told, 2)
    told.ask()
    *before, last = told.log.events
    first = last.queries[0]
    for other in ({"x": first.x + 0.01}, {"kind": "iterate"}, {"iteration": 7}):
        optimizer = make(X0, seed=3)
        optimizer.replay(before)
        with pytest.raises(InputError, match="the replay asks other queries than recorded"):
            repeat(optimizer, replace(last, queries=(replace(first, **other), *last.queries[1:])))
