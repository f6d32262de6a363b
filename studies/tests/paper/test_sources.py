"""Every setting of every method of every study, written out with its source; a change anywhere must be made here too.

Sources: the tables of Müller et al. 2021 (1: synthetic, 2: regulator, 3: Gym and MuJoCo), the published code's files
(github.com/sarmueller/gibo: configs/, notebooks/lqr_experiment.ipynb), or "ours".
"""

from dataclasses import asdict, fields
from functools import partial

import numpy as np
import pytest

from gibo.optimizers.ars import ARS
from gibo.optimizers.cma import CMAES
from gibo.optimizers.gibo import GIBO
from gibo.optimizers.random_search import RandomSearch
from gibo.optimizers.settings import Settings
from gibo.optimizers.vanilla_bo import VanillaBO
from gibo.priors import LogNormal, Normal, SharedLogNormal, Uniform
from gibo.steps import Decay, GradientAscent, Piecewise
from gibo.training.presets import BUDGETS, PRESETS
from gibo_studies.paper import gradients, gym, lqr, synthetic
from gibo_studies.paper.problems import GPFunction

# What no paper and no published file has another value for: our defaults of what came later.
OTHERWISE = {
    "kernel": "squared_exponential",  # section 2.2
    "sampling": "active",
    "least_share": 0.0,
    "least_gain": 0.0,  # configs/synthetic_experiment/100621, configs/rl_experiment/*_10runs, notebook: none
    "plan_steps": 60,  # as many as the climb needs
    "basis": "axes",
    "M_first": 0,  # as in all other iterations
    "move": "step",
    "warp": "none",
    "fit_at": "plan",
    "beta": 0.5,  # of no effect with steps
    "scale_search": False,
    "patience": 0,
    "remember": False,
    "caution": 0.0,
    "correlation": None,  # section 2.2 and table 1: one lengthscale per parameter
}


def assert_settings(settings, **expected):
    """All fields, none left out."""
    expected = OTHERWISE | expected
    assert {field.name for field in fields(Settings)} == set(expected)
    for name, value in expected.items():
        assert getattr(settings, name) == value, name


# -- synthetic functions ----------------------------------------------------------------------------------------------

D = 20
DELTA_20 = 0.33330056  # Δ(20) of appendix A.5, with the bracket in its right place


def function(d=D):
    return GPFunction(d, 7, np.linspace(0.4, 0.9, d), np.zeros((1, d)), np.zeros(1), np.zeros(d), 1.0)


def made(study, method):
    optimizer = synthetic.STUDIES[study][method](function())
    assert optimizer.x0.tolist() == [0.5] * D  # section 4.1
    assert optimizer.scale.tolist() == [1.0] * D  # all settings are in the cube's own units
    assert np.all(np.array(optimizer.bounds) == [[0.0] * D, [1.0] * D])
    assert optimizer.seed == 7
    return optimizer


def within_model(**changes):
    return {
        "lengthscale": tuple(np.linspace(0.4, 0.9, D)),  # table 1: those of the function
        "variance": 1.0,  # table 1
        "noise": pytest.approx(0.1**2),  # table 1: a standard deviation there
        "mean": 0.0,
        "standardize": False,
        "M": D,  # table 1
        "N_m": 5 * D,  # table 1
        "N_g": 5,  # ours; no gradients are told
        "delta": 0.2,  # table 1
        "delta_unit": "absolute",
        "fit": "never",
        "fit_from": 10,  # not used
        "fit_after_iterate": False,  # nothing is fitted
        "normalization": "paper",  # table 1: normalised; appendix A.4
        "step": GradientAscent(eta=0.25),  # table 1
    } | changes


def test_within_model():
    assert list(synthetic.WITHIN_MODEL) == ["GIBO", "ARS", "ARS (tuned)", "CMA-ES", "Vanilla BO", "Random search"]
    assert_settings(made("within-model", "GIBO").settings, **within_model())
    ars = made("within-model", "ARS")
    assert type(ars) is ARS
    assert ars.step_size == 0.02  # table 1
    assert ars.noise == pytest.approx(0.1 * 2 * DELTA_20, rel=1e-6)  # table 1
    assert (ars.directions, ars.top, ars.ddof) == (3, 3, 0)  # table 1: 1 + d//8, all of them; ddof ours (published: 1)
    tuned = made("within-model", "ARS (tuned)")
    assert tuned.noise == pytest.approx(0.4 * DELTA_20, rel=1e-6)  # ours, from a grid
    assert (tuned.step_size, tuned.directions, tuned.top, tuned.ddof) == (0.05, 3, 3, 0)
    cma = made("within-model", "CMA-ES")
    assert type(cma) is CMAES
    assert cma.sigma0 == pytest.approx(0.3 * DELTA_20, rel=1e-6)  # table 1
    assert (cma.population, cma.cap, cma.noise_handling) == (12, 1 / 3, False)  # the package's
    bo = made("within-model", "Vanilla BO")
    assert type(bo) is VanillaBO
    assert (bo.lengthscale, bo.variance) == (tuple(np.linspace(0.4, 0.9, D)), 1.0)  # table 1
    assert bo.noise == pytest.approx(0.1**2)  # table 1
    assert (bo.kernel, bo.mean, bo.standardize) == ("squared_exponential", 0.0, False)
    assert not bo.settings.priors  # nothing is fitted
    assert made("within-model", "Random search").batch == 1


def test_out_of_model():
    names = ["GIBO", "ARS", "ARS (tuned)", "CMA-ES", "CMA-ES (tuned)"]
    assert list(synthetic.OUT_OF_MODEL) == [*names, "Vanilla BO", "GIBO, our defaults", "Random search"]
    ell = made("out-of-model", "GIBO").settings.lengthscale
    assert type(ell) is Uniform
    assert (ell.lower, ell.upper) == pytest.approx((2 * DELTA_20 * 0.7, 2 * DELTA_20 * 1.3), rel=1e-6)  # table 1, A.5
    fitted = {"lengthscale": ell, "variance": Uniform(0.1, 5.0), "fit": "each", "fit_from": 1}  # variance: table 1
    gibo = made("out-of-model", "GIBO").settings
    assert_settings(gibo, **within_model(**fitted, fit_after_iterate=True))  # algorithm 1, lines 4 to 6
    ars = made("out-of-model", "ARS")
    assert (ars.step_size, ars.noise, ars.directions, ars.top, ars.ddof) == (0.02, 0.01, 3, 3, 0)  # table 1
    tuned = made("out-of-model", "ARS (tuned)")  # ours, from a grid
    assert (tuned.step_size, tuned.noise, tuned.directions, tuned.top, tuned.ddof) == (0.05, 0.1, 3, 3, 0)
    tuned = made("out-of-model", "CMA-ES (tuned)")
    assert (tuned.sigma0, tuned.cap, tuned.population) == (0.1, 1 / 3, 12)
    cma = made("out-of-model", "CMA-ES")
    assert (cma.sigma0, cma.cap, cma.population) == (0.5, None, 12)  # table 1; the package would cap it at 1/3
    np.testing.assert_allclose(cma._strategy.stds, 0.5, rtol=1e-3)
    bo = made("out-of-model", "Vanilla BO")
    assert (bo.lengthscale, bo.variance) == (ell, Uniform(0.1, 5.0))  # table 1
    assert bo.noise == pytest.approx(0.1**2)  # table 1
    assert (bo.fit_from, bo.fit_every) == (5 * D, 10)  # ours; published code: from 21 values on, each time
    assert (bo.mean, bo.standardize) == (0.0, False)
    ours = synthetic.OUT_OF_MODEL["GIBO, our defaults"](function())
    assert ours.scale.tolist() == [0.1] * D
    assert ours.settings == Settings().resolve(D)
    assert type(made("out-of-model", "Random search")) is RandomSearch


def test_our_defaults_with_gradient_steps():
    assert_settings(
        Settings().resolve(D),
        lengthscale=SharedLogNormal(1.5 * np.sqrt(D), 0.7, 0.3),
        variance=LogNormal(1.0, 0.7),
        noise=LogNormal(0.1, 1.5),
        mean="estimated",
        standardize=True,
        M=10,
        N_m=100,
        N_g=5,
        delta=1.0,
        delta_unit="lengthscales",
        fit="each",
        fit_from=10,
        fit_after_iterate=False,
        normalization="invariant",
        step=GradientAscent(eta=0.35),
    )


def test_the_synthetic_ablations_differ_in_one_setting():
    for name in ("paper", "published", "invariant", "off"):
        settings = made("ablation-normalisation", name).settings
        assert_settings(settings, **within_model(normalization=name))
    for name in ("active", "random"):
        assert_settings(made("ablation-sampling", name).settings, **within_model(sampling=name))
        ours = synthetic.SAMPLING[f"our defaults, {name}"](function())
        assert ours.scale.tolist() == [0.1] * D
        assert ours.settings == Settings(sampling=name).resolve(D)


def test_when_an_iteration_ends():
    arms = {
        "M = d": {},
        "least gain 0.1": {"least_gain": 0.1},  # configs/synthetic_experiment/110620/gibo.yaml: epsilon_diff_acq_value
        "least share 0.02": {"least_share": 0.02},
        "least share 0.05": {"least_share": 0.05},
        "M = d/2": {"M": D // 2},
    }
    assert list(synthetic.STOPPING) == list(arms)
    for name, changes in arms.items():
        assert_settings(made("stopping", name).settings, **within_model(**changes))


@pytest.mark.parametrize("name", synthetic.STUDIES)
def test_what_a_synthetic_study_runs(name):
    study = synthetic.SyntheticStudy(name)
    assert study.dimensions == (4, 8, 12, 16, 20, 24, 28, 32, 36)  # figures 3, 4, 8 and 10 to 13
    assert (study.functions, study.budget) == (40, 300)  # section 4.1
    assert synthetic.NOISE_SD == 0.1  # section 4.1


# -- the regulator ----------------------------------------------------------------------------------------------------

LQR = {
    "lengthscale": Uniform(0.01, 0.3),  # table 2
    "variance": Normal(20.0, 5.0),  # table 2
    "noise": 2.0,  # table 2; in the published code a variance
    "standardize": False,  # notebook
    "M": 9,  # table 2
    "N_m": 40,  # table 2
    "N_g": None,
    "delta": 0.1,  # table 2
    "delta_unit": "absolute",
    "fit_from": None,
    "fit_after_iterate": True,  # algorithm 1
}
PUBLISHED_LQR = LQR | {
    "mean": "published",  # src/model.py: trained where it starts at 0, and not in the derivative's mean
    "fit": "full",  # src/optimizers.py: once N >= N_max
    "normalization": "published",  # src/optimizers.py
    "step": GradientAscent(eta=Piecewise(((0, 0.15), (3, 0.1), (8, 0.05)))),  # notebook
}


def test_regulator():
    assert_settings(lqr.PUBLISHED, **PUBLISHED_LQR)
    assert_settings(lqr.FIXED_MEAN, **PUBLISHED_LQR | {"mean": 0.0})
    paper = {"mean": 0.0, "fit": "each", "normalization": "paper", "step": GradientAscent(eta=1.0)}  # table 2
    assert_settings(lqr.PAPER, **LQR | paper)
    ours = {
        "lengthscale": LogNormal(0.1, 0.4),
        "variance": LogNormal(1.0, 0.7),
        "noise": LogNormal(0.05, 1.0),
        "mean": "estimated",
        "N_m": 80,
        "delta": 0.05,
        "fit": "each",
        "step": GradientAscent(eta=Decay(0.2, halving=4.0)),
    }
    assert_settings(lqr.DECAYING, **PUBLISHED_LQR | ours)
    assert (lqr.STEPS, lqr.BUDGET, lqr.LQRStudy().trials) == (300, 130, 100)  # notebook; section 4.2: 100 trials


def test_methods_of_the_regulator():
    found = {
        name: (each.func, each.args, each.keywords) for name, each in lqr.METHODS.items() if isinstance(each, partial)
    }
    assert found.keys() == lqr.METHODS.keys()
    settings = {
        "GIBO (published)": (lqr.PUBLISHED, {"random_start": True}),  # gym-lqr: x0 ~ N(0, I)
        "GIBO (fixed mean)": (lqr.FIXED_MEAN, {}),
        "GIBO (paper)": (lqr.PAPER, {}),
        "GIBO (decaying)": (lqr.DECAYING, {"show": lqr._log}),
    }
    for name, (own, keywords) in settings.items():
        _, (make,), given = found.pop(name)
        assert (make.func, make.keywords, given) == (GIBO, {"settings": own}, keywords)
    _, (make,), given = found.pop("ARS")
    assert (make.func, given) == (ARS, {})
    assert make.keywords == {"step_size": 0.006, "noise": 0.02, "directions": 4}  # ours, from a grid
    assert ARS(np.zeros(9), **make.keywords).ddof == 0
    assert {name: each[1] for name, each in found.items()} == {"LSPI": (0.98,), "LSPI (average cost)": (1.0,)}  # ours


def test_episodes_of_the_published_regulator_start_anywhere():
    """Those of the others start at 0."""
    from gibo_studies.paper.control import LQR as Regulator

    starts = []

    class Seen(Regulator):
        def episode_return(self, K, steps=300, *, seed, x0=None):
            starts.append(x0)
            return super().episode_return(K, steps, seed=seed, x0=x0)

    paper = Regulator.paper()
    seen = Seen(paper.A, paper.B, paper.Q, paper.R, paper.W)
    list(lqr.METHODS["GIBO (published)"](seen, list(range(40)), 0))
    assert np.std(starts) == pytest.approx(1.0, abs=0.25)
    assert len({tuple(x) for x in starts}) == 40
    starts.clear()
    list(lqr.METHODS["GIBO (fixed mean)"](seen, list(range(10)), 0))
    assert starts == [None] * 10


def test_gradients():
    assert gradients.ARMS["lqr"].keys() == {9, 3}
    assert gradients.ARMS["synthetic"].keys() == {20, 5}
    assert gradients.LQR_NOISES == (1.0, 10.0, 100.0)
    assert gradients.SYNTHETIC_NOISES == (0.001, 0.5, 5.0, 1000.0)
    assert (gradients.ACTION_NOISE, gradients.EPISODES, gradients.D, gradients.TARGET) == (0.3, 8, 20, 0.05)
    study = gradients.GradientStudy()
    assert (study.trials, study.episodes, study.functions, study.budget) == (20, 130, 20, 300)


# -- policy search ----------------------------------------------------------------------------------------------------

GYM = {
    "variance": Normal(2.0, 1.0),  # table 3
    "standardize": False,
    "N_g": None,
    "delta_unit": "absolute",
    "fit_from": None,
    "fit_after_iterate": True,  # algorithm 1
}
TABLE = GYM | {"mean": 0.0, "fit": "each", "normalization": "paper"}
CODE = GYM | {"mean": "published", "fit": "full", "normalization": "published"}  # src/model.py, src/optimizers.py
OURS = CODE | {"mean": 0.0}
POLE = {"lengthscale": Uniform(0.01, 0.3), "noise": 0.5, "M": 8, "N_m": 20, "delta": 0.1}  # table 3
SWIMMER = {"lengthscale": Uniform(0.01, 0.3), "noise": 0.01, "M": 16, "N_m": 32, "delta": 0.1}  # table 3
HOPPER = {"lengthscale": Uniform(0.01, 0.5), "delta": 0.2}  # table 3
POLE_STEPS = GradientAscent(eta=Piecewise(((0, 0.8), (3, 0.3))))  # cartpole/gibo_10runs.yaml
HOPPER_STEPS = GradientAscent(eta=Piecewise(((0, 0.6), (1000, 0.5), (2000, 0.3))))  # hopper/gibo_10runs.yaml
BIG = {"M": 32, "N_m": 128}  # hopper/gibo_10runs.yaml

GIBO_PRESETS = {
    ("paper", "CartPole-v1"): TABLE | POLE | {"step": GradientAscent(eta=1.0)},
    ("paper", "Swimmer-v5"): TABLE | SWIMMER | {"step": GradientAscent(eta=0.5)},
    ("paper", "Hopper-v5"): TABLE | HOPPER | {"noise": 0.01, "M": 8, "N_m": 48, "step": GradientAscent(eta=0.5)},
    ("published", "CartPole-v1"): CODE | POLE | {"step": POLE_STEPS},
    ("published", "Swimmer-v5"): CODE | SWIMMER | {"step": GradientAscent(eta=0.5)},  # swimmer/gibo_10runs.yaml
    ("published", "Hopper-v5"): CODE | HOPPER | BIG | {"noise": 0.02, "step": HOPPER_STEPS},
    ("gibo", "CartPole-v1"): OURS | POLE | {"step": POLE_STEPS},
    ("gibo", "Swimmer-v5"): OURS | SWIMMER | {"step": GradientAscent(eta=0.5)},
    ("gibo", "Hopper-v5"): OURS | HOPPER | BIG | {"noise": 0.01, "variance": 0.05, "step": GradientAscent(eta=0.6)},
    ("gibo", "HalfCheetah-v5"): (
        OURS | HOPPER | BIG | {"noise": 0.02, "variance": 0.05, "step": GradientAscent(eta=0.6)}
    ),
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
    assert_settings(training.options["settings"], **GIBO_PRESETS[source, environment])


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


def test_what_the_gym_studies_compare():
    def same(training, source, method="gibo"):
        return training == PRESETS[source][training.environment, method]

    for name, environment, budget in (("cartpole", "CartPole-v1", 100), ("swimmer", "Swimmer-v5", 2000)):
        (comparison,) = gym.STUDIES[name].values()
        gibo, published, ars = comparison.methods.values()
        assert list(comparison.methods) == ["GIBO", "GIBO (published)", "ARS"]
        assert comparison.budget == budget  # the files' max_objective_calls
        assert {gibo.environment, published.environment, ars.environment} == {environment}
        assert same(gibo, "gibo")
        assert same(published, "published")
        assert same(ars, "published", "ars")
    hopper = gym.STUDIES["hopper"]["Hopper-v5"]
    assert hopper.budget == 4000  # half of the published 8000
    assert same(hopper.methods["GIBO"], "gibo")
    assert hopper.methods["ARS"].options == HOPPER_ARS | {"ddof": 0}  # ours; published: 1
    assert (hopper.methods["ARS"].policy, hopper.methods["ARS"].normalize_states) == ("linear", True)
    cheetah = gym.STUDIES["cheetah"]["HalfCheetah-v5"]
    assert same(cheetah.methods["GIBO"], "gibo")
    assert same(cheetah.methods["ARS"], "gibo", "ars")
    ablation = gym.STUDIES["ablation-gym"] | gym.STUDIES["ablation-hopper"]
    assert {name: each.budget for name, each in ablation.items()} == {
        "CartPole-v1": 100,
        "Swimmer-v5": 2000,
        "Hopper-v5": 2000,
    }
    for name, comparison in ablation.items():
        assert same(comparison.methods["GIBO"], "gibo")
        settings = comparison.methods["without gradient normalisation"].options["settings"]
        assert_settings(settings, **GIBO_PRESETS["gibo", name] | {"normalization": "off"})
    hoppers = ablation["Hopper-v5"].methods
    own = PRESETS["gibo"]["Hopper-v5", "gibo"]
    assert asdict(hoppers["without state normalisation"]) == asdict(own) | {"normalize_states": False}
    assert asdict(hoppers["iterate re-expressed"]) == asdict(own) | {"reexpressed": "iterate"}
    assert same(hoppers["published settings"], "published")
