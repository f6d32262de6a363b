"""Every optimiser: going on before all values are there."""

import pytest
from every_optimizer import IMPATIENT, PATIENT, X0

from gibo import GIBO, InputError, QueryError
from optimizer_helpers import advance, noisy, snapshot


def to_a_batch_of_several(optimizer):
    """Ask until several queries are open at once; with fit-after-iterate the iterate comes alone."""
    while len(optimizer.ask()) < 2:
        query = optimizer.ask()[0]
        optimizer.tell(query, noisy(query))
    return optimizer.ask()


@pytest.mark.parametrize("make", PATIENT)
def test_those_that_need_all_values_do_not_go_on_without(make):
    optimizer = make(X0)
    optimizer.ask()
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
def test_late_values_are_kept_in_their_place_and_the_next_batch_is_asked_meanwhile(make, late_first):
    optimizer = make(X0)
    queries = to_a_batch_of_several(optimizer)
    late = queries[0] if late_first else queries[-1]
    for query in queries:
        if query is not late:
            optimizer.tell(query, noisy(query))
    assert 0.0 < optimizer.told_share < 1.0
    before = optimizer.iteration
    optimizer.proceed()
    assert optimizer.iteration == before + 1
    assert not optimizer.is_pending
    assert optimizer.told_share == 1.0
    asked = optimizer.ask()
    assert late.id in [query.id for query in asked]
    news = [query for query in asked if query.id != late.id]
    assert min(query.id for query in news) > max(query.id for query in queries)
    optimizer.tell(late, 0.123)
    assert [query.id for query in optimizer.ask()] == [query.id for query in news]
    for query in news:
        optimizer.tell(query, noisy(query))
    told = {e.id: e for e in optimizer.evaluations}
    assert told[late.id].value == 0.123
    assert told[late.id].iteration == late.iteration
    assert sorted(told) == list(range(len(told)))
    with pytest.raises(QueryError, match="was told before"):
        optimizer.tell(late, 1.0)


@pytest.mark.parametrize("make", IMPATIENT)
def test_late_values_count(make):
    def later(value):
        optimizer = make(X0, seed=1)
        *others, late = to_a_batch_of_several(optimizer)
        for query in others:
            optimizer.tell(query, noisy(query))
        optimizer.proceed()
        news = [query for query in optimizer.ask() if query.id != late.id]
        optimizer.tell(late, value)
        for query in news:
            optimizer.tell(query, noisy(query))
        advance(optimizer, 1)
        return optimizer

    low, high = later(-3.0), later(3.0)
    if high.log.simulator is None:  # a simulator's value is not the objective's
        assert high.best_seen.value == 3.0
    assert low.iterate.tolist() != high.iterate.tolist()
    if isinstance(low, GIBO):
        assert low.jacobian().mean.tolist() != high.jacobian().mean.tolist()
