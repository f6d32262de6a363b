"""Settings for policy search: the paper's (Müller et al. 2021, table 3), as in its tables ("paper") and as in the
published code's files configs/rl_experiment/*/*_10runs.yaml ("published"), and our own ("gibo").

The noise levels of the tables are variances, as in the published code. The published code fits the hyperparameters and
a constant mean when the window is full, and omits the mean from the gradient. Its ARS uses a sample's standard
deviation and normalises the states of Swimmer; the biases of Swimmer and Hopper are not trained. On Hopper it decays
the weights of GIBO by 1e-5 per update; this is omitted here, because it would change them by only 0.2 % in a run of
8000 episodes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gibo.optimizers.moves import GradientStep
from gibo.optimizers.settings import Settings
from gibo.priors import Normal, Uniform
from gibo.steps import GradientAscent, Piecewise
from gibo.training.training import Training

_CARTPOLE = Training("CartPole-v1", policy="linear", scale=1.0, reward_scale=1 / 500, reexpressed="data")
_SWIMMER = Training("Swimmer-v5", policy="linear", scale=1.0, reward_scale=1 / 350, reexpressed="data")
_HOPPER = Training("Hopper-v5", "affine", scale=1.0, reward_shift=1.0, reward_scale=1 / 1000, reexpressed="data")
_HOPPER = replace(_HOPPER, normalize_states=True)
_CHEETAH = replace(_HOPPER, environment="HalfCheetah-v5", reward_shift=0.0)  # not in the paper, 108 parameters

_POLE_STEPS = Piecewise(((0, 0.8), (3, 0.3)))
_HOPPER_STEPS = Piecewise(((0, 0.6), (1000, 0.5), (2000, 0.3)))


def _gibo(
    base: Training, source: str, longest: float, noise: float, M: int, N_m: int, delta: float, eta: Any, **more: Any
) -> Training:
    """Settings of GIBO. If code and ours are the same, ours differ by a mean that is fixed at 0."""
    as_in_code = source != "paper"
    given: dict[str, Any] = {
        "lengthscale": Uniform(0.01, longest),
        "variance": Normal(2.0, 1.0),
        "noise": noise,
        "mean": "published" if source == "published" else 0.0,
        "standardize": False,
        "M": M,
        "N_m": N_m,
        "delta": delta,
        "delta_unit": "absolute",
        "fit": "full" if as_in_code else "each",
        "fit_at": "iterate",
        "move": GradientStep(GradientAscent(eta=eta), "published" if as_in_code else "paper"),
    }
    return replace(base, options={"settings": Settings.paper(**given | more)})


def _ars(base: Training, step_size: float, noise: float, directions: int, **more: Any) -> Training:
    options = {"step_size": step_size, "noise": noise, "directions": directions, **more}
    return replace(base, method="ars", options=options)


_FREE: dict[str, Any] = {"reexpressed": "off", "normalize_states": True}
# Hopper's published settings with a fixed variance of the signal and a constant step size. Before a policy hops or
# runs, returns differ by less than the fixed noise: a fitted variance would go to zero, and the steps would be random.
_FIXED = {"variance": 0.05}
_TRAININGS: dict[str, list[Training]] = {
    "paper": [
        _gibo(_CARTPOLE, "paper", 0.3, 0.5, 8, 20, 0.1, 1.0),
        _ars(_CARTPOLE, 0.025, 0.02, 8, top=4),
        _gibo(_SWIMMER, "paper", 0.3, 0.01, 16, 32, 0.1, 0.5),
        _ars(_SWIMMER, 0.02, 0.01, 1),
        _gibo(_HOPPER, "paper", 0.5, 0.01, 8, 48, 0.2, 0.5),
        _ars(replace(_HOPPER, **_FREE), 0.01, 0.025, 8, top=4),
    ],
    "published": [
        _gibo(_CARTPOLE, "published", 0.3, 0.5, 8, 20, 0.1, _POLE_STEPS),
        _ars(_CARTPOLE, 0.025, 0.02, 8, top=4, ddof=1),
        _gibo(_SWIMMER, "published", 0.3, 0.01, 16, 32, 0.1, 0.5),
        _ars(replace(_SWIMMER, **_FREE), 0.02, 0.01, 1, ddof=1),
        _gibo(_HOPPER, "published", 0.5, 0.02, 32, 128, 0.2, _HOPPER_STEPS),
        _ars(replace(_HOPPER, policy="linear", **_FREE), 0.01, 0.025, 8, top=4, ddof=1),
    ],
    "gibo": [
        _gibo(_CARTPOLE, "gibo", 0.3, 0.5, 8, 20, 0.1, _POLE_STEPS),
        _gibo(_SWIMMER, "gibo", 0.3, 0.01, 16, 32, 0.1, 0.5),
        # The noise of the paper's table: with 0.02 one trial in seven stayed on a plateau of equal returns.
        _gibo(_HOPPER, "gibo", 0.5, 0.01, 32, 128, 0.2, 0.6, **_FIXED),
        _gibo(_CHEETAH, "gibo", 0.5, 0.02, 32, 128, 0.2, 0.6, **_FIXED),
        # Step, noise and directions of ARS V2-t in Mania et al. 2018.
        _ars(replace(_CHEETAH, policy="linear", **_FREE), 0.02, 0.03, 32, top=4),
    ],
}
# By source, environment and method.
PRESETS = {source: {(each.environment, each.method): each for each in found} for source, found in _TRAININGS.items()}

# Episodes after which a trial with a preset has mostly converged.
BUDGETS = {"CartPole-v1": 100, "Swimmer-v5": 500, "Hopper-v5": 2000, "HalfCheetah-v5": 1000}
