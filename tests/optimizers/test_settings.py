import dataclasses
import math

import numpy as np
import pytest

from gibo import InputError, Settings, out_of_model, within_model
from gibo._serialize import to_plain
from gibo.optimizers.paper import lengthscale_distribution, mean_distance
from gibo.priors import LogNormal, Uniform
from gibo.steps import Adam, GradientAscent


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"kernel": "rbf"}, "kernel: expected one of 'squared_exponential', 'matern52'.*got 'rbf'.*import"),
        ({"delta_unit": "metres"}, "delta_unit: expected one of"),
        ({"sampling": "lazy"}, "sampling: expected one of 'active', 'random', got 'lazy'"),
        ({"fit": "sometimes"}, "fit: expected one of"),
        ({"normalization": "l2"}, "normalization: expected one of .*got 'l2'"),
        ({"lengthscale": 0.0}, "lengthscale: expected a positive"),
        ({"lengthscale": [1.0, -1.0]}, "lengthscale: expected a positive.*got -1"),
        ({"lengthscale": "long"}, "lengthscale: expected a number, got str 'long'"),
        ({"variance": -1.0}, "variance: expected a positive"),
        ({"variance": [1.0, 1.0]}, "variance: expected a number"),
        ({"variance": None}, "variance"),
        ({"noise": None}, "noise"),
        ({"noise": math.nan}, "noise: expected a positive finite number, got nan"),
        ({"mean": "guessed"}, "mean: expected a number, got str 'guessed'"),
        ({"M": 0}, "M: expected a whole number of at least 1, got 0"),
        ({"M": 2.0}, "M: expected a whole number"),
        ({"N_m": -1}, "N_m: expected a whole number"),
        ({"N_g": 0}, "N_g: expected a whole number"),
        ({"fit_from": 0}, "fit_from: expected a whole number"),
        ({"M": 5, "N_m": 5}, "N_m: the window must hold the iterate and its M = 5 queries, got 5"),
        ({"M_first": -1}, "M_first: expected a whole number of at least 0, got -1"),
        ({"M_first": False}, "M_first: expected a whole number"),
        ({"M_first": 100_000}, "M_first: expected at most"),
        ({"M_first": 5, "N_m": 5}, "N_m: the window must hold the iterate and its M_first = 5 queries, got 5"),
        ({"delta": 0.0}, "delta: expected a positive"),
        ({"least_share": -0.1}, "least_share: expected a non-negative"),
        ({"plan_steps": 0}, "plan_steps: expected"),
        ({"basis": "diagonal"}, "basis: expected"),
        ({"least_gain": -0.1}, "least_gain: expected a non-negative"),
        ({"step": 0.5}, "step: expected GradientAscent"),
    ],
)
def test_mistakes_are_named(arguments, words):
    with pytest.raises(InputError, match=words):
        Settings(**arguments)


@pytest.mark.parametrize(
    ("d", "basis"), [(1, "axes"), (7, "axes"), (8, "random"), (47, "random"), (48, "axes"), (100, "axes")]
)
def test_by_default_queries_change_all_of_a_middling_number_of_parameters(d, basis):
    assert Settings.default().resolve(d).basis == basis
    assert Settings().resolve(d).basis == "axes"
    for given in ("axes", "random"):
        assert Settings.default(basis=given).resolve(d).basis == given


@pytest.mark.parametrize(("d", "first"), [(1, 0), (8, 0), (12, 0), (13, 13), (47, 47), (48, 0), (100, 0)])
def test_by_default_a_middling_number_of_parameters_has_as_many_queries_before_the_first_step(d, first):
    assert Settings.default().resolve(d).M_first == first
    assert Settings().resolve(d).M_first == 0
    assert Settings.default(M=3).resolve(d).M_first == 0  # who says how many means all iterations
    assert Settings.default(M=3, M_first=5).resolve(d).M_first == 5
    assert Settings.default(N_m=20).resolve(d).M_first == min(first, 19)
    assert Settings(M_first=300).resolve(d).N_m >= 301


@pytest.mark.parametrize(
    ("d", "M", "alike"), [(12, 6, 6), (13, 3, 6), (16, 4, 8), (36, 7, 14), (47, 7, 15), (48, 15, 15)]
)
def test_after_a_larger_first_iteration_the_others_ask_half_as_many(d, M, alike):
    assert Settings.default().resolve(d).M == M
    for first in (0, d):  # who says how many means the first alone
        assert Settings.default(M_first=first).resolve(d).sizes[0] == alike
    assert Settings.default(M=9).resolve(d).M == 9
    without_search = Settings.default(scale_search=False).resolve(d).sizes[0]
    assert without_search == (d // 2 // 2 if alike > M else d // 2)


def test_the_start_is_judged_by_the_first_iterations():
    assert Settings.default(M_first=0).resolve(36).beginning == 3 * (14 + 2)
    assert Settings.default().resolve(36).beginning == (1 + 36) + (1 + 7)  # the larger first one, and one more
    assert Settings.default(N_m=20).resolve(4).beginning == 3 * (2 + 2)


def test_settings_of_older_files_have_no_larger_first_iteration():
    plain = to_plain(Settings.default(M=8, M_first=16).resolve(16))
    assert plain.pop("M_first") == 16
    assert Settings.from_plain(plain) == Settings.default(M_first=0).resolve(16)


def test_settings_are_values():
    assert Settings(M=3) == Settings(M=3)
    assert Settings(M=3) != Settings(M=4)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().M = 3


@pytest.mark.parametrize("d", [1, 2, 7, 100])
def test_resolving_fills_in_everything(d):
    resolved = Settings().resolve(d)
    assert all(getattr(resolved, name) is not None for name in ("lengthscale", "M", "N_m", "N_g", "fit_from"))
    assert resolved.N_m >= resolved.M + 1
    assert resolved.resolve(d) == resolved


def test_resolving_keeps_what_was_given():
    given = Settings(lengthscale=0.3, M=2, N_m=9, N_g=3, fit_from=7)
    assert given.resolve(5) == given


def test_a_window_too_small_for_the_default_number_of_queries_is_refused():
    with pytest.raises(InputError, match="N_m: the window must hold"):
        Settings(N_m=2).resolve(100)


def test_lengthscales_may_be_an_array():
    assert Settings(lengthscale=np.array([0.1, 0.2])).lengthscale == (0.1, 0.2)


# -- the paper's settings ---------------------------------------------------------------------------------------------


def bound(d):
    """The upper bound of Anderssen et al. 1976 on the mean distance of two points of the unit cube."""
    return math.sqrt(d / 6.0) * math.sqrt((1.0 + 2.0 * math.sqrt(1.0 - 3.0 / (5.0 * d))) / 3.0)


def test_the_mean_distance_of_two_dimensions_is_a_tenth():
    assert mean_distance(2) == pytest.approx(0.1, abs=1e-15)


@pytest.mark.parametrize("d", [1, 3, 4, 8, 20, 36])
def test_the_mean_distance_follows_the_bound(d):
    assert mean_distance(d) == pytest.approx(0.1 * bound(d) / bound(2), rel=1e-12)


@pytest.mark.parametrize("d", [1, 2, 5, 20])
def test_the_bound_bounds_the_mean_distance_in_the_cube(d):
    rng = np.random.default_rng(0)
    sampled = np.linalg.norm(rng.random((100_000, d)) - rng.random((100_000, d)), axis=1).mean()
    true_bound = mean_distance(d) * bound(2) / 0.1
    assert sampled < 1.005 * true_bound
    assert sampled > 0.8 * true_bound


@pytest.mark.parametrize(("gamma", "share"), [(0.3, 0.3), (0.1, 0.1)])
def test_lengthscales_are_drawn_around_twice_the_mean_distance(gamma, share):
    distribution = lengthscale_distribution(8, gamma)
    assert isinstance(distribution, Uniform)
    assert distribution.lower == pytest.approx(2.0 * mean_distance(8) * (1.0 - share))
    assert distribution.upper == pytest.approx(2.0 * mean_distance(8) * (1.0 + share))
    assert lengthscale_distribution(8) == lengthscale_distribution(8, 0.3)


@pytest.mark.parametrize("d", [1, 4, 8])
def test_both_studies_follow_the_papers_table(d):
    for settings in (within_model([0.2] * d), out_of_model(d)):
        assert settings.kernel == "squared_exponential"
        assert (settings.M, settings.N_m) == (d, 5 * d)
        assert (settings.delta, settings.delta_unit) == (0.2, "absolute")
        assert settings.step == GradientAscent(eta=0.25)
        assert settings.normalization == "paper"
        assert settings.noise == pytest.approx(0.01)  # the standard deviation is 0.1
        assert settings.sampling == "active"
        assert settings.least_share == 0.0
        assert not settings.standardize
        assert settings.mean == 0.0


def test_within_the_model_all_is_known():
    settings = within_model(np.array([0.2, 0.3]))
    assert settings.lengthscale == (0.2, 0.3)
    assert settings.variance == 1.0
    assert settings.fit == "never"


def test_out_of_the_model_lengthscales_and_variance_are_fitted_from_the_first_value():
    settings = out_of_model(8)
    assert settings.lengthscale == lengthscale_distribution(8)
    assert settings.variance == Uniform(0.1, 5.0)
    assert (settings.fit, settings.fit_from, settings.fit_after_iterate) == ("each", 1, True)


def test_a_step_rule_of_either_kind_is_accepted():
    for rule in (Adam(eta=0.2), GradientAscent(eta=0.1, momentum=0.9)):
        assert Settings(step=rule).step == rule
    assert Settings(lengthscale=LogNormal(1.0, 0.5)).lengthscale == LogNormal(1.0, 0.5)
