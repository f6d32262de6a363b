"""Whatever happens to an evaluation, in a worker or here, does not end the run."""

import faulthandler
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import time
from contextlib import closing

import numpy as np
import pytest
from pool_helpers import (
    SETTINGS,
    X0,
    broken,
    climb,
    everything,
    expected,
    failing_for,
    fork,
    hill,
    is_gone,
    seeds_of,
    wait_until,
)

import gibo
from gibo import FailedEvaluationWarning, Journal, RandomSearch
from gibo.runs import manual
from gibo.runs.control import control_of
from gibo.runs.store import FILE


def test_the_warning_shows_the_traceback():
    with pytest.warns(FailedEvaluationWarning) as caught:
        result = climb(failing_for(seeds_of(1, 2, 3), broken), workers=2)
    (warning,) = caught  # of the first one only
    text = str(warning.message)
    assert "Traceback (most recent call last)" in text
    assert 'raise ZeroDivisionError("the robot fell")' in text
    assert "in broken" in text
    assert [failure.id for failure in sorted(result.failures, key=lambda f: f.id)] == [1, 2, 3]
    assert all("in broken" in failure.outcome.traceback for failure in result.failures)


def crash(number):
    def how(x):
        faulthandler.disable()  # or it would fill the tests' output
        os.kill(os.getpid(), number)

    return how


DEATHS = {
    "exit": (lambda x: os._exit(3), "the worker process ended with exit code 3 during the evaluation"),
    "kill": (crash(signal.SIGKILL), "died of SIGKILL during the evaluation, perhaps because of a lack of memory"),
}


@pytest.mark.parametrize(("how", "words"), DEATHS.values(), ids=DEATHS.keys())
def test_a_worker_that_dies_is_replaced_and_its_evaluation_counts_as_failed(how, words, tmp_path):
    with pytest.warns(FailedEvaluationWarning, match="evaluation 2 failed and is passed over"):
        result = climb(failing_for(seeds_of(2), how), budget=9, workers=2, journal=tmp_path)
    assert result.evaluations == 9
    (failure,) = result.failures
    assert failure.id == 2
    assert words in failure.failure
    with Journal.read(tmp_path) as journal:
        assert [t.outcome.failure for t, _ in journal.evaluations() if t.query.id == 2] == [failure.failure]


def test_what_a_dead_worker_left_behind_is_ended_too():
    """Also if that holds the connection to the worker open, as the child of a fork does."""
    ours, theirs = multiprocessing.Pipe()

    def objective(x, seed):
        if seed in seeds_of(1):
            child = fork().Process(target=time.sleep, args=(1000.0,))
            child.start()
            theirs.send(child.pid)
            os._exit(3)
        return hill(x, seed)

    with pytest.warns(FailedEvaluationWarning, match="exit code 3"):
        climb(objective, budget=7, workers=2)
    left = ours.recv()
    wait_until(lambda: is_gone(left), "it is gone")


def test_a_worker_that_dies_while_idle_is_replaced():
    def callback(result):
        children = [child for child in multiprocessing.active_children() if child.pid not in before]
        assert len(children) == 2
        for child in children:
            os.kill(child.pid, signal.SIGKILL)
            child.join()

    before = {child.pid for child in multiprocessing.active_children()}
    assert everything(climb(workers=2, callback=callback)) == expected("hill")


def slow_with_a_child(pids):
    def how(x):
        child = subprocess.Popen(["sleep", "1000"])
        pids.send([os.getpid(), child.pid])
        time.sleep(1000.0)

    return how


def test_the_time_limit_ends_the_process_and_what_it_started(tmp_path):
    ours, theirs = multiprocessing.Pipe()
    objective = failing_for(seeds_of(1), slow_with_a_child(theirs))
    with pytest.warns(FailedEvaluationWarning, match=r"evaluation 1 failed .*the time limit of 0\.5 s"):
        result = climb(objective, budget=7, time_limit=0.5, journal=tmp_path)
    worker, grandchild = ours.recv()
    wait_until(lambda: is_gone(worker), "the worker is gone")
    wait_until(lambda: is_gone(grandchild), "what it started is gone")
    assert not ours.poll()
    assert result.evaluations == 7
    (failure,) = result.failures
    assert failure.failure == "the time limit of 0.5 s per evaluation was exceeded, and its process was ended"
    with Journal.read(tmp_path) as journal:
        (told,) = [t for t, _ in journal.evaluations() if t.query.id == 1]
    assert told.outcome.seconds >= 0.5


def test_evaluations_that_wait_for_a_worker_are_not_charged_for_the_time(tmp_path):
    def objective(x):
        time.sleep(0.1)
        return 0.0

    result = gibo.run(RandomSearch(X0, batch=8), objective, budget=8, workers=1, time_limit=0.6)
    assert result.failures == ()


def test_a_transient_failure_recovers(tmp_path):
    def transient(x, seed):
        marker = tmp_path / f"{seed}"
        attempts = len(marker.read_text()) if marker.exists() else 0
        if seed % 3 == 0 and attempts < 2:
            marker.write_text("x" * (attempts + 1))
            raise ConnectionError("try again")
        return hill(x, seed)

    with pytest.warns(FailedEvaluationWarning, match="failed and is tried again: ConnectionError"):
        result = climb(transient, retries=2, journal=tmp_path / "run", workers=2)
    assert everything(result) == expected("hill")
    with Journal.read(tmp_path / "run") as journal:
        attempts, queries = journal.attempts(), journal.queries().values()
    assert attempts == {query.id: 2 for query, _ in queries if query.seed % 3 == 0}
    assert len(attempts) > 1
    with closing(sqlite3.connect(tmp_path / "run" / FILE)) as connection:
        rows = connection.execute("SELECT failure, traceback FROM attempts").fetchall()
    assert len(rows) == sum(attempts.values())
    assert all(failure == "ConnectionError: try again" and "transient" in trace for failure, trace in rows)


def test_the_penalty_is_what_the_optimizer_sees():
    def penalised(x, seed):
        return -2.5 if seed % 3 == 0 else hill(x, seed)

    def failing(x, seed):
        return np.nan if seed % 3 == 0 else hill(x, seed)

    with pytest.warns(FailedEvaluationWarning, match="failed and is given the penalty"):
        result = climb(failing, penalty=-2.5, workers=5)
    plain = climb(penalised)
    assert result.history.x.tolist() == plain.history.x.tolist()
    assert result.history.value.tolist() == plain.history.value.tolist()
    assert len(result.failures) == (plain.history.value == -2.5).sum() > 2


def test_the_penalty_of_a_minimised_objective_is_in_its_own_sign():
    with pytest.warns(FailedEvaluationWarning):
        result = gibo.minimize(lambda x: np.nan, X0, budget=3, settings=SETTINGS, penalty=7.0)
    assert result.history.value.tolist() == [7.0] * 3


@pytest.mark.parametrize(
    "tell",
    [
        manual.tell,
        lambda folder, i, failed: control_of(folder).act({"action": "mark_failed", "id": i, "reason": failed}),
    ],
)
def test_a_failure_that_is_told_by_hand_has_the_penalty_too(tell, tmp_path):
    gibo.maximize(hill, X0, budget=2, settings=SETTINGS, penalty=-2.5, journal=tmp_path)
    with gibo.Journal.read(tmp_path) as journal:
        number = min(journal.queries().keys() - {e.id for e, _ in journal.evaluations()})
    for _ in range(2):  # the very same may be told again
        tell(tmp_path, number, failed="it fell")
    with gibo.Journal.read(tmp_path) as journal:
        (failed,) = [e for e, _ in journal.evaluations() if e.id == number]
    assert (failed.value, failed.failure) == (-2.5, "it fell")
