"""The journal: what is written is what is read, one writer at a time, and damage is never taken for content."""

import json
import multiprocessing
import os
import re
import shutil
import signal
import sqlite3
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gibo
from gibo import GIBO, InputError, Journal, JournalError, Outcome, Query, RandomSearch, Settings
from gibo.runs.evaluation import Answer
from gibo.runs.journal import FILE, TABLES, Facts

DATA = Path(__file__).parent.parent / "data" / "journal-v1"
SETTINGS = Settings(lengthscale=1.0, variance=1.0, noise=0.01, M=2, N_m=12)
D = 2


def hill(x, seed):
    """A noisy hill that fails now and then and has more to tell than its value."""
    rng = np.random.default_rng(seed)
    if rng.random() < 0.1:
        raise RuntimeError("it broke")
    value = 5.0 - float(((x - 1.0) ** 2).sum()) + 0.1 * rng.standard_normal()
    return Outcome(value, gradient=2.0 - 2.0 * x, gradient_noise=0.1, info={"steps": int(seed % 100), "x": x.tolist()})


def climb(folder, objective=hill, budget=12, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gibo.FailedEvaluationWarning)
        return gibo.maximize(
            objective, [0.0] * D, **{"budget": budget, "settings": SETTINGS, "journal": folder, **options}
        )


def content(folder):
    """All that a reader can see; its text distinguishes floats to the last bit."""
    with Journal.read(folder) as journal:
        told = [(vars(t.query) | {"x": t.query.x.tolist()}, t.answer, t.told) for t in journal.evaluations()]
        return repr((journal.facts(), journal.starts(), told, journal.optimizer().state()))


def forked(target, *arguments):
    """A process that starts in milliseconds."""
    process = multiprocessing.get_context("fork").Process(target=target, args=arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forking beside threads
        process.start()
    return process


# -- what is written is what is read ----------------------------------------------------------------------------------

finite = st.floats(allow_nan=False, allow_infinity=False)
vectors = st.lists(finite, min_size=D, max_size=D)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
answers = st.builds(
    Answer,
    value=st.none() | finite,
    gradient=st.none() | vectors,
    gradient_noise=st.none() | vectors,
    info=st.none() | st.dictionaries(st.text(), plain, max_size=3),
    failure=st.none() | st.text(st.characters()),  # halves of characters too
    traceback=st.none() | st.text(st.characters()),
    seconds=st.floats(0.0, 1e9).map(abs),
)


def batch_of(points, first=0, iteration=0):
    return [Query(first + i, np.array(x), i * 7 + 2**31, "query", iteration) for i, x in enumerate(points)]


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(given_answers=st.lists(answers, min_size=1, max_size=8), points=st.lists(vectors, min_size=8, max_size=8))
def test_queries_and_answers_come_back_exactly_and_in_their_order_of_arrival(given_answers, points):
    batch = batch_of(points)
    arrivals = [(7 - i, answer) for i, answer in enumerate(given_answers)]  # backwards
    with tempfile.TemporaryDirectory() as folder:
        with Journal.create(folder, Facts.of(RandomSearch([0.0] * D, batch=8))) as journal:
            journal.asked(batch, np.zeros(D), {"generator": 3})
            journal.told(arrivals[:3])
            journal.told(arrivals[3:])
        with Journal.read(folder) as journal:
            queries, told = journal.queries(), journal.evaluations()
    as_data = [(q.id, q.x.tolist(), q.seed, q.kind, q.iteration) for q in batch]
    assert repr([(q.id, q.x.tolist(), q.seed, q.kind, q.iteration) for q in queries]) == repr(as_data)
    assert repr([(t.query.id, t.answer) for t in told]) == repr(arrivals)


EXTREMES = [1e-308, 5e-324, 2.2250738585072014e-308, 1e308, sys.float_info.max, -sys.float_info.max, 0.1, 1 / 3, 1e22]
EXTREMES += [2.0**53, 2.0**53 + 2.0, 2.0**63, -(2.0**63), 9007199254740993.0, 0.0, 1.0, -1.0]


@pytest.mark.parametrize("value", EXTREMES, ids=repr)
def test_extreme_floats_come_back_exactly(tmp_path, value):
    batch = batch_of([[value, -value]])
    answer = Answer(value, [value, -value], [abs(value)] * D, {"x": value})
    with Journal.create(tmp_path / "run", Facts.of(RandomSearch([0.0] * D))) as journal:
        journal.asked(batch, np.array([value, -value]), {"generator": value})
        journal.told([(0, answer)])
    with Journal.read(tmp_path / "run") as journal:
        (told,) = journal.evaluations()
        (batch_row,) = journal.rows("batches")
    assert repr(told.answer) == repr(answer)
    assert repr(told.query.x.tolist()) == repr([value, -value])
    assert repr(json.loads(batch_row[5])) == repr([value, -value])
    assert repr(json.loads(batch_row[6])) == repr({"generator": value})


@pytest.mark.parametrize("options", [{}, {"workers": 1}], ids=str)
def test_minus_zero_is_a_value_like_any_other(tmp_path, options):
    """SQLite does not keep its sign, so nobody gets to see it: a continued run is as the one that was not."""

    def bowl(x):
        return -float(x @ x)

    first = gibo.maximize(bowl, [0.0, 0.0], budget=6, journal=tmp_path, **options)
    assert str(bowl(np.zeros(2))) == "-0.0"
    assert str(first.history.value[0]) == "0.0"
    with Journal.read(tmp_path) as journal:
        assert str(journal.evaluations()[0].answer.value) == "0.0"
    optimizer = GIBO([0.0, 0.0])
    gibo.run(optimizer, bowl, budget=9, **options)
    gibo.resume(tmp_path, bowl, budget=9)
    with Journal.read(tmp_path) as journal:
        assert repr(journal.optimizer().state()) == repr(optimizer.state())


def test_an_error_with_a_text_that_no_file_can_hold_is_recorded(tmp_path):
    def objective(x):
        raise FileNotFoundError(os.fsdecode(b"caf\xe9.txt") + "\0")  # a file name that is no UTF-8

    result = climb(tmp_path, objective, budget=3)
    assert result.evaluations == len(result.failures) == 3
    with Journal.read(tmp_path) as journal:
        assert journal.evaluations()[0].answer.failure == result.failures[0].reason
        assert result.failures[0].reason == "FileNotFoundError: caf\\udce9.txt\0"


def test_iterations_of_huge_values_can_be_read(tmp_path):
    largest = sys.float_info.max
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of overflows in the summary
        gibo.maximize(lambda x: largest if x.sum() > 0 else -largest, np.zeros(3), budget=12, journal=tmp_path)
    with Journal.read(tmp_path) as journal:
        rows = journal.rows("iterations")
    assert len(rows) > 2
    assert any(row[4] is None for row in rows)  # an uncertainty beyond the largest float


@pytest.mark.parametrize(
    "optimizer",
    [
        GIBO([0.1, 1 / 3], scale=[0.1, 1e-300], bounds=(-np.inf, 2.0), seed=2**70, settings=SETTINGS),
        gibo.VanillaBO([0.0, 0.0], bounds=(-1.0, 1.0), noise=1e-9),
        gibo.ARS([1e-308, 1e308]),
    ],
    ids=lambda optimizer: type(optimizer).__name__,
)
def test_facts_come_back_exactly(tmp_path, optimizer):
    facts = Facts.of(optimizer, sign=-1.0, names=["gain", "Δ ünïcode 🤖"], penalty=-1 / 3, share=0.1)
    with Journal.create(tmp_path, facts) as journal:
        assert journal.facts() == facts
    with Journal.read(tmp_path) as journal:
        assert repr(journal.facts()) == repr(facts)
        assert journal.facts().differences(facts) == ""
        assert journal.facts().fresh_optimizer().state() == optimizer.state()


def test_a_run_is_recorded_as_it_went(tmp_path):
    calls = []

    def objective(x, seed):
        calls.append((x.tolist(), seed))
        return hill(x, seed)

    optimizer = GIBO([0.0] * D, seed=1, settings=SETTINGS)
    before = time.time()
    with pytest.warns(gibo.FailedEvaluationWarning):
        result = gibo.run(optimizer, objective, budget=20, journal=tmp_path)
    with Journal.read(tmp_path) as journal:
        told, iterations, batches = journal.evaluations(), journal.rows("iterations"), journal.rows("batches")
        (start,) = journal.starts()
        assert journal.optimizer().state() == optimizer.state()
        queries = journal.queries()
    assert [(t.query.x.tolist(), t.query.seed) for t in told] == calls
    assert [t.answer.value for t in told] == [e.value for e in optimizer.evaluations]
    assert [t.answer.failure for t in told] == [e.failure for e in optimizer.evaluations]
    assert [t.answer.gradient for t in told if t.answer.gradient] == [
        e.gradient.tolist() for e in optimizer.evaluations if e.gradient is not None
    ]
    assert {t.answer.info["steps"] == t.query.seed % 100 for t in told if t.answer.failure is None} == {True}
    failed = [t for t in told if t.answer.failure is not None]
    assert [t.query.id for t in failed] == [failure.id for failure in result.failures]
    assert "it broke" in failed[0].answer.traceback
    assert "test_journal.py" in failed[0].answer.traceback
    assert len(iterations) == len(optimizer.iterations)
    for row, step in zip(iterations, optimizer.iterations, strict=True):
        number, evaluations, x, gradient, uncertainty, ascent, certainty, delta, ell, variance, noise, jitter, text = (
            row
        )
        assert (number, evaluations, text) == (step.number, step.evaluations, step.warning)
        assert (uncertainty, ascent, certainty) == (step.uncertainty, step.probability_of_ascent, step.certainty)
        assert (variance, noise, jitter) == (step.variance, step.noise, step.jitter)
        for text, array in ((x, step.x), (gradient, step.gradient), (delta, step.step), (ell, step.lengthscale)):
            assert json.loads(text) == array.tolist()
    assert [row[1] for row in batches] == list(range(len(batches)))
    assert [(row[2], row[3]) for row in batches] == [(3 * i, 3) for i in range(len(batches))]
    assert [json.loads(row[5]) for row in batches] == [q.x.tolist() for q in queries if q.kind == "iterate"]
    assert (start.process, start.reason) == (os.getpid(), result.reason)
    assert start.options["budget"] == 20
    assert start.versions["gibo"] == gibo.__version__
    assert before <= start.started <= told[0].told <= told[-1].told <= start.ended <= time.time()


def test_a_minimised_run_keeps_the_objectives_own_values(tmp_path):
    values = []

    def valley(x):
        values.append(float(((x - 1.0) ** 2).sum()) + 3.0)
        return Outcome(values[-1], gradient=2.0 * (x - 1.0), gradient_noise=[0.1, 0.2])

    optimizer = GIBO([0.0] * D, settings=SETTINGS)
    gibo.run(optimizer, valley, budget=9, journal=tmp_path, sign=-1.0, penalty=50.0)
    with Journal.read(tmp_path) as journal:
        told, facts = journal.evaluations(), journal.facts()
        assert journal.optimizer().state() == optimizer.state()
    assert facts.sign == -1.0
    assert [t.answer.value for t in told] == values
    assert [t.answer.gradient for t in told] == [(2.0 * (t.query.x - 1.0)).tolist() for t in told]
    assert [t.answer.gradient_noise for t in told] == [[0.1, 0.2]] * 9
    assert [e.value for e in optimizer.evaluations] == [-value for value in values]


def test_points_that_a_callback_tells_are_recorded_in_the_objectives_sign(tmp_path):
    optimizer = GIBO([0.0] * D, settings=SETTINGS)

    def callback(result):
        k = len(result.history.value)
        optimizer.tell([0.01 * k, 0.3], -2.0 - k)
        optimizer.tell([0.02 * k, 0.3], -3.0, gradient=[1.0, 2.0], gradient_noise=0.5)
        optimizer.tell([0.03 * k, 0.3], failed="no idea")

    gibo.run(optimizer, lambda x: float(x @ x) + 1.0, budget=9, journal=tmp_path, sign=-1.0, callback=callback)
    with Journal.read(tmp_path) as journal:
        assert journal.optimizer().state() == optimizer.state()
        elsewhere = [t for t in journal.evaluations() if t.query.kind == "told"]
    assert len(elsewhere) == 6  # none after the last iteration
    assert (elsewhere[0].answer.value, elsewhere[0].query.x.tolist()) == (5.0, [0.03, 0.3])
    assert (elsewhere[1].answer.gradient, elsewhere[1].answer.gradient_noise) == ([-1.0, -2.0], [0.5, 0.5])
    assert elsewhere[2].answer.failure == "no idea"
    again = gibo.resume(tmp_path, lambda x: float(x @ x) + 1.0, budget=12)
    assert again.evaluations == 12 + 6  # points from elsewhere are not of the budget


def test_a_point_told_in_the_callback_that_stops_the_run_is_recorded_too(tmp_path):
    optimizer = RandomSearch([0.0] * D, batch=2)

    def callback(result):
        optimizer.tell([0.5, 0.5], 5.0)
        return True

    gibo.run(optimizer, lambda x: 1.0, budget=10, journal=tmp_path, callback=callback)
    with Journal.read(tmp_path) as journal:
        assert len(journal.evaluations()) == 3
        assert journal.optimizer().state() == optimizer.state()


# -- readers and writers ----------------------------------------------------------------------------------------------


def watch(folder, goal, connection):
    """Read a journal over and over, from before it exists until it has this many evaluations."""
    seen, reads, waiting = [], 0, 0
    while len(seen) < goal:
        try:
            with Journal.read(folder) as journal:
                optimizer = journal.optimizer()
                told = [(t.query.id, t.answer.value) for t in journal.evaluations()]
                assert len(optimizer.evaluations) == len(told), "not of one moment"
        except InputError:
            waiting += 1
            continue
        assert told[: len(seen)] == seen, "what was there is gone"
        reads += len(told) > len(seen)
        seen = told
    connection.send((seen, reads, waiting))


def test_another_process_can_read_while_a_run_is_writing(tmp_path):
    ours, theirs = multiprocessing.Pipe()
    reader = forked(watch, tmp_path / "run", 40, theirs)
    theirs.close()
    time.sleep(0.02)  # so that it looks before there is anything
    result = climb(tmp_path / "run", lambda x: hill(x, 7).value, budget=40)
    seen, reads, waiting = ours.recv()
    reader.join()
    assert reader.exitcode == 0
    assert seen == list(enumerate(result.history.value))
    assert waiting >= 1
    assert reads >= 3  # it saw the run on its way


def test_a_reader_sees_the_run_as_it_was_when_it_began_to_read(tmp_path):
    climb(tmp_path, budget=6)
    with Journal.read(tmp_path) as journal:
        before = len(journal.evaluations())
        climb(tmp_path, budget=12)
        assert len(journal.evaluations()) == len(journal.optimizer().evaluations) == before == 6
    with Journal.read(tmp_path) as journal:
        assert len(journal.evaluations()) == 12


def test_a_reader_writes_nothing(tmp_path):
    climb(tmp_path)
    before = (tmp_path / FILE).read_bytes()
    with Journal.read(tmp_path) as journal:
        for write in (
            lambda: journal.begin({}),
            lambda: journal.end("over"),
            lambda: journal.told([(50, Answer(1.0))]),
            lambda: journal.asked(batch_of([[0.0] * D], first=50), np.zeros(D), {}),
            journal.moved_on,
        ):
            with pytest.raises(JournalError, match="the journal was opened for reading"):
                write()
    assert (tmp_path / FILE).read_bytes() == before


def hold(folder, connection):
    with Journal.open(folder):
        connection.send(os.getpid())
        connection.recv()
    connection.send("closed")


@pytest.fixture
def held(tmp_path):
    """A run's folder and a process that has it open."""
    climb(tmp_path / "run")
    ours, theirs = multiprocessing.Pipe()
    process = forked(hold, tmp_path / "run", theirs)
    ours.recv()
    yield tmp_path / "run", process, ours
    process.kill()
    process.join()


def test_a_second_writer_is_refused_with_the_first_ones_process_and_start(held):
    folder, process, _ = held
    before = content(folder)
    calls = []
    words = rf"run: in use by process {process.pid} on \S+, started \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d\S*; wait for it"
    for write in (
        lambda: Journal.open(folder),
        lambda: climb(folder, lambda x: calls.append(x) or 0.0, budget=30),
        lambda: gibo.resume(folder, lambda x: calls.append(x) or 0.0, budget=30),
        lambda: Journal.create(folder, Facts.of(RandomSearch([0.0]))),
    ):
        with pytest.raises(JournalError, match=words):
            write()
    assert content(folder) == before
    assert not calls


def test_a_writer_may_wait_for_the_other(held):
    folder, process, connection = held
    threading.Timer(0.05, connection.send, [None]).start()
    with Journal.open(folder, patience=60.0) as journal:
        assert len(journal.evaluations()) == 12
    process.join()
    assert process.exitcode == 0


def test_a_lock_left_by_a_killed_process_is_no_obstacle(held):
    folder, process, _ = held
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert f'"process": {process.pid}' in (folder / "lock").read_text()
    assert climb(folder, budget=15).evaluations == 15


def test_the_same_process_may_not_write_twice_either(tmp_path):
    climb(tmp_path)
    with Journal.open(tmp_path), pytest.raises(JournalError, match=f"in use by process {os.getpid()} "):
        Journal.open(tmp_path)
    Journal.open(tmp_path).close()


def test_a_child_of_the_writer_does_not_hold_the_lock_for_it(tmp_path):
    climb(tmp_path)
    ours, theirs = multiprocessing.Pipe()
    with Journal.open(tmp_path):
        child = forked(theirs.recv)
    try:
        Journal.open(tmp_path).close()  # though the child is still there
    finally:
        ours.send(None)
        child.join()


# -- what is no journal -----------------------------------------------------------------------------------------------


def foreign_database(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE evaluations (number INTEGER PRIMARY KEY, value REAL)")
        connection.execute("INSERT INTO evaluations VALUES (1, 2.0)")
    connection.close()


def of_the_future(path):
    climb(path.parent, budget=3)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 2")
    connection.close()


def of_no_version(path):
    climb(path.parent, budget=3)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 0")
    connection.close()


def without_a_table(path):
    climb(path.parent, budget=3)
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE facts")
    connection.close()


NOT_JOURNALS = {
    "foreign-database": (foreign_database, "not a journal of gibo"),
    "text": (lambda path: path.write_text("a,b\n1,2\n" * 500), "file is not a database"),
    "short-text": (lambda path: path.write_text("x"), "not a journal of gibo"),
    "zeros": (lambda path: path.write_bytes(b"\0" * 4096), "file is not a database"),
    "header-only": (lambda path: path.write_bytes(b"SQLite format 3\0"), "journal.sqlite: "),
    "newer": (of_the_future, "a journal of version 2, and this gibo knows versions up to 1; update gibo"),
    "version-0": (of_no_version, "a journal of version 0"),
    "lost-table": (without_a_table, "no such table: facts"),
}


def whole_read(folder):
    with Journal.read(folder) as journal:
        return journal.facts()


@pytest.mark.parametrize(("make", "words"), NOT_JOURNALS.values(), ids=NOT_JOURNALS.keys())
def test_what_is_no_journal_is_named_in_one_line_and_left_as_it_is(tmp_path, make, words):
    path = tmp_path / FILE
    make(path)
    before = path.read_bytes()
    calls = []
    for use in (whole_read, lambda f: gibo.resume(f, calls.append), lambda f: climb(f, calls.append)):
        with pytest.raises((JournalError, InputError), match=re.escape(words)) as caught:
            use(tmp_path)
        assert "\n" not in str(caught.value)
        assert str(path) in str(caught.value)
        assert path.read_bytes() == before
    assert not calls


@settings(max_examples=40, deadline=None)
@given(st.binary(min_size=1, max_size=2000))
def test_no_file_of_any_bytes_is_taken_for_a_journal(data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / FILE
        path.write_bytes(data)
        for use in (Journal.read, climb):
            with pytest.raises(JournalError):
                use(folder)
        assert path.read_bytes() == data


def test_an_empty_file_is_no_run_and_may_become_one(tmp_path):
    (tmp_path / FILE).touch()
    with pytest.raises(InputError, match=r"there is no run; expected a folder with journal\.sqlite"):
        Journal.read(tmp_path)
    assert (tmp_path / FILE).stat().st_size == 0
    assert climb(tmp_path).evaluations == 12


def test_a_folder_in_place_of_the_file_is_an_error_before_any_evaluation(tmp_path):
    (tmp_path / FILE).mkdir()
    calls = []
    for use in (Journal.read, lambda f: gibo.resume(f, calls.append)):
        with pytest.raises(InputError, match="there is no run"):
            use(tmp_path)
    with pytest.raises(JournalError, match="unable to open database file"):
        climb(tmp_path, calls.append)
    assert not calls
    assert (tmp_path / FILE).is_dir()


@pytest.mark.parametrize("use", [Journal.read, Journal.open, lambda f: gibo.resume(f, abs)], ids=["read", "open", "go"])
def test_where_there_is_no_run_nothing_is_made(tmp_path, use):
    with pytest.raises(InputError, match=r"nowhere: there is no run; expected a folder with journal\.sqlite"):
        use(tmp_path / "nowhere")
    assert not any(tmp_path.iterdir())


def test_a_journal_is_not_begun_twice(tmp_path):
    climb(tmp_path)
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(InputError, match="there is a run already; continue it, or name another folder"):
        Journal.create(tmp_path, Facts.of(RandomSearch([0.0])))
    assert (tmp_path / FILE).read_bytes() == before


def test_a_path_under_a_file_is_an_error_before_any_evaluation(tmp_path):
    (tmp_path / "file").write_text("mine")
    calls = []
    for folder in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(JournalError, match=r"file.*cannot be written: (File exists|Not a directory)"):
            climb(folder, calls.append)
    assert not calls
    assert (tmp_path / "file").read_text() == "mine"


def climb_as_nobody(folder, connection):
    os.setegid(65534)
    os.seteuid(65534)
    try:
        climb(folder, lambda x: connection.send("evaluated") or 0.0)
    except Exception as error:
        connection.send((type(error).__name__, str(error)))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can turn into a user without rights")
@pytest.mark.parametrize("folder", [".", "run"])
def test_a_folder_without_the_right_to_write_is_an_error_before_any_evaluation(folder):
    with tempfile.TemporaryDirectory() as base:
        os.chmod(base, 0o555)
        ours, theirs = multiprocessing.Pipe()
        process = forked(climb_as_nobody, Path(base) / folder, theirs)
        theirs.close()
        name, text = ours.recv()
        process.join()
        assert name == "JournalError"
        assert "cannot be written: Permission denied" in text
        assert not os.listdir(base)


# -- damage -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A cleanly closed journal with 40 evaluations, failures, gradients and two starts."""
    folder = tmp_path_factory.mktemp("sound")
    climb(folder, budget=25)
    climb(folder, budget=40)
    assert not (folder / f"{FILE}-wal").exists()
    return folder


def read_damaged(data, folder, expected):
    """Read a journal of these bytes; returns whether it was refused."""
    path = folder / FILE
    path.write_bytes(data)
    refusal = None
    try:
        found = content(folder)
    except (JournalError, InputError) as error:  # anything else ends the test
        refusal = str(error)
    assert refusal is not None or found == expected, "other content than was written"
    assert "\n" not in (refusal or "")
    assert path.read_bytes() == data, "reading changed the file"
    for name in (f"{FILE}-wal", f"{FILE}-shm"):
        (folder / name).unlink(missing_ok=True)
    return refusal is not None


def overwritten(data, rng):
    damaged = bytearray(data)
    for _ in range(2 ** int(rng.integers(0, 7))):
        damaged[int(rng.integers(len(data)))] = int(rng.integers(256))
    return bytes(damaged)


def cut_off(data, rng):
    return data[: int(rng.integers(len(data)))]


def zeroed(data, rng):
    """A block that never reached the disk."""
    block, at = 512 * int(rng.integers(1, 17)), int(rng.integers(len(data) // 512)) * 512
    return data[:at] + b"\0" * len(data[at : at + block]) + data[at + block :]


def swapped(data, rng):
    """Two pages in each other's place."""
    pages = [data[i : i + 4096] for i in range(0, len(data), 4096)]
    i, j = rng.choice(len(pages), 2, replace=False)
    pages[i], pages[j] = pages[j], pages[i]
    return b"".join(pages)


def headers(data, rng):
    """In the first bytes of a page, which say how to read the rest."""
    damaged = bytearray(data)
    at = 4096 * int(rng.integers(len(data) // 4096)) + int(rng.integers(120))
    damaged[at] = int(rng.integers(256))
    return bytes(damaged)


@pytest.mark.parametrize(
    ("damage", "copies"), [(overwritten, 160), (cut_off, 40), (zeroed, 40), (swapped, 80), (headers, 60)]
)
def test_a_damaged_journal_is_refused_or_reads_as_it_was_written(sound, tmp_path, damage, copies):
    data, expected = (sound / FILE).read_bytes(), content(sound)
    rng = np.random.default_rng(0)
    refused = sum(read_damaged(damage(data, rng), tmp_path, expected) for _ in range(copies))
    assert refused > copies // 4  # they were damaged


def test_the_undamaged_copy_is_not_refused(sound, tmp_path):
    assert not read_damaged((sound / FILE).read_bytes(), tmp_path, content(sound))


@pytest.mark.parametrize("table", [name for name in TABLES if name not in ("moves", "attempts", "iterations")])
def test_a_change_that_sqlite_cannot_see_is_seen(sound, tmp_path, table):
    shutil.copy(sound / FILE, tmp_path / FILE)
    connection = sqlite3.connect(tmp_path / FILE)
    column = TABLES[table].split(", ")[-1].split()[0]
    before = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    first = connection.execute(f"SELECT min(rowid) FROM {table}").fetchone()[0]
    connection.execute(f"UPDATE {table} SET {column} = '[1]' WHERE rowid = ?", (first,))
    connection.commit()
    assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == before
    connection.close()
    with pytest.raises(JournalError, match=f"damaged .a row of {table} does not match its checksum.; restore a copy"):
        content(tmp_path)


@pytest.mark.parametrize("table", ["facts", "starts", "ends", "batches", "queries", "evaluations"])
def test_rows_that_are_gone_are_missed(sound, tmp_path, table):
    shutil.copy(sound / FILE, tmp_path / FILE)
    connection = sqlite3.connect(tmp_path / FILE)
    connection.execute(f"DELETE FROM {table} WHERE rowid = (SELECT max(rowid) FROM {table})")
    connection.commit()
    connection.close()
    with pytest.raises(JournalError, match=f"damaged .rows of {table} are missing"):
        content(tmp_path)


@pytest.mark.parametrize("table", ["ends", "attempts"])
def test_a_text_that_has_become_a_blob_is_damage(table, tmp_path):
    """Their types differ by one bit."""
    climb(tmp_path, budget=25, retries=1)
    column = {"ends": "reason", "attempts": "failure"}[table]
    connection = sqlite3.connect(tmp_path / FILE)
    assert connection.execute(f"UPDATE {table} SET {column} = CAST({column} AS BLOB)").rowcount >= 1
    connection.commit()
    connection.close()
    with Journal.read(tmp_path) as journal:
        read = journal.starts if table == "ends" else journal.attempts
        with pytest.raises(JournalError, match="damaged"):
            read()


@pytest.mark.parametrize(
    ("text", "damage"),
    [(b"CREATE TABLE queries", b"CREATE TABLE quer\xffes"), (b"Traceback (most", b"\xd2raceback (most")],
    ids=["schema", "row"],
)
def test_what_is_no_text_any_more_is_damage_in_one_line(sound, tmp_path, text, damage):
    (tmp_path / FILE).write_bytes((sound / FILE).read_bytes().replace(text, damage, 1))
    with pytest.raises(JournalError, match="the journal is damaged") as caught:
        content(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_damaged_journal_is_not_written_to(sound, tmp_path):
    data = bytearray((sound / FILE).read_bytes())
    at = bytes(data).index(b"it broke")
    data[at] ^= 1
    (tmp_path / FILE).write_bytes(data)
    calls = []
    for use in (lambda f: gibo.resume(f, calls.append, budget=50), lambda f: climb(f, calls.append, budget=50)):
        with pytest.raises(JournalError, match="damaged"):
            use(tmp_path)
        assert (tmp_path / FILE).read_bytes() == bytes(data)
    assert not calls


# -- journals of earlier versions -------------------------------------------------------------------------------------


def expected_of_version_1():
    return json.loads((DATA / "expected.json").read_text())


def objective_of_version_1(x, seed):
    """See tests/data/journal-v1/make.py."""
    if seed % 14 == 0:
        raise RuntimeError("the robot fell")
    return 3.0 - float(((x - 0.7) ** 2).sum()) + 0.05 * float(np.random.default_rng(seed).standard_normal())


def test_a_journal_of_version_1_can_be_read(tmp_path):
    expected = expected_of_version_1()
    shutil.copy(DATA / FILE, tmp_path / FILE)
    with Journal.read(tmp_path) as journal:
        told, optimizer = journal.evaluations(), journal.optimizer()
        assert journal.facts().optimizer == "GIBO"
        assert journal.starts()[0].options["budget"] == len(told) == expected["evaluations"]
    assert [t.answer.value for t in told] == expected["values"]
    assert [t.query.id for t in told if t.answer.failure is not None] == expected["failed"]
    assert told[expected["failed"][0]].answer.failure == "RuntimeError: the robot fell"
    assert [query.id for query in optimizer.waiting] == expected["open"]
    # Rounding may differ from the machine on which it was made.
    np.testing.assert_allclose([query.x for query in optimizer.waiting], expected["open_x"], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(optimizer.iterate, expected["iterate"], rtol=1e-6, atol=1e-6)
    assert (tmp_path / FILE).read_bytes() == (DATA / FILE).read_bytes()


def test_a_run_of_version_1_can_be_continued(tmp_path):
    shutil.copy(DATA / FILE, tmp_path / FILE)
    expected, calls = expected_of_version_1(), []

    def objective(x, seed):
        calls.append(x)
        return objective_of_version_1(x, seed)

    spent = expected["evaluations"]
    result = gibo.resume(tmp_path, objective, budget=spent + 10)
    assert result.evaluations == spent + 10
    assert result.history.value[:spent].tolist()[0] == expected["values"][0]
    np.testing.assert_allclose(calls[: len(expected["open_x"])], expected["open_x"], rtol=1e-6, atol=1e-6)
    # The record is a part of the same run made today.
    today = gibo.maximize(objective_of_version_1, [0.0, 0.0], budget=spent, scale=0.3, seed=3)
    np.testing.assert_allclose(today.history.x, result.history.x[:spent], rtol=1e-4, atol=1e-4)
