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


def test_it_is_gibos_own_minimize():
    own = gibo.minimize(bowl, [0.0, 0.0], budget=15, scale=0.3, seed=3)
    found = solve(options={"seed": 3})
    np.testing.assert_array_equal(found.x, own.x)
    assert found.fun == own.value
    np.testing.assert_array_equal(found.result.history.x, own.history.x)


def test_further_arguments():
    assert solve(args=(5.0,)).result.history.value[0] == 5.0 * bowl(np.zeros(2))
    np.testing.assert_array_equal(solve(args=5.0).x, solve(args=(5.0,)).x)


@pytest.mark.parametrize(
    "bounds", [[(0.0, 0.5), (-0.2, 1.0)], Bounds([0.0, -0.2], [0.5, 1.0]), [(None, 0.5), (-0.2, None)]]
)
def test_bounds_are_kept(bounds):
    found = solve(bounds=bounds, options={"budget": 80})
    X = found.result.history.x
    assert (X[:, 0] <= 0.5).all()
    assert (X[:, 1] >= -0.2).all()
    np.testing.assert_allclose(found.x, [0.5, -0.2], atol=0.02)


def test_pairs_that_could_be_read_as_lower_and_upper_are_pairs():
    found = solve(bounds=[(0.0, 2.0), (1.0, 3.0)], x0=[1.0, 2.0])  # also a lower below an upper vector
    assert (found.result.history.x[:, 1] >= 1.0).all()
    assert found.result.history.x[:, 1].max() > 2.0


def test_without_a_scale_it_is_a_share_of_the_range():
    one = scipy.optimize.minimize(bowl, [0, 0], method=minimize, bounds=[(-2, 2)] * 2, options={"maxfev": 20})
    two = gibo.minimize(bowl, [0, 0], bounds=Bounds([-2, -2], [2, 2]), scale=0.4, budget=20)
    np.testing.assert_array_equal(one.x, two.x)


def test_the_default_budget_goes_with_the_parameters():
    assert scipy.optimize.minimize(lambda x: (x[0] - 1) ** 2, [0.5], method=minimize).nfev == 50


def test_a_callback_of_the_old_form_sees_the_point():
    seen = []
    found = solve(callback=seen.append)
    assert found.nit - 1 <= len(seen) <= found.nit  # gibo calls nobody after a last step that the budget ended
    assert all(x.shape == (2,) for x in seen)
    assert bowl(seen[-1]) < bowl(seen[0])


def test_a_callback_of_the_new_form_sees_a_result():
    seen = []

    def callback(intermediate_result):
        seen.append((intermediate_result.nfev, intermediate_result.fun))

    found = solve(callback=callback)
    assert found.nit - 1 <= len(seen) <= found.nit  # gibo calls nobody after a last step that the budget ended
    assert [n for n, _ in seen] == sorted(n for n, _ in seen)
    assert seen[-1][1] < seen[0][1]


def test_a_callback_ends_it_by_stop_iteration():
    def callback(intermediate_result):
        if intermediate_result.nfev > 10:
            raise StopIteration

    found = solve(callback=callback)
    assert 10 < found.nfev < 20
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


def test_an_objective_may_change_its_argument():
    def rude(x):
        value = bowl(x)
        x[:] = 0.0
        return value

    np.testing.assert_array_equal(solve(rude).x, solve().x)


def test_an_objective_that_fails_all_the_time_is_no_success():
    def broken(x):
        raise ValueError("no power")

    with pytest.warns(gibo.FailedEvaluationWarning):
        found = solve(broken)
    assert not found.success
    assert found.status == 1
    assert "no power" in found.message


def test_options_of_gibo_go_through(tmp_path):
    found = solve(options={"target": 0.05, "journal": tmp_path / "run"})
    assert found.success
    assert "target" in found.message
    assert (tmp_path / "run").is_dir()


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
