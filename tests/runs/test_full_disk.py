"""A disk that is full, a journal that is gone: no value that returned is lost, and the result is in hand."""

import multiprocessing
import os
import re
import resource
import shutil

import numpy as np
import pytest
from run_helpers import SETTINGS, forked, told_in

import gibo
from gibo import JournalError, Outcome, Status
from gibo.runs.store import FILE

pytestmark = pytest.mark.usefixtures("known_versions")

X0 = [0.0, 0.1]
FULL = re.compile(r"disk may be full|No space left on device")


def hill(x, seed):
    return 5.0 - float(((x - 1.0) ** 2).sum()) + 0.1 * float(np.random.default_rng(seed).standard_normal())


def climb(folder=None, objective=hill, budget=12, **options):
    return gibo.maximize(objective, X0, **{"budget": budget, "settings": SETTINGS, "journal": folder, **options})


def points_and_values(result):
    return result.history.x.tolist(), result.history.value.tolist(), result.x.tolist(), result.value


def wordy(calls, words=3000):
    """An objective whose records are large."""

    def objective(x, seed):
        value = hill(x, seed)
        calls.append(value)
        return Outcome(value, info={"log": "x" * words})

    return objective


def reason_of_stopping(run):
    try:
        result = run()
    except JournalError as error:
        return str(error)
    assert result.status is Status.ERROR
    return result.reason


# Where it gets full differs: when the journal is laid out, when queries are recorded, when values are.
@pytest.mark.parametrize(("size", "words", "workers"), [(1230, 9000, None), (1250, 3000, None), (1300, 3000, 2)])
def test_on_a_full_disk_no_value_is_lost_and_the_run_goes_on_when_there_is_space(size, words, workers, disk):
    make, remount = disk
    folder, calls = make(size) / "run", []
    first = climb(folder, wordy(calls, words), budget=60, workers=workers)
    assert first.status is Status.ERROR
    assert FULL.search(first.reason)
    values = [e.value for e in told_in(folder)]
    assert workers or first.history.value.tolist() == values == calls  # workers' calls are not seen here
    assert sorted(first.history.value.tolist()) == sorted(values)
    assert len(values) < 60
    reason = reason_of_stopping(lambda: climb(folder, wordy(calls, words), budget=60))  # at its start, or a bit later
    assert FULL.search(reason)
    remount("size=30m")
    again = climb(folder, wordy(calls, words), budget=60)
    assert points_and_values(again) == points_and_values(climb(budget=60))
    assert sorted(e.id for e in told_in(folder)) == list(range(60))
    assert workers or len(calls) == 60  # each was evaluated once


def test_a_disk_without_room_for_a_journal_is_an_error_before_any_evaluation(disk):
    make, remount = disk
    folder, calls = make(1050) / "run", []
    with pytest.raises(JournalError, match=FULL):
        climb(folder, wordy(calls))
    assert not calls
    remount("size=30m")
    assert points_and_values(climb(folder)) == points_and_values(climb())


def climb_with_small_files(folder, more, connection):
    """No file may grow beyond what the journal keeps as its reserve, and `more` bytes."""
    resource.setrlimit(resource.RLIMIT_FSIZE, ((1 << 20) + more,) * 2)
    calls = []
    result = climb(folder, wordy(calls, 60_000), budget=60)
    connection.send((result.status, result.reason, result.history.value.tolist(), calls))


def test_a_value_that_cannot_be_recorded_is_in_the_reason_and_in_the_result(tmp_path):
    """Files end at several sizes: some ends come while a value is recorded, others while a batch is."""
    noted_values = 0
    for more in (35_000, 65_000, 95_000, 125_000):
        folder = tmp_path / str(more)
        ours, theirs = multiprocessing.Pipe()
        process = forked(climb_with_small_files, folder, more, theirs)
        theirs.close()
        status, reason, values, calls = ours.recv()
        process.join()
        assert process.exitcode == 0
        assert status is Status.ERROR
        assert "the disk may be full" in reason
        assert "\n" not in reason
        assert values == calls
        recorded = [e.value for e in told_in(folder)]
        assert 5 < len(recorded) < 60
        noted = re.search(r"not recorded, so write it down: query (\d+): (\S+)$", reason)
        assert [*recorded, *([float(noted[2])] if noted else [])] == calls
        assert noted is None or int(noted[1]) == len(recorded)
        noted_values += noted is not None
        assert points_and_values(climb(folder, budget=60)) == points_and_values(climb(budget=60))
    assert noted_values > 0


# -- a journal that is gone -------------------------------------------------------------------------------------------


def replaced(folder):
    """Something else in its place."""
    (folder.parent / "other").write_text("mine")
    os.replace(folder.parent / "other", folder / FILE)


GONE = {
    "folder": shutil.rmtree,
    "journal": lambda folder: (folder / FILE).unlink(),
    "replaced": replaced,
    "a folder": lambda folder: ((folder / FILE).unlink(), (folder / FILE).mkdir()),
}


@pytest.mark.parametrize("options", [{}, {"workers": 2}], ids=str)
@pytest.mark.parametrize("lose", GONE.values(), ids=GONE.keys())
def test_a_run_whose_journal_is_gone_stops_with_the_result_in_hand(lose, options, tmp_path):
    folder, calls = tmp_path / "run", []

    def objective(x, seed):
        if "workers" in options:
            return hill(x, seed)
        calls.append(hill(x, seed))
        if len(calls) == 8:
            lose(folder)
        return calls[-1]

    def callback(result):
        if "workers" in options and result.evaluations == 6:
            lose(folder)

    result = climb(folder, objective, callback=callback, **options)
    assert result.status is Status.ERROR
    assert re.match(r"stopped: .*journal\.sqlite: .*(deleted or replaced|a folder|not there any more)", result.reason)
    expected = climb(budget=12).history.value[: result.evaluations]
    assert result.history.value.tolist() == expected.tolist()
    assert result.evaluations == (6 if "workers" in options else 8)
    assert np.isfinite(result.value)
    assert not (folder / FILE).is_file() or (folder / FILE).read_text() == "mine"


def test_a_write_ahead_log_that_is_gone_is_noticed_and_what_was_recorded_stays(tmp_path):
    folder, calls = tmp_path / "run", []

    def objective(x, seed):
        calls.append(hill(x, seed))
        if len(calls) == 8:
            (folder / f"{FILE}-wal").unlink()
        return calls[-1]

    result = climb(folder, objective)
    assert result.status is Status.ERROR
    assert re.match(
        r"stopped: .*journal\.sqlite-wal: it was deleted or replaced during the run; not rec", result.reason
    )
    assert result.history.value.tolist() == calls
    assert [e.value for e in told_in(folder)] == calls[:7]
    assert points_and_values(climb(folder)) == points_and_values(climb())
