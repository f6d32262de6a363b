import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import rosen, rosen_der

from gibo._linalg import minimize

OPTIONS = {"factr": 1e7, "pgtol": 1e-5}


def rosenbrock(z):
    return float(rosen(z)), rosen_der(z)


def rough(z):
    """With many bumps, so that line searches take several evaluations."""
    return float(z @ z + np.sin(9.0 * z).sum()), 2.0 * z + 9.0 * np.cos(9.0 * z)


def wall(z):
    """Not finite beyond 2, as a model whose matrix cannot be factorised is reported."""
    return (1e100, np.zeros_like(z)) if (z > 2.0).any() else (-float(z.sum()), -np.ones_like(z))


def flat(z):
    return 1.0, np.zeros_like(z)


ENDS = st.floats(-3.0, 3.0) | st.just(np.inf)


@settings(deadline=None)
@given(
    cost=st.sampled_from([rosenbrock, rough, wall, flat]),
    points=st.lists(st.tuples(st.floats(-4.0, 4.0), ENDS, ENDS), min_size=2, max_size=7),
    steps=st.sampled_from([1, 2, 7, 200]),
)
def test_it_stays_in_the_bounds_and_ends_no_higher_than_it_starts(cost, points, steps):
    start, a, b = map(np.array, zip(*points, strict=True))
    low, high = np.where(np.isinf(a), -np.inf, np.minimum(a, b)), np.maximum(a, b)
    x, lowest = minimize(cost, start, low, high, maximum_steps=steps, **OPTIONS)
    assert ((low <= x) & (x <= high)).all()
    assert type(lowest) is float
    assert lowest == cost(x)[0]
    assert lowest <= cost(np.clip(start, low, high))[0]


def test_it_finds_a_minimum_inside_and_one_on_the_border():
    low, high = np.full(4, -2.0), np.full(4, 2.0)
    x, lowest = minimize(rosenbrock, np.full(4, -1.0), low, high, maximum_steps=500, **OPTIONS)
    np.testing.assert_allclose(x, 1.0, atol=1e-3)
    assert lowest < 1e-6
    x, _ = minimize(rosenbrock, np.full(2, -1.0), np.full(2, -2.0), np.array([0.5, 2.0]), maximum_steps=500, **OPTIONS)
    np.testing.assert_allclose(x, [0.5, 0.25], atol=1e-4)


@pytest.mark.parametrize("cost", [rough, rosenbrock])
def test_its_arguments_and_the_points_that_the_cost_keeps_do_not_change(cost):
    kept = []

    def keeping(z):
        kept.append((z, z.copy()))
        return cost(z)

    start, low, high = np.array([3.0, 4.0]), np.array([1.0, -np.inf]), np.array([np.inf, np.inf])
    x, _ = minimize(keeping, start, low, high, maximum_steps=50, **OPTIONS)
    assert x is not start
    assert start.tolist() == [3.0, 4.0]
    assert low.tolist() == [1.0, -np.inf]
    assert high.tolist() == [np.inf, np.inf]
    assert len(kept) > 3
    assert all((z == copy).all() for z, copy in kept)
