"""Values that are taken back or corrected: the run goes on as if they had been right, and the journal keeps both."""

import shutil

import numpy as np
import pytest
from run_helpers import content, told_in

import gibo
from gibo import InputError, Journal, QueryError
from gibo.outcome import Evaluation
from gibo.runs.manual import Description, ask, correct, create, status, tell, tell_elsewhere, undo
from gibo.runs.session import Session

WRONG = 1000.0


def value_of(query):
    return -float(((query.x - 1.0) ** 2).sum())


def begin(folder, method="gibo", d=3):
    create(folder, Description([f"x{i}" for i in range(d)], [0.0] * d, [0.3] * d, [-5.0] * d, [5.0] * d, method))
    return folder


def iterations(folder, count):
    for _ in range(count):
        for query in ask(folder).queries:
            tell(folder, query.id, value_of(query))


def points(folder):
    return [(e.id, e.x.tolist(), e.value) for e in told_in(folder)]


def actions(folder):
    with Journal.read(folder) as journal:
        return journal.actions()


@pytest.mark.parametrize("method", ["gibo", "ars"])
def test_a_run_with_mistakes_that_were_taken_back_is_the_run_without_them(method, tmp_path):
    right, run = begin(tmp_path / "right", method), begin(tmp_path / "run", method)
    iterations(right, 3)
    iterations(run, 1)
    queries = ask(run).queries
    for query in queries:
        tell(run, query.id, WRONG)
    tell_elsewhere(run, [({"x0": 4.0, "x1": 4.0, "x2": 4.0}, WRONG)])
    assert undo(run, len(queries) + 1, "the sensor was off") == [queries[-1].id + 1, *(q.id for q in queries[::-1])]
    assert [query.id for query in ask(run).queries] == [query.id for query in queries]
    for query in queries:
        tell(run, query.id, value_of(query))
    iterations(run, 1)
    assert points(run) == points(right)
    assert np.array_equal(status(run).result.iterate, status(right).result.iterate)
    kept = actions(run)
    assert [(each.kind, each.body["value"], each.body["reason"]) for each in kept] == [
        ("undo", WRONG, "the sensor was off")
    ] * (len(queries) + 1)
    assert kept[0].body["x"] == [4.0, 4.0, 4.0]


@pytest.mark.parametrize("method", ["gibo", "ars"])
def test_a_value_corrected_before_the_next_ask_is_the_right_one_from_the_start(method, tmp_path):
    right, run = begin(tmp_path / "right", method), begin(tmp_path / "run", method)
    iterations(right, 3)
    iterations(run, 1)
    first, *others = ask(run).queries
    tell(run, first.id, WRONG)
    for query in others:
        tell(run, query.id, value_of(query))
    correct(run, first.id, value_of(first), reason="a comma")
    iterations(run, 1)
    assert points(run) == points(right)
    (kept,) = actions(run)
    assert (kept.kind, kept.body["was"]["value"], kept.body["reason"]) == ("correction", WRONG, "a comma")
    assert kept.body["value"] == value_of(first)


def test_a_value_of_a_closed_iteration_counts_from_now_on_where_a_replay_leaves_the_past_alone(tmp_path):
    run = begin(tmp_path / "run")
    iterations(run, 2)
    wrong = told_in(run)[5]
    with Journal.open(run) as journal:
        journal.correct(wrong.id, gibo.Outcome(WRONG), "made worse")
    before = ask(run).queries
    assert status(run).result.best_seen.value == WRONG
    correct(run, wrong.id, wrong.value, reason="a comma")
    assert [q.x.tolist() for q in ask(run).queries] == [q.x.tolist() for q in before]  # they were asked
    assert status(run).result.best_seen.value < 0
    shutil.copytree(run, tmp_path / "held")
    iterations(run, 2)  # each ask makes the run again from its journal
    with Journal.open(tmp_path / "held") as journal:
        session = Session.of(journal)
        for _ in range(2):
            for query in session.ask():
                session.tell([Evaluation(query, gibo.Outcome(value_of(query)))])
    assert points(run) == points(tmp_path / "held")
    assert [each.kind for each in actions(run)] == ["correction"] * 2
    with pytest.raises(
        QueryError, match="its iteration has ended; only its value can be corrected, not whether it failed"
    ):
        correct(run, wrong.id, failed="no", reason="no")


def test_what_led_to_queries_is_not_taken_back(tmp_path):
    run = begin(tmp_path)
    with pytest.raises(InputError, match="undo: there is nothing to take back"):
        undo(run)
    tell(run, ask(run).queries[0].id, 1.0)
    assert undo(run) == [0]
    assert told_in(run) == []
    iterations(run, 1)
    first = ask(run).queries[0]
    tell(run, first.id, 1.0)
    before = content(run)
    with pytest.raises(InputError, match=r"undo: only the last 1 can be taken back.*--correct"):
        undo(run, 2)
    for count in (0, -1, 1.5, None):
        with pytest.raises(InputError, match="count"):
            undo(run, count)
    assert content(run) == before
    assert undo(run) == [first.id]
    with pytest.raises(InputError, match="there is nothing to take back"):
        undo(run)
    with pytest.raises(QueryError, match=f"query {first.id} was not told yet"):
        correct(run, first.id, 1.0, reason="no")
    with pytest.raises(InputError, match="give a reason"):
        correct(run, 0, 1.0, reason=" ")
    ars = begin(tmp_path / "ars", "ars")
    iterations(ars, 1)
    ask(ars)
    with pytest.raises(QueryError, match="query 0: its iteration has ended, and this optimiser computes later queries"):
        correct(ars, 0, 1.0, reason="too late")


def test_failures_become_values_and_values_failures_in_an_open_iteration(tmp_path):
    run = begin(tmp_path)
    first, second, *_ = ask(run).queries
    tell(run, first.id, failed="the belt slipped")
    tell(run, second.id, 1.0)
    correct(run, first.id, 2.0, reason="it had not")
    correct(run, second.id, failed="the belt slipped", reason="it was this one")
    assert [(e.value, e.failure) for e in told_in(run)] == [(2.0, None), (None, "the belt slipped")]
    assert [each.body["was"] for each in actions(run)] == [
        {"value": None, "failure": "the belt slipped"},
        {"value": 1.0, "failure": None},
    ]
