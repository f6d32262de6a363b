"""What the model said after each update stands in the journal."""

import numpy as np
import pytest
from run_helpers import SETTINGS, D, climb, rows, tamper

import gibo
from gibo import Journal, JournalError


def bowl(x):
    return -float(x @ x)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_journal_has_what_the_model_said_after_each_update(tmp_path, sign):
    said, optimizer = [], gibo.GIBO([0.0] * D, settings=SETTINGS)

    def note(result):
        belief = optimizer.belief()
        said.append((optimizer.iteration - 1, belief.x.tolist(), sign * belief.value, belief.gradient * sign))

    gibo.run(optimizer, bowl, budget=12, callback=note, sign=sign, journal=tmp_path)
    with Journal.read(tmp_path) as journal:
        found = journal.beliefs()
    assert len(said) >= 3
    assert list(found) == [number for number, *_ in said]
    for number, x, value, gradient in said:
        body = found[number]
        assert (body["x"], body["value"], body["gradient"]) == (x, value, gradient.tolist())
        assert body["low"] < body["value"] < body["high"]
        assert len(body["lengthscale"]) == len(body["gradient_deviation"]) == len(body["iterate"]) == D


def test_a_value_that_is_taken_back_takes_the_belief_with_it(tmp_path):
    climb(tmp_path, budget=9)
    with Journal.open(tmp_path) as journal:
        before = journal.beliefs()
        last = max(before)
        journal.undo(1)
        assert list(journal.beliefs()) == [number for number in before if number < last]
    climb(tmp_path, budget=9)
    with Journal.read(tmp_path) as journal:
        assert journal.beliefs() == before


@pytest.mark.parametrize("age", [0.0, 1000.0])
def test_each_kind_of_view_is_kept_once_and_made_when_due_and_at_the_end(age, tmp_path, monkeypatch):
    made = []

    def numbered(optimizer, sign, naming, drawn):
        if not drawn:
            return {}
        made.append(optimizer.iteration - 1)
        return {"slice": {"made": made[-1], "x": np.zeros(2)}}

    monkeypatch.setattr("gibo.runs.session.views_of", numbered)
    monkeypatch.setattr("gibo.runs.session.VIEWS_AGE", age)
    monkeypatch.setattr("gibo.runs.session.VIEWS_SHARE", np.inf)
    climb(tmp_path, budget=12)
    with Journal.open(tmp_path) as journal:
        assert journal.views() == {"slice": (made[-1], {"made": made[-1], "x": [0.0, 0.0]})}
    assert len(made) > 2 if age == 0.0 else len(made) == 2
    assert len(rows(tmp_path, "views")) == 1


def test_the_recommended_point_is_recorded_after_each_update_also_if_the_model_is_not_drawn(tmp_path, monkeypatch):
    """So a page of a run whose present evaluation takes long shows what the run knows."""
    monkeypatch.setattr("gibo.runs.session.VIEWS_AGE", 1000.0)
    recorded = []

    def objective(x):
        with Journal.read(tmp_path) as journal:
            views = journal.views()
        recorded.append(views["believed"][1]["evaluations"] if "believed" in views else 0)
        return bowl(x)

    gibo.maximize(objective, [0.0] * D, budget=20, settings=SETTINGS, journal=tmp_path)
    assert len(set(recorded)) > 2


def test_the_end_of_a_run_records_what_its_result_says(tmp_path):
    """Also in the middle of a batch, and where the last views are a moment old."""
    for budget in (9, 10, 11):
        result = climb(tmp_path, budget=budget)
        with Journal.read(tmp_path) as journal:
            believed = journal.views()["believed"][1]
        assert believed["best"]["x"] == result.x.tolist()
        assert (believed["best"]["value"], believed["start"]["value"]) == (result.value, result.start.value)


@pytest.mark.parametrize("body", ["[]", '{"units": {}, "x": "<b>", "value": 1}'], ids=repr)
def test_a_belief_that_is_none_is_refused(tmp_path, body):
    climb(tmp_path, budget=9)
    tamper(tmp_path, "beliefs", "body", body)
    with Journal.read(tmp_path) as journal, pytest.raises(JournalError, match="damaged"):
        journal.beliefs()
