"""The tasks by which a default is chosen: repeatable, known at their best points, as noisy as they say."""

import math

import numpy as np
import pytest

from gibo.outcome import Outcome
from gibo_studies.leaderboard import functions
from gibo_studies.leaderboard.functions import Hyperparameters, Paper, Shifted
from gibo_studies.leaderboard.task import NOISE, Problem, prepared
from gibo_studies.leaderboard.tasks import TASKS, Shuffled

FUNCTIONS = [
    Shifted("sphere", functions.sphere, 5, "middle"),
    Shifted("rotated", lambda z: functions.ellipsoid(z, 100.0), 5, "small", rotated=True),
    Shifted("ackley", functions.ackley, 5, "small"),
    Shifted("saturating", functions.saturating, 5, "middle", best=1.0),
    Shifted("l1", functions.l1, 5, "large"),
    Shifted("plateau", functions.plateau, 5, "large", best=1.0),
    Hyperparameters("hyper", 9, 5, "middle"),
    Paper(4),
]


@pytest.mark.parametrize("name", TASKS)
def test_a_value_depends_on_its_arguments_alone_and_the_start_can_be_improved(name):
    task, problem = prepared(TASKS[name], 0)
    start = task.start.copy()
    values = [problem.evaluate(start, seed) for seed in (1, 2, 1)]
    values = [value.value if isinstance(value, Outcome) else value for value in values]
    assert values[0] == values[2]
    assert np.isfinite(values).all()
    assert problem.truth(start) == task.make(0).truth(start) < problem.reference
    assert (start == task.start).all()


def test_shuffled_parameters_belong_to_the_same_problem():
    theta = np.array([1.0, 2.0, 3.0])
    problem = Shuffled(
        lambda number: Problem(lambda x, seed: float(x @ theta), lambda x: float(x @ theta), 1.0), theta, signs=True
    )(4)
    assert sorted(abs(problem.start)) == theta.tolist()
    assert (problem.start != theta).any()
    assert problem.evaluate(problem.start, 0) == problem.truth(problem.start) == 14.0


@pytest.mark.parametrize("make", FUNCTIONS)
def test_the_best_point_has_the_best_value(make):
    problem = make(1)
    assert problem.truth(problem.optimum) == pytest.approx(problem.reference, abs=1e-6)
    rng = np.random.default_rng(1)
    for _ in range(20):
        near = problem.optimum + 0.02 * rng.standard_normal(make.d)
        assert problem.truth(near if isinstance(make, Shifted) else np.clip(near, 0.0, 1.0)) <= problem.reference + 1e-9
    assert np.abs(problem.optimum - make(2).optimum).max() > 0.01
    if isinstance(make, Shifted):
        assert np.sqrt(np.mean(problem.optimum**2)) == pytest.approx(2.0)


@pytest.mark.parametrize("make", FUNCTIONS)
def test_the_noise_is_what_is_written_down(make):
    problem, start = make(0), np.full(make.d, 0.0 if isinstance(make, Shifted) else 0.5)
    truth = problem.truth(start)
    errors = np.array([problem.evaluate(start, seed) for seed in range(400)]) - truth
    shares = {"small": 0.01, "middle": 0.05, "large": 0.2}
    assert shares == NOISE
    expected = 0.1 if isinstance(make, Paper) else shares[make.noise] * (problem.reference - truth)
    assert errors.std() == pytest.approx(expected, rel=0.15)
    assert abs(errors.mean()) < 4.0 * expected / math.sqrt(len(errors))


def test_a_learning_rate_that_is_too_high_gives_what_guessing_gives():
    problem = Hyperparameters("hyper", 9, 5, "middle")(0)
    rate, idle = 0.3 * np.eye(9)[0], 0.1 * np.eye(9)[8]
    assert problem.truth(problem.optimum + rate) == 10.0
    assert problem.truth(problem.optimum - rate) > 15.0
    assert problem.truth(problem.optimum + idle) == problem.truth(problem.optimum)
