"""The tasks of the leaderboard: the same for the same seed, known at their best points, as noisy as they say."""

import math

import numpy as np
import pytest

from gibo import InputError
from gibo.outcome import Outcome
from gibo_studies.leaderboard import functions, plants
from gibo_studies.leaderboard.environments import lander_action
from gibo_studies.leaderboard.tasks import TASKS, chosen_tasks, missing

CHEAP = [name for name, task in TASKS.items() if not task.expensive]
# One look at these takes seconds.
SLOW = {"Swimmer-v5", "Ant-v5", "HalfCheetah-v5"}


def problem(name, number=0):
    if missing(TASKS[name].needs):
        pytest.skip(f"needs {missing(TASKS[name].needs)}")
    return TASKS[name].make(number)


def options(problem):
    normalizer = problem.normalizer("exact")
    return {} if normalizer is None else normalizer.options()


def value_of(problem, x, seed):
    value = problem.evaluate(x, seed=seed, **options(problem))
    return float(value.value if isinstance(value, Outcome) else value)


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.name)
def test_what_a_method_is_told_makes_sense(task):
    looks = task.looks()
    assert looks[0] == 0
    assert looks[-1] == task.budget
    assert set(task.marks) <= set(looks)
    assert task.looks(30)[-1] == min(30, task.budget)
    assert task.table_marks()[-1] == task.budget
    assert task.scale > 0.0
    if task.bounds is not None:
        assert ((task.bounds[0] <= task.start) & (task.start <= task.bounds[1])).all()


@pytest.mark.parametrize("name", [name for name in TASKS if name not in SLOW])
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
    assert one.truth(x, **options(one)) == again.truth(x, **options(again))
    assert (x == kept).all()


@pytest.mark.parametrize("name", CHEAP)
def test_the_start_is_below_the_best_known_value(name):
    one = problem(name)
    assert one.truth(TASKS[name].start, **options(one)) < one.reference


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


PAPERS = ["gp8", "gp20", "gp36"]


@pytest.mark.parametrize("name", [*PAPERS, *(name for name, task in TASKS.items() if task.noise != "own")])
def test_the_noise_is_what_is_written_down(name):
    task, one = TASKS[name], problem(name)
    truth = one.truth(task.start)
    errors = np.array([value_of(one, task.start, seed) for seed in range(400)]) - truth
    share = {"small": 0.01, "middle": 0.05, "large": 0.2}
    expected = 0.1 if name in PAPERS else share[task.noise] * (one.reference - truth)
    assert errors.std() == pytest.approx(expected, rel=0.15)
    assert abs(errors.mean()) < 4.0 * expected / math.sqrt(len(errors))


@pytest.mark.parametrize("name", ["sphere20", "l1-12", "levy10", "plateau6", "cliff12"])
def test_the_optimum_is_two_scales_away_in_every_parameter_on_average(name):
    task, one = TASKS[name], problem(name)
    assert np.sqrt(np.mean(((one.optimum - task.start) / task.scale) ** 2)) == pytest.approx(2.0)


@pytest.mark.parametrize("name", ["gp8", "sphere20", "rosenbrock8", "hyper5", "cliff12"])
def test_another_instance_is_another_function(name):
    one, two = problem(name, 0), problem(name, 1)
    assert np.abs(one.optimum - two.optimum).max() > 0.01 * TASKS[name].scale


# -- single functions -------------------------------------------------------------------------------------------------


def test_the_cliff_is_near_and_deep():
    one = TASKS["cliff12"].make(0)
    onward = one.optimum / np.linalg.norm(one.optimum)
    assert one.truth(one.optimum + 0.49 * onward) > -0.1
    assert one.truth(one.optimum + 0.51 * onward) < -functions.CLIFF


def test_the_plateau_is_flat_above_and_below():
    z = np.ones(6)
    assert functions.plateau(0.5 * z) == functions.plateau(0.0 * z) == 1.0
    assert functions.plateau(3.0 * z) == functions.plateau(4.0 * z) == 0.0
    assert 0.0 < functions.plateau(2.0 * z) < 1.0


def test_a_rotation_is_one():
    Q = functions.rotation(5, np.random.default_rng(0))
    assert pytest.approx(np.eye(5), abs=1e-12) == Q @ Q.T


def test_a_learning_rate_that_is_too_high_gives_what_guessing_gives():
    one = TASKS["hyper5"].make(0)
    rate, idle = np.array([0.3, 0.0, 0.0, 0.0, 0.0]), np.array([0.0, 0.0, 0.0, 0.0, 0.1])
    assert one.truth(one.optimum + rate) == 10.0
    assert one.truth(one.optimum - rate) > 15.0
    assert one.truth(one.optimum + idle) == one.truth(one.optimum)


def test_a_better_path_is_round_the_obstacles():
    start = plants.rover_start()
    detour = start.copy().reshape(2, -1)
    along = np.linspace(0.0, 1.0, plants.WAYPOINTS)
    assert plants.rover_value(start) < 0.0
    shifted = start + 0.1
    ends = 10.0 * 0.4  # both ends are away by 0.1 in both coordinates
    assert plants.rover_value(shifted) < 5.0 - ends
    detours = [detour + a * np.sin(math.pi * along) * [[1.0], [-1.0]] for a in np.linspace(-0.6, 0.6, 13)]
    assert max(plants.rover_value(each.ravel()) for each in detours) > plants.rover_value(start) + 1.0


def test_a_controller_with_no_gain_leaves_the_error():
    nothing = plants.pid(0).truth(np.full(4, -8.0))
    start = plants.pid(0).truth(plants.PID_START)
    assert nothing < start < plants.PID_REFERENCE
    assert nothing == pytest.approx(-1.09, abs=0.5)  # the mean square of setpoints around 1, and the load


def test_the_regulator_is_judged_by_its_cost():
    one = TASKS["lqr"].make(0)
    assert one.truth(np.zeros(9)) == -1.0  # unstable
    assert one.truth(one.optimum) == 2.0
    assert -1.0 < one.truth(one.optimum * 1.2) < 2.0


@pytest.mark.parametrize(
    ("state", "action"),
    [
        ((0.0, 1.0, 0.0, -1.0, 0.0, 0.0, 0, 0), 0),  # slow, high: it waits
        ((0.0, 0.1, 0.0, -1.0, 0.0, 0.0, 0, 0), 2),  # fast, low: it brakes
        ((0.0, 1.0, 0.0, 0.0, 0.6, 0.0, 0, 0), 3),  # it leans one way, or the other
        ((0.0, 1.0, 0.0, 0.0, -0.6, 0.0, 0, 0), 1),
        ((0.0, 0.0, 0.0, -0.5, 0.6, 0.0, 1, 0), 2),  # on a leg, it only brakes
        ((0.0, 0.0, 0.0, 0.0, 0.6, 0.0, 1, 1), 0),
    ],
)
def test_the_landers_controller(state, action):
    w = [0.5, 1.0, 0.4, 0.55, 0.5, 1.0, 0.5, 0.5, 0.5, 0.5, 0.05, 0.05]
    assert lander_action(w, state) == action


@pytest.mark.parametrize(
    ("name", "plain"),
    [("Hopper-v5 affine without bonus", "Hopper-v5"), ("Swimmer-v5 action noise 0.5", "Swimmer-v5")],
)
def test_how_a_policy_is_trained_is_what_a_method_is_told_and_not_what_it_is_judged_by(name, plain):
    told, usual = problem(name), problem(plain)
    x = 0.05 * np.random.default_rng(0).standard_normal(TASKS[name].d)
    outcome = told.evaluate(x, seed=1, **options(told))
    if name == "Swimmer-v5 action noise 0.5":
        assert value_of(usual, x, 1) != outcome.value == outcome.info["return"]
        assert told.truth(x) == usual.truth(x)
    else:
        assert outcome.value == pytest.approx(outcome.info["return"] - outcome.info["steps"])
        x[33:] = 0.0  # its biases: without them it is the linear policy
        assert told.truth(x, **options(told)) == usual.truth(x[:33], **options(usual))


# -- names ------------------------------------------------------------------------------------------------------------


def test_tasks_are_chosen_by_name():
    assert chosen_tasks(()) == tuple(TASKS)
    assert chosen_tasks(("LQR", "gp8")) == ("gp8", "lqr")
    assert "Ant-v5" not in chosen_tasks(("cheap",))
    with pytest.raises(InputError, match="'sphere' is not known; there are cheap"):
        chosen_tasks(("sphere",))
