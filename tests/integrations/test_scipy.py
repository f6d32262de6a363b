"""The method with the real SciPy."""

import numpy as np
import pytest
import scipy.optimize
from scipy.optimize import Bounds

import gibo
from gibo import InputError
from gibo.integrations.scipy import minimize

GOAL = np.array([1.0, -0.5])


def bowl(x, weight=1.0):
    return weight * float(((x - GOAL) ** 2).sum())


def slope(x, weight=1.0):
    return 2.0 * weight * (x - GOAL)


def solve(fun=bowl, x0=(0.0, 0.0), options=None, **arguments):
    """With a budget of a few iterations, which is enough to tell runs apart; to arrive takes more."""
    options = {"budget": 15, "scale": 0.3, "seed": 0, **(options or {})}
    return scipy.optimize.minimize(fun, x0, method=minimize, options=options, **arguments)


def test_it_finds_the_minimum_and_says_so_as_scipy_does():
    found = solve(options={"budget": 60})
    assert isinstance(found, scipy.optimize.OptimizeResult)
    np.testing.assert_allclose(found.x, GOAL, atol=0.05)
    assert found.fun < 0.01
    assert (found.nfev, found.success, found.status) == (60, True, 0)
    assert 0 < found.nit < 60
    assert "budget of 60" in found.message
    assert found.jac.shape == (2,)


@pytest.mark.parametrize(
    "bounds", [[(0.0, 0.5), (-0.2, 1.0)], Bounds([0.0, -0.2], [0.5, 1.0]), [(None, 0.5), (-0.2, None)]]
)
def test_bounds_are_kept(bounds):
    found = solve(bounds=bounds, options={"budget": 80})
    X = found.result.history.x
    assert (X[:, 0] <= 0.5).all()
    assert (X[:, 1] >= -0.2).all()
    np.testing.assert_allclose(found.x, [0.5, -0.2], atol=0.02)
    found = solve(bounds=[(0.0, 2.0), (1.0, 3.0)], x0=[1.0, 2.0])  # also a lower below an upper vector
    assert 1.0 <= found.result.history.x[:, 1].min() < 2.0 < found.result.history.x[:, 1].max()


def test_the_scale_is_a_share_of_the_range_and_the_budget_goes_with_the_parameters():
    one = scipy.optimize.minimize(bowl, [0, 0], method=minimize, bounds=[(-2, 2)] * 2, options={"maxfev": 20})
    two = gibo.minimize(bowl, [0, 0], bounds=Bounds([-2, -2], [2, 2]), scale=0.4, budget=20)
    np.testing.assert_array_equal(one.x, two.x)
    assert scipy.optimize.minimize(lambda x: (x[0] - 1) ** 2, [0.5], method=minimize).nfev == 50


def test_callbacks_of_both_forms_see_the_best_point_and_stop_iteration_ends_the_run():
    points, results = [], []

    def callback(intermediate_result):
        results.append((intermediate_result.nfev, intermediate_result.fun))
        if intermediate_result.nfev > 10:
            raise StopIteration

    found = solve(callback=points.append)
    assert found.nit - 1 <= len(points) <= found.nit  # gibo calls nobody after a last step that the budget ended
    assert bowl(points[-1]) < bowl(points[0])
    found = solve(callback=callback)
    assert 10 < found.nfev < 15
    assert [n for n, _ in results] == sorted(n for n, _ in results)
    assert results[-1][1] < results[0][1]
    assert (found.success, found.status, found.message) == (True, 99, "stopped by the callback")


def test_gradients_are_used_if_their_noise_is_known():
    options = {"gradient_noise": 1e-6, "budget": 12}
    found = solve(jac=slope, options=options, args=(2.0,))

    def own(x):
        return gibo.Outcome(bowl(x, 2.0), slope(x, 2.0), 1e-6)

    np.testing.assert_array_equal(found.x, gibo.minimize(own, [0.0, 0.0], budget=12, scale=0.3).x)
    both = solve(lambda x: (bowl(x, 2.0), slope(x, 2.0)), jac=True, options=options)
    np.testing.assert_array_equal(both.x, found.x)


@pytest.mark.parametrize("unused", [{"jac": slope}, {"hess": lambda x: np.eye(2)}, {"tol": 1e-3}])
def test_what_is_not_used_is_said(unused):
    with pytest.warns(RuntimeWarning, match=f"does not use {next(iter(unused))}"):
        found = solve(**unused)
    np.testing.assert_array_equal(found.x, solve().x)


def test_an_objective_may_change_its_argument_and_has_further_ones():
    def rude(x, weight):
        value = bowl(x, weight)
        x[:] = 0.0
        return value

    found = solve(rude, args=(5.0,), options={"target": 1.0})
    assert found.result.history.value[0] == 5.0 * bowl(np.zeros(2))
    assert "target" in found.message
    np.testing.assert_array_equal(found.x, solve(args=5.0, options={"target": 1.0}).x)


def test_an_objective_that_fails_all_the_time_is_no_success():
    def broken(x):
        raise ValueError("no power")

    with pytest.warns(gibo.FailedEvaluationWarning):
        found = solve(broken)
    assert not found.success
    assert found.status == 1
    assert "no power" in found.message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"constraints": {"type": "ineq", "fun": bowl}}, "constraints: not supported"),
        ({"options": {"maxfev": 10}}, "mean the same"),
        ({"options": {"gradient_noise": 1.0}}, "expected jac"),
        ({"bounds": [(0, 1)]}, "expected 2 pairs"),
        ({"bounds": [(0, 0), (-1, 1)]}, "lower must be below upper"),
        ({"x0": [0.0, np.nan]}, "x0"),
    ],
)
def test_what_cannot_be_done_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        solve(**arguments)
