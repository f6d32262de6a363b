import numpy as np
import pytest
from known_model import ELL, SCALE, X0, D, data, fixed, iterate_once, model

from gibo import (
    GIBO,
    GaussianProcess,
    GradientInformation,
    Matern52,
    NumericalError,
    Settings,
    SquaredExponential,
    out_of_model,
)
from gibo.acquisition.plan import maximize
from gibo.map_fit import Fit, FitWarning
from gibo.priors import LogNormal
from gibo.steps import GradientAscent, Piecewise, direction
from optimizer_helpers import bumpy

# -- algorithm 1 ------------------------------------------------------------------------------------------------------


def test_fit_after_iterate_asks_the_iterate_alone_first():
    optimizer = GIBO(X0, settings=fixed(variance=LogNormal(1.0, 0.5), fit_at="iterate"))
    for _ in range(3):
        first = optimizer.ask()
        assert [query.kind for query in first] == ["iterate"]
        assert first[0].x.tolist() == optimizer.iterate.tolist()
        optimizer.tell(first[0], bumpy(first[0].x))
        then = optimizer.ask()
        assert [query.kind for query in then] == ["query"] * 3
        assert {query.iteration for query in first + then} == {optimizer.iteration}
        for query in then:
            optimizer.tell(query, bumpy(query.x))


def test_fit_after_iterate_fits_to_the_iterates_value_too():
    settings = fixed(variance=LogNormal(1.0, 0.5), fit_at="iterate", fit_from=1)
    believed = []
    for value in (0.0, 5.0):
        optimizer = GIBO(X0, settings=settings)
        optimizer.tell(optimizer.ask()[0], value)
        for query in optimizer.ask():
            optimizer.tell(query, 0.0)
        believed.append(optimizer.iterations[0].variance)
    assert believed[1] > 1.5 * believed[0]


@pytest.mark.parametrize("normalization", ["paper", "published", "invariant", "off"])
@pytest.mark.parametrize("kernel", [SquaredExponential, Matern52])
def test_the_step_by_hand(kernel, normalization):
    optimizer = GIBO(X0, settings=fixed(kernel=kernel.name, normalization=normalization))
    iterate_once(optimizer)
    gradient = model(kernel).condition(*data(optimizer)).jacobian(X0).mean
    np.testing.assert_allclose(optimizer.iterate, X0 + 0.3 * direction(gradient, ELL, normalization), rtol=1e-10)


def test_the_step_sees_the_last_n_m_values_only():
    optimizer = GIBO(X0, settings=fixed(N_m=6))
    for _ in range(4):
        iterate_once(optimizer)
    before = optimizer.iterate
    iterate_once(optimizer)
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
    optimizer = GIBO(X0, scale=SCALE, settings=settings)
    away = np.abs([query.x - X0 for query in optimizer.ask()])
    assert (away <= half * (1 + 1e-12)).all()
    assert (away.max(axis=0) > 0.8 * half).all()


@pytest.mark.parametrize("far", [1e17, -1e30])
def test_a_box_that_floats_cannot_tell_from_its_centre_is_named(far):
    with pytest.raises(NumericalError, match=r"parameter 1 is .*too coarse.*larger scale"):
        GIBO([0.0, far]).ask()
    GIBO([0.0, far], scale=[1.0, 1e-9 * abs(far)]).ask()


def test_random_queries_are_uniform_in_the_box():
    optimizer = GIBO(X0, settings=fixed(sampling="random", delta=1.0, M=2000, N_m=2001))
    U = (np.array([query.x for query in optimizer.ask()[1:]]) - X0) / ELL
    np.testing.assert_allclose(U.mean(axis=0), 0.0, atol=0.06)
    np.testing.assert_allclose(U.var(axis=0), 1.0 / 3.0, rtol=0.1)


def test_least_share_asks_fewer():
    asked = [len(GIBO(X0, settings=fixed(M=12, N_m=13, least_share=share)).ask()) - 1 for share in (0.0, 0.15, 1.0)]
    assert asked[0] == 12
    assert 1 < asked[1] < 12
    assert asked[2] == 1


# -- hyperparameters --------------------------------------------------------------------------------------------------

PRIORS = {"lengthscale": LogNormal(1.0, 0.5), "variance": LogNormal(1.5, 0.5), "noise": LogNormal(0.02, 1.0)}


def believed(iteration):
    return [*iteration.lengthscale, iteration.variance, iteration.noise]


def prior_means():
    return [*[PRIORS["lengthscale"].mean] * D, PRIORS["variance"].mean, PRIORS["noise"].mean]


@pytest.mark.parametrize(
    ("changes", "first"),
    [({"fit": "full", "N_m": 10}, 3), ({"fit": "each", "fit_from": 8}, 2), ({"fit": "never"}, None)],
    ids=["full", "each", "never"],
)
def test_when_hyperparameters_are_fitted(changes, first):
    """A fit is made before the queries of an iteration, with 0, 4, 8, then 12 values."""
    optimizer = GIBO(X0, settings=fixed(**PRIORS, **changes))
    for _ in range(5):
        iterate_once(optimizer)
    for iteration in optimizer.iterations[:first]:
        np.testing.assert_allclose(believed(iteration), prior_means())
    if first is not None:
        assert np.abs(np.array(believed(optimizer.iterations[first])) / prior_means() - 1.0).min() > 1e-3


def test_a_fit_that_fails_leaves_a_warning_in_the_record(monkeypatch):
    def failing(gp, priors):
        return Fit(gp, np.nan, 1, FitWarning("nothing is finite"))

    monkeypatch.setattr("gibo.optimizers.model.fit", failing)
    optimizer = GIBO(X0, settings=fixed(**PRIORS, fit="each", fit_from=1))
    iterate_once(optimizer)
    iterate_once(optimizer)
    assert [iteration.warning for iteration in optimizer.iterations] == [None, "nothing is finite"]
    np.testing.assert_allclose(believed(optimizer.iterations[1]), prior_means())


# -- records ----------------------------------------------------------------------------------------------------------


def test_an_iteration_records_what_was_known():
    optimizer = GIBO(X0, scale=SCALE, settings=fixed(standardize=True, N_m=8))
    starts = []
    for _ in range(3):
        starts.append(optimizer.iterate)
        iterate_once(optimizer, lambda x: 3.0 * bumpy(x))
    assert [record.number for record in optimizer.iterations] == [0, 1, 2]
    assert [record.evaluations for record in optimizer.iterations] == [4, 8, 12]
    record, (_, y) = optimizer.iterations[2], data(optimizer, last=8)
    assert record.x.tolist() == starts[2].tolist()
    np.testing.assert_allclose(record.step, optimizer.iterate - starts[2], rtol=1e-12)
    np.testing.assert_allclose(record.lengthscale, ELL * SCALE)
    assert record.variance == pytest.approx(1.5 * y.var())
    assert record.noise == pytest.approx(0.02 * y.var())
    assert record.jitter == 0.0
    assert record.warning is None
    X, y = data(optimizer, last=8)
    gp = GaussianProcess(SquaredExponential(ELL * SCALE, record.variance), record.noise, mean=y.mean())
    jacobian = gp.condition(X, y).jacobian(starts[2])
    np.testing.assert_allclose(record.gradient, jacobian.mean, rtol=1e-8)
    assert record.uncertainty == pytest.approx(np.trace(jacobian.covariance))
    assert record.probability_of_ascent == pytest.approx(jacobian.probability_of_ascent(record.step))


# -- interruptions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampling", ["active", "random"])
@pytest.mark.parametrize(("first", "asked"), [(1, 2), (7, 7)])
def test_the_first_iteration_may_ask_more(sampling, first, asked):
    optimizer = GIBO(np.zeros(D), settings=fixed(M=2, M_first=first, sampling=sampling))
    assert [len(iterate_once(optimizer)) for _ in range(3)] == [asked + 1, 3, 3]


def test_a_first_iteration_by_default_has_as_many_queries_as_parameters_but_at_most_four_roots_of_them():
    assert [len(GIBO(np.zeros(d), seed=3).ask()) - 1 for d in (2, 9, 16, 17, 36, 100)] == [2, 9, 16, 17, 24, 40]


# -- ties -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("d", "settings", "scale", "bounds"),
    [
        (8, Settings.paper(), 0.1, None),
        (4, Settings.paper(M=4, delta=0.3, delta_unit="absolute"), 0.1, None),
        (5, out_of_model(5), 1.0, None),
        (8, out_of_model(8), 1.0, (0.0, 1.0)),
        (6, Settings.paper(M=3, N_m=4, kernel="matern52"), 1.0, (0.0, 1.0)),
    ],
    ids=["defaults", "absolute", "paper", "paper-bounds", "matern"],
)
def test_planned_queries_equal_asking_one_by_one_also_where_information_ties(d, settings, scale, bounds):
    """Isotropic lengthscales and symmetric data, as in every first iteration, make exact ties."""
    optimizer = GIBO(np.full(d, 0.2), scale=scale, bounds=bounds, seed=3, settings=settings)
    rng, checked = np.random.default_rng(5), 0
    for _ in range(8):
        before = optimizer._rng.bit_generator.state
        queries, s = optimizer.ask(), optimizer.settings
        values = [e for e in optimizer.evaluations if e.value is not None]
        size = s.N_m - s.M - (queries[0].kind == "iterate")
        window = values[-size:] if size > 0 else []
        gp = optimizer._surrogate.given(window).gp
        twin = np.random.default_rng(0)
        twin.bit_generator.state = before
        for query in queries:
            if query.kind == "query":
                x, _ = maximize(GradientInformation(gp, at=optimizer.iterate / scale), *optimizer._box(), twin)
                np.testing.assert_allclose(optimizer.clip(x * scale), query.x, rtol=0, atol=1e-9)
                checked += 1
            gp = gp.extend(query.x / scale, 5.0 * rng.normal())
        for query in queries:
            optimizer.tell(query, -float((query.x**2).sum()) + 0.1 * rng.normal())
    assert checked >= 12
