"""People and a running run: what they ask for is done between two evaluations, recorded, and changes nothing else."""

import json
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from run_helpers import climb, forked, hill, told_in

import gibo
from gibo import InputError, Journal, JournalError, Status
from gibo.runs.mailbox import LARGEST, NOW, Mailbox, post, underway
from gibo.runs.pools import Underway
from gibo.runs.store import BOX

POOLS = {"here": {}, "workers": {"workers": 2}, "executor": {"executor": ThreadPoolExecutor(2)}}


def actions(folder):
    with Journal.read(folder) as journal:
        return [(each.kind, each.body) for each in journal.actions()]


def kinds(folder):
    return [kind for kind, _ in actions(folder)]


def marked(folder, asks):
    """A hill on which somebody asks for something while query n is being evaluated: {n: (kind, body)}."""

    def objective(x, seed):
        for n, messages in asks.items():
            if seed == seeds[n]:
                for message in messages:
                    post(folder, *message)
        return hill(x, seed)

    return objective


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The run that nobody disturbs."""
    return climb(tmp_path_factory.mktemp("alone"), budget=14)


@pytest.fixture(scope="module", autouse=True)
def _seeds(tmp_path_factory):
    """Of the queries of a run, by id."""
    folder = tmp_path_factory.mktemp("seeds")
    climb(folder, budget=14)
    seeds.update({e.id: e.query.seed for e in told_in(folder)})


seeds: dict[int, int] = {}


class Continues:
    """A progress bar that ends each pause, as soon as there is one; it may do something else in it first."""

    def __init__(self, folder, then=(("continued", {}),)):
        self.folder, self.then, self.pauses, self.before = folder, then, 0, False

    def update(self, standing):
        begins, self.before = standing.paused and not self.before, standing.paused
        if begins:
            self.pauses += 1
            for message in self.then:
                post(self.folder, *message)


def assert_same(result, other):
    assert result.history.x.tolist() == other.history.x.tolist()
    assert np.array_equal(result.history.value, other.history.value, equal_nan=True)
    assert result.x.tolist() == other.x.tolist()


@pytest.mark.parametrize("pool", POOLS)
def test_a_pause_changes_nothing_but_the_time(pool, tmp_path, alone):
    objective = marked(tmp_path, {3: [("paused", {})], 8: [("paused", {})]})
    bar = Continues(tmp_path)
    result = climb(tmp_path, objective, budget=14, progress=bar, **POOLS[pool])
    assert_same(result, alone)
    assert result.status is Status.BUDGET_SPENT
    assert bar.pauses == 2
    assert kinds(tmp_path) == ["paused", "continued"] * 2
    assert (tmp_path / BOX).stat().st_size == 0
    assert not (tmp_path / NOW).exists()


def test_in_a_pause_nothing_begins(tmp_path):
    begun = []

    class Counts(Continues):
        def update(self, standing):
            if standing.paused:
                begun.append(len(calls))
            super().update(standing)

    calls = []
    inner = marked(tmp_path, {3: [("paused", {})]})

    def objective(x, seed):
        calls.append(seed)
        return inner(x, seed)

    climb(tmp_path, objective, budget=14, progress=Counts(tmp_path, [("remark", {"text": "in it"}), ("continued", {})]))
    with Journal.read(tmp_path) as journal:
        paused, remark, continued = journal.actions()
    assert set(begun) == {calls.index(seeds[3]) + 1}
    assert paused.after + 1 == remark.after == continued.after  # the one that was running has arrived since


def test_a_stop_lets_the_iteration_end_and_the_run_goes_on_from_there(tmp_path, alone):
    result = climb(tmp_path, marked(tmp_path, {3: [("stop", {})]}), budget=14)
    assert result.status is Status.STOPPED
    assert not result.status.is_regular
    assert result.reason == f"stopped by a person after {result.evaluations} of 14 evaluations"
    assert 4 <= result.evaluations < 14
    with Journal.read(tmp_path) as journal:
        assert journal.starts()[-1].reason == result.reason
        assert len(journal.queries()) == result.evaluations  # nothing is pending
    assert_same(gibo.resume(tmp_path, hill, budget=14), alone)


def test_a_stop_in_a_pause_ends_at_once(tmp_path, alone):
    bar = Continues(tmp_path, [("stop", {})])
    result = climb(tmp_path, marked(tmp_path, {4: [("paused", {}), ("paused", {})]}), budget=14, progress=bar)
    assert (result.status, result.evaluations) == (Status.STOPPED, 5)
    assert kinds(tmp_path) == ["paused", "stop"]
    assert_same(gibo.resume(tmp_path, hill, budget=14), alone)


def test_an_evaluation_is_marked_as_failed_while_it_runs(tmp_path):
    message = ("failed", {"id": 3, "reason": "the gripper slipped"})
    result = climb(tmp_path, marked(tmp_path, {3: [message, message]}), budget=14, retries=2)
    assert [e.failure for e in result.failures if e.id == 3] == ["the gripper slipped"]
    assert actions(tmp_path) == [message]
    assert result.evaluations == 14


def test_a_worker_that_hangs_is_ended_by_a_word(tmp_path):
    def objective(x, seed):
        if seed == seeds[2]:
            post(tmp_path, "failed", {"id": 2, "reason": "it hangs"})
            threading.Event().wait()  # for ever
        return hill(x, seed)

    result = climb(tmp_path, objective, budget=8, workers=2)
    assert [e.failure for e in result.failures if e.id == 2] == ["it hangs"]
    assert result.evaluations == 8


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_value_is_told_by_hand(sign, tmp_path):
    message = ("told", {"id": 3, "value": 2})
    climb(tmp_path, marked(tmp_path, {3: [message]}), budget=8, sign=sign)
    assert {e.id: e.value for e in told_in(tmp_path)}[3] == 2.0
    assert actions(tmp_path) == [message]


def test_what_cannot_be_done_is_passed_over(tmp_path, alone):
    nonsense = [
        ("told", {"id": 0, "value": 1.0}),  # told before
        ("told", {"id": 10**9, "value": 1.0}),
        ("told", {"id": 5, "value": 1e300}),
        ("failed", {"id": -1, "reason": "?"}),
        ("continued", {}),
    ]
    assert_same(climb(tmp_path, marked(tmp_path, {5: nonsense}), budget=14), alone)
    assert actions(tmp_path) == []


def test_of_what_was_left_for_an_earlier_process_only_the_remarks_count(tmp_path, alone):
    climb(tmp_path, budget=8)
    left = [("paused", {}), ("remark", {"text": "belt changed"}), ("stop", {}), ("told", {"id": 8, "value": 1})]
    for message in left:
        post(tmp_path, *message)
    assert_same(gibo.resume(tmp_path, hill, budget=14), alone)
    assert actions(tmp_path) == [("remark", {"text": "belt changed"})]


def until_paused(folder):
    climb(folder, marked(folder, {4: [("paused", {})]}), budget=14)


def test_a_run_that_was_killed_in_a_pause_comes_up_running(tmp_path, alone):
    process = forked(until_paused, tmp_path)
    while not (tmp_path / BOX).exists() or "paused" not in kinds(tmp_path) or len(told_in(tmp_path)) < 5:
        assert process.exitcode is None
        process.join(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert_same(gibo.resume(tmp_path, hill, budget=14), alone)


def test_ctrl_c_in_a_pause_ends_the_run(tmp_path, request):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))

    class Presses:
        pressed = False

        def update(self, standing):
            if standing.paused and not standing.arrived and not self.pressed:
                self.pressed = True
                os.kill(os.getpid(), signal.SIGINT)

    result = climb(tmp_path, marked(tmp_path, {4: [("paused", {})]}), budget=14, progress=Presses())
    assert (result.status, result.evaluations) == (Status.INTERRUPTED, 5)


def test_without_a_journal_nobody_is_heard(tmp_path, alone):
    assert_same(climb(None, marked(tmp_path, {4: [("stop", {})]}), budget=14), alone)


# -- bad will ---------------------------------------------------------------------------------------------------------

LINES = [
    b"not json\n",
    b"[" * 100_000 + b"\n",
    b"[1, 2]\n",
    b'{"kind": "explode"}\n',
    b'{"kind": ["paused"]}\n',
    b'{"kind": "undo"}\n',  # not by mail
    b'{"kind": "told", "id": "4", "value": 1.0}\n',
    b'{"kind": "told", "id": 4, "value": NaN}\n',
    b'{"kind": "told", "id": 4, "value": 1e400}\n',
    b'{"kind": "failed", "id": 4, "reason": 7}\n',
    b'{"kind": "remark", "text": "' + b"x" * 3000 + b'"}\n',
    b"\xff\xfe\n",
    b'{"kind": "stop"',  # somebody died while writing
]


def test_what_makes_no_sense_is_dropped(tmp_path, alone):
    def objective(x, seed):
        if seed == seeds[2]:
            (tmp_path / BOX).write_bytes(b"".join(LINES))
        return hill(x, seed)

    assert_same(climb(tmp_path, objective, budget=14), alone)
    assert actions(tmp_path) == []
    assert (tmp_path / BOX).stat().st_size == 0


def huge(path, tmp_path):
    path.write_bytes(b'{"kind": "stop"}\n' * 20 + b" " * LARGEST)


def twice(path, tmp_path):
    (tmp_path / "precious").write_text('{"kind": "stop"}\n')
    os.link(tmp_path / "precious", path)


def linked(path, tmp_path):
    (tmp_path / "precious").write_text('{"kind": "stop"}\n')
    path.symlink_to(tmp_path / "precious")


def pipe(path, tmp_path):
    os.mkfifo(path)


@pytest.mark.parametrize("make", [huge, twice, linked, pipe])
def test_a_box_that_is_none_of_ours_is_left_alone(make, tmp_path, alone):
    run = tmp_path / "run"

    def objective(x, seed):
        if seed == seeds[2]:
            make(run / BOX, tmp_path)
        return hill(x, seed)

    assert_same(climb(run, objective, budget=14), alone)
    precious = tmp_path / "precious"
    assert not precious.exists() or precious.read_text() == '{"kind": "stop"}\n'
    with pytest.raises(JournalError, match=r"mailbox\.jsonl"):
        post(run, "remark", {"text": "x"})


def test_a_box_that_nobody_empties_is_full_some_day(tmp_path):
    (tmp_path / BOX).write_bytes(b"\n" * (LARGEST - 20))
    with pytest.raises(JournalError, match="it is full; the process of this run does not read it"):
        post(tmp_path, "remark", {"text": "x"})
    with pytest.raises(InputError, match="expected one of paused"):
        post(tmp_path, "undo", {})


def test_what_is_asked_for_is_done_before_it_is_gone(tmp_path):
    post(tmp_path, "remark", {"text": "x"})
    with pytest.raises(ZeroDivisionError):
        Mailbox(tmp_path).deal(lambda kind, body: 1 / 0)
    seen = []
    Mailbox(tmp_path).deal(lambda kind, body: seen.append((kind, body)))
    Mailbox(tmp_path).deal(lambda kind, body: seen.append("again"))
    assert seen == [("remark", {"text": "x"})]


# -- now --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("options", "names"), [({}, {None}), ({"workers": 2}, {"worker 1", "worker 2"})])
def test_what_is_being_evaluated_is_said(options, names, tmp_path):
    said = []

    class Looks:
        def update(self, standing):
            found = underway(tmp_path, os.getpid())
            said.extend(found or [])

    climb(tmp_path, budget=14, progress=Looks(), **options)
    assert {each.worker for each in said} == names
    assert {each.query for each in said} <= set(range(14))
    assert underway(tmp_path, os.getpid()) is None


def test_what_another_says_is_checked(tmp_path):
    good = {"process": 7, "underway": [[3, "worker 1", 1.7e9]]}
    path = tmp_path / NOW
    path.write_text(json.dumps(good))
    assert underway(tmp_path, 7) == [Underway(3, "worker 1", 1.7e9)]
    assert underway(tmp_path, 8) is None
    for bad in ([], {**good, "underway": 3}, {**good, "underway": [[3]]}, {**good, "underway": [["3", None, 1.0]]}):
        path.write_text(json.dumps(bad))
        assert underway(tmp_path, 7) is None
    for worker, since in (("x" * 200, 1.0), (None, float("inf")), (None, "now"), (7, 1.0)):
        path.write_text(json.dumps({**good, "underway": [[3, worker, since]]}))
        assert underway(tmp_path, 7) is None
    path.write_text("[" * 100_000)
    assert underway(tmp_path, 7) is None
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    assert underway(tmp_path, 7) is None
