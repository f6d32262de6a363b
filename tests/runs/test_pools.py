"""Where evaluations run makes no difference to a run."""

import functools
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from pool_helpers import (
    SETTINGS,
    X0,
    by_id,
    climb,
    every_pool,
    everything,
    expected,
    hill,
    quiet,
    seeds_of,
    tell_seed,
    uneven,
)

import gibo
from gibo import GIBO, InputError, Journal, RandomSearch
from gibo.optimizers.log import Proceeded
from gibo.runs.session import Session


@every_pool
def test_a_run_with_failures_gradients_and_a_journal_does_not_depend_on_where_it_is_evaluated(pool, tmp_path):
    with pool() as options, quiet():
        result = climb(uneven, budget=30, penalty=-3.0, journal=tmp_path, **options)
    assert everything(result) == expected("uneven")
    with Journal.read(tmp_path) as journal:
        told = by_id(journal)
    for t in told:
        assert (t.outcome.failure is not None) == (t.query.seed % 7 < 2)
        assert t.outcome.info == ({"seed": t.query.seed} if t.query.seed % 7 == 2 else {})
        gradient = None if t.gradient is None else t.gradient.tolist()
        assert gradient == ((2.0 - 2.0 * t.query.x).tolist() if t.query.seed % 7 == 2 else None)
    assert {t.query.seed % 7 for t in told} >= {0, 1, 2}


@every_pool
def test_the_objective_gets_the_querys_seed_and_kind_everywhere(pool, tmp_path):
    with pool() as options:
        climb(tell_seed, budget=11, journal=tmp_path, **options)
    with Journal.read(tmp_path) as journal:
        told = sorted((t for t, _ in journal.evaluations()), key=lambda t: t.query.id)
    assert [t.outcome.info["seed"] for t in told] == seeds_of(*range(11))
    assert [t.outcome.info["kind"] for t in told] == [t.query.kind for t in told]
    assert {t.query.kind for t in told} == {"iterate", "query"}


class Callable:
    def __call__(self, x, *, seed):
        return hill(x, seed)

    @classmethod
    def of_class(cls, x, other=3, seed=0):
        return hill(x, seed)


@pytest.mark.parametrize(
    "objective", [Callable(), functools.partial(Callable.of_class, other=2)], ids=["object", "partial"]
)
def test_a_parameter_named_seed_is_found_in_anything_that_can_be_called(objective):
    assert everything(climb(objective)) == expected("hill")


def test_an_objective_without_a_seed_gets_none():
    seen = []
    climb(lambda x, **others: seen.append(others) or 0.0, budget=3)
    climb(lambda x, /: seen.append({}) or 0.0, budget=3)
    assert seen == [{}] * 6


# -- the next iteration starts before all of one is there -------------------------------------------------------------


class Late:
    """The first query takes until one of the next iteration has begun."""

    def __init__(self, batch):
        self.batch, self.lock, self.calls, self.next_one = batch, threading.Lock(), 0, threading.Event()
        self.waited_in_vain = False

    def __call__(self, x, seed):
        with self.lock:
            number = self.calls
            self.calls += 1
        if number == self.batch:
            self.next_one.set()
        if number == 0 and not self.next_one.wait(timeout=30.0):
            self.waited_in_vain = True
        return hill(x, seed)


@pytest.mark.parametrize(
    ("make", "batch"),
    [(lambda: GIBO(X0, seed=1, settings=SETTINGS), 5), (lambda: RandomSearch(X0, seed=1, batch=5), 6)],
    ids=["GIBO", "RS"],  # the latter's first batch has the start besides
)
def test_with_a_quorum_the_next_iteration_starts_before_a_late_value_and_the_journal_gives_the_same_state(
    make, batch, tmp_path
):
    optimizer, objective = make(), Late(batch)
    with ThreadPoolExecutor(6) as executor:
        result = gibo.run(optimizer, objective, budget=22, executor=executor, quorum=0.8, journal=tmp_path)
    assert not objective.waited_in_vain
    assert result.reason == "the budget of 22 evaluations is spent"
    assert result.evaluations == 22
    with Journal.read(tmp_path) as journal:
        assert any(isinstance(event, Proceeded) for event in journal.events())
        order = [t.query.id for t, _ in journal.evaluations()]
        assert order.index(0) >= 4
        assert Session.of(journal).optimizer.state() == optimizer.state()
    more = gibo.resume(tmp_path, hill, budget=30)
    assert more.evaluations == 30
    with Journal.read(tmp_path) as journal:
        assert journal.spec().quorum == 0.8
        assert sorted(t.query.id for t, _ in journal.evaluations()) == list(range(30))


@pytest.mark.parametrize("kind", [gibo.ARS, gibo.CMAES, gibo.VanillaBO])
def test_a_quorum_is_refused_by_those_that_need_all_values(kind):
    with pytest.raises(InputError, match=f"quorum: {kind.__name__} needs all values of an iteration; use quorum=1"):
        gibo.run(kind(X0, bounds=(-1.0, 1.0)), hill, budget=10, quorum=0.5)
