"""The tasks by which a default is chosen: repeatable, known at their best points, as noisy as they say."""

import math

import numpy as np
import pytest

from gibo.outcome import Outcome
from gibo_studies.leaderboard import functions
from gibo_studies.leaderboard.tasks import TASKS, missing

CHEAP = [name for name, task in TASKS.items() if "mujoco" not in task.needs]


def problem(name, number=0):
    if missing(TASKS[name].needs):
        pytest.skip(f"needs {missing(TASKS[name].needs)}")
    return TASKS[name].make(number)


def value_of(problem, x, seed):
    value = problem.evaluate(x, seed=seed)
    return float(value.value if isinstance(value, Outcome) else value)


@pytest.mark.parametrize("name", [name for name in TASKS if name != "Swimmer-v5"])
def test_a_value_depends_on_its_arguments_alone(name):
    task, one = TASKS[name], problem(name)
    x = task.start + 0.3 * task.scale * np.random.default_rng(0).standard_normal(task.d)
    if task.bounds is not None:
        x = np.clip(x, *task.bounds)
    kept = x.copy()
    values = [value_of(one, x, seed) for seed in (1, 2, 1)]
    assert values[0] == values[2]
    again = TASKS[name].make(0)
    assert value_of(again, x, 2) == values[1]
    assert one.truth(x) == again.truth(x)
    assert (x == kept).all()


@pytest.mark.parametrize("name", CHEAP)
def test_the_start_is_below_the_best_known_value(name):
    one = problem(name)
    assert one.truth(TASKS[name].start) < one.reference


@pytest.mark.parametrize("name", CHEAP)
def test_the_best_point_has_the_best_value_where_one_is_known(name):
    task, one = TASKS[name], problem(name, 1)
    if one.optimum is None:
        pytest.skip("none is known")
    assert one.truth(one.optimum) == pytest.approx(one.reference, abs=1e-6 * abs(one.reference) + 1e-9)
    rng = np.random.default_rng(1)
    for _ in range(20):
        near = one.optimum + 0.05 * task.scale * rng.standard_normal(task.d)
        assert one.truth(near if task.bounds is None else np.clip(near, *task.bounds)) <= one.reference + 1e-9


@pytest.mark.parametrize("name", ["gp8", *(name for name, task in TASKS.items() if task.noise != "own")])
def test_the_noise_is_what_is_written_down(name):
    task, one = TASKS[name], problem(name)
    truth = one.truth(task.start)
    errors = np.array([value_of(one, task.start, seed) for seed in range(400)]) - truth
    share = {"small": 0.01, "middle": 0.05, "large": 0.2}
    expected = 0.1 if name == "gp8" else share[task.noise] * (one.reference - truth)
    assert errors.std() == pytest.approx(expected, rel=0.15)
    assert abs(errors.mean()) < 4.0 * expected / math.sqrt(len(errors))


@pytest.mark.parametrize("name", ["sphere20", "l1-12", "ackley10", "plateau6"])
def test_the_optimum_is_two_scales_away_in_every_parameter_on_average(name):
    task, one = TASKS[name], problem(name)
    assert np.sqrt(np.mean(((one.optimum - task.start) / task.scale) ** 2)) == pytest.approx(2.0)


@pytest.mark.parametrize("name", ["gp8", "sphere20", "rotated-ellipsoid10", "hyper9"])
def test_another_instance_is_another_function(name):
    one, two = problem(name, 0), problem(name, 1)
    assert np.abs(one.optimum - two.optimum).max() > 0.01 * TASKS[name].scale


# -- single functions -------------------------------------------------------------------------------------------------


def test_the_plateau_is_flat_above_and_below():
    z = np.ones(6)
    assert functions.plateau(0.5 * z) == functions.plateau(0.0 * z) == 1.0
    assert functions.plateau(3.0 * z) == functions.plateau(4.0 * z) == 0.0
    assert 0.0 < functions.plateau(2.0 * z) < 1.0


def test_a_learning_rate_that_is_too_high_gives_what_guessing_gives():
    one = TASKS["hyper9"].make(0)
    rate, idle = 0.3 * np.eye(9)[0], 0.1 * np.eye(9)[8]
    assert one.truth(one.optimum + rate) == 10.0
    assert one.truth(one.optimum - rate) > 15.0
    assert one.truth(one.optimum + idle) == one.truth(one.optimum)
