"""The query that is known before the others are planned: recorded and sent out first, and nothing else changes."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import gibo
from gibo.errors import JournalError
from gibo.runs.interrupts import held_back
from gibo.runs.journal import Facts, Journal

X0 = [0.0, 0.5]


def hill(x, seed=0):
    return -float(((x - 1.0) ** 2).sum()) + 0.01 * np.random.default_rng(seed).standard_normal()


def climb(objective=hill, **options):
    return gibo.maximize(objective, X0, budget=12, scale=0.3, **options)


def test_the_iterate_is_evaluated_while_the_queries_are_planned(monkeypatch):
    begun, plan = threading.Event(), gibo.GIBO.ask

    def objective(x, seed):
        begun.set()
        return hill(x, seed)

    def ask(self):
        assert begun.wait(30.0), "the iterate was to be out by now"
        queries = plan(self)
        begun.clear()
        return queries

    monkeypatch.setattr(gibo.GIBO, "ask", ask)
    with ThreadPoolExecutor(1) as executor:
        result = climb(objective, executor=executor)
    monkeypatch.undo()
    assert (result.x == climb().x).all()


def test_in_this_process_nothing_can_begin_early(monkeypatch, tmp_path):
    monkeypatch.setattr(Journal, "foreseen", None)
    assert climb(journal=tmp_path).evaluations == 12


@pytest.mark.parametrize("workers", [None, 2])
def test_one_that_was_foreseen_and_never_asked_is_asked_again(tmp_path, workers):
    optimizer = gibo.GIBO(X0, scale=0.3)
    first = optimizer.foreseen()
    with Journal.create(tmp_path, Facts.of(optimizer)) as journal:
        journal.foreseen(first)  # and the process ends here
    with Journal.read(tmp_path) as journal:
        assert journal.queries() == []
        assert len(journal.rows("queries")) == 1
        assert journal.optimizer().waiting == []
    again = climb(journal=tmp_path, workers=workers)
    assert (again.x == climb().x).all()
    with Journal.read(tmp_path) as journal:
        assert [query.id for query in journal.queries()] == list(range(12))
        assert (journal.queries()[0].seed, journal.queries()[0].x.tolist()) == (first.seed, X0)


def test_what_is_out_already_is_recorded_with_the_space_that_was_kept(tmp_path, monkeypatch):
    """The disk fills up between the iterate's record and its batch's: no value is lost, and nothing more is asked."""
    times, record = [], Journal._record_iterations

    def full(self, iterations):
        times.append(1)
        if len(times) == 3:  # the third batch, at the first attempt
            raise JournalError("the disk is full")
        record(self, iterations)

    monkeypatch.setattr(Journal, "_record_iterations", full)
    with ThreadPoolExecutor(1) as executor, pytest.raises(JournalError, match="the disk is full"):
        climb(journal=tmp_path, executor=executor)
    monkeypatch.undo()
    with Journal.read(tmp_path) as journal:
        assert len(journal.rows("batches")) == 3
        assert [t.query.id for t in journal.evaluations()] == list(range(6))
    assert (climb(journal=tmp_path).x == climb().x).all()


def test_an_end_while_the_queries_are_planned_leaves_a_sound_journal(tmp_path, monkeypatch):
    """The iterate is out, and nobody has asked for it yet: its value is dropped, and it is asked for again."""
    times, propose = [], gibo.GIBO._propose

    def interrupted(self):
        times.append(1)
        if len(times) == 3:
            raise KeyboardInterrupt
        return propose(self)

    monkeypatch.setattr(gibo.GIBO, "_propose", interrupted)
    with ThreadPoolExecutor(1) as executor:
        result = climb(journal=tmp_path, executor=executor)
    assert result.reason == "interrupted after 4 of 12 evaluations"
    monkeypatch.undo()
    assert (climb(journal=tmp_path).x == climb().x).all()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_ends_the_run_waits_until_what_belongs_together_is_done(number):
    def interrupt(number, frame):
        raise KeyboardInterrupt

    def block():
        with held_back():
            os.kill(os.getpid(), number)
            done.append(1)

    before, done = signal.signal(number, interrupt), []
    try:
        with pytest.raises(KeyboardInterrupt):
            block()
        assert done
        assert signal.getsignal(number) is interrupt
    finally:
        signal.signal(number, before)
