"""How a model sees values: standardised and warped."""

import numpy as np
import pytest

from gibo import Settings
from gibo.optimizers.model import Surrogate
from gibo.optimizers.units import Units
from gibo.outcome import Evaluation, Outcome, Query

rng = np.random.default_rng(0)
SKEWED = np.concatenate([rng.normal(0.0, 1.0, 30), -100.0 * rng.random(6)])
WARPS = [Units(1.5, 2.0), Units(0.3, 0.8, "low", 1.0, 0.7), Units(0.3, 0.8, "asinh", 1.0, 0.7)]
each_warp = pytest.mark.parametrize("units", WARPS, ids=lambda units: units.warp)


@each_warp
def test_a_warp_is_monotone_and_its_inverse_is_its_inverse(units):
    y = np.linspace(-50.0, 10.0, 400)
    u = units.apply(y)
    assert (np.diff(u) > 0).all()
    np.testing.assert_allclose(units.invert(u), y, rtol=1e-9, atol=1e-9)


@each_warp
def test_slopes_against_differences(units):
    y, h = np.array([-20.0, -3.0, 0.2, 1.0, 4.0]), 1e-6
    slope = (units.warped(y + h) - units.warped(y - h)) / (2.0 * h)
    np.testing.assert_allclose(np.exp(units.log_slope(y)), slope, rtol=1e-5)
    u = units.apply(y)
    inverse = (units.invert(u + h) - units.invert(u - h)) / (2.0 * h)
    np.testing.assert_allclose(units.inverse_slope(u), inverse, rtol=1e-5)


@each_warp
def test_the_mean_of_the_values_against_sampling(units):
    sampled = units.invert(0.4 + 0.5 * np.random.default_rng(1).standard_normal(400_000))
    assert units.mean(np.array(0.4), 0.25) == pytest.approx(sampled.mean(), abs=5.0 * sampled.std() / 632.0)
    h = 1e-5
    slope = (units.mean(np.array(0.4 + h), 0.25) - units.mean(np.array(0.4 - h), 0.25)) / (2.0 * h)
    assert units.mean_slope(0.4, 0.25) == pytest.approx(float(slope), rel=1e-4)


def given(y, **settings):
    surrogate = Surrogate.initial(Settings(lengthscale=1.0, noise=0.5, **settings).resolve(1), np.ones(1))
    X = np.linspace(-3.0, 3.0, len(y))[:, None]
    told = [Evaluation(Query(i, x, 0, "query", 0), Outcome(v)) for i, (x, v) in enumerate(zip(X, y, strict=True))]
    return surrogate.given(told)


SPIKES = np.sin(np.linspace(-6.0, 6.0, 36)) - np.where(np.arange(36) % 9 == 4, 8.0, 0.0)


@pytest.mark.parametrize("y", [SKEWED, SPIKES], ids=["skewed", "spikes"])
def test_the_likeliest_warp_by_brute_force(y):
    chosen = given(y)
    scores = {}
    for units in Units.candidates(y):
        gp = given(y, warp=False).gp.condition(np.linspace(-3.0, 3.0, 36)[:, None], units.apply(y))
        scores[units] = gp.log_likelihood + units.log_slope(y).sum() - 36 * np.log(units.spread)
    assert max(scores, key=scores.get) == chosen.units


def test_where_values_need_no_warp_there_is_none():
    assert given(SKEWED).units.warp == "low"
    assert given(SKEWED, warp=False).units.warp == "none"
    assert given(np.sin(np.linspace(-3.0, 3.0, 36))).units.warp == "none"
    assert given(np.ones(8)).units.warp == "none"
