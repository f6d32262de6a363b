"""Requests to a run: recorded before they are answered, done between two evaluations, and nothing else changes."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from run_helpers import FORK, climb, forked, hill, told_in

import gibo
from gibo import GiboError, InputError, Journal, JournalError, QueryError, Status
from gibo.runs import manual
from gibo.runs.control import FolderControl, control_of, held_here
from gibo.runs.store import FILE

POOLS = {"here": {}, "workers": {"workers": 2}, "executor": {"executor": ThreadPoolExecutor(2)}}


def actions(folder):
    with Journal.read(folder) as journal:
        return [(each.kind, each.body) for each in journal.actions()]


class Acts:
    """A progress bar that makes requests once so many evaluations are told: {n: [request]}."""

    def __init__(self, folder, requests):
        self.folder, self.requests, self.answers = folder, dict(requests), []

    def update(self, standing):
        control = held_here(self.folder)
        for n in [n for n in self.requests if n != "paused" and n <= standing.spent]:
            self.answers += [control.act(request) for request in self.requests.pop(n)]
        if standing.paused and "paused" in self.requests:
            for request in self.requests["paused"]:
                control.act(request)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The run that nobody disturbs."""
    return climb(tmp_path_factory.mktemp("alone"), budget=14)


def assert_same(result, other):
    assert result.history.x.tolist() == other.history.x.tolist()
    assert np.array_equal(result.history.value, other.history.value, equal_nan=True)
    assert result.x.tolist() == other.x.tolist()


@pytest.mark.parametrize("pool", POOLS)
def test_a_pause_changes_nothing_but_the_time(pool, tmp_path, alone):
    pause = [{"action": "pause"}]
    bar = Acts(tmp_path, {3: pause, 8: pause, "paused": [{"action": "continue"}]})
    result = climb(tmp_path, budget=14, progress=bar, **POOLS[pool])
    assert_same(result, alone)
    assert result.status is Status.BUDGET_SPENT
    assert [kind for kind, _ in actions(tmp_path)] == ["paused", "continued"] * 2
    assert bar.answers == [{"ok": True, "recorded": True}] * 2
    assert held_here(tmp_path) is None


def test_in_a_pause_nothing_begins(tmp_path):
    calls = []

    def objective(x, seed):
        calls.append(seed)
        if len(calls) == 4:
            held_here(tmp_path).act({"action": "pause"})
            threading.Timer(0.5, continue_).start()
        return hill(x, seed)

    def continue_():
        begun.append(len(calls))
        held_here(tmp_path).act({"action": "continue"})

    begun = []
    climb(tmp_path, objective, budget=14)
    assert begun == [4]


def test_a_stop_lets_the_iteration_end_and_the_run_goes_on_from_there(tmp_path, alone):
    result = climb(tmp_path, budget=14, progress=Acts(tmp_path, {4: [{"action": "stop"}]}))
    assert result.status is Status.STOPPED
    assert result.reason == f"stopped by a person after {result.evaluations} of 14 evaluations"
    assert result.evaluations == 6
    with Journal.read(tmp_path) as journal:
        assert len(journal.queries()) == result.evaluations  # nothing is pending
    assert_same(gibo.resume(tmp_path, hill, budget=14), alone)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_value_told_for_a_running_evaluation_counts_at_once(sign, tmp_path):
    seen = []

    def objective(x, seed):
        control = held_here(tmp_path)
        if [each.query for each in control.underway()] == [3]:
            assert control.act({"action": "tell", "id": 3, "value": 2})["recorded"]
            assert not control.act({"action": "tell", "id": 3, "value": 2})["recorded"]  # an answer was lost, say
            control.act({"action": "tell", "id": 4, "value": 2.5})  # its evaluation has not begun
            seen.append({e.id: e.value for e in told_in(tmp_path)}[3])
        calls.append(seed)
        return hill(x, seed)

    calls = []
    result = climb(tmp_path, objective, budget=8, sign=sign)
    assert seen == [2.0]
    assert (result.evaluations, len(calls)) == (8, 7)
    told = {e.id: e for e in told_in(tmp_path)}
    assert (told[3].value, told[4].value) == (2.0, 2.5)  # and not what the objective returned
    assert told[4].query.seed not in calls
    assert actions(tmp_path) == [("told", {"id": 3, "value": 2.0}), ("told", {"id": 4, "value": 2.5})]


def test_a_value_that_cannot_be_recorded_ends_the_run_which_has_it(tmp_path):
    def objective(x, seed):
        if [each.query for each in held_here(tmp_path).underway()] == [3]:
            (tmp_path / FILE).unlink()
            with pytest.raises(JournalError, match=r"deleted or replaced.*write it down: query 3: 2\.0"):
                held_here(tmp_path).act({"action": "tell", "id": 3, "value": 2})
        return hill(x, seed)

    result = climb(tmp_path, objective, budget=8)
    assert (result.status, result.evaluations) == (Status.ERROR, 5)
    assert result.history.value[3] == 2.0  # and the last of its batch


@pytest.mark.parametrize(("penalty", "value"), [(None, None), (-7.0, -7.0)])
def test_a_worker_that_hangs_is_ended_by_a_request(penalty, value, tmp_path):
    def objective(x, seed):
        if seed == hanging:
            threading.Event().wait()  # for ever
        return hill(x, seed)

    fallen = {"action": "mark_failed", "id": 2, "reason": "it hangs"}

    class Marks:
        def update(self, standing):
            if standing.spent == 2:  # the other two of the first batch
                threading.Timer(0.1, lambda: held_here(tmp_path).act(fallen)).start()

    climb(tmp_path / "seeds", budget=5)
    hanging = next(e.query.seed for e in told_in(tmp_path / "seeds") if e.id == 2)
    tmp_path = tmp_path / "run"
    result = climb(tmp_path, objective, budget=8, workers=2, progress=Marks(), penalty=penalty, retries=2)
    assert [(e.failure, e.value) for e in result.failures if e.id == 2] == [("it hangs", value)]
    assert result.evaluations == 8


BAD = [
    {"action": "tell", "id": 0, "value": 1.0},  # told before
    {"action": "tell", "id": 5, "value": float("nan")},
    {"action": "tell", "id": 5, "value": True},
    {"action": "tell", "id": "5", "value": 1.0},
    {"action": "mark_failed", "id": 5, "reason": 7},
    {"action": "remark", "text": "x" * 3000},
    {"action": "explode"},
    "pause",
]


def test_a_bad_request_is_refused_and_later_ones_are_heard(tmp_path, alone):
    refused = []

    class Asks:
        def update(self, standing):
            if standing.spent == 5:
                for request in BAD:
                    with pytest.raises(GiboError):
                        held_here(tmp_path).act(request)
                    refused.append(request)
                held_here(tmp_path).act({"action": "remark", "text": "the oil is warm"})

    assert_same(climb(tmp_path, budget=14, progress=Asks()), alone)
    assert len(refused) == len(BAD)
    assert actions(tmp_path) == [("remark", {"text": "the oil is warm"})]


# -- a run that nobody holds ------------------------------------------------------------------------------------------


def by_hand(folder):
    manual.create(folder, manual.Description(["a", "b"], [0.0] * 2, [1.0] * 2, [-5.0] * 2, [5.0] * 2))
    return manual.ask(folder).queries


def test_a_run_that_nobody_holds_is_written_to(tmp_path):
    first, second = by_hand(tmp_path)[:2]
    act, tell = control_of(tmp_path).act, {"action": "tell", "id": first.id, "value": 1.5}
    assert act(tell) == {"ok": True, "recorded": True}
    assert act(tell) == {"ok": True, "recorded": False}
    act({"action": "mark_failed", "id": second.id, "reason": "it fell"})
    act({"action": "remark", "text": "the oil is warm"})
    assert [kind for kind, _ in actions(tmp_path)] == ["told", "failed", "remark"]
    assert [e.value for e in told_in(tmp_path)] == [1.5, None]
    with pytest.raises(QueryError, match=r"query 0 already has another value: value 1\.5"):
        act({**tell, "value": 2.0})
    with pytest.raises(QueryError, match="query 99 is unknown"):
        act({**tell, "id": 99})
    for action in ("pause", "continue", "stop"):
        with pytest.raises(InputError, match="no process works on this run"):
            act({"action": action})


def test_a_run_that_another_process_holds_names_that_process(tmp_path):
    gate, ours = FORK.Event(), FORK.Event()

    def run(folder):
        def objective(x, seed):
            gate.set()
            ours.wait()
            return hill(x, seed)

        climb(folder, objective, budget=3)

    process = forked(run, tmp_path)
    try:
        assert gate.wait(30)
        with pytest.raises(gibo.errors.InUseError, match=rf"in use by process {process.pid}; .* --control"):
            FolderControl(tmp_path)
    finally:
        ours.set()
        process.join()
