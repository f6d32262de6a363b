"""The presets hold the settings of their sources.

Sources: table 3 of Müller et al. 2021, the published code's files (github.com/sarmueller/gibo: configs/), or "ours".
The studies of the paper are held by studies/tests/test_reference_cells.py.
"""

from dataclasses import asdict

import pytest

from gibo.optimizers.moves import GradientStep
from gibo.priors import Normal, Uniform
from gibo.steps import GradientAscent, Piecewise
from gibo.training.presets import BUDGETS, PRESETS

GYM = {
    "variance": Normal(2.0, 1.0),  # table 3
    "standardize": False,
    "delta_unit": "absolute",
    "fit_at": "iterate",  # algorithm 1
}
TABLE = GYM | {"mean": 0.0, "fit": "each"}
CODE = GYM | {"mean": "published", "fit": "full"}  # src/model.py, src/optimizers.py
OURS = CODE | {"mean": 0.0}
POLE = {"lengthscale": Uniform(0.01, 0.3), "noise": 0.5, "M": 8, "N_m": 20, "delta": 0.1}  # table 3
SWIMMER = {"lengthscale": Uniform(0.01, 0.3), "noise": 0.01, "M": 16, "N_m": 32, "delta": 0.1}  # table 3
HOPPER = {"lengthscale": Uniform(0.01, 0.5), "delta": 0.2}  # table 3
POLE_STEPS = Piecewise(((0, 0.8), (3, 0.3)))  # cartpole/gibo_10runs.yaml
HOPPER_STEPS = Piecewise(((0, 0.6), (1000, 0.5), (2000, 0.3)))  # hopper/gibo_10runs.yaml
BIG = {"M": 32, "N_m": 128}  # hopper/gibo_10runs.yaml


def paper_step(eta):
    return GradientStep(GradientAscent(eta=eta), "paper")


def published_step(eta):
    return GradientStep(GradientAscent(eta=eta), "published")


GIBO_PRESETS = {
    ("paper", "CartPole-v1"): TABLE | POLE | {"move": paper_step(1.0)},
    ("paper", "Swimmer-v5"): TABLE | SWIMMER | {"move": paper_step(0.5)},
    ("paper", "Hopper-v5"): TABLE | HOPPER | {"noise": 0.01, "M": 8, "N_m": 48, "move": paper_step(0.5)},
    ("published", "CartPole-v1"): CODE | POLE | {"move": published_step(POLE_STEPS)},
    ("published", "Swimmer-v5"): CODE | SWIMMER | {"move": published_step(0.5)},  # swimmer/gibo_10runs.yaml
    ("published", "Hopper-v5"): CODE | HOPPER | BIG | {"noise": 0.02, "move": published_step(HOPPER_STEPS)},
    ("gibo", "CartPole-v1"): OURS | POLE | {"move": published_step(POLE_STEPS)},
    ("gibo", "Swimmer-v5"): OURS | SWIMMER | {"move": published_step(0.5)},
    ("gibo", "Hopper-v5"): OURS | HOPPER | BIG | {"noise": 0.01, "variance": 0.05, "move": published_step(0.6)},
    ("gibo", "HalfCheetah-v5"): (OURS | HOPPER | BIG | {"noise": 0.02, "variance": 0.05, "move": published_step(0.6)}),
}
# Table 3, and configs/rl_experiment/*/rs_10runs.yaml; ddof 1 is that of torch.std in src/optimizers.py.
POLE_ARS = {"step_size": 0.025, "noise": 0.02, "directions": 8, "top": 4}
SWIMMER_ARS = {"step_size": 0.02, "noise": 0.01, "directions": 1}
HOPPER_ARS = {"step_size": 0.01, "noise": 0.025, "directions": 8, "top": 4}
ARS_PRESETS = {
    ("paper", "CartPole-v1"): POLE_ARS,
    ("paper", "Swimmer-v5"): SWIMMER_ARS,
    ("paper", "Hopper-v5"): HOPPER_ARS,
    ("published", "CartPole-v1"): POLE_ARS | {"ddof": 1},
    ("published", "Swimmer-v5"): SWIMMER_ARS | {"ddof": 1},
    ("published", "Hopper-v5"): HOPPER_ARS | {"ddof": 1},
    # Mania et al. 2018, V2-t.
    ("gibo", "HalfCheetah-v5"): {"step_size": 0.02, "noise": 0.03, "directions": 32, "top": 4},
}
# Policy, states normalised, what moves when their statistics change. Table 3's last row is for GIBO; the files have
# layers without a bias (CartPole, Swimmer), and where ARS has biases they are not trained (param_args_ignore).
POLICIES = {
    ("paper", "CartPole-v1", "gibo"): ("linear", False, "data"),
    ("paper", "CartPole-v1", "ars"): ("linear", False, "data"),
    ("paper", "Swimmer-v5", "gibo"): ("linear", False, "data"),
    ("paper", "Swimmer-v5", "ars"): ("linear", False, "data"),
    ("paper", "Hopper-v5", "gibo"): ("affine", True, "data"),
    ("paper", "Hopper-v5", "ars"): ("affine", True, "off"),
    ("published", "CartPole-v1", "gibo"): ("linear", False, "data"),
    ("published", "CartPole-v1", "ars"): ("linear", False, "data"),
    ("published", "Swimmer-v5", "gibo"): ("linear", False, "data"),
    ("published", "Swimmer-v5", "ars"): ("linear", True, "off"),
    ("published", "Hopper-v5", "gibo"): ("affine", True, "data"),
    ("published", "Hopper-v5", "ars"): ("linear", True, "off"),
    ("gibo", "CartPole-v1", "gibo"): ("linear", False, "data"),
    ("gibo", "Swimmer-v5", "gibo"): ("linear", False, "data"),
    ("gibo", "Hopper-v5", "gibo"): ("affine", True, "data"),
    ("gibo", "HalfCheetah-v5", "gibo"): ("affine", True, "data"),
    ("gibo", "HalfCheetah-v5", "ars"): ("linear", True, "off"),
}
# The files' manipulate_reward: shift per step, and scale of a return.
REWARDS = {
    "CartPole-v1": (0.0, 1 / 500),
    "Swimmer-v5": (0.0, 1 / 350),
    "Hopper-v5": (1.0, 1 / 1000),
    "HalfCheetah-v5": (0.0, 1 / 1000),  # ours
}


def test_presets_are_all_here():
    found = {(source, *key) for source, presets in PRESETS.items() for key in presets}
    assert found == POLICIES.keys()
    assert found == {(*key, "gibo") for key in GIBO_PRESETS} | {(*key, "ars") for key in ARS_PRESETS}
    assert BUDGETS == {"CartPole-v1": 100, "Swimmer-v5": 500, "Hopper-v5": 2000, "HalfCheetah-v5": 1000}  # ours


@pytest.mark.parametrize(("source", "environment"), GIBO_PRESETS)
def test_presets_of_gibo(source, environment):
    training = PRESETS[source][environment, "gibo"]
    assert training.options.keys() == {"settings"}
    expected = GIBO_PRESETS[source, environment]
    assert {name: getattr(training.options["settings"], name) for name in expected} == expected


@pytest.mark.parametrize(("source", "environment"), ARS_PRESETS)
def test_presets_of_ars(source, environment):
    assert PRESETS[source][environment, "ars"].options == ARS_PRESETS[source, environment]


@pytest.mark.parametrize("key", POLICIES)
def test_policies_of_the_presets(key):
    source, environment, method = key
    training = PRESETS[source][environment, method]
    policy, normalized, reexpressed = POLICIES[key]
    shift, scale = REWARDS[environment]
    assert asdict(training) == asdict(type(training)(environment)) | {
        "method": method,
        "policy": policy,
        "scale": 1.0,  # so that settings are in the parameters' own units
        "options": asdict(training)["options"],
        "reward_shift": shift,
        "reward_scale": pytest.approx(scale),
        "normalize_states": normalized,
        "reexpressed": reexpressed,
    }
