"""Every setting of every method of the leaderboard, written out with its source; a change must be made here too.

A method's options are what its state says that it was made with, all of them.
"""

import math
from dataclasses import asdict

import numpy as np
import pytest
from test_sources import OTHERWISE, assert_settings

from gibo.optimizers.settings import Settings
from gibo.priors import LogNormal, Normal, SharedLogNormal, Uniform
from gibo.steps import GradientAscent, Piecewise
from gibo_studies.leaderboard.methods import METHODS, REACH
from gibo_studies.leaderboard.tasks import TASKS, missing

FREE, BOXED = "rotated-ellipsoid10", "gp8"  # 10 parameters with scale 1; 8 with scale 0.1, between 0 and 1
TOLD = 2.0  # times the right scale


def made(method, task):
    if missing(METHODS[method].needs):
        pytest.skip(f"needs {missing(METHODS[method].needs)}")
    return METHODS[method].make(TASKS[task], TOLD * TASKS[task].scale, 3)


def options(method, task):
    """All but where it starts and within what, which `assert_placed` looks at; settings as they are."""
    optimizer = made(method, task)
    given = optimizer.state()["arguments"]
    place = ("x0", "scale", "bounds", "seed")
    return {name: getattr(optimizer, name) for name in given if name not in place}


def assert_placed(method, task, scale, bounds):
    optimizer = made(method, task)
    assert optimizer.x0.tolist() == TASKS[task].start.tolist()
    assert optimizer.seed == 3
    np.testing.assert_allclose(optimizer.scale, scale)
    if bounds is None:
        assert optimizer.bounds is None
    else:
        np.testing.assert_allclose(optimizer.bounds, np.broadcast_to(np.reshape(bounds, (2, 1)), (2, optimizer.d)))


# Scale and bounds that a method gets: those of the task, or a box of five scales around the start. On the paper's
# tasks its settings are in the parameters' own units, so the scale says only by how much they are wrong.
IN_A_BOX = ("Vanilla BO", "Optuna TPE", "Optuna GP", "BoTorch")


def test_all_methods_are_here():
    assert REACH == 5.0  # ours
    assert METHODS.keys() == {
        "GIBO", "GIBO (gradient steps)", "GIBO (paper)", "CMA-ES", "CMA-ES (noise handling)",
        "ARS", "Vanilla BO", "Vanilla BO (best practice)", "Trust region BO (our reading)", "MPD (our reading)",
        "MinUCB (our reading)", "Local entropy search (our reading)", "Random search", "CMA-ES (half sigma)",
        "lq-CMA-ES", "LRA-CMA-ES", "Optuna TPE", "Optuna GP", "BoTorch", "nevergrad", "COBYQA", "Py-BOBYQA", "PyBADS",
    }  # fmt: skip
    everywhere = {name for name, method in METHODS.items() if method.everywhere}
    assert everywhere == {"GIBO", "CMA-ES", "ARS", "Random search"}


@pytest.mark.parametrize(
    "method", [name for name in METHODS if name not in ("GIBO (paper)", "Vanilla BO (best practice)")]
)
def test_where_methods_start(method):
    assert_placed(method, FREE, 2.0, (-10.0, 10.0) if method in IN_A_BOX else None)
    assert_placed(method, BOXED, 0.2, (0.0, 1.0))


# -- ours -------------------------------------------------------------------------------------------------------------

MODEL = {
    "lengthscale": SharedLogNormal(1.5 * math.sqrt(10.0), 0.7, 0.3),
    "variance": LogNormal(1.0, 0.7),
    "noise": LogNormal(0.1, 1.5),
    "mean": "estimated",
    "standardize": True,
    "M": 5,
    "N_m": 50,
    "N_g": 5,
    "delta": 1.0,
    "delta_unit": "lengthscales",
    "fit": "each",
    "fit_from": 5,
    "fit_after_iterate": False,
    "normalization": "invariant",
    "step": GradientAscent(eta=0.35),
}
DEFAULT = MODEL | {
    "noise": LogNormal(1.0, 1.5),
    "N_m": 100,
    "delta": 1.5,
    "plan_steps": 8,
    "basis": "random",
    "move": "bound",
    "warp": "chosen",
    "fit_at": "step",
    "scale_search": True,
    "patience": 6,
    "remember": True,
    "caution": 1.0,
}


def test_gibo():
    for method, expected in (("GIBO", DEFAULT), ("GIBO (gradient steps)", MODEL)):
        assert options(method, FREE).keys() == {"settings"}
        assert_settings(options(method, FREE)["settings"], **expected)


# -- the paper --------------------------------------------------------------------------------------------------------

PAPER = {
    "mean": 0.0,  # ours; the published code trains it in fits and leaves it out of the gradient
    "standardize": False,
    "N_g": 5,
    "delta_unit": "absolute",
    "fit_after_iterate": True,
}
IN_CODE = {"fit": "full", "normalization": "published"}  # src/optimizers.py
PAPERS = {
    "gp8": {
        "lengthscale": Uniform(0.7 * 0.418301, 1.3 * 0.418301),  # appendix A.5: 2·Δ(8)·(1 ± 0.3)
        "variance": Uniform(0.1, 5.0),  # table 1
        "noise": 0.1**2,  # table 1: a standard deviation there
        "M": 8,  # table 1
        "N_m": 40,  # table 1
        "delta": 0.2,  # table 1
        "fit": "each",
        "fit_from": 1,
        "normalization": "paper",  # appendix A.4
        "step": GradientAscent(eta=0.25),  # table 1
    },
    "lqr": IN_CODE
    | {
        "lengthscale": Uniform(0.01, 0.3),  # table 2
        "variance": Normal(20.0, 5.0),  # table 2
        "noise": 2.0,  # table 2
        "M": 9,  # table 2
        "N_m": 40,  # table 2
        "delta": 0.1,  # table 2
        "fit_from": 4,  # of no effect: fitted once the window is full
        "step": GradientAscent(eta=Piecewise(((0, 0.15), (3, 0.1), (8, 0.05)))),  # notebook
    },
    "CartPole-v1": IN_CODE
    | {
        "lengthscale": Uniform(0.01, 0.3),  # table 3
        "variance": Normal(2.0 * 500.0**2, 1.0 * 500.0**2),  # table 3, of returns that are divided by 500
        "noise": 0.5 * 500.0**2,  # table 3
        "M": 8,  # table 3
        "N_m": 20,  # table 3
        "delta": 0.1,  # table 3
        "fit_from": 4,
        "step": GradientAscent(eta=Piecewise(((0, 0.8), (3, 0.3)))),  # cartpole/gibo_10runs.yaml
    },
    "Swimmer-v5": IN_CODE
    | {
        "lengthscale": Uniform(0.01, 0.3),  # table 3
        "variance": Normal(2.0 * 350.0**2, 1.0 * 350.0**2),  # table 3, of returns that are divided by 350
        "noise": 0.01 * 350.0**2,  # table 3
        "M": 16,  # table 3
        "N_m": 32,  # table 3
        "delta": 0.1,  # table 3
        "fit_from": 8,
        "step": GradientAscent(eta=0.5),  # swimmer/gibo_10runs.yaml
    },
}


def plainly(value):
    """Priors as numbers, which rounding may change."""
    return pytest.approx(list(asdict(value).values()), rel=1e-6) if hasattr(value, "__dataclass_fields__") else value


@pytest.mark.parametrize("task", PAPERS)
def test_gibo_with_the_papers_settings(task):
    found = options("GIBO (paper)", task)
    assert found.keys() == {"settings"}
    expected = OTHERWISE | PAPER | PAPERS[task]
    assert expected.keys() == asdict(Settings()).keys()
    for name, value in expected.items():
        given = getattr(found["settings"], name)
        if name in ("lengthscale", "variance"):
            assert type(given) is type(value)
            assert list(asdict(given).values()) == plainly(value)
        elif name == "noise":
            assert given == pytest.approx(value)
        else:
            assert given == value, name
    assert_placed("GIBO (paper)", task, TOLD, TASKS[task].bounds)


def test_the_papers_settings_are_for_the_papers_tasks():
    assert {name for name, task in TASKS.items() if METHODS["GIBO (paper)"].applies(task)} == {
        "gp8", "gp20", "gp36", "lqr", "CartPole-v1", "Swimmer-v5",
    }  # fmt: skip


# -- the others -------------------------------------------------------------------------------------------------------

OTHERS = {
    # The package's own: population 4 + 3·ln d, sigma the scale; a cap at a third of finite bounds.
    "CMA-ES": {"sigma0": 1.0, "cap": 1 / 3, "population": 10, "noise_handling": False},
    "CMA-ES (half sigma)": {"sigma0": 0.5, "cap": 1 / 3, "population": 10, "noise_handling": False},
    "CMA-ES (noise handling)": {"sigma0": 1.0, "cap": 1 / 3, "population": 10, "noise_handling": True},
    # Ours: no table has them for objectives of which only a scale is known.
    "ARS": {"step_size": 0.15, "noise": 0.3, "directions": 2, "top": 2, "ddof": 0},
    "Vanilla BO": {
        "kernel": "squared_exponential",
        "lengthscale": SharedLogNormal(1.5 * math.sqrt(10.0), 0.7, 0.3),
        "variance": LogNormal(1.0, 0.7),
        "noise": LogNormal(0.01, 1.5),
        "mean": 0.0,
        "standardize": True,
        "fit_from": 5,
        "fit_every": 10,
    },
    # Hvarfner, Hellsten, Nardi 2024, and BoTorch since 0.12: lengthscales LogNormal(√2 + ½·ln d, √3) on the unit cube,
    # noise LogNormal(−4, 1); the acquisition is Ament et al. 2023's log noisy expected improvement.
    "Vanilla BO (best practice)": {
        "kernel": "squared_exponential",
        "lengthscale": LogNormal(math.exp(math.sqrt(2.0) + 0.5 * math.log(10.0)), math.sqrt(3.0)),
        "variance": 1.0,
        "noise": LogNormal(math.exp(-4.0), 1.0),
        "mean": "estimated",
        "standardize": True,
        "fit_from": 4,
        "fit_every": 10,
    },
    # Eriksson et al. 2019: a batch of Thompson samples; of the box one scale to each side, ours.
    "Trust region BO (our reading)": {"batch": 4, "initial": 10, "half_width": 1.0},
    # Nguyen et al. 2022: steps while the probability of ascent is at least 0.65; the length, in lengthscales, is ours.
    "MPD (our reading)": {"step": 0.05, "most_steps": 20, "least_probability": 0.65},
    "MinUCB (our reading)": {"beta": 1.0},  # Fan et al. 2024; beta ours
    "Local entropy search (our reading)": {"batch": 1, "ways": 64, "points": 8},  # Stenger et al. 2026 have 250 ways
    "Random search": {"batch": 1},
    # As their packages have them.
    "Optuna TPE": {},
    "Optuna GP": {},
    "BoTorch": {},
    "COBYQA": {},
    "Py-BOBYQA": {},
    "PyBADS": {},
    "lq-CMA-ES": {},
    "LRA-CMA-ES": {},
    "nevergrad": {"budget": 300},  # that of the task
}


@pytest.mark.parametrize("method", OTHERS)
def test_the_others(method):
    found, expected = options(method, FREE), dict(OTHERS[method])
    if method in ("MPD (our reading)", "MinUCB (our reading)"):
        assert_settings(found.pop("settings"), **MODEL)
    if method == "Local entropy search (our reading)":
        assert_settings(found.pop("settings"), **{**MODEL, "N_m": 1000})
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        given = found[name]
        if hasattr(value, "__dataclass_fields__"):
            assert type(given) is type(value)
            given = list(asdict(given).values())
        assert given == plainly(value), name


def test_best_practice_is_on_the_unit_cube():
    """The scale is the box's side, five scales from the start to either side."""
    assert_placed("Vanilla BO (best practice)", FREE, 20.0, (-10.0, 10.0))
    assert_placed("Vanilla BO (best practice)", BOXED, 1.0, (0.0, 1.0))
