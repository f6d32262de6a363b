"""The journal: what is written is what is read, and one writer at a time."""

import multiprocessing
import os
import signal
import tempfile
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from run_helpers import SETTINGS, D, as_data, as_plain, climb, forked, hill, rows, state_of, told_in

import gibo
from gibo import GIBO, Journal, JournalError, Outcome, RandomSearch
from gibo.optimizers.log import Asked, Iteration
from gibo.outcome import LARGEST, Evaluation, Query, checked
from gibo.runs.session import Session
from gibo.runs.spec import RunSpec
from gibo.runs.store import FILE

# -- what is written is what is read ----------------------------------------------------------------------------------

finite = st.floats(allow_nan=False, allow_infinity=False)
vectors = st.lists(finite, min_size=D, max_size=D)
values = st.floats(-LARGEST, LARGEST)
noises = st.lists(st.floats(0.0, LARGEST), min_size=D, max_size=D)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
infos = st.dictionaries(st.text(), plain, max_size=3)
texts = st.text(st.characters(), min_size=1)  # halves of characters too
seconds = st.floats(0.0, 1e9).map(abs)
outcomes = (
    st.builds(lambda value, info, t: checked(Outcome(value, info=info), D, seconds=t), values, infos, seconds)
    | st.builds(
        lambda value, g, v, t: checked(Outcome(value, g, v), D, seconds=t),
        values,
        st.lists(values, min_size=D, max_size=D),
        noises.map(lambda noise: np.minimum(noise, 1e200)),
        seconds,
    )
    | st.builds(lambda value, why, t: checked(Outcome(value, failure=why), D, seconds=t), values, texts, seconds)
    | st.builds(Outcome.failed, texts, seconds)
    | st.builds(lambda why, t: Outcome.failed(RuntimeError(why), t), texts, seconds)
)


def batch_of(points, first=0, iteration=0):
    return tuple(Query(first + i, np.array(x), i * 7 + 2**31, "query", iteration) for i, x in enumerate(points))


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(given_outcomes=st.lists(outcomes, min_size=1, max_size=8), points=st.lists(vectors, min_size=8, max_size=8))
def test_queries_and_outcomes_come_back_exactly_and_in_their_order_of_arrival(given_outcomes, points):
    batch = batch_of(points)
    arrivals = [Evaluation(batch[7 - i], outcome) for i, outcome in enumerate(given_outcomes)]  # backwards
    with tempfile.TemporaryDirectory() as folder:
        with Journal.create(folder, RunSpec.of(RandomSearch([0.0] * D, batch=8))) as journal:
            journal.asked(Asked(batch, {"generator": 3}), np.zeros(D))
            journal.told(arrivals[:3])
            journal.told(arrivals[3:])
        with Journal.read(folder) as journal:
            queries, told = journal.queries(), journal.evaluations()
    assert repr([as_data(query) for query, _ in queries.values()]) == repr([as_data(query) for query in batch])
    assert repr([(e.id, as_plain(e.outcome)) for e, _ in told]) == repr([(e.id, as_plain(e.outcome)) for e in arrivals])


def test_numbers_of_a_step_that_sqlite_cannot_hold_come_back_as_unknown(tmp_path):
    two, unknown = np.array([0.5, 1.5]), {"uncertainty": np.inf, "probability_of_ascent": np.nan}
    step = Iteration(0, 0, two, two, 1.0, 0.5, 0.25, two, two, 1.0, 0.1, 0.0, "a warning")
    with Journal.create(tmp_path, RunSpec.of(GIBO([0.0] * D))) as journal:
        steps = [step, replace(step, number=1, **unknown)]
        journal.asked(Asked(batch_of([[0.0] * D], iteration=2), {}), np.zeros(D), steps)
    with Journal.read(tmp_path) as journal:
        first, second, _ = journal.events()
    assert repr(first.record) == repr(step)
    assert repr(second.record) == repr(replace(step, number=1, uncertainty=np.nan, probability_of_ascent=np.nan))


def test_a_run_is_recorded_as_it_went(tmp_path):
    calls = []

    def objective(x, seed):
        calls.append((x.tolist(), seed))
        return hill(x, seed)

    optimizer = GIBO([0.0] * D, seed=1, settings=SETTINGS)
    with pytest.warns(gibo.FailedEvaluationWarning):
        result = gibo.run(optimizer, objective, budget=20, journal=tmp_path)
    assert state_of(tmp_path) == optimizer.state()
    with Journal.read(tmp_path) as journal:
        timed, queries = journal.evaluations(), journal.queries()
        (start,) = journal.starts()
        steps = Session.of(journal).optimizer.iterations
    told = [e for e, _ in timed]
    assert [(e.x.tolist(), e.query.seed) for e in told] == calls
    assert [as_plain(e.outcome) for e in told] == [as_plain(e.outcome) for e in optimizer.evaluations]
    assert {e.outcome.info["steps"] == e.query.seed % 100 for e in told if e.failure is None} == {True}
    failed = [e for e in told if e.failure is not None]
    assert [e.id for e in failed] == [e.id for e in result.failures]
    assert "run_helpers.py" in failed[0].outcome.traceback
    assert len(rows(tmp_path, "iterations")) == len(optimizer.iterations) > 0
    assert repr(steps) == repr(optimizer.iterations)
    assert (start.process, start.reason) == (os.getpid(), result.reason)
    assert start.options["budget"] == 20
    assert start.versions["gibo"] == gibo.__version__
    # The clock of the record: what follows from something is not earlier.
    assert all(queries[e.id][1] <= at for e, at in timed)
    assert start.started <= timed[0][1] <= timed[-1][1] <= start.ended


def test_points_that_a_callback_tells_are_recorded_in_the_objectives_sign(tmp_path):
    optimizer = GIBO([0.0] * D, settings=SETTINGS)

    def callback(result):
        k = len(result.history.value)
        optimizer.tell([0.01 * k, 0.3], -2.0 - k)
        optimizer.tell([0.02 * k, 0.3], -3.0, gradient=[1.0, 2.0], gradient_noise=0.5)
        optimizer.tell([0.03 * k, 0.3], failed="no idea")

    gibo.run(optimizer, lambda x: float(x @ x) + 1.0, budget=9, journal=tmp_path, sign=-1.0, callback=callback)
    assert state_of(tmp_path) == optimizer.state()
    elsewhere = [e for e in told_in(tmp_path) if e.kind == "external"]
    assert len(elsewhere) == 9  # also after the last iteration
    assert (elsewhere[0].value, elsewhere[0].x.tolist()) == (5.0, [0.03, 0.3])
    assert (elsewhere[1].gradient.tolist(), elsewhere[1].gradient_noise.tolist()) == ([-1.0, -2.0], [0.5, 0.5])
    assert elsewhere[2].failure == "no idea"
    again = gibo.resume(tmp_path, lambda x: float(x @ x) + 1.0, budget=12)
    assert again.evaluations == 12 + 9  # points from elsewhere are not of the budget


# -- readers and writers ----------------------------------------------------------------------------------------------


def test_a_reader_sees_the_run_as_it_was_when_it_began_to_read(tmp_path):
    climb(tmp_path, budget=6)
    with Journal.read(tmp_path) as journal:
        before = len(journal.evaluations())
        climb(tmp_path, budget=12)
        assert len(journal.evaluations()) == len(Session.of(journal).optimizer.evaluations) == before == 6
    with Journal.read(tmp_path) as journal:
        assert len(journal.evaluations()) == 12


def test_a_reader_writes_nothing(tmp_path):
    climb(tmp_path)
    before = (tmp_path / FILE).read_bytes()
    assert (tmp_path / "reserve").exists()
    (query,) = batch_of([[0.0] * D], first=50)
    with Journal.read(tmp_path) as journal, pytest.raises(JournalError, match="the journal was opened for reading"):
        journal.told([Evaluation(query, Outcome(1.0))])
    assert (tmp_path / FILE).read_bytes() == before
    assert (tmp_path / "reserve").exists()  # it is the writer's


def test_a_child_of_a_killed_writer_does_not_hold_the_lock_for_it(tmp_path):
    climb(tmp_path)
    ours, theirs = multiprocessing.Pipe()

    def write():
        with Journal.open(tmp_path):
            forked(theirs.recv)
            os.kill(os.getpid(), signal.SIGKILL)

    forked(write).join()
    try:
        Journal.open(tmp_path).close()  # though its child is still there
    finally:
        ours.send(None)
