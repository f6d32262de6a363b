"""The first iteration of a search with few parameters between bounds."""

import json

import numpy as np
import pytest

import gibo
from gibo.optimizers.queries import spread
from gibo.optimizers.settings import Settings

LOWER, UPPER = np.array([0.0, -1.0]), np.array([1.0, 5.0])
BOUNDS = (LOWER, UPPER)
X0 = np.array([0.5, 0.0])


def started(**options):
    return gibo.GIBO(X0, **{"scale": 0.2, "bounds": BOUNDS, **options})


def told(optimizer, f):
    queries = optimizer.ask()
    for query in queries:
        optimizer.tell(query, f(query.x))
    return queries


@pytest.mark.parametrize("count", [1, 2, 5, 9])
def test_a_latin_hypercube_has_one_point_in_each_slice(count):
    points = spread(LOWER, UPPER, count, np.random.default_rng(0))
    slices = np.floor((points - LOWER) / (UPPER - LOWER) * count)
    assert (np.sort(slices, axis=0) == np.arange(count)[:, None]).all()
    assert not np.array_equal(points, spread(LOWER, UPPER, count, np.random.default_rng(1)))


def test_its_size_falls_with_the_square_of_the_number_of_parameters():
    assert [Settings().resolve(d).survey for d in (1, 2, 3, 4, 5, 6, 7, 40)] == [24, 6, 3, 2, 1, 1, 0, 0]
    assert Settings.paper().resolve(2).survey == 0


def test_the_search_goes_on_at_the_best_point_and_the_survey_counts_for_the_first_design():
    optimizer = started(settings=Settings(survey=4, M=1, M_first=6))
    queries = told(optimizer, lambda x: -float(np.abs(x - [0.9, 4.0]).sum()))
    assert [q.kind for q in queries] == ["iterate"] + 4 * ["query"]
    best = min(queries, key=lambda q: np.abs(q.x - [0.9, 4.0]).sum())
    assert np.array_equal(optimizer.iterate, best.x)
    assert len(told(optimizer, lambda x: -float(np.abs(x - [0.9, 4.0]).sum()))) == 1 + 2
    assert len(optimizer.ask()) == 1 + 1


@pytest.mark.parametrize(
    "options",
    [
        {"bounds": None},
        {"bounds": ([0.0, -1.0], [1.0, np.inf])},
        {"largest_step": 1.0},
        {"settings": Settings(survey=0)},
    ],
)
def test_there_is_none(options):
    """Without finite bounds, or where the search must stay near its start."""
    assert len(started(**options).ask()) == 1 + 2
    assert len(started().ask()) == 1 + 6


def test_there_is_none_where_the_search_is_careful_or_something_is_known():
    careful = started(limits=gibo.Limits({"torque": (None, 1.0)}, careful=True))
    assert len(careful.ask()) == 1
    warm = started()
    warm.tell([0.2, 0.3], 1.0)
    assert len(warm.ask()) == 1 + 2


def test_a_survey_whose_points_all_fail_stays_at_the_start():
    optimizer = started()
    for query in optimizer.ask():
        optimizer.tell(query, failed="no contact")
    assert np.array_equal(optimizer.iterate, X0)


def test_points_that_violate_a_limit_are_not_taken():
    optimizer = started(limits={"torque": (None, 2.0)})
    for query in optimizer.ask():
        optimizer.tell(query, float(query.x[1]), measured={"torque": float(query.x[1])})
    assert optimizer.iterate[1] < 2.0


def test_it_survives_a_restart():
    def f(x):
        return -float(((x - [0.9, 4.0]) ** 2).sum())

    whole, half = started(seed=3), started(seed=3)
    told(half, f)
    told(whole, f)
    half = gibo.GIBO.from_state(json.loads(json.dumps(half.state())))
    for _ in range(3):
        for a, b in zip(told(whole, f), told(half, f), strict=True):
            assert np.array_equal(a.x, b.x)
    again = gibo.GIBO.from_state(json.loads(json.dumps(whole.state())))
    assert np.array_equal(again.ask()[-1].x, whole.ask()[-1].x)
