"""The study of gradients: its arms differ in the gradients alone, and its tables say what the records hold."""

import math

import numpy as np
import pytest

from gibo_studies.paper.gradients import (
    ARMS,
    EPISODES,
    LIKELIHOOD_RATIO,
    NONE,
    GradientStudy,
    episodes_until,
    lqr_curve,
    noise_name,
    paired,
    regret_curve,
)
from gibo_studies.paper.lqr import METHODS, cost_curve
from gibo_studies.paper.problems import gp_function
from gibo_studies.paper.synthetic import WITHIN_MODEL
from gibo_studies.paper.synthetic import regret_curve as synthetic_curve
from gibo_studies.report import read_curves, sample


@pytest.fixture(scope="module")
def function():
    return gp_function(5, 0)


def test_without_gradients_it_is_the_study_of_the_regulator():
    assert lqr_curve(9, NONE, 3, 25) == cost_curve(METHODS["GIBO (fixed mean)"], 3, 25)


def test_without_gradients_it_is_the_within_model_study(function):
    curve = regret_curve(5, NONE, function, 20)
    theirs = synthetic_curve(WITHIN_MODEL["GIBO"](function), function, 20)
    assert [round(float(regret), 6) for (regret,) in sample([curve], range(1, 21))] == theirs


def test_gradients_change_what_comes_after_them(function):
    without, exact = (regret_curve(5, noise, function, 25) for noise in (NONE, "noise 0.001"))
    assert [n for n, _ in exact] == [n for n, _ in without] == [0, 6, 12, 18, 24]
    assert exact[-1][1] < without[-1][1]


def test_episodes_of_a_likelihood_ratio_are_counted():
    assert [n for n, _ in lqr_curve(3, LIKELIHOOD_RATIO, 0, EPISODES + 3)] == [0, EPISODES + 3]


def test_episodes_until():
    curves = [[(0, math.inf), (10, 0.3), (20, 0.01)], [(0, math.inf), (12, 0.04)], [(0, math.inf), (5, 0.04)]]
    assert episodes_until(curves, 0.05) == 12
    assert paired(np.array([1.0, 2.0, 4.0]), np.array([0.0, 2.0, 2.0])) == (1.0, pytest.approx(1.0 / math.sqrt(3)))
    assert episodes_until(curves, 1.0) == 10
    assert episodes_until(curves, 0.01) is None


def records(study):
    """As from a run, but made up: the value tells the arm and falls with what was spent."""
    return [
        {
            "cell": cell,
            "curve": [(0, None), (10, cell["M"] + 0.01 * cell["trial"]), (30, 0.001 * len(cell["gradients"]))],
        }
        for cell in study.cells()
    ]


def test_the_report(tmp_path):
    study = GradientStudy(trials=3, episodes=40, functions=2, budget=60)
    assert len(study.cells()) == 3 * 2 * len(ARMS["lqr"][1]) + 2 * 2 * len(ARMS["synthetic"][1])
    text = study.write(records(study), tmp_path, "the command")
    assert (tmp_path / "summary.md").read_text() == text
    assert text.rstrip().endswith("the command")
    assert "| 9 | none | 30 | 9.010 | 0.004 |" in text
    assert f"| 5 | {noise_name(5.0)} | 0.007 (+0.003 ± 0.000) |" in text
    data = read_curves(tmp_path, study.columns)
    assert len(data) == len({(c["problem"], c["M"], c["gradients"]) for c in study.cells()})
    band = data["lqr", 9, NONE]
    spent, median = band["spent"], band["median"]
    assert np.isnan(median[spent < 10]).all()
    assert set(median[(spent >= 10) & (spent < 30)]) == {9.01}
    assert spent[-1] == 40
