"""Every optimiser: Ctrl-C at any place of `ask` and `tell` leaves it whole, and it then goes on as if nothing had been.

Python looks for signals where a function begins and after a call of a function written in C; a profile function that
raises at the k-th of these places is a Ctrl-C that comes just there.
"""

import sys

import pytest
from every_optimizer import IMPATIENT, OPTIMIZERS, X0, D, every_optimizer

from gibo import Optimizer
from optimizer_helpers import advance, as_data, noisy, same_from_here_on, snapshot

# Where a generator is closed that was not used up, Python itself drops an error.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def places(function):
    """How many places there are in a call where a signal would be noticed."""
    seen = 0

    def count(frame, event, argument):
        nonlocal seen
        seen += event in ("call", "c_return")

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return seen


def interrupt(function, k):
    """Call it with a Ctrl-C at the k-th place; returns the error, or None if the call was over before."""
    seen = 0

    def count(frame, event, argument):
        nonlocal seen
        seen += event in ("call", "c_return")
        if seen == k:
            sys.setprofile(None)
            raise KeyboardInterrupt

    sys.setprofile(count)
    try:
        function()
    except KeyboardInterrupt as error:
        return error
    finally:
        sys.setprofile(None)
    return None


def spread(n):
    """About 16 of n places: dense at both ends, where things are begun and finished."""
    near = [1, 2, 3, 5, 8, 13, 21, 34]
    middle = [n // 5, n // 3, n // 2, 2 * n // 3, 4 * n // 5]
    return sorted({k for k in [*near, *middle, *(n - k + 1 for k in near)] if 1 <= k <= n})


def view(optimizer):
    """What a user sees in between."""
    best = optimizer.best
    return optimizer.iterate.tolist(), None if best is None else (best.x.tolist(), best.value)


def told_only(optimizer, query):
    """What is seen once a value is told and before the update is made, which is where an interruption can leave one."""
    twin = Optimizer.from_state(snapshot(optimizer))
    twin.settle = lambda: None
    twin.tell(query, noisy(query))
    return view(twin)


def at_iteration(make, iteration, seed=2):
    optimizer = make(X0, seed=seed)
    optimizer.tell([0.2] * D, 0.1)
    advance(optimizer, iteration)
    return optimizer


@every_optimizer
@pytest.mark.parametrize("iteration", [0, 3])
def test_ask_may_be_interrupted_anywhere(make, iteration):
    optimizer, untouched = (at_iteration(make, iteration) for _ in range(2))
    before = view(untouched)
    number = places(untouched.ask)
    allowed = (before, view(untouched))
    kept = []  # tracebacks that are held, as an interactive session does
    for k in spread(number):
        kept.append(interrupt(optimizer.ask, k))
        assert view(optimizer) in allowed
    assert sum(error is not None for error in kept) > 5
    asked = as_data(optimizer.ask())
    kept.clear()
    assert as_data(optimizer.ask()) == asked == as_data(untouched.ask())
    same_from_here_on(optimizer, untouched)


@every_optimizer
@pytest.mark.parametrize("iteration", [0, 3])
def test_the_last_tell_may_be_interrupted_anywhere(make, iteration):
    optimizer, untouched = (at_iteration(make, iteration) for _ in range(2))
    for each in (optimizer, untouched):
        for query in each.ask()[:-1]:
            each.tell(query, noisy(query))
    (last,) = untouched.ask()
    allowed = [view(untouched), told_only(untouched, last)]
    number = places(lambda: untouched.tell(last, noisy(last)))
    allowed.append(view(untouched))
    kept = []
    for k in spread(number):
        # Once it is told, what is left of it is made up for by the next call, whatever that is.
        tell = (lambda: optimizer.tell(last, noisy(last))) if optimizer.pending else optimizer.settle
        kept.append(interrupt(tell, k))
        assert view(optimizer) in allowed
    assert sum(error is not None for error in kept) > 5
    for query in optimizer.pending:
        optimizer.tell(query, noisy(query))
    asked = as_data(optimizer.ask())
    kept.clear()
    assert as_data(optimizer.ask()) == asked == as_data(untouched.ask())
    same_from_here_on(optimizer, untouched)


@every_optimizer
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 1.0])
def test_each_single_interruption_is_made_up_for(make, share):
    """Interrupted once in an ask and once in the tell that follows."""
    optimizer, untouched = (at_iteration(make, 2) for _ in range(2))
    number = places(untouched.ask)
    interrupt(optimizer.ask, max(1, int(share * number)))
    assert as_data(optimizer.ask()) == as_data(untouched.ask())
    *others, last = untouched.ask()
    for each in (optimizer, untouched):
        for query in others:
            each.tell(query, noisy(query))
    number = places(lambda: untouched.tell(last, noisy(last)))
    interrupt(lambda: optimizer.tell(last, noisy(last)), max(1, int(share * number)))
    for query in optimizer.pending:
        optimizer.tell(query, noisy(query))
    assert as_data(optimizer.ask()) == as_data(untouched.ask())
    same_from_here_on(optimizer, untouched)


@pytest.mark.parametrize("make", [p for p in OPTIMIZERS if p.id in ("ars", "random-search")])
def test_what_an_interruption_leaves_behind_changes_nothing_when_it_is_let_go_of(make):
    """Its frames live as long as the traceback: in an interactive session, until the next error."""
    number, missed = places(at_iteration(make, 1).ask), 0
    for k in range(1, number + 1):
        optimizer, untouched = (at_iteration(make, 1) for _ in range(2))
        held = interrupt(optimizer.ask, k)
        missed += held is None
        for each in (optimizer, untouched):
            advance(each, 1)
        del held
        same_from_here_on(optimizer, untouched, 1)
    assert missed < 3  # where the last call returns


def with_an_interrupted_update(make, monkeypatch, seed=2):
    """All of a batch is told and the update is not made; and one where it is."""
    optimizer, untouched = (at_iteration(make, 1, seed) for _ in range(2))

    def interrupted(self, batch):
        raise KeyboardInterrupt

    *others, last = optimizer.ask()
    for query in others:
        optimizer.tell(query, noisy(query))
    with monkeypatch.context() as patch:
        patch.setattr(type(optimizer), "_update", interrupted)
        with pytest.raises(KeyboardInterrupt):
            optimizer.tell(last, noisy(last))
    for query in untouched.ask():
        untouched.tell(query, noisy(query))
    assert not optimizer.pending
    return optimizer, untouched


@every_optimizer
def test_an_interrupted_update_is_made_before_a_point_from_elsewhere_is_told(make, monkeypatch):
    optimizer, untouched = with_an_interrupted_update(make, monkeypatch)
    for each in (optimizer, untouched):
        each.tell([0.25] * D, 0.7)
    same_from_here_on(optimizer, untouched)


@every_optimizer
def test_an_interrupted_update_is_made_by_the_one_that_loads_the_state(make, monkeypatch):
    optimizer, untouched = with_an_interrupted_update(make, monkeypatch)
    same_from_here_on(Optimizer.from_state(snapshot(optimizer)), untouched)


class Doubled:
    def parameters(self, theta):
        return 2.0 * theta

    def gradients(self, g):
        return 0.5 * g


@every_optimizer
def test_an_interrupted_update_is_made_before_parameters_change_their_meaning(make, monkeypatch):
    optimizer, untouched = with_an_interrupted_update(make, monkeypatch)
    for each in (optimizer, untouched):
        each.reparametrize(Doubled(), move_iterate=True)
    assert as_data(optimizer.ask()) == as_data(untouched.ask())
    assert view(optimizer) == view(untouched)


@pytest.mark.parametrize("make", IMPATIENT)
def test_after_an_interrupted_update_there_is_nothing_to_go_on_without(make, monkeypatch):
    optimizer, untouched = with_an_interrupted_update(make, monkeypatch)
    for each in (optimizer, untouched):
        with pytest.raises(KeyError, match="nothing to go on with"):
            each.proceed()
    same_from_here_on(optimizer, untouched)


@pytest.mark.parametrize("make", [p for p in OPTIMIZERS if p.id == "cma-es"])
def test_one_that_changes_in_place_is_made_again_as_often_as_needed(make):
    optimizer, untouched = (at_iteration(make, 3) for _ in range(2))
    for _ in range(3):
        for k in (40, 80, 120):
            assert interrupt(optimizer.ask, k) is not None
            assert view(optimizer) == view(untouched)
        assert as_data(optimizer.ask()) == as_data(untouched.ask())
        for each in (optimizer, untouched):
            for query in each.ask():
                each.tell(query, noisy(query))
    same_from_here_on(optimizer, untouched)
