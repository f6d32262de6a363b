import csv
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from gibo.cli import main
from gibo.errors import InputError
from gibo.priors import Normal, Uniform
from gibo.steps import GradientAscent, Piecewise
from gibo.studies.gym import STUDIES, GymStudy, learning_curve
from gibo.training.presets import PRESETS
from gibo.training.training import read_trial, train

ENVIRONMENTS = ("CartPole-v1", "Swimmer-v5", "Hopper-v5")


def settings(source, environment):
    return PRESETS[source][environment, "gibo"].options["settings"]


# -- the presets are the paper's --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "longest", "noise", "eta", "M", "N_m", "delta", "normalized"),
    [
        ("CartPole-v1", 0.3, 0.5, 1.0, 8, 20, 0.1, False),
        ("Swimmer-v5", 0.3, 0.01, 0.5, 16, 32, 0.1, False),
        ("Hopper-v5", 0.5, 0.01, 0.5, 8, 48, 0.2, True),
    ],
)
def test_gibo_as_in_the_papers_table(environment, longest, noise, eta, M, N_m, delta, normalized):
    s = settings("paper", environment)
    assert s.lengthscale == Uniform(0.01, longest)
    assert s.variance == Normal(2.0, 1.0)
    assert (s.noise, s.M, s.N_m, s.delta, s.delta_unit) == (noise, M, N_m, delta, "absolute")
    assert s.step == GradientAscent(eta=eta)
    assert s.normalization == "paper"
    assert PRESETS["paper"][environment, "gibo"].normalize_states is normalized


def test_gibo_where_the_published_code_differs_from_the_table():
    pole, hopper = settings("published", "CartPole-v1"), settings("published", "Hopper-v5")
    assert pole.step == GradientAscent(eta=Piecewise(((0, 0.8), (3, 0.3))))  # 0.3 from the fourth update on
    assert hopper.step == GradientAscent(eta=Piecewise(((0, 0.6), (1000, 0.5), (2000, 0.3))))
    assert (hopper.M, hopper.N_m, hopper.noise) == (32, 128, 0.02)
    assert {settings("published", name).fit for name in ENVIRONMENTS} == {"full"}
    for name in ENVIRONMENTS:
        ours, table = settings("published", name), settings("paper", name)
        same = {"step": table.step, "M": table.M, "N_m": table.N_m, "noise": table.noise, "fit": table.fit}
        assert replace(ours, **same, normalization=table.normalization) == table


@pytest.mark.parametrize(("environment", "noise"), [("Hopper-v5", 0.01), ("HalfCheetah-v5", 0.02)])
def test_our_own_settings_are_the_published_ones_with_a_fixed_variance_and_step(environment, noise):
    """What `results/` says that its studies ran with."""
    changes = {"variance": 0.05, "noise": noise, "step": GradientAscent(eta=0.6)}
    assert settings("gibo", environment) == replace(settings("published", "Hopper-v5"), **changes)


@pytest.mark.parametrize("source", ["paper", "published"])
@pytest.mark.parametrize(
    ("environment", "options"),
    [
        ("CartPole-v1", {"step_size": 0.025, "noise": 0.02, "directions": 8, "top": 4}),
        ("Swimmer-v5", {"step_size": 0.02, "noise": 0.01, "directions": 1}),
        ("Hopper-v5", {"step_size": 0.01, "noise": 0.025, "directions": 8, "top": 4}),
    ],
)
def test_ars_as_in_the_papers_table(source, environment, options):
    training = PRESETS[source][environment, "ars"]
    assert training.options == options
    assert training.scale == 1.0  # so that these are in the parameters' own units
    assert training.reexpressed == "off" or not training.normalize_states


def test_every_preset_is_for_the_environment_and_method_it_is_listed_under():
    for source, presets in PRESETS.items():
        if source != "gibo":  # the paper's are complete
            assert presets.keys() == {(name, method) for name in ENVIRONMENTS for method in ("gibo", "ars")}
        for (name, method), training in presets.items():
            assert (training.environment, training.method) == (name, method)
    hoppers = [PRESETS["published"]["Hopper-v5", method].policy for method in ("gibo", "ars")]
    assert hoppers == ["affine", "linear"]  # the biases of ARS are not trained


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
    assert trials.keys() == {"CartPole-v1-gibo-00", "CartPole-v1-ars-00"}
    assert {len(trial.returns) for trial in trials.values()} == {20}
    with (out / "returns.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {(row["environment"], row["method"], row["trial"]) for row in rows} == {
        ("CartPole-v1", "GIBO", "0"),
        ("CartPole-v1", "ARS", "0"),
    }
    curve = [(int(row["episodes"]), float(row["return"])) for row in rows if row["method"] == "GIBO"]
    assert curve == learning_curve(out / "trials" / "CartPole-v1-gibo-00", every=1)
    assert [n for n, _ in curve] == [0, 9, 18]

    # The same command again changes nothing that was computed or drawn.
    kept = {path: path.read_bytes() for path in out.rglob("*") if path.suffix in (".csv", ".jsonl", ".svg", ".json")}
    assert main(words) == 0
    assert {path: path.read_bytes() for path in kept} == kept
    assert capsys.readouterr().out.splitlines()[:6] == said.splitlines()[:6]

    # The figure is drawn again from the tables alone.
    drawn = (out / "learning.svg").read_bytes()
    for path in (*out.glob("learning.*"), out / "cells.jsonl"):
        path.unlink()
    assert main(["figures", str(out)]) == 0
    assert (out / "learning.svg").read_bytes() == drawn
    ET.fromstring(drawn)


def test_cells_and_budgets(tmp_path):
    study = GymStudy("ablation-gym", tmp_path, trials=2, budget=500)
    assert len(study.cells()) == 10  # three arms on Hopper
    assert [study.budget_of(name) for name in ENVIRONMENTS] == [100, 500, 500]
    only = GymStudy("ablation-gym", tmp_path, trials=1, methods=("without state normalisation",))
    assert only.cells() == [{"environment": "Hopper-v5", "method": "without state normalisation", "trial": 0}]
    assert "folder" not in only.definition()
    ablated = STUDIES["ablation-gym"]["Swimmer-v5"].methods["without gradient normalisation"].options["settings"]
    assert replace(ablated, normalization="published") == settings("published", "Swimmer-v5")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "walker"}, "study: expected one of cartpole, swimmer, hopper, cheetah, ablation-gym, got 'walker'"),
        ({"methods": ("PPO",)}, "'PPO' is not in cartpole; there are GIBO, ARS"),
        ({"trials": 0}, "trials: must be at least 1, got 0"),
        ({"trials": 1001}, "at most 1000"),
        ({"budget": 0}, "budget: must be at least 1, got 0"),
    ],
)
def test_mistakes(tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        GymStudy(**{"name": "cartpole", "folder": tmp_path, **options})


# -- learning curves --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("normalize_states", [False, True])
def test_the_curve_of_a_trial_that_was_stopped_is_that_of_an_undisturbed_one(tmp_path, normalize_states):
    training = replace(PRESETS["published"]["CartPole-v1", "gibo"], normalize_states=normalize_states)
    train(training, tmp_path / "whole", budget=30, seed=2)
    for budget in (4, 13, 30):
        train(training, tmp_path / "stopped", budget=budget, seed=2)
    curve = learning_curve(tmp_path / "whole", every=1)
    assert learning_curve(tmp_path / "stopped", every=1) == curve
    assert [n for n, _ in curve] == [0, 9, 18, 27]


def test_a_curve_is_looked_at_now_and_then(tmp_path):
    train(PRESETS["published"]["Swimmer-v5", "ars"], tmp_path, budget=1)  # so that there is no iteration
    assert [n for n, _ in learning_curve(tmp_path, every=1)] == [0]


# -- the whole of it --------------------------------------------------------------------------------------------------


def test_a_pole_is_balanced_after_60_episodes(tmp_path):
    training = PRESETS["published"]["CartPole-v1", "gibo"]
    train(training, tmp_path, budget=60, seed=1)
    policy = read_trial(tmp_path).policy
    with training.task() as task:
        returns = [episode.value for episode in task.evaluate(policy.theta, 10, seed=7)]
        chance = [episode.value for episode in task.evaluate(task.x0(), 10, seed=7)]
    assert sum(chance) / 10 < 30
    assert sum(returns) / 10 > 300  # 500 is the most that there is; 12 seeds gave 445 to 500
