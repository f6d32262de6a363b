import itertools
import math

import numpy as np
import pytest

from gibo import InputError, Settings, out_of_model, within_model
from gibo.optimizers.moves import BoundStep, GradientStep
from gibo.optimizers.paper import lengthscale_distribution, mean_distance
from gibo.optimizers.queries import Informative
from gibo.optimizers.scale import ScaleSearch
from gibo.optimizers.settings import PowerLaw
from gibo.priors import Uniform
from gibo.steps import GradientAscent


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"kernel": "rbf"}, "kernel: expected one of 'squared_exponential', 'matern52'.*got 'rbf'.*import"),
        ({"delta_unit": "metres"}, "delta_unit: expected one of"),
        ({"lengthscale": [1.0, -1.0]}, "lengthscale: expected a positive.*got -1"),
        ({"variance": [1.0, 1.0]}, "variance: expected a number"),
        ({"mean": "guessed"}, "mean: expected a number, got str 'guessed'"),
        ({"M": 0}, "M: expected a whole number of at least 1, got 0"),
        ({"M": 5, "N_m": 5}, "N_m: the window must hold the iterate and its M = 5 queries, got 5"),
        ({"M_first": 100_000}, "M_first: expected at most"),
        ({"M_first": 5, "N_m": 5}, "N_m: the window must hold the iterate and its M_first = 5 queries, got 5"),
        ({"move": 0.5}, "move: expected BoundStep"),
        ({"queries": "lazy"}, "queries: expected Informative"),
        ({"standardize": False}, "warp: values are warped before they are standardised"),
    ],
)
def test_mistakes_are_named(arguments, words):
    with pytest.raises(InputError, match=words):
        Settings(**arguments)


def test_no_size_jumps_at_a_number_of_parameters():
    resolved = [Settings().resolve(d) for d in range(1, 200)]
    for here, next_one in itertools.pairwise(resolved):
        assert 0 <= next_one.M - here.M <= 1
        assert next_one.M_first - here.M_first <= 1
        assert next_one.N_m - here.N_m <= 10
        assert 1.0 <= next_one.lengthscale.median / here.lengthscale.median <= 2.0


@pytest.mark.parametrize("d", [1, 2, 7, 100])
def test_resolving_fills_in_everything(d):
    resolved = Settings().resolve(d)
    assert not any(isinstance(value, PowerLaw) for value in vars(resolved).values())
    assert resolved.N_m >= resolved.M + 1
    assert resolved.resolve(d) == resolved


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: GradientStep(normalization="l2"), "normalization: expected one of .*got 'l2'"),
        (lambda: GradientStep(step=0.5), "step: expected GradientAscent"),
        (lambda: BoundStep(beta=-1.0), "beta: expected a non-negative"),
        (lambda: Informative(least_share=-0.1), "least_share: expected a non-negative"),
        (lambda: Informative(basis="diagonal"), "basis: expected"),
        (lambda: PowerLaw(0.0), "PowerLaw.factor: expected a positive"),
        (lambda: Settings.paper(etas=1), "a setting: expected one of"),
    ],
)
def test_mistakes_in_the_parts_of_settings_are_named(make, words):
    with pytest.raises(InputError, match=words):
        make()


# -- the paper's settings ---------------------------------------------------------------------------------------------


def bound(d):
    """The upper bound of Anderssen et al. 1976 on the mean distance of two points of the unit cube."""
    return math.sqrt(d / 6.0) * math.sqrt((1.0 + 2.0 * math.sqrt(1.0 - 3.0 / (5.0 * d))) / 3.0)


@pytest.mark.parametrize("d", [1, 3, 4, 8, 20, 36])
def test_the_mean_distance_follows_the_bound(d):
    assert mean_distance(d) == pytest.approx(0.1 * bound(d) / bound(2), rel=1e-12)


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
        assert settings.move == GradientStep(GradientAscent(eta=0.25), "paper")
        assert settings.noise == pytest.approx(0.01)  # the standard deviation is 0.1
        assert settings.queries == Informative(plan_steps=60, basis="axes")
        assert (settings.scale_rule, settings.warp, settings.only_evaluated, settings.caution) == (
            None,
            False,
            False,
            0,
        )
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
    assert (settings.fit, settings.fit_from, settings.fit_at) == ("each", 1, "iterate")


def test_the_default_is_the_method_of_docs_algorithm_md():
    resolved = Settings().resolve(16)
    sizes = (resolved.M, resolved.M_first, resolved.N_m, resolved.N_g, resolved.fit_from)
    assert sizes == (4, 16, 160, 5, 4)
    assert resolved.lengthscale.median == pytest.approx(0.9 * 16**0.8)
    assert resolved.delta == pytest.approx(2.5 * 16**-0.3)
    assert (resolved.move, resolved.queries) == (BoundStep(0.5), Informative(plan_steps=8, basis="orthogonal"))
    assert (resolved.only_evaluated, resolved.caution, resolved.warp, resolved.fit_at) == (True, 1.0, True, "step")
    assert resolved.scale_rule == ScaleSearch(shrink=0.5, signal=0.25, widen=2.0, patience=2.0)


def test_a_power_law_by_hand():
    law = PowerLaw(10.0, least=100.0, most=2000.0)
    assert [law(d) for d in (1, 10, 36, 1000)] == [100.0, 100.0, 360.0, 2000.0]
    assert [PowerLaw(0.5, rounding=way).count(5) for way in ("up", "down")] == [3, 2]
    assert [PowerLaw(1.0, 0.5).count(d) for d in (1, 4, 5, 9)] == [1, 2, 3, 3]
    assert Settings(N_m=PowerLaw(1.0)).resolve(3).N_m == 4  # the iterate and the first design
