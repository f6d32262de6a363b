"""Every optimiser: what it is told, in which order, failures and points from elsewhere; and what it then believes."""

import numpy as np
import pytest
from every_optimizer import X0, D, every_class, every_optimizer

from gibo import InputError, Optimizer, Query, QueryError
from optimizer_helpers import advance, as_data, noisy, shuffled, snapshot

# -- telling ----------------------------------------------------------------------------------------------------------


@every_optimizer
@pytest.mark.parametrize("order", [lambda queries: queries[::-1], shuffled], ids=["reversed", "shuffled"])
def test_the_order_of_telling_does_not_matter(make, order):
    one, two = make(X0), make(X0)
    assert as_data(advance(one, 4)) == as_data(advance(two, 4, order=order))
    assert as_data(one.ask()) == as_data(two.ask())
    assert one.iterate.tolist() == two.iterate.tolist()
    assert snapshot(one) == snapshot(two)


@every_optimizer
def test_evaluations_are_what_was_told(make):
    optimizer = make(X0)
    asked = advance(optimizer, 2, order=shuffled)
    told = optimizer.evaluations
    assert [e.id for e in told] == [query.id for query in asked]
    assert [e.value for e in told] == [noisy(query) for query in asked]
    assert [e.x.tolist() for e in told] == [query.x.tolist() for query in asked]
    assert [e.kind for e in told] == [query.kind for query in asked]
    assert all(e.failure is None for e in told)


@every_class
def test_unknown_queries_are_refused(make):
    optimizer = make(X0)
    stranger = Query(99, np.zeros(D), 0, "query", 0)
    for _ in range(2):  # before the first ask and after it
        with pytest.raises(QueryError, match="query 99 is unknown"):
            optimizer.tell(stranger, 1.0)
        optimizer.ask()


@every_class
def test_a_query_is_told_once(make):
    optimizer = make(X0)
    first = optimizer.ask()[0]
    optimizer.tell(first, 1.0)
    before = snapshot(optimizer)
    for again in ({"value": 2.0}, {"failed": True}):
        with pytest.raises(QueryError, match=f"query {first.id} was told before"):
            optimizer.tell(first, **again)
    assert snapshot(optimizer) == before
    advance(optimizer, 2)
    with pytest.raises(QueryError, match=f"query {first.id} was told before"):
        optimizer.tell(first, 1.0)


@every_class
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"value": np.nan}, "value: expected a finite"),
        ({"value": 1.0, "gradient": [1.0] * D}, "gradient_noise"),
        ({"value": 1.0, "failed": True}, "or failed, not both"),
    ],
)
def test_mistakes_beside_the_value_are_refused_and_the_query_stays_open(make, arguments, words):
    optimizer = make(X0)
    query = optimizer.ask()[0]
    before = snapshot(optimizer)
    with pytest.raises(InputError, match=words):
        optimizer.tell(query, **arguments)
    assert snapshot(optimizer) == before


# -- failures ---------------------------------------------------------------------------------------------------------


@every_optimizer
def test_failed_queries_are_survived(make):
    optimizer = make(X0)
    for _ in range(6):
        for query in optimizer.ask():
            if query.id % 3 == 1:
                optimizer.tell(query, failed="the robot fell" if query.id % 2 else True)
            else:
                optimizer.tell(query, noisy(query))
    failed = [e for e in optimizer.evaluations if e.failure is not None]
    assert [e.id for e in failed] == [e.id for e in optimizer.evaluations if e.id % 3 == 1]
    assert failed[0].failure == "the robot fell"
    assert all(e.value is None for e in failed)
    assert all(e.value is not None for e in optimizer.evaluations if e.id % 3 != 1)
    assert np.isfinite(optimizer.iterate).all()
    assert np.isfinite(optimizer.best.value)


@every_optimizer
def test_all_may_fail(make):
    optimizer = make(X0, (-1.0, 1.0))
    for _ in range(6):
        for query in optimizer.ask():
            assert np.isfinite(query.x).all()
            optimizer.tell(query, failed=True)
    assert optimizer.best_seen is None
    assert optimizer.best is None
    assert np.isfinite(optimizer.iterate).all()
    advance(optimizer, 3)  # and then it recovers
    assert np.isfinite(optimizer.best.value)


# -- points from elsewhere --------------------------------------------------------------------------------------------


@every_optimizer
def test_points_from_elsewhere_are_accepted(make):
    optimizer = make(X0)
    elsewhere = np.random.default_rng(0).uniform(-0.5, 0.5, (3, D))
    optimizer.tell(elsewhere[0], 1.0)  # before the first ask
    queries = optimizer.ask()
    optimizer.tell(elsewhere[1].tolist(), 2.0)  # within a batch
    assert as_data(optimizer.ask()) == as_data(queries)
    for query in queries:
        optimizer.tell(query, noisy(query))
    optimizer.tell(elsewhere[2], failed="it broke")  # between batches
    told = [e for e in optimizer.evaluations if e.kind == "external"]
    assert [e.x.tolist() for e in told] == elsewhere.tolist()
    assert [e.value for e in told] == [1.0, 2.0, None]
    assert told[2].failure == "it broke"
    assert optimizer.best_seen.value == 2.0
    asked = advance(optimizer, 2)
    ids = [e.id for e in optimizer.evaluations]
    assert ids == list(range(len(ids)))
    assert np.isfinite([query.x for query in asked]).all()


@every_class
@pytest.mark.parametrize(
    "x",
    [
        [0.0] * (D + 1),
        [np.nan] * D,
        None,
    ],
    ids=repr,
)
def test_points_from_elsewhere_must_be_points(make, x):
    optimizer = make(X0)
    before = snapshot(optimizer)
    with pytest.raises(InputError, match="x: expected"):
        optimizer.tell(x, 1.0)
    assert snapshot(optimizer) == before


@every_optimizer
def test_what_the_user_does_to_arrays_does_not_reach_inside(make):
    one, two = make(X0), make(X0)
    point, start = np.array([0.2] * D), np.array(X0)
    one.tell(point, 0.5)
    two.tell(point, 0.5)
    point[:] = 7.0
    changed = make(start)
    start[:] = 7.0
    assert changed.iterate.tolist() == X0
    for optimizer in (one, two):
        advance(optimizer, 2)
    one.iterate[:] = 7.0
    one.best.x[:] = 7.0
    one.best_seen.x[:] = 7.0
    assert as_data(one.ask()) == as_data(two.ask())
    assert snapshot(one) == snapshot(two)


@every_class
def test_a_query_cannot_be_changed_also_of_a_saved_state(make):
    optimizer = make(X0)
    query = optimizer.ask()[0]
    with pytest.raises(AttributeError):
        query.id = 7
    for each in (query, Optimizer.from_state(snapshot(optimizer)).ask()[0]):
        with pytest.raises(ValueError, match="read-only"):
            each.x[0] = 9.0


# -- best -------------------------------------------------------------------------------------------------------------


@every_optimizer
def test_best_is_a_point_with_a_believable_value(make):
    optimizer = make(X0)
    advance(optimizer, 6)
    x, value, interval = optimizer.best
    assert x.shape == (D,)
    assert interval is None or interval[0] <= value <= interval[1]
    values = [e.value for e in optimizer.evaluations]
    assert min(values) - 1.0 < value < max(values) + 1.0


@every_optimizer
def test_it_climbs(make):
    def height(x):
        return -float(((np.asarray(x) - 0.3) ** 2).sum())

    start = [-0.7] * D
    optimizer = make(start)
    advance(optimizer, 15, value=lambda query: height(query.x))
    assert height(optimizer.best.x) > 0.75 * height(start)
    assert height(optimizer.iterate) > 0.75 * height(start)


@every_optimizer
@pytest.mark.parametrize(("factor", "shift"), [(1e9, 0.0), (1e-9, -1e6), (0.0, 3.0)])
def test_objectives_of_any_size_are_survived(make, factor, shift):
    optimizer = make(X0)
    asked = advance(optimizer, 5, value=lambda query: factor * noisy(query) + shift)
    assert np.isfinite([query.x for query in asked]).all()
    assert np.isfinite(optimizer.iterate).all()
    assert np.isfinite(optimizer.best.value)
