"""GIBO: units of values and parameters, failures, gradients and points from elsewhere, in the user's units."""

import numpy as np
import pytest
from known_model import ELL, SCALE, X0, D, data, fixed, iterate_once, model

from gibo import (
    GIBO,
    GaussianProcess,
    Settings,
    SquaredExponential,
)
from gibo.priors import LogNormal
from gibo.steps import direction
from optimizer_helpers import bumpy

# -- units ------------------------------------------------------------------------------------------------------------


def test_the_jacobian_is_that_of_a_model_in_the_users_units():
    settings = fixed(standardize=True, N_m=8)
    optimizer = GIBO(X0, scale=SCALE, settings=settings)
    for _ in range(3):
        iterate_once(optimizer, lambda x: 40.0 * bumpy(x) - 7.0)
    X, y = data(optimizer, last=8)
    kernel = SquaredExponential(ELL * SCALE, 1.5 * y.var())
    gp = GaussianProcess(kernel, noise=0.02 * y.var(), mean=y.mean()).condition(X, y)
    expected = gp.jacobian(optimizer.iterate)
    jacobian = optimizer.jacobian()
    np.testing.assert_allclose(jacobian.mean, expected.mean, rtol=1e-8)
    np.testing.assert_allclose(
        jacobian.covariance, expected.covariance, rtol=1e-8, atol=1e-8 * np.trace(expected.covariance)
    )


def test_best_is_the_highest_mean_among_the_window_and_the_iterate():
    optimizer = GIBO(X0, scale=SCALE, settings=fixed(standardize=True, N_m=8))
    for _ in range(3):
        iterate_once(optimizer, lambda x: 40.0 * bumpy(x) - 7.0)
    X, y = data(optimizer, last=8)
    gp = GaussianProcess(SquaredExponential(ELL * SCALE, 1.5 * y.var()), noise=0.02 * y.var(), mean=y.mean())
    points = np.vstack([X, optimizer.iterate])
    means = gp.condition(X, y).predict(points).mean
    np.testing.assert_allclose(optimizer.best.x, points[means.argmax()])
    assert optimizer.best.value == pytest.approx(means.max())


@pytest.mark.parametrize(
    "settings", [fixed(standardize=True), Settings.paper(standardize=True)], ids=["fixed", "paper"]
)
@pytest.mark.parametrize(("a", "b"), [(250.0, -3.0), (1e-6, 0.1), (1.0, 1e4)])
def test_standardized_values_may_have_any_unit(settings, a, b):
    one, two = GIBO(X0, scale=0.5, settings=settings), GIBO(X0, scale=0.5, settings=settings)
    for _ in range(4):
        queries = iterate_once(one), iterate_once(two, lambda x: a * bumpy(x) + b)
        for this, that in zip(*queries, strict=True):
            # Rounding in the values passes through fits and searches that end at finite tolerances.
            np.testing.assert_allclose(that.x, this.x, rtol=0, atol=1e-5)
    np.testing.assert_allclose(two.jacobian().mean, a * one.jacobian().mean, rtol=1e-4)
    np.testing.assert_allclose(two.jacobian().covariance, a**2 * one.jacobian().covariance, rtol=1e-3, atol=1e-4 * a**2)
    assert two.iterations[-1].noise == pytest.approx(a**2 * one.iterations[-1].noise, rel=1e-3)


@pytest.mark.parametrize(
    "settings", [fixed(), fixed(standardize=True), Settings.paper()], ids=["fixed", "std", "paper"]
)
def test_parameters_may_have_any_unit(settings):
    unit = np.array([7.0, 0.01, 300.0])
    one = GIBO(X0, scale=0.5, settings=settings)
    two = GIBO(X0 * unit, scale=0.5 * unit, settings=settings)
    for _ in range(4):
        queries = iterate_once(one), iterate_once(two, lambda x: bumpy(x / unit))
        for this, that in zip(*queries, strict=True):
            np.testing.assert_allclose(that.x / unit, this.x, rtol=0, atol=1e-5)
    np.testing.assert_allclose(two.iterate / unit, one.iterate, atol=1e-5)
    np.testing.assert_allclose(two.jacobian().mean * unit, one.jacobian().mean, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(two.iterations[-1].lengthscale / unit, one.iterations[-1].lengthscale, rtol=1e-3)


# -- gradients, failures, points from elsewhere -----------------------------------------------------------------------


@pytest.mark.parametrize("standardize", [False, True])
def test_gradients_reach_the_model_in_the_users_units(standardize):
    optimizer = GIBO(X0, scale=SCALE, settings=fixed(standardize=standardize, N_m=100, N_g=2))
    noise = np.array([0.1, 0.2, 0.3])
    gradients = {0: [1.0, 2.0, 3.0], 2: [-1.0, 0.5, 0.0], 3: [0.0, 1.0, -1.0]}
    for query in optimizer.ask():
        if query.id in gradients:
            optimizer.tell(query, bumpy(query.x), gradient=gradients[query.id], gradient_noise=noise)
        else:
            optimizer.tell(query, bumpy(query.x))
    X, y = data(optimizer)
    s2, shift = (y.var(), y.mean()) if standardize else (1.0, 0.0)
    gp = GaussianProcess(SquaredExponential(ELL * SCALE, 1.5 * s2), noise=0.02 * s2, mean=shift)

    def step(*used):
        gp_with = gp.condition(X, y, X[list(used)], [gradients[i] for i in used], np.tile(noise, (len(used), 1)))
        return gp_with.jacobian(X0).mean

    recorded = optimizer.iterations[0].gradient
    np.testing.assert_allclose(recorded, step(2, 3), rtol=1e-8)  # the last N_g
    assert np.abs(recorded - step(0, 2, 3)).max() > 1e-3
    assert np.abs(recorded - gp.condition(X, y).jacobian(X0).mean).max() > 1e-3


def test_failed_queries_do_not_take_a_place_in_the_window():
    optimizer = GIBO(X0, settings=fixed(N_m=6))
    for _ in range(3):
        before = optimizer.iterate
        for query in optimizer.ask():
            if query.id % 2:
                optimizer.tell(query, failed=True)
            else:
                optimizer.tell(query, bumpy(query.x))
    gradient = model().condition(*data(optimizer, last=6)).jacobian(before).mean
    np.testing.assert_allclose(optimizer.iterate, before + 0.3 * direction(gradient, ELL, "paper"), rtol=1e-9)


def test_an_iterate_that_fails_alone_is_followed_by_its_queries():
    optimizer = GIBO(X0, settings=fixed(variance=LogNormal(1.0, 0.5), fit_at="iterate"))
    optimizer.tell(optimizer.ask()[0], failed=True)
    assert [query.kind for query in optimizer.ask()] == ["query"] * 3
    assert optimizer.iteration == 0


def test_points_from_elsewhere_are_in_the_model():
    optimizer = GIBO(X0, settings=fixed(N_m=100))
    optimizer.tell(X0 + 0.2, 3.0)
    expected = model().condition([X0 + 0.2], [3.0]).jacobian(X0)
    np.testing.assert_allclose(optimizer.jacobian().mean, expected.mean)
    iterate_once(optimizer)
    X, y = data(optimizer)
    assert y[0] == 3.0
    np.testing.assert_allclose(optimizer.iterations[0].gradient, model().condition(X, y).jacobian(X0).mean, rtol=1e-10)


def test_before_any_value_the_jacobian_is_the_priors():
    optimizer = GIBO(X0, scale=SCALE, settings=fixed())
    jacobian = optimizer.jacobian()
    assert jacobian.mean.tolist() == [0.0] * D
    np.testing.assert_allclose(jacobian.covariance, np.diag(1.5 / (ELL * SCALE) ** 2))


def test_a_plateau_teaches_no_lengthscale():
    """Such as the highest score of a game: the search must not leave it with an enormous step."""
    opt = GIBO([0.0, 0.0, 0.0], scale=0.1, seed=0, settings=Settings.paper())
    for k in range(40):
        for query in opt.ask():
            opt.tell(query, 500.0 if k else float(query.id))
    steps = opt.iterations
    first = next(i for i in range(len(steps)) if not steps[i].step.any())  # from here on the window is flat
    assert 2 < first < len(steps) - 5
    assert max(np.abs(step.lengthscale).max() for step in steps[first:]) < 5 * 0.1 * 1.5 * 3**0.5
    assert max(np.abs(query.x - opt.iterate).max() for query in opt.ask()) < 1.0


@pytest.mark.parametrize("size", [1e50, 1e80, 1e99])
def test_enormous_values_do_not_break_the_standardization(size):
    optimizer = GIBO(X0, settings=fixed(standardize=True))
    for _ in range(2):
        iterate_once(optimizer, lambda x: size * bumpy(x))
    assert np.isfinite(optimizer.iterate).all()
