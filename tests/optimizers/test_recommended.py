"""Which point is recommended: the start, until another one is surely better."""

import numpy as np
import pytest
from scipy.special import ndtr

import gibo
from gibo.gp import GaussianProcess
from gibo.kernels import SquaredExponential
from gibo.optimizers.coordinates import Coordinates
from gibo.optimizers.recommended import SURE, probability_above, recommended
from gibo.optimizers.settings import Settings
from gibo.optimizers.surrogate import Model, Surrogate, Units
from gibo.outcome import Evaluation, Outcome, Query

D = 3


def model_of(X, y, noise=0.1, scale=1.0, gradients=False):
    scale = np.full(X.shape[1], scale)
    more = (X[:2] / scale, np.ones((2, X.shape[1])), 0.3) if gradients else ()
    gp = GaussianProcess(SquaredExponential(1.2, 1.5), noise, 0.0).condition(X / scale, y, *more)
    return Model(gp, Units(0.0, 1.0), Coordinates(scale))


def evaluated(X, y, first="iterate"):
    kinds = [first, *["query"] * (len(y) - 1)]
    return [
        Evaluation(Query(i, np.asarray(x), 0, kind, 0), Outcome(float(v)))
        for i, (x, v, kind) in enumerate(zip(X, y, kinds, strict=True))
    ]


def chosen(told, model, iterate=None, failed=False, bounds=None, first=(), **changes):
    surrogate = Surrogate.initial(Settings.default(**changes).resolve(D), np.ones(D))
    optimizer = gibo.GIBO(np.full(D, 9.0), bounds=bounds)
    return recommended(optimizer, surrogate, model, told, first, told[0].x if iterate is None else iterate, failed)


@pytest.mark.parametrize("gradients", [False, True])
def test_the_probability_is_that_of_the_joint_posterior(gradients):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, D)), rng.normal(size=8)
    model = model_of(X, y, scale=2.0, gradients=gradients)
    for x, other in rng.normal(size=(5, 2, D)):
        # The difference of the two by brute force: what a value of it would be worth if one of them were told.
        z, w = x / 2.0, other / 2.0
        mean, variance = model.gp.predict(np.array([z, w]))
        told = model.gp.extend(z, 0.0)  # a value at x, with the noise of all values
        left = variance[1] - told.predict(w).variance  # cov²/(var + noise)
        shift = told.predict(w).mean - mean[1]  # cov/(var + noise)·(0 − mean)
        covariance = -np.sign(shift * mean[0]) * np.sqrt(left * (variance[0] + model.gp.noise))
        expected = ndtr((mean[0] - mean[1]) / np.sqrt(variance.sum() - 2.0 * covariance))
        assert probability_above(model, x, other) == pytest.approx(expected, rel=1e-6)
        assert probability_above(model, other, x) == pytest.approx(1.0 - expected, rel=1e-6)


def test_a_point_is_not_above_itself_and_without_noise_nothing_is_in_doubt():
    X = np.array([[0.0] * D, [5.0] * D])
    model = model_of(X, np.array([0.0, 1.0]), noise=0.0)
    assert probability_above(model, X[0], X[0]) == 0.5
    assert probability_above(model, X[1], X[0]) == pytest.approx(1.0)
    assert probability_above(model, X[0], X[1]) == pytest.approx(0.0)


@pytest.mark.parametrize(("repeats", "sure"), [(1, False), (40, True)])
def test_the_start_is_recommended_until_another_point_is_surely_better(repeats, sure):
    """The same difference, a standard deviation of the noise, seen once and forty times."""
    X = np.repeat([[0.0] * D, [9.0] * D], repeats, axis=0)
    y = np.repeat([-0.5, 0.5], repeats)
    told, model = evaluated(X, y), model_of(X, y, noise=1.0)
    p = probability_above(model, X[-1], X[0])
    assert p > 0.5
    assert (p >= SURE) == sure
    np.testing.assert_array_equal(chosen(told, model), X[-1] if sure else X[0])
    np.testing.assert_array_equal(chosen(told, model, remember=False), X[-1])


def test_without_a_value_of_the_start_the_best_point_is_recommended():
    X, y = np.array([[0.0] * D, [9.0] * D]), np.array([-0.5, 0.5])
    told, model = evaluated(X, y, first="query"), model_of(X, y, noise=1.0)
    np.testing.assert_array_equal(chosen(told, model), X[1])
    told, model = evaluated(X, y), model_of(X, y, noise=1.0)
    np.testing.assert_array_equal(chosen(told, model, bounds=([1.0] * D, [10.0] * D)), X[1])  # nor one that is outside


def test_where_evaluations_failed_the_iterate_is_not_recommended():
    X, y = np.array([[0.0] * D, [0.5] * D]), np.array([0.0, 1.0])
    told, model = evaluated(X, y), model_of(X, y, noise=1e-4)
    ahead = np.full(D, 0.6)
    assert model.mean(ahead[None]) > model.mean(X[1:])
    np.testing.assert_array_equal(chosen(told, model, iterate=ahead), ahead)
    np.testing.assert_array_equal(chosen(told, model, iterate=ahead, failed=True), X[1])


def test_what_was_told_before_the_run_does_not_stand_for_the_start():
    optimizer = gibo.GIBO(np.zeros(D), scale=1.0, seed=0)
    optimizer.tell(np.full(D, 7.0), -50.0)
    rng = np.random.default_rng(0)
    for _ in range(2):
        for query in optimizer.ask():
            optimizer.tell(query, float(rng.normal()))
    np.testing.assert_array_equal(optimizer.best.x, np.zeros(D))


def test_noise_alone_leaves_a_run_at_its_start():
    """Where nothing is to be found a point is taken for better in few runs; by the highest value, in all."""
    left = []
    for seed in range(20):
        rng, optimizer = np.random.default_rng(seed), gibo.GIBO(np.zeros(D), seed=seed)
        for _ in range(10):
            for query in optimizer.ask():
                optimizer.tell(query, float(rng.normal()))
        left.append(not np.array_equal(optimizer.best.x, np.zeros(D)))
    assert sum(left) <= 6


def test_a_hill_is_climbed_at_once():
    optimizer = gibo.GIBO(np.zeros(D), scale=0.3, seed=0)
    for _ in range(4):
        for query in optimizer.ask():
            optimizer.tell(query, -float(((query.x - 1.0) ** 2).sum()))
    assert ((optimizer.best.x - 1.0) ** 2).sum() < 1.0


def test_by_the_first_values_a_point_may_be_surely_better_when_the_window_has_forgotten_the_start():
    settings = {"lengthscale": 1.0, "variance": 1.0, "noise": 1.0, "mean": 0.0, "standardize": False}
    X = np.array([[0.0] * D, *[[9.0] * D] * 12])
    told = evaluated(X, [0.0, *[1.0] * 12])
    first = evaluated(np.full((8, D), 0.1), [0.0] * 8)
    surrogate = Surrogate.initial(Settings.default(**settings).resolve(D), np.ones(D))
    model = surrogate.given(told)
    assert probability_above(model, X[1], X[0]) < SURE < probability_above(surrogate.given(first + told), X[1], X[0])
    np.testing.assert_array_equal(chosen(told, model, **settings), X[0])
    np.testing.assert_array_equal(chosen(told, model, first=first, **settings), X[1])


def test_first_values_that_hide_the_difference_do_not_bring_the_start_back():
    """A scale far too large: what was asked first is so much lower that all later values look alike beside it."""
    X = np.array([[0.0] * D, *[[9.0] * D] * 12])
    told = evaluated(X, [0.0, *[1.0] * 12])
    first = evaluated(np.random.default_rng(0).normal(size=(8, D)) * 30.0, [-1e5] * 8)
    surrogate = Surrogate.initial(Settings.default(lengthscale=1.0, variance=1.0, noise=0.05).resolve(D), np.ones(D))
    model = surrogate.given(told)
    assert probability_above(surrogate.given(first + told), X[1], X[0]) < SURE < probability_above(model, X[1], X[0])
    np.testing.assert_array_equal(chosen(told, model, first=first, lengthscale=1.0, variance=1.0, noise=0.05), X[1])


def test_the_first_values_are_those_that_the_window_has_not(monkeypatch):
    seen = []
    monkeypatch.setattr(
        "gibo.optimizers.gibo.recommended", lambda *a: seen.append([[e.id for e in part] for part in a[3:5]]) or a[5]
    )
    optimizer = gibo.GIBO(np.zeros(D), scale=0.3, seed=0, settings=Settings.default(N_m=12))
    for _ in range(20):
        for query in optimizer.ask():
            optimizer.tell(query, -float(((query.x - 1.0) ** 2).sum()))
    assert optimizer.best is not None
    ((window, first),) = seen
    last = optimizer.log.valued[-1].id
    assert window == sorted({*optimizer._kept, *range(last - 11, last + 1)})
    assert optimizer.settings.beginning == 12
    assert first == [i for i in range(12) if i not in optimizer._kept]
