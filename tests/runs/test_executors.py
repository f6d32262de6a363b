"""Executors of all sorts, also such that lose what they were given."""

import os
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import pytest
from pool_helpers import climb, everything, expected, fork, hill, seeds_of

import gibo
from gibo import Journal


def test_an_executor_stays_open():
    with ThreadPoolExecutor(2) as executor:
        climb(executor=executor, budget=5)
        assert executor.submit(int, "3").result() == 3


def test_an_executor_that_is_shut_down_stops_the_run_and_it_can_be_resumed(tmp_path):
    executor = ThreadPoolExecutor(2)
    result = climb(journal=tmp_path, executor=executor, callback=lambda so_far: executor.shutdown(), budget=20)
    assert result.reason.startswith("stopped: the executor takes no more evaluations: RuntimeError: ")
    assert result.evaluations == 5
    with Journal.read(tmp_path) as journal:
        assert journal.starts()[-1].reason == result.reason
    with ThreadPoolExecutor(2) as another:
        assert everything(gibo.resume(tmp_path, hill, executor=another)) == expected("hill")


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
