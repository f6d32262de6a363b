"""Gradients that come with values: what the plan counts on, what the window holds, and noise that drowns them."""

from dataclasses import replace

import numpy as np
import pytest
from known_model import ELL, SCALE, X0, D, fixed

import gibo.optimizers.queries as module
from gibo import GIBO, GaussianProcess, GradientInformation, Settings, SquaredExponential
from gibo.optimizers.log import Asked
from gibo.optimizers.replay import repeat
from gibo.priors import LogNormal
from optimizer_helpers import bumpy, same_from_here_on, snapshot

M, N_M = 3, 12
NOISE = np.array([0.1, 0.2, 0.4])


def settings(**changes):
    return fixed(**{"N_m": N_M, **changes})


def slope(x):
    return 3.0 * np.cos(3.0 * x) - 2.0 * x


def iterate(optimizer, times=1, kinds=("iterate",), noise=NOISE, offset=0.0):
    """Updates with gradients at these kinds of queries."""
    goal = optimizer.iteration + times
    while optimizer.iteration < goal:
        for query in optimizer.ask():
            if query.kind in kinds:
                optimizer.tell(query, bumpy(query.x), gradient=slope(query.x) + offset, gradient_noise=noise)
            else:
                optimizer.tell(query, bumpy(query.x))


def planned(optimizer, monkeypatch):
    """The acquisition that the next queries are planned with."""
    seen = []

    def spy(gi, *arguments):
        seen.append(gi)
        return plan(gi, *arguments)

    plan = module.plan
    monkeypatch.setattr(module, "plan", spy)
    optimizer.ask()
    monkeypatch.setattr(module, "plan", plan)
    return seen[0]


def acquisition(optimizer, with_values, with_gradients, noises, standardize=False):
    """Of the model given values and gradients at these points, in the model's coordinates."""
    values = np.array([e.value for e in optimizer.evaluations[-(N_M - M - 1) :]])
    slope2 = (SCALE / (values.std() if standardize else 1.0)) ** 2
    gp = GaussianProcess(SquaredExponential(ELL, 1.5), noise=0.02)
    gp = gp.condition(
        np.array(with_values) / SCALE,
        np.zeros(len(with_values)),
        np.array(with_gradients) / SCALE if len(with_gradients) else None,
        np.zeros((len(with_gradients), D)) if len(with_gradients) else None,
        np.array(noises) * slope2 if len(with_gradients) else None,
    )
    return GradientInformation(gp, at=optimizer.iterate / SCALE)


# -- the plan ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("standardize", [False, True])
def test_the_plan_counts_on_the_gradient_that_the_iterate_will_come_with(standardize, monkeypatch):
    optimizer = GIBO(X0, scale=SCALE, settings=settings(standardize=standardize))
    iterate(optimizer, 3)
    left = optimizer.evaluations[-(N_M - M - 1) :]
    given = [e.x for e in left if e.gradient is not None]
    gi = planned(optimizer, monkeypatch)
    X = [*(e.x for e in left), optimizer.iterate]
    # N_g = 2: the last one that is there, and the one to come.
    expected = acquisition(optimizer, X, [given[-1], optimizer.iterate], [NOISE, NOISE], standardize)
    np.testing.assert_allclose(gi.covariance, expected.covariance, rtol=1e-8, atol=1e-12)
    U = np.random.default_rng(0).standard_normal((5, D))
    np.testing.assert_allclose(gi(U), expected(U), rtol=1e-6)
    without = acquisition(optimizer, X, given[-2:], [NOISE] * len(given[-2:]), standardize)
    assert without.covariance.trace() > 1.4 * gi.covariance.trace()


@pytest.mark.parametrize(
    ("kinds", "noises", "N_g", "given", "comes"),
    [
        ((("iterate",), ("iterate",)), (NOISE, 0.01 * NOISE), 1, 0, True),  # the noise is that of the latest iterate
        ((("iterate",), ()), (NOISE, NOISE), 2, 1, False),  # the latest iterate came without a gradient
        ((("iterate", "query"),) * 2, (NOISE, NOISE), 2, 0, False),  # those of the M = 3 queries push all others out
    ],
    ids=["latest noise", "no gradient", "pushed out"],
)
def test_the_plan_counts_on_the_gradients_that_will_be_there(kinds, noises, N_g, given, comes, monkeypatch):
    optimizer = GIBO(X0, scale=SCALE, settings=settings(N_g=N_g))
    for of_iteration, noise in zip(kinds, noises, strict=True):
        iterate(optimizer, 1, kinds=of_iteration, noise=noise)
    left = optimizer.evaluations[-(N_M - M - 1) :]
    gradients = [e.x for e in left if e.gradient is not None][:given] + [optimizer.iterate] * comes
    gi = planned(optimizer, monkeypatch)
    expected = acquisition(
        optimizer, [*(e.x for e in left), optimizer.iterate], gradients, [noises[-1]] * len(gradients)
    )
    np.testing.assert_allclose(gi.covariance, expected.covariance, rtol=1e-8, atol=1e-12)


def test_a_window_that_will_be_empty():
    optimizer = GIBO(X0, scale=SCALE, settings=settings(N_m=M + 1, standardize=True))
    iterate(optimizer, 3)
    assert np.isfinite(optimizer.iterate).all()


def test_a_run_with_gradients_continues_bit_for_bit():
    one, again = (GIBO(X0, scale=SCALE, settings=settings(standardize=True)) for _ in range(2))
    iterate(one, 2)
    loaded = GIBO.from_state(snapshot(one))
    for event in one.log.events:
        repeat(again, replace(event, memo=None) if isinstance(event, Asked) else event)
    iterate(one, 2)
    for other in (loaded, again):
        iterate(other, 2)
        assert snapshot(other) == snapshot(one)
    same_from_here_on(loaded, again)


# -- noise that drowns them -------------------------------------------------------------------------------------------


def fitted(noise, kinds, offset=0.0):
    optimizer = GIBO(
        X0,
        scale=SCALE,
        settings=settings(
            lengthscale=LogNormal(1.0, 0.5),
            variance=LogNormal(1.0, 0.7),
            noise=LogNormal(0.05, 1.0),
            mean="estimated",
            standardize=True,
            fit_from=4,
        ),
    )
    iterate(optimizer, 4, kinds=kinds, noise=noise, offset=offset)
    return optimizer


@pytest.mark.parametrize("noise", [1e9, 1e199])
def test_a_gradient_that_says_nothing_changes_nothing(noise):
    # The gradients are as far off as their noise says.
    offset = np.sqrt(noise)
    without, drowned = fitted(1.0, ()), fitted(noise, ("iterate",), offset)
    for this, that in zip(without.evaluations, drowned.evaluations, strict=True):
        assert np.array_equal(that.x, this.x)  # the plan, and where the steps went
    for this, that in zip(without.iterations, drowned.iterations, strict=True):
        assert np.array_equal(that.lengthscale, this.lengthscale)
        assert (that.variance, that.noise, that.uncertainty) == (this.variance, this.noise, this.uncertainty)
        assert np.array_equal(that.gradient, this.gradient)


def test_entries_that_say_nothing_do_not_spoil_those_that_do():
    def after(noise):
        optimizer = GIBO(X0, scale=SCALE, settings=settings())
        for query in optimizer.ask():
            g = np.where(noise > 1e6, np.sqrt(noise), slope(query.x))
            optimizer.tell(query, bumpy(query.x), gradient=g, gradient_noise=noise)
        return optimizer.iterations[0]

    known = after(np.array([1e9, 0.01, 1e9]))
    for much in (1e20, 1e199):
        one = after(np.array([much, 0.01, much]))
        assert one.jitter == 0.0
        np.testing.assert_allclose(one.gradient, known.gradient, rtol=1e-3, atol=1e-3)
        assert one.uncertainty == pytest.approx(known.uncertainty, rel=1e-4)


@pytest.mark.parametrize(("d", "N_g"), [(1, 5), (36, 5), (400, 5), (1000, 2), (3000, 1)])
def test_the_rows_of_all_gradients_are_bounded(d, N_g):
    assert Settings.paper().resolve(d).N_g == N_g
    assert Settings.paper(N_g=7).resolve(d).N_g == 7


@pytest.mark.parametrize("size", [1e60, 1e99])
def test_a_huge_gradient_is_a_certain_one(size):
    optimizer = GIBO(X0, scale=SCALE, settings=settings(standardize=True))
    while optimizer.iteration < 3:
        for query in optimizer.ask():
            optimizer.tell(query, bumpy(query.x), gradient=size * slope(query.x), gradient_noise=1.0)
    assert np.isfinite(optimizer.iterate).all()
    assert optimizer.iterations[-1].certainty == 1.0


def test_a_gradient_that_says_nothing_takes_no_place_of_one_that_does():
    with_it, without = (GIBO(X0, scale=SCALE, settings=settings(N_g=1)) for _ in range(2))
    for optimizer, rest in ((with_it, {"gradient": slope(X0), "gradient_noise": 1e12}), (without, {})):
        first, *others = optimizer.ask()
        optimizer.tell(first, bumpy(first.x), gradient=slope(first.x), gradient_noise=NOISE)
        for query in others:
            optimizer.tell(query, bumpy(query.x), **rest)
    assert (with_it.iterate == without.iterate).all()


def test_hyperparameters_are_fitted_to_the_values_alone():
    """Beside a cliff, exact gradients would have the lengthscales grow without end."""

    def as_lists(optimizer):
        return [np.asarray(part).tolist() for part in optimizer._surrogate.hyperparameters]

    told = [GIBO(X0, scale=0.1, seed=0, settings=Settings.paper()) for _ in range(2)]
    rng = np.random.default_rng(0)
    for _ in range(12):
        x, value = X0 + 0.1 * rng.standard_normal(D), float(rng.standard_normal())
        told[0].tell(x, value)
        told[1].tell(x, value, gradient=slope(x), gradient_noise=1e-6)
    with_values, with_gradients = (as_lists(opt) for opt in told if opt.ask())
    assert with_values == with_gradients
    assert with_values != as_lists(GIBO(X0, scale=0.1, settings=Settings.paper()))  # they were fitted
