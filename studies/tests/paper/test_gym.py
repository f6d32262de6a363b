import numpy as np

from gibo.cli import main
from gibo.policies.task import Task
from gibo.training.presets import PRESETS
from gibo.training.training import read_trial, train
from gibo_studies.paper.gym import GymStudy, learning_curve
from gibo_studies.report import read_csv

# -- a study ----------------------------------------------------------------------------------------------------------


def test_a_tiny_study_as_it_is_typed(tmp_path, capsys):
    out = tmp_path / "out"
    words = ["reproduce", "cartpole", "--trials", "1", "--budget", "20", "--workers", "1", "--out", str(out)]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "| CartPole-v1 | after 10 |" in said
    assert "| GIBO | " in said
    assert "| ARS | " in said
    files = {path.name for path in out.iterdir()}
    assert files >= {"study.json", "cells.jsonl", "returns.csv", "curves.csv", "summary.md"}
    assert files >= {"learning.png", "learning.svg", "trials"}
    trials = {path.name: read_trial(path) for path in (out / "trials").iterdir()}
    assert trials.keys() == {"CartPole-v1-gibo-00", "CartPole-v1-gibo-(published)-00", "CartPole-v1-ars-00"}
    assert {len(trial.returns) for trial in trials.values()} == {20}
    rows = read_csv(out / "returns.csv")
    assert {(row["method"], row["trial"]) for row in rows} == {("GIBO", "0"), ("GIBO (published)", "0"), ("ARS", "0")}
    curve = [(int(row["episodes"]), float(row["return"])) for row in rows if row["method"] == "GIBO"]
    assert curve == learning_curve(out / "trials" / "CartPole-v1-gibo-00", every=1)
    assert [n for n, _ in curve] == [0, 9, 18]


def test_cells_and_budgets(tmp_path):
    study = GymStudy(tmp_path, name="ablation-gym", trials=2, budget=500)
    assert len(study.cells()) == 8
    assert [study.budget_of(name) for name in ("CartPole-v1", "Swimmer-v5")] == [100, 500]
    only = GymStudy(tmp_path, name="ablation-hopper", trials=1, methods=("without state normalisation",))
    assert only.cells() == [{"environment": "Hopper-v5", "method": "without state normalisation", "trial": 0}]
    assert "folder" not in only.definition()


# -- learning curves --------------------------------------------------------------------------------------------------


def test_a_curve_judges_the_iterates(tmp_path, monkeypatch):
    """And not the points that the model would recommend."""
    judged, result = [], train(PRESETS["gibo"]["CartPole-v1", "gibo"], tmp_path, budget=27, seed=2)
    evaluate = Task.evaluate

    def seen(self, theta, *args, **kwargs):
        judged.append(theta)
        return evaluate(self, theta, *args, **kwargs)

    monkeypatch.setattr(Task, "evaluate", seen)
    learning_curve(tmp_path, every=1)
    history = result.history
    assert np.array_equal(judged, [*history.x[history.is_iterate], result.iterate])
    assert len(judged) == 4
    assert not any(np.array_equal(theta, result.x) for theta in judged[1:])
