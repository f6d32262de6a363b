"""Every optimiser: what it is told, in which order and how late; failures; points from elsewhere; what it believes."""

import numpy as np
import pytest
from every_optimizer import IMPATIENT, PATIENT, X0, D, every_class, every_optimizer

from gibo import InputError, Optimizer, Query, QueryError
from optimizer_helpers import advance, as_data, noisy, shuffled, snapshot


@every_optimizer
def test_the_order_of_telling_does_not_matter_and_evaluations_are_what_was_told(make):
    one, two = make(X0), make(X0)
    asked = advance(one, 4)
    assert as_data(asked) == as_data(advance(two, 4, order=shuffled))
    assert as_data(one.ask()) == as_data(two.ask())
    assert one.iterate.tolist() == two.iterate.tolist()
    assert as_data(Optimizer.from_state(snapshot(two)).ask()) == as_data(one.ask())
    told = [(e.id, e.x.tolist(), e.value, e.kind, e.failure) for e in two.evaluations]
    assert told == [(query.id, query.x.tolist(), noisy(query), query.kind, None) for query in asked]


@every_class
def test_a_query_is_told_once_and_unknown_ones_are_refused(make):
    optimizer = make(X0)
    with pytest.raises(QueryError, match="query 99 is unknown"):
        optimizer.tell(Query(99, np.zeros(D), 0, "query", 0), 1.0)
    first = optimizer.ask()[0]
    with pytest.raises(AttributeError):
        first.id = 7
    for each in (first, Optimizer.from_state(snapshot(optimizer)).ask()[0]):
        with pytest.raises(ValueError, match="read-only"):
            each.x[0] = 9.0
    optimizer.tell(first, 1.0)
    before = snapshot(optimizer)
    for again in ({"value": 2.0}, {"failed": True}):
        with pytest.raises(QueryError, match=f"query {first.id} was told before"):
            optimizer.tell(first, **again)
    assert snapshot(optimizer) == before


@every_class
@pytest.mark.parametrize(
    ("x", "arguments", "words"),
    [
        (None, {"value": np.nan}, "value: expected a finite"),
        (None, {"value": 1.0, "gradient": [1.0] * D}, "gradient_noise"),
        (None, {"value": 1.0, "failed": True}, "or failed, not both"),
        ([0.0] * (D + 1), {"value": 1.0}, "x: expected"),
        ([np.nan] * D, {"value": 1.0}, "x: expected"),
    ],
)
def test_mistakes_are_refused_and_change_nothing(make, x, arguments, words):
    optimizer = make(X0)
    query = optimizer.ask()[0]
    before = snapshot(optimizer)
    with pytest.raises(InputError, match=words):
        optimizer.tell(query if x is None else x, **arguments)
    assert snapshot(optimizer) == before


# -- failures, points from elsewhere ----------------------------------------------------------------------------------


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
    assert all((e.value is None) == (e.failure is not None) for e in optimizer.evaluations)
    assert np.isfinite(optimizer.iterate).all()
    assert np.isfinite(optimizer.best.value)


@every_optimizer
def test_all_may_fail(make):
    optimizer = make(X0, (-1.0, 1.0))
    for _ in range(6):
        for query in optimizer.ask():
            assert np.isfinite(query.x).all()
            optimizer.tell(query, failed=True)
    assert (optimizer.best_seen, optimizer.best) == (None, None)
    assert np.isfinite(optimizer.iterate).all()
    advance(optimizer, 3)  # and then it recovers
    assert np.isfinite(optimizer.best.value)


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
    assert [(e.value, e.failure) for e in told] == [(1.0, None), (2.0, None), (None, "it broke")]
    assert optimizer.best_seen.value == 2.0
    asked = advance(optimizer, 2)
    assert [e.id for e in optimizer.evaluations] == list(range(len(optimizer.evaluations)))
    assert np.isfinite([query.x for query in asked]).all()


@every_optimizer
def test_what_the_user_does_to_arrays_does_not_reach_inside(make):
    start, point = np.array(X0), np.array([0.2] * D)
    one, two = make(start), make(X0)
    one.tell(point, 0.5)
    two.tell(point.tolist(), 0.5)
    start[:] = point[:] = 7.0
    for optimizer in (one, two):
        advance(optimizer, 2)
    one.iterate[:] = one.best.x[:] = one.best_seen.x[:] = 7.0
    assert as_data(one.ask()) == as_data(two.ask())
    assert as_data(Optimizer.from_state(snapshot(two)).ask()) == as_data(one.ask())


# -- best -------------------------------------------------------------------------------------------------------------


@every_optimizer
def test_it_climbs_and_best_has_a_believable_value(make):
    def height(x):
        return -float(((np.asarray(x) - 0.3) ** 2).sum())

    start = [-0.7] * D
    optimizer = make(start)
    advance(optimizer, 15, value=lambda query: height(query.x))
    x, value, interval = optimizer.best
    assert height(x) > 0.75 * height(start)
    assert height(optimizer.iterate) > 0.75 * height(start)
    assert interval is None or interval[0] <= value <= interval[1]
    values = [e.value for e in optimizer.evaluations]
    assert min(values) - 1.0 < value < max(values) + 1.0


@every_optimizer
@pytest.mark.parametrize(("factor", "shift"), [(1e9, 0.0), (1e-9, -1e6), (0.0, 3.0)])
def test_objectives_of_any_size_are_survived(make, factor, shift):
    optimizer = make(X0)
    asked = advance(optimizer, 4, value=lambda query: factor * noisy(query) + shift)
    assert np.isfinite([query.x for query in asked]).all()
    assert np.isfinite(optimizer.iterate).all()
    assert np.isfinite(optimizer.best.value)


# -- going on before all values are there -----------------------------------------------------------------------------


@pytest.mark.parametrize("make", PATIENT)
def test_those_that_need_all_values_do_not_go_on_without(make):
    optimizer = make(X0)
    optimizer.tell(optimizer.ask()[0], 0.5)
    before = snapshot(optimizer)
    with pytest.raises(InputError, match=f"{type(optimizer).__name__} cannot continue before all values"):
        optimizer.proceed()
    assert snapshot(optimizer) == before


@pytest.mark.parametrize("make", IMPATIENT)
def test_going_on_needs_something_told(make):
    optimizer = make(X0)
    for _ in range(2):  # before the first ask and after it
        before = snapshot(optimizer)
        with pytest.raises(QueryError, match="tell at least one first"):
            optimizer.proceed()
        assert snapshot(optimizer) == before
        optimizer.ask()


@pytest.mark.parametrize("make", IMPATIENT)
@pytest.mark.parametrize("late_first", [True, False])
def test_late_values_count_in_their_place_and_the_next_batch_is_asked_meanwhile(make, late_first):
    def later(value):
        optimizer = make(X0, seed=1)
        while len(optimizer.ask()) < 2:  # with fit-after-iterate the iterate comes alone
            optimizer.tell(optimizer.ask()[0], 0.1)
        queries = optimizer.ask()
        late = queries[0] if late_first else queries[-1]
        for query in queries:
            if query is not late:
                optimizer.tell(query, noisy(query))
        assert 0.0 < optimizer.told_share < 1.0
        before = optimizer.iteration
        optimizer.proceed()
        assert (optimizer.iteration, optimizer.is_pending, optimizer.told_share) == (before + 1, False, 1.0)
        news = [query for query in optimizer.ask() if query.id != late.id]
        assert len(news) == len(optimizer.ask()) - 1
        assert min(query.id for query in news) > max(query.id for query in queries)
        optimizer.tell(late, value)
        assert [query.id for query in optimizer.ask()] == [query.id for query in news]
        for query in news:
            optimizer.tell(query, noisy(query))
        told = {e.id: e for e in optimizer.evaluations}
        assert (told[late.id].value, told[late.id].iteration) == (value, late.iteration)
        assert sorted(told) == list(range(len(told)))
        with pytest.raises(QueryError, match="was told before"):
            optimizer.tell(late, 1.0)
        advance(optimizer, 1)
        return optimizer

    low, high = later(-3.0), later(3.0)
    if high.log.simulator is None:  # a simulator's value is not the objective's
        assert high.best_seen.value == 3.0
    assert low.iterate.tolist() != high.iterate.tolist()
