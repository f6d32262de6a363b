"""Journals of earlier versions: they open, they read, and their runs go on to where they would have gone.

See README.md in tests/data.
"""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from run_helpers import content, rows

import gibo
from gibo import InputError, Journal
from gibo.cli import main
from gibo.optimizers.moves import GradientStep
from gibo.runs import manual
from gibo.runs.session import Session
from gibo.runs.store import FILE
from gibo.steps import GradientAscent

DATA = Path(__file__).parent.parent / "data"
# Rounding may differ from the machine on which they were made.
CLOSE = {"rtol": 1e-6, "atol": 1e-6}

pytestmark = pytest.mark.filterwarnings("ignore::gibo.FailedEvaluationWarning")


def copied(name, folder):
    """A copy of an old journal, and what the gibo of its time made of it."""
    shutil.copy(DATA / name / FILE, folder / FILE)
    return json.loads((DATA / name / "expected.json").read_text())


def objective(x, seed):
    """That of the journals of version 1."""
    if seed % 14 == 0:
        raise RuntimeError("the robot fell")
    return 3.0 - float(((x - 0.7) ** 2).sum()) + 0.05 * float(np.random.default_rng(seed).standard_normal())


def commands(folder, capsys):
    """What status, best and export say."""
    said = []
    for words in (["status", "--json"], ["best", "--json"], ["export"]):
        capsys.readouterr()
        assert main([words[0], str(folder), *words[1:]]) == 0
        said.append(capsys.readouterr().out)
    status, best, table = said
    return json.loads(status), json.loads(best)["best"], list(csv.DictReader(table.splitlines()))


@pytest.mark.parametrize("name", ["journal-v1", "journal-v1-workers", "journal-v1-train", "journal-v2"])
def test_reading_an_old_journal_changes_nothing(name, tmp_path, capsys):
    copied(name, tmp_path)
    status, best, table = commands(tmp_path, capsys)
    with Journal.read(tmp_path) as journal:
        told = [e for e, _ in journal.evaluations()]
        asked = journal.queries()
    assert (tmp_path / FILE).read_bytes() == (DATA / name / FILE).read_bytes()
    assert status["evaluations"] == len(told) == sum(row["told"] != "" for row in table)
    assert status["failures"] == sum(e.failure is not None for e in told)
    assert len(table) == len(asked)
    assert np.isfinite(best["value"])
    values = [e.value for e in told if e.value is not None]
    assert status["best_seen"]["value"] == (min(values) if status["minimize"] else max(values))


def test_a_journal_of_version_1_can_be_read(tmp_path):
    expected = copied("journal-v1", tmp_path)
    with Journal.read(tmp_path) as journal:
        told, optimizer = [e for e, _ in journal.evaluations()], Session.of(journal).optimizer
        assert journal.spec().optimizer == "GIBO"
        assert journal.starts()[0].options["budget"] == len(told) == expected["evaluations"]
    assert [e.value for e in told] == expected["values"]
    assert [e.id for e in told if e.failure is not None] == expected["failed"]
    assert told[expected["failed"][0]].failure == "RuntimeError: the robot fell"
    assert [query.id for query in optimizer.pending] == expected["open"]
    np.testing.assert_allclose([query.x for query in optimizer.pending], expected["open_x"], **CLOSE)
    np.testing.assert_allclose(optimizer.iterate, expected["iterate"], **CLOSE)


def test_a_journal_of_version_1_takes_actions_from_the_first_write_on(tmp_path):
    copied("journal-v1", tmp_path)
    before = content(tmp_path)
    with Journal.open(tmp_path) as journal:
        assert journal.actions() == []
        assert rows(tmp_path, "sqlite_master WHERE name = 'actions'") == []  # opening is not writing
        with pytest.raises(InputError, match=r"remark\.text: expected str, got int 3"):
            journal.acted(("remark", {"text": 3}))
        assert journal.actions() == []
        journal.acted(("paused", {}), ("remark", {"text": "the oil is warm"}))
        journal.acted(("continued", {}))
    with Journal.read(tmp_path) as journal:
        actions = journal.actions()
        assert [(a.after, a.kind, a.body) for a in actions] == [
            (15, "paused", {}),
            (15, "remark", {"text": "the oil is warm"}),
            (15, "continued", {}),
        ]
    times = [a.time for a in actions]
    assert times == sorted(times)
    assert content(tmp_path).replace(repr(actions), "[]") == before


def test_a_run_that_began_with_other_defaults_keeps_them(tmp_path):
    expected, calls = copied("journal-v1", tmp_path), []

    def counted(x, seed):
        calls.append(x)
        return objective(x, seed)

    budget = expected["evaluations"] + 10
    result = gibo.maximize(counted, [0.0, 0.0], budget=budget, scale=0.3, seed=3, journal=tmp_path)
    np.testing.assert_allclose(calls[: len(expected["open_x"])], expected["open_x"], **CLOSE)
    with Journal.read(tmp_path) as journal:
        settings = Session.of(journal).optimizer.settings
    assert settings.move == GradientStep(GradientAscent(0.35))
    assert (settings.warp, settings.only_evaluated, settings.M, settings.N_m) == (False, False, 1, 20)
    assert result.evaluations == budget
    with pytest.raises(gibo.InputError, match="holds another run"):
        gibo.maximize(objective, [0.0, 0.0], budget=60, scale=0.3, seed=3, journal=tmp_path, settings=gibo.Settings())


def test_a_journal_of_version_2_can_be_read(tmp_path):
    expected = copied("journal-v2", tmp_path)
    with Journal.read(tmp_path) as journal:
        told = sorted((e for e, _ in journal.evaluations()), key=lambda e: e.id)
        actions, spec = journal.actions(), journal.spec()
    assert [e.value for e in told] == expected["values"]
    assert [e.kind for e in told] == expected["kinds"]
    assert {str(e.id): e.failure for e in told if e.failure is not None} == expected["failures"]
    assert [[a.after, a.kind, a.body] for a in actions] == expected["actions"]
    assert {"remark", "paused", "continued", "failed"} == {a.kind for a in actions}
    assert (spec.sign, spec.naming.names) == (-1.0, ["gain", "cutoff", "taps", "offset"])
    # What the model believes may get better with time, but not be another thing.
    assert manual.status(tmp_path).result.value == pytest.approx(expected["best"]["value"], abs=0.1)


@pytest.mark.parametrize("workers", [None, 2])
def test_a_run_of_version_2_can_be_continued(workers, tmp_path):
    expected = copied("journal-v2", tmp_path)
    told = len(expected["values"])  # one of them was known before, and is not in the budget
    result = gibo.resume(tmp_path, planned, budget=told - 1 + 12, workers=workers)
    assert result.evaluations == told + 12
    with Journal.read(tmp_path) as journal:
        evaluated = {str(e.id): e.x.tolist() for e, _ in journal.evaluations()}
        assert [a for a in journal.actions() if a.body.get("by") != "gibo"] == journal.actions()[
            : len(expected["actions"])
        ]
    # What was asked then is evaluated, and nothing in its place.
    assert {i: evaluated[i] for i in expected["pending"]} == expected["pending"]
    assert result.parameters.keys() == {"gain", "cutoff", "taps", "offset"}
    assert isinstance(result.parameters["taps"], int)


def planned(gain, cutoff, taps, offset, seed):
    """That of journal-v2."""
    if seed % 11 == 0:
        raise RuntimeError("the robot fell")
    x = np.array([gain - 2.0, np.log(cutoff / 60.0), (taps - 20) / 10.0, offset + 0.4])
    return float((x**2).sum()) + 0.05 * float(np.random.default_rng(seed).standard_normal())


@pytest.mark.parametrize("workers", [None, 2])
def test_a_killed_run_with_a_query_ahead_of_its_batch_goes_on(workers, tmp_path):
    expected = copied("journal-v1-workers", tmp_path)
    assert len(rows(tmp_path, "queries")) == 25  # the last one of them is in no batch
    with Journal.read(tmp_path) as journal:
        assert list(journal.queries()) == list(range(24))
        assert (journal.spec().sign, journal.starts()[0].reason) == (-1.0, None)
    result = gibo.resume(tmp_path, lambda x, seed: -objective(x, seed), budget=50, workers=workers)
    np.testing.assert_allclose(result.history.x[:24], expected["X"][:24], **CLOSE)
    there = [
        [np.nan if value is None else value for value in each[:24]]
        for each in (result.history.value, expected["values"])
    ]
    np.testing.assert_allclose(*there, **CLOSE)
    assert result.evaluations == 50
    again = gibo.resume(tmp_path, pytest.fail)  # what was written now is whole
    assert again.x.tolist() == result.x.tolist()


def test_a_training_with_normalised_states_goes_on(tmp_path):
    pytest.importorskip("gymnasium")
    from gibo.training.training import Training, read_trial, train

    expected = copied("journal-v1-train", tmp_path)
    before = read_trial(tmp_path)
    assert before.returns == expected["returns"][:20]
    assert [query.id for query in before.optimizer.pending] == [20]
    train(Training("CartPole-v1", policy="affine", normalize_states=True, scale=0.3), tmp_path, budget=40, seed=5)
    trial = read_trial(tmp_path)
    assert trial.returns[:20] == expected["returns"][:20]
    assert len(trial.returns) == 40
    policy = trial.policy.to_plain()
    assert policy.keys() == expected["policy"].keys()
    for name in ("policy", "observation_shape", "actions"):
        assert policy[name] == expected["policy"][name]
