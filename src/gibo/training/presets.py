"""Settings for policy search: the paper's (Müller et al. 2021, table 3), as in its tables ("paper") and as in the
published code's files configs/rl_experiment/*/*_10runs.yaml ("published"), and our own ("gibo").

The noise levels of the tables are variances, as in the published code. The published code fits the hyperparameters and
a constant mean when the window is full, and omits the mean from the gradient. Its ARS uses a sample's standard
deviation and normalises the states of Swimmer. On Hopper it decays the weights of GIBO by 1e-5 per update; this is
omitted here, because it would change them by only 0.2 % in a run of 8000 episodes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gibo.optimizers.moves import GradientStep
from gibo.optimizers.settings import Settings
from gibo.priors import Normal, Uniform
from gibo.steps import GradientAscent, Piecewise
from gibo.training.training import Training


# If both have the same settings for GIBO, ours differ by a mean that is fixed at 0.
def _gibo(source: str, longest: float, noise: float, M: int, N_m: int, delta: float, eta: Any) -> dict[str, Settings]:
    as_in_code = source != "paper"
    settings = Settings.paper(
        lengthscale=Uniform(0.01, longest),
        variance=Normal(2.0, 1.0),
        noise=noise,
        mean="published" if source == "published" else 0.0,
        standardize=False,
        M=M,
        N_m=N_m,
        delta=delta,
        delta_unit="absolute",
        fit="full" if as_in_code else "each",
        fit_at="iterate",
        move=GradientStep(GradientAscent(eta=eta), "published" if as_in_code else "paper"),
    )
    return {"settings": settings}


_CARTPOLE = Training("CartPole-v1", policy="linear", scale=1.0, reward_scale=1 / 500, reexpressed="data")
_SWIMMER = Training("Swimmer-v5", policy="linear", scale=1.0, reward_scale=1 / 350, reexpressed="data")
_HOPPER = Training(
    "Hopper-v5",
    policy="affine",
    scale=1.0,
    reward_shift=1.0,
    reward_scale=1 / 1000,
    normalize_states=True,
    reexpressed="data",
)
_ARS_CARTPOLE = replace(_CARTPOLE, method="ars", options={"step_size": 0.025, "noise": 0.02, "directions": 8, "top": 4})
_ARS_SWIMMER = replace(_SWIMMER, method="ars", options={"step_size": 0.02, "noise": 0.01, "directions": 1})
_ARS_HOPPER = replace(
    _HOPPER, method="ars", options={"step_size": 0.01, "noise": 0.025, "directions": 8, "top": 4}, reexpressed="off"
)


def _in_code(training: Training, **changes: Any) -> Training:
    """ARS as in the published code, with a sample's standard deviation of the returns."""
    return replace(training, options={**training.options, "ddof": 1}, **changes)


_POLE_STEPS = Piecewise(((0, 0.8), (3, 0.3)))
_HOPPER_STEPS = Piecewise(((0, 0.6), (1000, 0.5), (2000, 0.3)))


def _own(noise: float) -> dict[str, Settings]:
    """Hopper's published settings, but with a fixed variance of the signal and a constant step size.

    Before a policy hops or runs, returns differ by less than the fixed noise. A fitted variance would go to zero, and
    the steps would be random.
    """
    return {"settings": replace(_gibo("gibo", 0.5, noise, 32, 128, 0.2, 0.6)["settings"], variance=0.05)}


# Not in the paper, 108 parameters.
_CHEETAH = Training(
    "HalfCheetah-v5", policy="affine", scale=1.0, reward_scale=1 / 1000, normalize_states=True, reexpressed="data"
)

# By source, environment and method.
PRESETS: dict[str, dict[tuple[str, str], Training]] = {
    "paper": {
        ("CartPole-v1", "gibo"): replace(_CARTPOLE, options=_gibo("paper", 0.3, 0.5, 8, 20, 0.1, 1.0)),
        ("CartPole-v1", "ars"): _ARS_CARTPOLE,
        ("Swimmer-v5", "gibo"): replace(_SWIMMER, options=_gibo("paper", 0.3, 0.01, 16, 32, 0.1, 0.5)),
        ("Swimmer-v5", "ars"): _ARS_SWIMMER,
        ("Hopper-v5", "gibo"): replace(_HOPPER, options=_gibo("paper", 0.5, 0.01, 8, 48, 0.2, 0.5)),
        ("Hopper-v5", "ars"): _ARS_HOPPER,
    },
    "published": {
        ("CartPole-v1", "gibo"): replace(_CARTPOLE, options=_gibo("published", 0.3, 0.5, 8, 20, 0.1, _POLE_STEPS)),
        ("CartPole-v1", "ars"): _in_code(_ARS_CARTPOLE),
        ("Swimmer-v5", "gibo"): replace(_SWIMMER, options=_gibo("published", 0.3, 0.01, 16, 32, 0.1, 0.5)),
        # The biases of Swimmer and Hopper are not trained.
        ("Swimmer-v5", "ars"): _in_code(_ARS_SWIMMER, normalize_states=True, reexpressed="off"),
        ("Hopper-v5", "gibo"): replace(_HOPPER, options=_gibo("published", 0.5, 0.02, 32, 128, 0.2, _HOPPER_STEPS)),
        ("Hopper-v5", "ars"): _in_code(_ARS_HOPPER, policy="linear"),
    },
    "gibo": {
        ("CartPole-v1", "gibo"): replace(_CARTPOLE, options=_gibo("gibo", 0.3, 0.5, 8, 20, 0.1, _POLE_STEPS)),
        ("Swimmer-v5", "gibo"): replace(_SWIMMER, options=_gibo("gibo", 0.3, 0.01, 16, 32, 0.1, 0.5)),
        # The noise of the paper's table: with 0.02 one trial in seven stayed on a plateau of equal returns.
        ("Hopper-v5", "gibo"): replace(_HOPPER, options=_own(0.01)),
        ("HalfCheetah-v5", "gibo"): replace(_CHEETAH, options=_own(0.02)),
        # Step, noise and directions of ARS V2-t in Mania et al. 2018.
        ("HalfCheetah-v5", "ars"): replace(
            _CHEETAH,
            method="ars",
            policy="linear",
            options={"step_size": 0.02, "noise": 0.03, "directions": 32, "top": 4},
            reexpressed="off",
        ),
    },
}

# Episodes after which a trial with a preset has mostly converged.
BUDGETS = {"CartPole-v1": 100, "Swimmer-v5": 500, "Hopper-v5": 2000, "HalfCheetah-v5": 1000}
