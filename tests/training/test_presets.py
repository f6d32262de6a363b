"""The presets hold the settings of their sources: table 3 of Müller et al. 2021, and the published code's files
configs/rl_experiment (github.com/sarmueller/gibo).

Seeded cells of studies/tests/test_reference_cells.py hold what both have in common.
"""

import pytest

from gibo.priors import Normal, Uniform
from gibo.steps import Piecewise
from gibo.training.presets import BUDGETS, PRESETS
from gibo.training.training import Training

POLE_STEPS = Piecewise(((0, 0.8), (3, 0.3)))  # cartpole/gibo_10runs.yaml
HOPPER_STEPS = Piecewise(((0, 0.6), (1000, 0.5), (2000, 0.3)))  # hopper/gibo_10runs.yaml

# M, N_m, noise, the largest lengthscale, delta and eta.
GIBO = {
    ("paper", "CartPole-v1"): (8, 20, 0.5, 0.3, 0.1, 1.0),
    ("paper", "Swimmer-v5"): (16, 32, 0.01, 0.3, 0.1, 0.5),
    ("paper", "Hopper-v5"): (8, 48, 0.01, 0.5, 0.2, 0.5),
    ("published", "CartPole-v1"): (8, 20, 0.5, 0.3, 0.1, POLE_STEPS),
    ("published", "Swimmer-v5"): (16, 32, 0.01, 0.3, 0.1, 0.5),
    ("published", "Hopper-v5"): (32, 128, 0.02, 0.5, 0.2, HOPPER_STEPS),
    ("gibo", "CartPole-v1"): (8, 20, 0.5, 0.3, 0.1, POLE_STEPS),
    ("gibo", "Swimmer-v5"): (16, 32, 0.01, 0.3, 0.1, 0.5),
    ("gibo", "Hopper-v5"): (32, 128, 0.01, 0.5, 0.2, 0.6),
    ("gibo", "HalfCheetah-v5"): (32, 128, 0.02, 0.5, 0.2, 0.6),
}
# Step, noise, directions and top of ARS: rs_10runs.yaml; the last one is V2-t of Mania et al. 2018.
ARS = {
    "CartPole-v1": (0.025, 0.02, 8, 4),
    "Swimmer-v5": (0.02, 0.01, 1, None),
    "Hopper-v5": (0.01, 0.025, 8, 4),
    "HalfCheetah-v5": (0.02, 0.03, 32, 4),
}
REWARDS = {
    "CartPole-v1": (0.0, 1 / 500),
    "Swimmer-v5": (0.0, 1 / 350),
    "Hopper-v5": (1.0, 1 / 1000),
    "HalfCheetah-v5": (0.0, 1 / 1000),
}
ALL = [(source, *key) for source, presets in PRESETS.items() for key in presets]


@pytest.mark.parametrize(("source", "environment", "method"), ALL)
def test_a_preset_is_that_of_its_source(source, environment, method):
    training = PRESETS[source][environment, method]
    assert (training.reward_shift, training.reward_scale) == REWARDS[environment]
    assert (training.scale, training.environment in BUDGETS) == (1.0, True)
    assert Training.from_plain(training.to_plain()) == training
    own = training.options
    if method == "ars":
        assert tuple(own.get(name) for name in ("step_size", "noise", "directions", "top")) == ARS[environment]
        assert own.get("ddof") == (1 if source == "published" else None)  # torch.std in src/optimizers.py
        return
    settings, (M, N_m, noise, longest, delta, eta) = own["settings"], GIBO[source, environment]
    assert (settings.M, settings.N_m, settings.noise, settings.delta) == (M, N_m, noise, delta)
    assert settings.lengthscale == Uniform(0.01, longest)
    assert (settings.move.step.eta, settings.mean) == (eta, "published" if source == "published" else 0.0)
    table = ("paper", "each") if source == "paper" else ("published", "full")
    assert (settings.move.normalization, settings.fit) == table
    assert settings.variance == (0.05 if source == "gibo" and settings.M == 32 else Normal(2.0, 1.0))
