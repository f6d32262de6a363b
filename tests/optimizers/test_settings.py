import itertools
import math

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
    ("make", "words"),
    [
        (
            lambda: Settings(kernel="rbf"),
            "kernel: expected one of 'squared_exponential', 'matern52'.*got 'rbf'.*import",
        ),
        (lambda: Settings(delta_unit="metres"), "delta_unit: expected one of"),
        (lambda: Settings(lengthscale=[1.0, -1.0]), "lengthscale: expected a positive.*got -1"),
        (lambda: Settings(variance=[1.0, 1.0]), "variance: expected a number"),
        (lambda: Settings(mean="guessed"), "mean: expected a number, got str 'guessed'"),
        (lambda: Settings(M=0), "M: expected a whole number of at least 1, got 0"),
        (lambda: Settings(M=5, N_m=5), "N_m: the window must hold the iterate and its M = 5 queries, got 5"),
        (lambda: Settings(M_first=100_000), "M_first: expected at most"),
        (lambda: Settings(M_first=5, N_m=5), "the window must hold the iterate and its M_first = 5 queries, got 5"),
        (lambda: Settings(move=0.5), "move: expected BoundStep"),
        (lambda: Settings(queries="lazy"), "queries: expected Informative"),
        (lambda: Settings(standardize=False), "warp: values are warped before they are standardised"),
        (lambda: GradientStep(normalization="l2"), "normalization: expected one of .*got 'l2'"),
        (lambda: GradientStep(step=0.5), "step: expected GradientAscent"),
        (lambda: BoundStep(beta=-1.0), "beta: expected a non-negative"),
        (lambda: Informative(least_share=-0.1), "least_share: expected a non-negative"),
        (lambda: Informative(basis="diagonal"), "basis: expected"),
        (lambda: PowerLaw(0.0), "PowerLaw.factor: expected a positive"),
        (lambda: Settings.paper(etas=1), "a setting: expected one of"),
    ],
)
def test_mistakes_are_named(make, words):
    with pytest.raises(InputError, match=words):
        make()


# -- the default ------------------------------------------------------------------------------------------------------


def test_no_size_jumps_at_a_number_of_parameters():
    resolved = [Settings().resolve(d) for d in range(1, 200)]
    assert not any(isinstance(value, PowerLaw) for value in vars(resolved[0]).values())
    for here, next_one in itertools.pairwise(resolved):
        assert 0 <= next_one.M - here.M <= 1
        assert next_one.M_first - here.M_first <= 1
        assert next_one.N_m - here.N_m <= 10
        assert 1.0 <= next_one.lengthscale.median / here.lengthscale.median <= 2.0
        assert here.resolve(len(resolved)) == here


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


# -- the paper's settings ---------------------------------------------------------------------------------------------


def bound(d):
    """The upper bound of Anderssen et al. 1976 on the mean distance of two points of the unit cube."""
    return math.sqrt(d / 6.0) * math.sqrt((1.0 + 2.0 * math.sqrt(1.0 - 3.0 / (5.0 * d))) / 3.0)


@pytest.mark.parametrize("d", [1, 3, 8, 36])
def test_lengthscales_are_drawn_around_twice_the_mean_distance_which_follows_the_bound(d):
    assert mean_distance(d) == pytest.approx(0.1 * bound(d) / bound(2), rel=1e-12)
    for distribution, gamma in ((lengthscale_distribution(d, 0.1), 0.1), (lengthscale_distribution(d), 0.3)):
        ends = (distribution.lower, distribution.upper)
        assert ends == pytest.approx((2.0 * mean_distance(d) * (1.0 - gamma), 2.0 * mean_distance(d) * (1.0 + gamma)))


@pytest.mark.parametrize("d", [1, 8])
def test_both_studies_follow_the_papers_table(d):
    within, outside = within_model([0.2] * d), out_of_model(d)
    for settings in (within, outside):
        assert (settings.kernel, settings.mean, settings.standardize) == ("squared_exponential", 0.0, False)
        assert (settings.M, settings.N_m, settings.delta, settings.delta_unit) == (d, 5 * d, 0.2, "absolute")
        assert settings.move == GradientStep(GradientAscent(eta=0.25), "paper")
        assert settings.noise == pytest.approx(0.01)  # the standard deviation is 0.1
        assert settings.queries == Informative(plan_steps=60, basis="axes")
        own_rules = (settings.scale_rule, settings.warp, settings.only_evaluated, settings.caution)
        assert own_rules == (None, False, False, 0)
    assert (within.lengthscale, within.variance, within.fit) == ((0.2,) * d, 1.0, "never")
    assert (outside.lengthscale, outside.variance) == (lengthscale_distribution(d), Uniform(0.1, 5.0))
    assert (outside.fit, outside.fit_from, outside.fit_at) == ("each", 1, "iterate")
