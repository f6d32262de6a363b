from concurrent.futures import Executor

import numpy as np
import pytest
from api_helpers import SETTINGS, X0, climb, failing_at, hill

import gibo
from gibo import (
    InputError,
    Settings,
    maximize,
    minimize,
)

# -- the end of a run -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [1, 7, np.int64(12)])
def test_the_budget_is_spent_exactly(budget):
    calls = []
    result = climb(lambda x: calls.append(x) or hill(x), budget=budget)
    assert len(calls) == result.evaluations == len(result.history.value) == budget
    assert result.reason == f"the budget of {budget} evaluation{'' if budget == 1 else 's'} is spent"


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_target_ends_the_run(sign):
    result = climb(lambda x: sign * hill(x), budget=300, target=4.5 * sign, sign=sign)
    assert result.evaluations < 300
    assert sign * result.value >= 4.5
    assert result.reason.startswith(f"the target of {4.5 * sign} is reached")
    assert hill(result.x) > 4.0
    assert "budget" in climb(lambda x: sign * hill(x), budget=30, target=5.5 * sign, sign=sign).reason


def test_a_target_of_the_model_not_of_a_lucky_value():
    noisy = Settings(**{**vars(SETTINGS), "noise": 100.0, "standardize": False, "warp": False})
    result = climb(failing_at({1}, lambda x: 50.0, lambda x: 0.0), settings=noisy, target=40.0)
    assert result.best_seen.value == 50.0
    assert "budget" in result.reason


def test_a_gradient_that_points_out_of_the_bounds_is_not_taken_for_uncertain():
    result = maximize(lambda x: float(x.sum()), [0.5, 0.5], budget=60, scale=0.2, bounds=(0, 1), least_certainty=0.9)
    assert "budget" in result.reason


def test_single_uncertain_steps_do_not_end_the_run(monkeypatch):
    certainties = iter([0.5, 0.5, 0.95, 0.5, 0.5, 0.5, 0.5, 0.5, 0.95])
    monkeypatch.setattr(gibo.Jacobian, "certainty", lambda self: next(certainties))
    result = climb(budget=300, least_certainty=0.9)
    assert len(result.history.certainty) == 8


def test_the_callback_gets_the_result_after_each_iteration_and_can_stop_the_run():
    results = []
    final = climb(budget=300, callback=lambda so_far: results.append(so_far) or np.bool_(so_far.evaluations >= 9))
    assert [result.evaluations for result in results] == [3, 6, 9]
    assert [result.reason for result in results] == ["running"] * 3
    assert [len(result.history.iterate) for result in results] == [1, 2, 3]
    assert results[0].history.value.tolist() == final.history.value[:3].tolist()
    assert (final.evaluations, final.reason) == (9, "the callback asked to stop")


# -- what the objective may do ----------------------------------------------------------------------------------------


def test_the_objective_cannot_change_the_query():
    def greedy(x):
        value = hill(x)
        x[:] = 99.0
        return value

    assert climb(greedy).history.x.tolist() == climb().history.x.tolist()


# -- the result -------------------------------------------------------------------------------------------------------


def test_the_result_tells_what_happened():
    result = climb()
    history = result.history
    assert history.x.shape == (12, 2)
    assert history.value.tolist() == [hill(x) for x in history.x]
    assert history.iteration.tolist() == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
    assert history.is_iterate.tolist() == [True, False, False] * 4
    assert history.evaluations.tolist() == [3, 6, 9, 12]
    assert history.iterate.tolist() == history.x[history.is_iterate].tolist()
    assert history.gradient.shape == (4, 2)
    for per_iteration in (history.uncertainty, history.probability_of_ascent, history.noise):
        assert per_iteration.shape == (4,)
    assert (history.uncertainty > 0).all()
    assert ((history.probability_of_ascent >= 0) & (history.probability_of_ascent <= 1)).all()
    best = int(history.value.argmax())
    assert result.best_seen.value == history.value[best]
    assert result.best_seen.x.tolist() == history.x[best].tolist()
    assert result.jacobian.mean.shape == (2,)
    assert result.failures == result.warnings == ()


def test_what_the_model_had_to_do_is_reported(monkeypatch):
    import gibo.optimizers.model as module
    from gibo.map_fit import Fit, FitWarning

    def failing(gp, priors):
        return Fit(gp, np.nan, 1, FitWarning("nothing is finite"))

    monkeypatch.setattr(module, "fit", failing)
    settings = Settings(variance=gibo.priors.LogNormal(1.0, 0.5), fit_from=1, M=2, N_m=12)
    result = climb(settings=settings, budget=6)
    assert result.warnings == ("iteration 0: nothing is finite", "iteration 1: nothing is finite")


# -- minimize ---------------------------------------------------------------------------------------------------------


def test_minimize_is_maximize_with_the_sign_turned():
    up = climb()
    down = minimize(lambda x: -hill(x), X0, budget=12, settings=SETTINGS)
    for of_up, of_down in zip(vars(up.history).items(), vars(down.history).values(), strict=True):
        turned = -1.0 if of_up[0] in ("value", "gradient") else 1.0
        assert of_down.tolist() == (turned * of_up[1]).tolist(), of_up[0]
    assert (down.value, down.best_seen.value) == (-up.value, -up.best_seen.value)
    for high, low in ((up.interval, down.interval), (up.start.interval, down.start.interval)):
        assert high[0] < high[1]
        assert low == (-high[1], -high[0])
    assert down.x.tolist() == up.x.tolist()
    assert down.jacobian.mean.tolist() == (-up.jacobian.mean).tolist()
    assert down.jacobian.covariance.tolist() == up.jacobian.covariance.tolist()
    with pytest.raises(TypeError, match="a run has no option 'bound'; did you mean 'bounds'"):
        minimize(hill, X0, budget=3, bound=(0.0, 1.0))


# -- arguments --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"objective": 3.0}, "objective: expected a function of a vector, got float 3.0"),
        ({"budget": 0}, "budget: expected a whole number of at least 1, got 0"),
        ({"workers": 0}, "workers: expected a whole number of at least 1, got 0"),
        ({"executor": Executor(), "workers": 2}, "workers, executor: give only one of them"),
        ({"executor": Executor(), "time_limit": 2.0}, "time_limit: an executor's evaluations cannot be ended"),
        ({"executor": "threads"}, "executor: expected a concurrent.futures.Executor, got str 'threads'"),
        ({"quorum": 1.1}, "quorum: expected a number above 0 and at most 1, got 1.1"),
        ({"least_certainty": 0.0}, "least_certainty: expected a probability between 0 and 1, got 0.0"),
        ({"callback": "abc"}, "callback: expected a function of a Result, got str 'abc'"),
        ({"watch": True}, "watch: the page reads the run's journal"),
        ({"watch": "yes"}, "watch: expected True or False"),
        ({"x0": [np.nan]}, "x0: expected finite"),
        ({"bounds": (1.0, 2.0)}, "x0: must lie within the bounds"),
        ({"seed": 10**5000}, r"seed: expected a whole number below 2\*\*128"),
    ],
)
def test_mistakes_are_named_before_anything_is_evaluated(options, words):
    calls = []
    arguments = {"objective": lambda x: calls.append(x) or 0.0, "x0": X0, "budget": 3, **options}
    with pytest.raises(InputError, match=words):
        maximize(arguments.pop("objective"), arguments.pop("x0"), **arguments)
    assert not calls
