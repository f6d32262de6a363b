"""The survey of finite bounds before the first iteration, and the model that judges values since the last step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gibo
from gibo.means import Fitted, QuadraticMean
from gibo.optimizers.queries import spread
from gibo.outcome import ITERATE, QUERY, SURVEY


def hill(x: Any) -> float:
    return -float(((np.asarray(x) - 0.8) ** 2).sum())


def told(optimizer: gibo.GIBO) -> list[gibo.Query]:
    queries = optimizer.ask()
    for query in queries:
        optimizer.tell(query, hill(query.x))
    return queries


def test_a_latin_hypercube_has_a_point_in_each_slice():
    points = spread(np.zeros(3), np.array([1.0, 2.0, 4.0]), 5, np.random.default_rng(0))
    slices = np.sort(np.floor(points / np.array([1.0, 2.0, 4.0]) * 5), axis=0)
    assert (slices == np.arange(5)[:, None]).all()


@pytest.mark.parametrize("scale", [0.05, 1.0])
def test_the_search_goes_on_at_the_best_point_of_the_survey(scale):
    optimizer = gibo.GIBO(np.full(5, 0.2), scale=scale, bounds=(0.0, 1.0), seed=3)
    queries = told(optimizer)
    assert [query.kind for query in queries] == [ITERATE] + 4 * [SURVEY]
    X = np.array([query.x for query in queries])
    assert (X >= 0.0).all()
    assert (abs(X - 0.2) <= min(5.0 * scale, 0.8) + 1e-12).all()
    assert (optimizer.iterate == X[int(np.argmax([hill(x) for x in X]))]).all()
    # Its points count for the first design, but an iteration has at least M queries.
    assert [query.kind for query in told(optimizer)] == [ITERATE] + 3 * [QUERY]


@pytest.mark.parametrize(
    "options",
    [
        {"bounds": None},
        {"bounds": (0.0, np.inf)},
        {"largest_step": 2.0},
        {"limits": gibo.Limits({"torque": (None, 1.0)}, careful=True)},
        {"settings": gibo.Settings(survey=0)},
        {"settings": gibo.Settings(mean=Fitted(QuadraticMean(np.zeros(5), np.ones(5))))},
        {"sources": {"simulator": 1, "robot": 50}},
        {"settings": gibo.Settings.paper()},
    ],
)
def test_no_survey_where_the_search_must_stay_near_or_nothing_bounds_it(options):
    optimizer = gibo.GIBO(np.full(5, 0.2), **{"scale": 0.1, "bounds": (0.0, 1.0), **options})
    assert SURVEY not in [query.kind for query in optimizer.ask()]


def test_no_survey_if_something_is_known():
    optimizer = gibo.GIBO(np.full(5, 0.2), scale=0.1, bounds=(0.0, 1.0))
    optimizer.tell(np.full(5, 0.3), 1.0)
    assert SURVEY not in [query.kind for query in optimizer.ask()]


def test_a_survey_that_fails_leaves_the_search_at_its_start():
    optimizer = gibo.GIBO(np.full(3, 0.2), scale=0.1, bounds=(0.0, 1.0))
    for query in optimizer.ask():
        optimizer.tell(query, failed=query.kind == SURVEY, value=None if query.kind == SURVEY else 1.0)
    assert (optimizer.iterate == 0.2).all()


def test_the_recommended_point_is_judged_by_a_model_of_all_values():
    """Also within an iteration; looking there does not change the search."""
    watched, other = (gibo.GIBO(np.zeros(6), scale=0.3, seed=1) for _ in range(2))
    for _ in range(3):
        told(watched)
        told(other)
    for query in watched.ask()[:2]:
        watched.tell(query, hill(query.x))
        before = watched._surrogate
        model = watched.model()
        fitted = before.fit(watched._window())
        assert model.gp.kernel.ell(6) == pytest.approx(fitted.hyperparameters.lengthscale, rel=1e-9)
        assert model.gp.kernel.ell(6) != pytest.approx(before.hyperparameters.lengthscale, rel=1e-6)
        assert watched._surrogate is before
    for query in other.ask()[:2]:
        other.tell(query, hill(query.x))
    for optimizer in (watched, other):
        for query in optimizer.ask():
            optimizer.tell(query, hill(query.x))
    assert (watched.iterate == other.iterate).all()


def test_a_single_value_has_no_interval():
    optimizer = gibo.GIBO(np.zeros(3), scale=0.1)
    first, second, *_ = optimizer.ask()
    optimizer.tell(first, 5.2)
    assert (optimizer.best.value, optimizer.best.interval) == (5.2, None)
    optimizer.tell(second, 5.0)
    assert optimizer.best.interval is not None
