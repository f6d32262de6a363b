"""Ctrl-C at any moment: at each of many function calls of a short run, once or often."""

import multiprocessing
import os
import shutil
import signal
import sys
from contextlib import suppress

import pytest
from pool_helpers import POOLS, X0, climb, everything, hill, started

import gibo
import gibo.runs.interrupts
from gibo import Journal, RandomSearch, Status
from gibo.runs.interrupts import Interrupts
from gibo.runs.journal import has_journal

BUDGET = 8
# Moments that are tried: so many in between, and this many at each end of a run.
TRIES, EDGE = 7, 3


class Signals:
    """Ctrl-C, so many times, at the k-th call of a function while a run listens to it."""

    def __init__(self, k, times=1):
        self.k, self.times, self.calls = k, times, 0

    def __call__(self, frame, event, argument):
        if event == "call" and isinstance(getattr(signal.getsignal(signal.SIGINT), "__self__", None), Interrupts):
            self.calls += 1
            if self.calls == self.k:
                interrupts = []
                for _ in range(self.times):
                    try:
                        signal.raise_signal(signal.SIGINT)
                    except KeyboardInterrupt as interrupt:
                        interrupts.append(interrupt)
                if interrupts:
                    raise interrupts[-1]


def disturbed(connection, folder, signals, options, start):
    """Sends what the run returned or raised, and which seeds had been evaluated by then."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    log = os.open(folder / "evaluated", os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def objective(x, seed):
        value = hill(x, seed)
        os.write(log, f"{seed}\n".encode())
        return value

    with POOLS[options]() as chosen:
        try:
            sys.setprofile(signals)
            result = start(objective, folder, chosen)
        except KeyboardInterrupt:
            result = None
        finally:
            sys.setprofile(None)
    left = signal.getsignal(signal.SIGINT) is signal.default_int_handler and not gibo.runs.interrupts._entered
    said = None if result is None else (result.status, result.evaluations, everything(result))
    connection.send((said, signals.calls, left))


def maximized(objective, folder, options):
    return climb(objective, budget=BUDGET, journal=folder / "run", **options)


def resumed(objective, folder, options):
    return gibo.resume(folder / "run", objective, budget=BUDGET, **options)


def in_a_child(folder, signals, options="in-process", start=maximized):
    ours, theirs = multiprocessing.Pipe()
    process = started(disturbed, theirs, folder, signals, options, start)
    theirs.close()
    try:
        assert ours.poll(60), "the run hangs"
        said = ours.recv()
        process.join(60)
        assert process.exitcode == 0, "the process hangs"
    finally:
        process.kill()
        process.join()
    return said


def moments(folder, options="in-process", start=maximized):
    """Folders by moments, spread over an undisturbed run, and all of its first and last ones."""
    (folder / "calm").mkdir()
    _, calls, _ = in_a_child(folder / "calm", Signals(0), options, start)
    assert calls > 1000
    for k in sorted({*range(1, EDGE), *range(1, calls, calls // TRIES), *range(calls - EDGE, calls + 1)}):
        (folder / f"{k}").mkdir()
        yield k, folder / f"{k}"


def recorded(folder):
    """How many evaluations the journal has."""
    if not has_journal(folder / "run"):
        return 0
    with Journal.read(folder / "run") as journal:
        return len(journal.evaluations())


def evaluated(folder):
    """How many evaluations have returned."""
    file = folder / "evaluated"
    return len(file.read_text().split()) if file.exists() else 0


def continued(folder):
    """The run once more, undisturbed."""
    return everything(climb(budget=BUDGET, journal=folder / "run"))


@pytest.fixture(scope="module", autouse=True)
def calm(tmp_path_factory):
    """The undisturbed result; and what is imported at the first use is there."""
    return everything(climb(budget=BUDGET, journal=tmp_path_factory.mktemp("calm")))


@pytest.mark.parametrize("options", ["in-process", "workers-2", "threads"])
def test_one_at_any_moment_returns_the_result_and_loses_nothing(options, tmp_path, calm):
    seen = []
    for k, folder in moments(tmp_path, options):
        said, _, restored = in_a_child(folder, Signals(k), options)
        assert said is not None, f"it raised at call {k}"
        status, evaluations, _ = said
        assert evaluations == evaluated(folder) == recorded(folder), f"at call {k}"
        assert restored
        assert continued(folder) == calm, f"at call {k}"
        seen.append(status)
    assert seen.count(Status.INTERRUPTED) > TRIES


def test_one_while_a_run_is_continued(tmp_path, calm):
    climb(budget=3, journal=tmp_path / "before")

    def start(objective, folder, options):
        shutil.copytree(tmp_path / "before", folder / "run")
        return resumed(objective, folder, options)

    for k, folder in moments(tmp_path, start=start):
        said, _, restored = in_a_child(folder, Signals(k), start=start)
        assert said is not None, f"it raised at call {k}"
        assert said[1] == 3 + evaluated(folder) == recorded(folder)
        assert restored
        assert continued(folder) == calm, f"at call {k}"


@pytest.mark.parametrize("times", [2, 6])
@pytest.mark.parametrize("options", ["in-process", "workers-2"])
def test_several_at_once_raise_but_what_is_recorded_is_whole(options, times, tmp_path, calm):
    raised = 0
    for k, folder in moments(tmp_path, options):
        said, calls, restored = in_a_child(folder, Signals(k, times), options)
        assert restored
        if times == 2 and options == "in-process":  # workers are ended by the second, and what they were at is lost
            assert recorded(folder) == evaluated(folder), f"at call {k}"
        assert continued(folder) == calm, f"at call {k}"
        assert (said is None) == (calls >= k)  # runs with workers differ a little in their calls
        raised += said is None
    assert raised > TRIES


def test_six_with_time_between_them_return_the_result(tmp_path, monkeypatch, calm):
    monkeypatch.setattr(gibo.runs.interrupts, "URGENT", 0.0)
    for k, folder in moments(tmp_path, "workers-2"):
        said, _, restored = in_a_child(folder, Signals(k, 6), "workers-2")
        assert said is not None, f"it raised at call {k}"
        assert said[1] == recorded(folder)
        assert restored
        assert continued(folder) == calm, f"at call {k}"


@pytest.fixture
def listening():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("listening")
def test_a_run_within_a_run_ends_both():
    inner = []

    def objective(x):
        inner.append(gibo.run(RandomSearch(X0), lambda x: signal.raise_signal(signal.SIGINT) or 1.0, budget=5))
        return 1.0

    outer = gibo.run(RandomSearch(X0), objective, budget=5)
    assert not inner  # what it returned was not waited for: the evaluation around it was interrupted
    assert (outer.status, outer.evaluations) == (Status.INTERRUPTED, 0)


@pytest.mark.usefixtures("listening")
def test_an_objective_that_takes_no_notice_is_the_last_one():
    def deaf(x):
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return 1.0

    result = gibo.run(RandomSearch(X0), deaf, budget=5)
    assert (result.status, result.evaluations) == (Status.INTERRUPTED, 1)
    assert result.reason == "interrupted after 1 of 5 evaluations"


@pytest.mark.usefixtures("listening")
def test_one_while_closing_is_told_to_those_who_would_go_on():
    result = gibo.run(InterruptedAtTheEnd(X0), lambda x: 1.0, budget=2)
    assert (result.status, result.evaluations) == (Status.INTERRUPTED, 2)
    assert result.reason == "the budget of 2 evaluations is spent; interrupted while closing"


class InterruptedAtTheEnd(RandomSearch):
    def jacobian(self):
        """Asked for once, for the result."""
        signal.raise_signal(signal.SIGINT)
