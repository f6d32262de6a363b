"""Executors of all sorts, also such that lose what they were given."""

import os
import threading
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import pytest
from pool_helpers import X0, climb, everything, expected, fork, hill, seeds_of

import gibo
from gibo import RandomSearch
from gibo.runs.pools import Futures


def test_an_executor_stays_open():
    with ThreadPoolExecutor(2) as executor:
        climb(executor=executor, budget=5)
        assert executor.submit(int, "3").result() == 3


def die_of_a_seed(x, seed):
    if seed in seeds_of(8):
        os._exit(3)
    return hill(x, seed)


def test_a_broken_process_pool_stops_the_run_and_it_can_be_resumed(tmp_path):
    with ProcessPoolExecutor(2, mp_context=fork()) as executor:
        result = climb(die_of_a_seed, journal=tmp_path, executor=executor)
        assert result.reason.startswith("stopped: the executor lost evaluation ")
        assert "BrokenProcessPool" in result.reason
        assert 5 <= result.evaluations <= 9
        with pytest.raises(BrokenProcessPool):
            executor.submit(int, "3")
        again = climb(journal=tmp_path, executor=executor)  # and once more with the broken one
        assert again.reason.startswith("stopped: the executor takes no more evaluations: BrokenProcessPool")
        assert again.evaluations == result.evaluations
    with ProcessPoolExecutor(2, mp_context=fork()) as another:
        assert everything(climb(journal=tmp_path, executor=another)) == expected("hill")


def test_an_objective_that_cannot_be_sent_stops_the_run_with_a_reason():
    with ProcessPoolExecutor(1, mp_context=fork()) as executor:
        result = climb(lambda x: 0.0, executor=executor)
    assert result.reason.startswith("stopped: the executor lost evaluation ")
    assert "lost evaluation 0" in result.reason
    assert result.evaluations == 0


class Losing(Executor):
    """The first evaluation is lost, or the third is refused; the others run in threads."""

    def __init__(self, refuse):
        self.refuse, self.submitted, self.pool = refuse, 0, ThreadPoolExecutor(3)

    def submit(self, function, *arguments):
        self.submitted += 1
        if self.refuse and self.submitted == 3:
            raise RuntimeError("cannot schedule new futures")
        if not self.refuse and self.submitted == 1:
            future = Future()
            future.set_exception(OSError("node lost"))
            return future
        return self.pool.submit(function, *arguments)


@pytest.mark.parametrize("refuse", [False, True])
def test_what_runs_when_an_executor_fails_is_waited_for_and_recorded(refuse, tmp_path, monkeypatch):
    executor, calls, noticed = Losing(refuse), [], threading.Event()
    drop_pending = Futures.drop_pending

    def noticing(pool):
        noticed.set()
        return drop_pending(pool)

    def objective(x):
        calls.append(1)
        assert noticed.wait(60.0)  # they run until the failure is known
        return 1.0

    monkeypatch.setattr(Futures, "drop_pending", noticing)
    result = gibo.run(RandomSearch(X0, batch=4), objective, budget=8, executor=executor, journal=tmp_path)
    executor.pool.shutdown()
    assert result.reason.startswith("stopped: the executor ")
    assert result.evaluations == len(calls) > 0
    assert not result.failures
