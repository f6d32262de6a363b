"""Events for trackers of experiments, and the recipes for those that people have."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gibo
from gibo.cli import main
from gibo.integrations.events import events
from gibo.integrations.tensorboard import TensorBoard

RECIPES = Path(__file__).parents[2] / "examples" / "recipes"
NEEDS = {"ax_node": "ax", "botorch_acquisition": "botorch", "wandb_tracker": "wandb", "mlflow_tracker": "mlflow"}


def objective(x, seed):
    if seed % 3 == 0:
        raise ValueError("slipped")
    return gibo.Outcome(float(x @ x), info={"battery": 0.5})


def test_each_evaluation_and_each_iteration_is_one_event():
    seen = []
    tracker = events(seen.append)
    with pytest.warns(gibo.FailedEvaluationWarning):
        result = gibo.minimize(objective, [1.0, 1.0], budget=13, scale=0.2, callback=tracker)
    tracker(result)
    tracker(result)  # nothing is new
    evaluations = [e for e in seen if e.kind == "evaluation"]
    values = [None if value != value else value for value in result.history.value.tolist()]
    assert [e.numbers.get("value") for e in evaluations] == values
    assert None in values
    assert [e.step for e in evaluations] == list(range(1, 14))
    assert {e.numbers["battery"] for e in evaluations if "value" in e.numbers} == {0.5}
    iterations = [e for e in seen if e.kind == "iteration"]
    assert [e.step for e in iterations] == result.history.evaluations.tolist()
    assert [e.numbers["certainty"] for e in iterations] == result.history.certainty.tolist()
    assert evaluations[-1].numbers["believed"] == result.value


def test_gibo_train_writes_the_curves_of_each_trial(tmp_path):
    words = ["train", "CartPole-v1", "--preset", "none", "--max-steps", "9", "--budget", "7", "--trials", "2"]
    assert main([*words, "--out", str(tmp_path / "run"), "--tensorboard", str(tmp_path / "logs")]) == 0
    files = sorted((tmp_path / "logs").glob("trial-0?/events.out.tfevents.*"))
    assert len(files) == 2
    assert all(b"gibo/return" in file.read_bytes() and b"gibo/certainty" in file.read_bytes() for file in files)


def test_a_file_in_its_place_and_a_missing_extra_are_refused(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(gibo.InputError, match="cannot be written"):
        TensorBoard(tmp_path / "file" / "logs")
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(gibo.MissingExtraError, match="tensorboard"):
        TensorBoard(tmp_path)


def test_there_is_a_word_for_every_recipe():
    assert {path.stem for path in RECIPES.glob("*.py")} == {*NEEDS, "fmu"}  # that one runs in test_recipes.py


@pytest.mark.parametrize("name", NEEDS)
def test_recipes_run(name, tmp_path):
    if importlib.util.find_spec(NEEDS[name]) is None:
        pytest.skip(f"{NEEDS[name]} is not installed; it is no part of the development environment, being large")
    environment = {**os.environ, "GIBO_EXAMPLE_QUICK": "1", "WANDB_MODE": "offline"}
    command = [sys.executable, str(RECIPES / f"{name}.py")]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
