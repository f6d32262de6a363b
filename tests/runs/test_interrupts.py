"""Ctrl-C: the first ends a run with its result, the second raises; and the end of the parent."""

import math
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from pool_helpers import (
    X0,
    by_id,
    climb,
    everything,
    expected,
    hill,
    is_gone,
    seeds_of,
    started,
    wait_until,
)

import gibo
from gibo import Journal, RandomSearch, Status
from gibo.runs.loop import Interrupts


def run_to_be_interrupted(folder, connection, seconds):
    """A run whose evaluations from the sixth on say that they have begun and then take their time."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stderr = open(folder / "stderr", "w", buffering=1, encoding="utf-8")  # noqa: SIM115
    quick = seeds_of(*range(5))

    def objective(x, seed):
        if seed not in quick:
            child = subprocess.Popen(["sleep", "1000"])
            connection.send([os.getpid(), child.pid])
            time.sleep(seconds)
            child.kill()
            child.wait()
        return hill(x, seed)

    try:
        connection.send(climb(objective, journal=folder / "run", workers=2).reason)
    except KeyboardInterrupt:
        connection.send("KeyboardInterrupt")


def interrupted_run(folder, seconds):
    """Returns the process and, once two evaluations are running, the processes that work on them."""
    ours, theirs = multiprocessing.Pipe()
    process = started(run_to_be_interrupted, folder, theirs, seconds)
    theirs.close()
    return process, ours, [ours.recv() for _ in range(2)]


def test_a_second_ctrl_c_raises_and_nothing_recorded_is_lost(tmp_path):
    process, connection, pids = interrupted_run(tmp_path, 1000.0)
    os.kill(process.pid, signal.SIGINT)
    wait_until(lambda: "Ctrl-C again" in (tmp_path / "stderr").read_text(), "the first one is noticed")
    os.kill(process.pid, signal.SIGINT)
    assert connection.recv() == "KeyboardInterrupt"
    process.join()
    assert process.exitcode == 0
    for pid in (pid for pair in pids for pid in pair):
        wait_until(lambda pid=pid: is_gone(pid), f"process {pid} is gone")
    with Journal.read(tmp_path / "run") as journal:
        assert journal.starts()[-1].reason.startswith("stopped: KeyboardInterrupt")
    assert everything(climb(journal=tmp_path / "run")) == expected("hill")


def test_the_first_ctrl_c_lets_the_running_evaluations_finish_and_records_them(tmp_path):
    """Also if it reaches the workers, as a terminal sends it to a whole group of processes."""
    process, connection, pids = interrupted_run(tmp_path, 1.0)
    assert len({os.getpgid(pid) for pid in (process.pid, *(pid for pair in pids for pid in pair))}) == 3
    os.kill(process.pid, signal.SIGINT)
    for _ in range(2):  # the workers ignore any number of them
        for worker, _ in pids:
            os.kill(worker, signal.SIGINT)
        time.sleep(0.1)  # or two would be one
    assert connection.recv() == "interrupted after 7 of 20 evaluations"
    process.join()
    assert process.exitcode == 0
    assert all(is_gone(pid) for pair in pids for pid in pair)
    assert "the run ends when the running evaluations have returned; Ctrl-C again" in (tmp_path / "stderr").read_text()
    with Journal.read(tmp_path / "run") as journal:
        told = by_id(journal)
        assert journal.starts()[-1].reason == "interrupted after 7 of 20 evaluations"
    assert [e.id for e in told] == list(range(7))
    assert all(e.failure is None for e in told)
    assert everything(climb(journal=tmp_path / "run")) == expected("hill")


@pytest.fixture
def listening():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def pressing(value):
    def objective(x):
        signal.raise_signal(signal.SIGINT)
        if isinstance(value, BaseException):
            raise value
        return value

    return objective


@pytest.mark.usefixtures("listening")
def test_an_evaluation_that_fails_then_stays_pending(tmp_path):
    """A terminal sends Ctrl-C to the processes that the objective has started, too."""
    result = gibo.run(RandomSearch(X0), pressing(RuntimeError("its simulator died")), budget=5, journal=tmp_path)
    assert (result.status, result.evaluations) == (Status.INTERRUPTED, 0)
    assert gibo.resume(tmp_path, lambda x: 1.0).failures == ()


class Signals:
    """Ctrl-C at the k-th call of a function of gibo while a run listens to it."""

    def __init__(self, k):
        self.k, self.calls = k, 0

    def __call__(self, frame, event, argument):
        ours = event == "call" and frame.f_globals.get("__name__", "").startswith("gibo.")
        if ours and isinstance(getattr(signal.getsignal(signal.SIGINT), "__self__", None), Interrupts):
            self.calls += 1
            if self.calls == self.k:
                signal.raise_signal(signal.SIGINT)


def disturbed(signals, folder):
    """A run of eight evaluations."""
    sys.setprofile(signals)
    try:
        return climb(budget=8, journal=folder)
    finally:
        sys.setprofile(None)


@pytest.mark.usefixtures("listening")
def test_at_any_moment_nothing_recorded_is_lost(tmp_path, monkeypatch):
    """After a second one, as after a kill, the journal is what counts."""
    monkeypatch.setattr("gibo.runs.session.VIEWS_AGE", math.inf)  # or the calls would depend on the time
    disturbed(Signals(0), tmp_path / "first")  # what is only computed once is known then
    never = Signals(0)
    calm = everything(disturbed(never, tmp_path / "calm"))
    for k in {1, 2, 3, *range(4, never.calls - 20, never.calls // 5), *range(never.calls - 3, never.calls + 1)}:
        disturbed(Signals(k), tmp_path / f"{k}")
        assert everything(climb(budget=8, journal=tmp_path / f"{k}")) == calm, f"at call {k}"


def run_that_cannot_be_interrupted(connection, threads):
    for _ in range(threads):  # the last one to end closes what the process has open
        threading.Thread(target=time.sleep, args=(1000.0,), daemon=True).start()

    def objective(x):
        child = subprocess.Popen(["sleep", "1000"])
        connection.send([os.getpid(), child.pid])
        return float(sum(range(10**15)))  # in C: it keeps Python's lock, and no handler of a signal ever runs

    gibo.run(RandomSearch(X0, batch=2), objective, budget=2, workers=2)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a thread of the worker has to notice")
@pytest.mark.parametrize("threads", [20])
def test_nor_does_one_that_is_inside_a_c_function_or_what_it_started(threads):
    ours, theirs = multiprocessing.Pipe()
    process = started(run_that_cannot_be_interrupted, theirs, threads)
    pids = [pid for _ in range(2) for pid in ours.recv()]
    assert not any(is_gone(pid) for pid in pids)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    for pid in pids:
        wait_until(lambda pid=pid: is_gone(pid), f"process {pid} is gone")
