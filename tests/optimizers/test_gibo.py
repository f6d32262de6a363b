"""GIBO's iteration by hand: what it asks, when it fits, where it goes and what it records."""

import numpy as np
import pytest
from known_model import ELL, SCALE, X0, D, data, fixed, iterate_once, model, told

from gibo import GIBO, Matern52, NumericalError, SquaredExponential
from gibo.map_fit import Fit, FitWarning
from gibo.priors import LogNormal
from gibo.steps import GradientAscent, Piecewise, direction
from optimizer_helpers import bumpy

# -- algorithm 1 ------------------------------------------------------------------------------------------------------


def test_fit_after_iterate_asks_the_iterate_alone_first_and_fits_to_its_value_too():
    settings = fixed(variance=LogNormal(1.0, 0.5), fit_at="iterate", fit_from=1)
    believed = []
    for value in (0.0, 5.0):
        optimizer = GIBO(X0, settings=settings)
        (first,) = optimizer.ask()
        assert (first.kind, first.x.tolist()) == ("iterate", X0.tolist())
        optimizer.tell(first, value)
        then = optimizer.ask()
        assert [(query.kind, query.iteration) for query in then] == [("query", 0)] * 3
        for query in then:
            optimizer.tell(query, 0.0)
        believed.append(optimizer.iterations[0].variance)
        assert [query.kind for query in optimizer.ask()] == ["iterate"]
    assert believed[1] > 1.5 * believed[0]
    failing = GIBO(X0, settings=settings)
    failing.tell(failing.ask()[0], failed=True)
    assert [query.kind for query in failing.ask()] == ["query"] * 3
    assert failing.iteration == 0


@pytest.mark.parametrize("normalization", ["paper", "published", "invariant", "off"])
@pytest.mark.parametrize("kernel", [SquaredExponential, Matern52])
def test_the_step_by_hand(kernel, normalization):
    optimizer = told(fixed(kernel=kernel.name, normalization=normalization), iterations=1, scale=1.0)
    gradient = model(kernel).condition(*data(optimizer)).jacobian(X0).mean
    np.testing.assert_allclose(optimizer.iterate, X0 + 0.3 * direction(gradient, ELL, normalization), rtol=1e-10)


@pytest.mark.parametrize("failing", [False, True])
def test_the_step_sees_the_last_n_m_values_only(failing):
    """Failed evaluations take no place among them."""
    optimizer = GIBO(X0, settings=fixed(N_m=6))
    for _ in range(5):
        before = optimizer.iterate
        for query in optimizer.ask():
            fails = failing and query.id % 2 == 1
            optimizer.tell(query, None if fails else bumpy(query.x), failed=fails)
    steps = [
        0.3 * direction(model().condition(*data(optimizer, last)).jacobian(before).mean, ELL, "paper")
        for last in (6, 5, 7, None)
    ]
    np.testing.assert_allclose(optimizer.iterate - before, steps[0], rtol=1e-9)
    assert all(np.abs(other - steps[0]).max() > 1e-6 for other in steps[1:])


def test_a_scheduled_step_with_momentum_by_hand():
    rule = GradientAscent(eta=Piecewise(((0, 0.4), (2, 0.1))), momentum=0.5)
    optimizer = GIBO(X0, settings=fixed(N_m=100, step=rule))
    velocity, x = np.zeros(D), X0
    for eta in (0.4, 0.4, 0.1, 0.1):
        iterate_once(optimizer)
        gradient = model().condition(*data(optimizer)).jacobian(x).mean
        velocity = 0.5 * velocity + direction(gradient, ELL, "paper")
        x = x + eta * velocity
        np.testing.assert_allclose(optimizer.iterate, x, rtol=1e-9)
        x = optimizer.iterate


# -- where queries are sought -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampling", ["active", "random"])
@pytest.mark.parametrize(("unit", "half"), [("absolute", np.full(D, 0.1)), ("lengthscales", 0.1 * ELL * SCALE)])
def test_queries_fill_the_box(unit, half, sampling):
    settings = fixed(delta=0.1, delta_unit=unit, sampling=sampling, M=40, N_m=41)
    away = np.array([query.x - X0 for query in GIBO(X0, scale=SCALE, settings=settings).ask()])
    assert (abs(away) <= half * (1 + 1e-12)).all()
    assert (abs(away).max(axis=0) > 0.8 * half).all()
    if sampling == "random":  # uniform
        np.testing.assert_allclose(away[1:].mean(axis=0) / half, 0.0, atol=0.3)


@pytest.mark.parametrize("far", [1e17, -1e30])
def test_a_box_that_floats_cannot_tell_from_its_centre_is_named(far):
    with pytest.raises(NumericalError, match=r"parameter 1 is .*too coarse.*larger scale"):
        GIBO([0.0, far]).ask()
    GIBO([0.0, far], scale=[1.0, 1e-9 * abs(far)]).ask()


def test_how_many_queries_an_iteration_has():
    asked = [len(GIBO(X0, settings=fixed(M=12, N_m=13, least_share=share)).ask()) - 1 for share in (0.0, 0.15, 1.0)]
    assert asked[0] == 12 > asked[1] > asked[2] == 1
    for sampling in ("active", "random"):
        for first, expected in ((1, 2), (7, 7)):
            optimizer = GIBO(X0, settings=fixed(M=2, M_first=first, sampling=sampling))
            assert [len(iterate_once(optimizer)) for _ in range(3)] == [expected + 1, 3, 3]
    # By default the first iteration has as many as parameters, but at most four roots of them.
    assert [len(GIBO(np.zeros(d), seed=3).ask()) - 1 for d in (2, 9, 16, 17, 36, 100)] == [2, 9, 16, 17, 24, 40]


# -- hyperparameters --------------------------------------------------------------------------------------------------

PRIORS = {"lengthscale": LogNormal(1.0, 0.5), "variance": LogNormal(1.5, 0.5), "noise": LogNormal(0.02, 1.0)}
PRIOR_MEANS = [*[PRIORS["lengthscale"].mean] * D, PRIORS["variance"].mean, PRIORS["noise"].mean]


def believed(iteration):
    return [*iteration.lengthscale, iteration.variance, iteration.noise]


@pytest.mark.parametrize(
    ("changes", "first"),
    [({"fit": "full", "N_m": 10}, 3), ({"fit": "each", "fit_from": 8}, 2), ({"fit": "never"}, None)],
    ids=["full", "each", "never"],
)
def test_when_hyperparameters_are_fitted(changes, first):
    """A fit is made before the queries of an iteration, with 0, 4, 8, then 12 values."""
    optimizer = told(fixed(**PRIORS, **changes), iterations=5, scale=1.0)
    for iteration in optimizer.iterations[:first]:
        np.testing.assert_allclose(believed(iteration), PRIOR_MEANS)
    if first is not None:
        assert np.abs(np.array(believed(optimizer.iterations[first])) / PRIOR_MEANS - 1.0).min() > 1e-3


def test_a_fit_that_fails_leaves_a_warning_in_the_record(monkeypatch):
    def failing(gp, priors):
        return Fit(gp, np.nan, 1, FitWarning("nothing is finite"))

    monkeypatch.setattr("gibo.optimizers.model.fit", failing)
    optimizer = told(fixed(**PRIORS, fit="each", fit_from=1), scale=1.0)
    assert [iteration.warning for iteration in optimizer.iterations] == [None, "nothing is finite"]
    np.testing.assert_allclose(believed(optimizer.iterations[1]), PRIOR_MEANS)


# -- records ----------------------------------------------------------------------------------------------------------


def test_an_iteration_records_what_was_known():
    optimizer, starts = GIBO(X0, scale=SCALE, settings=fixed(standardize=True)), []
    for _ in range(3):
        starts.append(optimizer.iterate)
        iterate_once(optimizer, lambda x: 3.0 * bumpy(x))
    assert [(record.number, record.evaluations) for record in optimizer.iterations] == [(0, 4), (1, 8), (2, 12)]
    record, (X, y) = optimizer.iterations[2], data(optimizer, last=8)
    assert record.x.tolist() == starts[2].tolist()
    np.testing.assert_allclose(record.step, optimizer.iterate - starts[2], rtol=1e-12)
    np.testing.assert_allclose(record.lengthscale, ELL * SCALE)
    assert (record.variance, record.noise) == pytest.approx((1.5 * y.var(), 0.02 * y.var()))
    assert (record.jitter, record.warning) == (0.0, None)
    jacobian = model(scale=SCALE, variance=y.var(), mean=y.mean()).condition(X, y).jacobian(starts[2])
    np.testing.assert_allclose(record.gradient, jacobian.mean, rtol=1e-8)
    assert record.uncertainty == pytest.approx(np.trace(jacobian.covariance))
    assert record.probability_of_ascent == pytest.approx(jacobian.probability_of_ascent(record.step))
