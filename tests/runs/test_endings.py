"""Rude objectives, callbacks that fail, results without a value: a run says what happened and goes on."""

import os
import warnings

import numpy as np
import pytest
from api_helpers import X0, climb, failing_at, hill, raising

import gibo
from gibo import GIBO, FailedEvaluationWarning, maximize, run


class Rude:
    """Raises whatever one does with it."""

    def __repr__(self):
        raise RuntimeError("no")

    __float__ = __repr__


class RudeError(Exception):
    def __str__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "rude",
    [
        lambda x: np.timedelta64(3, "s"),
        lambda x: Rude(),
        raising(RudeError()),
        raising(SystemExit("it quit")),
    ],
    ids=["timedelta", "object", "exception", "exit"],
)
def test_no_objective_is_rude_enough_to_end_the_run(rude):
    with pytest.warns(FailedEvaluationWarning):
        result = climb(failing_at({4}, rude))
    assert result.evaluations == 12
    assert len(result.failures) == 1


def test_a_warning_that_is_an_error_does_not_end_the_run():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert climb(failing_at({4}, lambda x: None)).evaluations == 12


def test_a_user_who_lets_numpy_raise_can_still_run():
    with np.errstate(all="raise"):
        result = maximize(lambda x: -float(((x - 3.0) ** 2).sum()), np.zeros(6), budget=60, scale=0.1)
    assert result.evaluations == 60


def test_no_value_is_never_without_a_reason():
    result = run(gibo.CMAES(X0), hill, budget=1)
    assert np.isnan(result.value)
    assert "no value (the optimiser uses whole batches" in str(result)
    assert run(gibo.CMAES(X0), hill, budget=20).warnings == ()
    with pytest.warns(FailedEvaluationWarning):
        failed = climb(lambda x: np.nan, budget=3)
    assert failed.warnings == ("value: there is none, because no evaluation had a value",)
    stopped = climb(raising(KeyboardInterrupt()))
    assert stopped.warnings == ("value: there is none, because nothing was evaluated",)


@pytest.mark.parametrize("start", ["maximize", "minimize", "run", "resume"])
def test_the_warning_of_a_failure_points_at_the_users_line(start, tmp_path):
    def broken(x):
        return np.nan

    maximize(hill, X0, budget=1, journal=tmp_path)
    calls = {
        "run": lambda: run(GIBO(X0), broken, budget=1),
        "resume": lambda: gibo.resume(tmp_path, broken, budget=2),
        "maximize": lambda: maximize(broken, X0, budget=1),
        "minimize": lambda: gibo.minimize(broken, X0, budget=1),
    }
    with pytest.warns(FailedEvaluationWarning) as caught:
        calls[start]()
    assert caught[0].filename == __file__


HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b1m\u202e"


def test_what_a_failure_says_reaches_the_terminal_escaped(capsys):
    with pytest.warns(FailedEvaluationWarning) as caught:
        result = climb(raising(RuntimeError(HOSTILE)), max_failures=2, progress=True)
    for text in (str(caught[0].message), result.reason, str(result), capsys.readouterr().err):
        assert not set(text) & set("\x07\x9b\u202e"), text
    assert "\\x1b]0;owned\\x07" in result.reason
    assert HOSTILE in result.failures[0].failure  # the data themselves are what they were


def test_what_is_kept_of_a_failure_and_of_an_info_is_bounded(tmp_path):
    with pytest.warns(FailedEvaluationWarning):
        climb(raising(RuntimeError("x" * 10**7)), budget=2, max_failures=1, journal=tmp_path / "failures")
    climb(lambda x: gibo.Outcome(1.0, info={"log": "x" * 10**7}), budget=2, journal=tmp_path / "infos")
    for name in ("failures", "infos"):
        assert sum(file.stat().st_size for file in (tmp_path / name).iterdir() if file.name != "reserve") < 10**6
    with gibo.Journal.read(tmp_path / "infos") as journal:
        assert "at most 1048576 are kept" in journal.evaluations()[0][0].outcome.info["left out"]


def test_an_objective_that_changes_the_working_directory_does_no_harm(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()

    def objective(x):
        os.chdir(tmp_path / "elsewhere")
        return -float(x @ x)

    result = gibo.maximize(objective, [1.0], budget=12, journal="run")
    assert result.status is gibo.Status.BUDGET_SPENT
    os.chdir(tmp_path)
    assert gibo.resume("run", objective, budget=20).evaluations == 20
