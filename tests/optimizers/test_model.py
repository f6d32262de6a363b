"""The optimiser's model is one that is made by hand in the user's units: noise, gradients, blocks, drift, failures."""

from dataclasses import replace

import numpy as np
import pytest
from known_model import CHOICES, ELL, SCALE, X0, D, fixed, iterate_once, model, told

import gibo
from gibo import GIBO, GradientInformation, InputError, Outcome, Settings
from gibo.blocks import BlockTerm
from gibo.optimizers.rows import BLOCK_PRIORS, DRIFT_PRIORS
from gibo.priors import LogNormal
from optimizer_helpers import advance, as_data, bumpy, through_json

NOISE = np.array([0.1, 0.2, 0.4])
EVERY = ("iterate", "query")


def slope(x):
    return 3.0 * np.cos(3.0 * x) - 2.0 * x


def value(query):
    return Outcome(40.0 * bumpy(query.x) - 7.0)


def with_gradient(kinds=("iterate",), noise=NOISE):
    def outcome(query):
        of_gradient = {"gradient": slope(query.x), "gradient_noise": noise} if query.kind in kinds else {}
        return Outcome(bumpy(query.x), **of_gradient)

    return outcome


def by_hand(optimizer, last=8, N_g=2):
    """The model given the last evaluations with a value, in the user's units, and the variance of these values."""
    settings, known = optimizer.settings, [e for e in optimizer.evaluations if e.value is not None][-last:]
    X, y = np.array([e.x for e in known]), np.array([e.value for e in known])
    variance, mean = (y.var(), y.mean()) if settings.standardize else (1.0, 0.0)
    given = {"noise_scale": [0.0 if e.noise else 1.0 / (e.repeats or 1) for e in known]}
    given |= {"known_noise": [e.noise or 0.0 for e in known]}
    steep = [e for e in known if e.gradient is not None][-N_g:] if N_g else []
    if steep:
        given |= {"gradient_X": [e.x for e in steep], "gradients": [e.gradient for e in steep]}
        given |= {"gradient_noise": [e.gradient_noise for e in steep]}
    term = None
    if settings.drift or settings.blocks is not None:
        priors = DRIFT_PRIORS if settings.drift else BLOCK_PRIORS
        term = {name: prior.mean * (variance if name == "shift" else 1.0) for name, prior in priors.items()}
        if settings.drift:
            given["blocks"] = [float(e.id) for e in known]
            term["now"] = given["blocks"][-1]
        else:
            given["blocks"] = [float(e.iteration if settings.blocks == "iteration" else e.block == 2) for e in known]
        term = BlockTerm(**term)
    return model(scale=SCALE, variance=variance, mean=mean, blocks=term).condition(X, y, **given), variance


def assert_planned_with(optimizer, information, variance):
    """That the next queries are chosen with this Gradient Information, which is in the user's units."""
    CHOICES.clear()
    optimizer.ask()
    expected = information.covariance * np.outer(SCALE, SCALE) / variance
    np.testing.assert_allclose(CHOICES[0].information.covariance, expected, rtol=1e-7, atol=1e-9)


CASES = {
    "plain": ({}, value),
    "not standardised": ({"standardize": False}, value),
    "failures": ({}, lambda query: Outcome.failed(True) if query.id % 3 == 1 else value(query)),
    "noise": ({}, lambda q: replace(value(q), **({"noise": 0.01 * q.id} if q.id % 2 else {"repeats": 1 + q.id % 4}))),
    "gradients": ({"N_m": 12}, with_gradient()),
    "gradients, not standardised": ({"N_m": 12, "standardize": False}, with_gradient()),
    "days": ({"blocks": "given"}, lambda query: replace(value(query), block="monday" if query.id < 5 else 2)),
    "iterations": ({"blocks": "iteration"}, value),
    "drift": ({"drift": True}, value),
    "times": ({"drift": True, "blocks": "given"}, lambda query: replace(value(query), block=3.5 * query.id)),
}


@pytest.mark.parametrize("case", CASES)
def test_the_model_by_hand(case):
    changes, outcome = CASES[case]
    optimizer = told(fixed(**{"standardize": True, **changes}), outcome, 4)
    gp, _ = by_hand(optimizer, optimizer.settings.N_m)
    expected, found = gp.jacobian(optimizer.iterate), optimizer.jacobian()
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-7)
    np.testing.assert_allclose(found.covariance, expected.covariance, rtol=1e-7, atol=1e-9)
    points = gp.observations.X if case == "failures" else np.vstack([gp.observations.X, optimizer.iterate])
    means = gp.predict(points).mean
    np.testing.assert_allclose(optimizer.best.x, points[means.argmax()])
    assert optimizer.best.value == pytest.approx(means.max())
    # What a query tells: M = 3 queries and the iterate will push the others out of the window.
    kept, variance = by_hand(optimizer, optimizer.settings.N_m - 4, N_g=1)
    data = kept.observations
    kept = replace(kept, noise=float(np.median(kept.noise * data.noise_scale + data.known_noise)))
    coming = {"days": data.blocks[-1], "iterations": -7.0}.get(case)
    if case.startswith("gradients"):  # the iterate will come with one, and push out an older one
        kept = kept.extend(optimizer.iterate, 0.0, [optimizer.iterate], [np.zeros(D)], [NOISE])
        information = GradientInformation(kept, optimizer.iterate)
    else:
        information = GradientInformation(kept, optimizer.iterate, coming).extend(optimizer.iterate)
    again = GIBO.from_state(through_json(optimizer.state()))
    assert_planned_with(optimizer, information, variance)
    assert as_data(again.ask()) == as_data(optimizer.pending)


def test_before_any_value_the_jacobian_is_the_priors_and_points_from_elsewhere_are_in_the_model():
    optimizer = GIBO(X0, scale=SCALE, settings=fixed(N_m=100))
    assert optimizer.jacobian().mean.tolist() == [0.0] * D
    np.testing.assert_allclose(optimizer.jacobian().covariance, np.diag(1.5 / (ELL * SCALE) ** 2))
    optimizer.tell(X0 + 0.2, 3.0)
    for _ in range(2):
        gp, _ = by_hand(optimizer, 100)
        np.testing.assert_allclose(optimizer.jacobian().mean, gp.jacobian(optimizer.iterate).mean, rtol=1e-9)
        iterate_once(optimizer)
    assert optimizer.evaluations[0].value == 3.0


# -- units ------------------------------------------------------------------------------------------------------------

UNIT = np.array([7.0, 0.01, 300.0])


@pytest.mark.parametrize(("a", "b", "unit"), [(250.0, -3.0, 1.0), (1e-6, 0.1, 1.0), (1.0, 1e4, UNIT)])
@pytest.mark.parametrize("settings", [fixed(standardize=True), Settings.paper()], ids=["fixed", "paper"])
def test_values_and_parameters_may_have_any_unit(settings, a, b, unit):
    one, two = GIBO(X0, scale=0.5, settings=settings), GIBO(X0 * unit, scale=0.5 * unit, settings=settings)
    for _ in range(4):
        queries = iterate_once(one), iterate_once(two, lambda x: a * bumpy(x / unit) + b)
        for this, that in zip(*queries, strict=True):
            # Rounding in the values passes through fits and searches that end at finite tolerances.
            np.testing.assert_allclose(that.x / unit, this.x, rtol=0, atol=1e-5)
    np.testing.assert_allclose(two.jacobian().mean * unit / a, one.jacobian().mean, rtol=1e-3, atol=1e-4)
    covariance = two.jacobian().covariance * np.multiply.outer(unit, unit) / a**2
    np.testing.assert_allclose(covariance, one.jacobian().covariance, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(two.iterations[-1].lengthscale / unit, one.iterations[-1].lengthscale, rtol=1e-3)
    assert two.iterations[-1].noise == pytest.approx(a**2 * one.iterations[-1].noise, rel=1e-3)


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


@pytest.mark.parametrize("size", [1e50, 1e99])
def test_enormous_values_and_gradients_do_not_break_the_standardization(size):
    of_values = told(fixed(standardize=True), lambda query: size * bumpy(query.x))
    assert np.isfinite(of_values.iterate).all()
    of_gradients = told(
        fixed(standardize=True, N_m=12),
        lambda query: Outcome(bumpy(query.x), gradient=size * slope(query.x), gradient_noise=1.0),
        3,
    )
    assert np.isfinite(of_gradients.iterate).all()
    assert of_gradients.iterations[-1].certainty == 1.0


def test_values_with_a_known_noise_are_not_warped():
    def steep(query):
        return -float(np.exp(4.0 * query.x.sum()))

    assert told(Settings(), steep, 4).model().units.warp != "none"
    assert told(Settings(), lambda query: Outcome(steep(query), noise=0.01), 4).model().units.warp == "none"


# -- gradients --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kinds", "noises", "N_g", "given", "comes"),
    [
        ((("iterate",), ("iterate",)), (NOISE, 0.01 * NOISE), 1, 0, True),  # the noise is that of the latest iterate
        ((("iterate",), ()), (NOISE, NOISE), 2, 1, False),  # the latest iterate came without a gradient
        ((EVERY, EVERY), (NOISE, NOISE), 2, 0, False),  # those of the M = 3 queries push all others out
    ],
    ids=["latest noise", "no gradient", "pushed out"],
)
def test_the_plan_counts_on_the_gradients_that_will_be_there(kinds, noises, N_g, given, comes):
    optimizer = GIBO(X0, scale=SCALE, settings=fixed(N_m=12, N_g=N_g))
    for of_iteration, noise in zip(kinds, noises, strict=True):
        advance(optimizer, 1, value=with_gradient(of_iteration, noise))
    kept, variance = by_hand(optimizer, 8, N_g=given)
    at, of_gradient = optimizer.iterate, ()
    if comes:
        of_gradient = ([at], [np.zeros(D)], [noises[-1]])
    information = GradientInformation(kept.extend(at, 0.0, *of_gradient), at)
    assert_planned_with(optimizer, information, variance)


@pytest.mark.parametrize("noise", [1e9, 1e199])
def test_a_gradient_that_says_nothing_changes_nothing(noise):
    priors = {"lengthscale": LogNormal(1.0, 0.5), "variance": LogNormal(1.0, 0.7), "noise": LogNormal(0.05, 1.0)}
    settings = fixed(**priors, mean="estimated", standardize=True, fit_from=4, N_m=12)

    def drowned(query):  # it is as far off as its noise says
        return Outcome(bumpy(query.x), gradient=slope(query.x) + np.sqrt(noise), gradient_noise=noise)

    one, other = told(settings, iterations=4), told(settings, drowned, 4)
    for this, that in zip(one.evaluations, other.evaluations, strict=True):
        assert np.array_equal(that.x, this.x)  # the plan, and where the steps went
    for this, that in zip(one.iterations, other.iterations, strict=True):
        assert np.array_equal(that.lengthscale, this.lengthscale)
        assert (that.variance, that.noise, that.uncertainty) == (this.variance, this.noise, this.uncertainty)
        assert np.array_equal(that.gradient, this.gradient)


def test_entries_that_say_nothing_do_not_spoil_those_that_do():
    """Nor do they take the place of one that says something."""

    def after(noise, **changes):
        gradient = with_gradient(noise=np.array(noise), **changes)
        return told(fixed(N_m=12, N_g=1), gradient, 1).iterations[0]

    known = after([1e9, 0.01, 1e9])
    for much in (1e20, 1e199):
        one = after([much, 0.01, much])
        assert one.jitter == 0.0
        np.testing.assert_allclose(one.gradient, known.gradient, rtol=1e-3, atol=1e-3)
        assert one.uncertainty == pytest.approx(known.uncertainty, rel=1e-4)

    def worthless_later(query):
        return with_gradient(EVERY, NOISE if query.kind == "iterate" else 1e12)(query)

    with_it, without = (told(fixed(N_m=12, N_g=1), of, 1) for of in (worthless_later, with_gradient()))
    assert (with_it.iterate == without.iterate).all()


@pytest.mark.parametrize(("d", "N_g"), [(1, 5), (36, 5), (400, 5), (1000, 2), (3000, 1)])
def test_the_rows_of_all_gradients_are_bounded(d, N_g):
    assert Settings.paper().resolve(d).N_g == N_g


def test_hyperparameters_are_fitted_to_the_values_alone():
    """Beside a cliff, exact gradients would have the lengthscales grow without end."""

    def lengthscale(**of_gradient):
        optimizer, rng = GIBO(X0, scale=0.1, seed=0, settings=Settings.paper()), np.random.default_rng(0)
        for _ in range(12):
            x = X0 + 0.1 * rng.standard_normal(D)
            more = {"gradient": slope(x), **of_gradient} if of_gradient else {}
            optimizer.tell(x, float(rng.standard_normal()), **more)
        optimizer.ask()
        return optimizer.model().gp.kernel.lengthscale.tolist()

    assert lengthscale(gradient_noise=1e-6) == lengthscale()
    unfitted = GIBO(X0, scale=0.1, settings=Settings.paper())
    unfitted.tell(X0, 1.0)
    assert lengthscale() != unfitted.model().gp.kernel.lengthscale.tolist()


# -- blocks, drift, baselines -----------------------------------------------------------------------------------------


def test_a_query_says_its_block_and_its_value_gets_it():
    optimizer = GIBO(X0, scale=SCALE, settings=Settings(blocks="given", M=3, M_first=3))
    days = [None, 2, "monday", "tuesday", None, "friday", None, None]
    for expected in (None, "tuesday"):  # that of the last value by its id
        for query in optimizer.ask():
            assert query.block == expected
            optimizer.tell(query, bumpy(query.x), block=days[query.id])
    assert {query.block for query in optimizer.ask()} == {"tuesday"}
    found = [e.block for e in optimizer.evaluations]
    assert found == [None, 2, "monday", "tuesday", "tuesday", "friday", "tuesday", "tuesday"]


def test_the_block_of_an_iteration_is_its_seed():
    optimizer = told(Settings(blocks="iteration"))
    assert all(e.block == e.query.seed for e in optimizer.evaluations)
    assert {query.block for query in optimizer.ask()} == {optimizer.pending[0].seed}
    optimizer.tell(np.zeros(D), 1.0)
    assert optimizer.evaluations[-1].block is None
    assert {query.block for query in told(Settings()).ask()} == {None}


def test_what_is_pending_counts_in_the_block_that_it_was_planned_for():
    """Two of an iteration's queries are late: what the next ones tell is that of a model with both in their day."""
    optimizer = GIBO(X0, scale=SCALE, settings=fixed(standardize=True, blocks="given"))
    day = iter([1, 1, 1, 1, 2, 2])
    for count in (4, 2):
        for query in optimizer.ask()[:count]:
            optimizer.tell(query, 40.0 * bumpy(query.x), block=next(day))
    late = optimizer.pending
    optimizer.proceed()
    assert [query.block for query in late] == [1, 1]
    kept, variance = by_hand(optimizer, 4)
    information = GradientInformation(kept, optimizer.iterate, 0.0)
    for query in late:
        information = information.extend(query.x)
    assert_planned_with(optimizer, information.in_block(1.0).extend(optimizer.iterate), variance)


def test_queries_are_planned_with_the_baseline_that_comes_with_them():
    optimizer = told(fixed(standardize=True), value)
    optimizer.baseline = 2
    kept, variance = by_hand(optimizer, 3)  # of the window of 8, without what 3 queries, iterate and start push out
    information = GradientInformation(kept, optimizer.iterate).extend(X0).extend(optimizer.iterate)
    assert_planned_with(optimizer, information, variance)
    assert optimizer.ask()[-1].kind == "baseline"


def test_a_trend_in_time_is_that_of_generalised_least_squares():
    optimizer = told(fixed(standardize=True), lambda query: bumpy(query.x) + 0.3 * query.id, 6)
    gp, _ = by_hand(optimizer)
    data = gp.observations
    K = gp.kernel.k(data.X, data.X) + gp.noise * np.eye(8)
    A = np.column_stack([np.ones(8), np.arange(16.0, 24.0)])
    covariance = np.linalg.inv(A.T @ np.linalg.solve(K, A))
    slope = (covariance @ A.T @ np.linalg.solve(K, data.y))[1]
    assert optimizer.model().trend(A[:, 1]) == pytest.approx(slope / np.sqrt(covariance[1, 1]), rel=1e-6)


def test_a_run_notices_a_drift_and_says_so():
    def codes(step, **changes):
        count, rng = iter(range(1000)), np.random.default_rng(0)

        def machine(x):
            return float(((x - 0.5) ** 2).sum()) + step * next(count) + 0.1 * rng.standard_normal()

        result = gibo.minimize(machine, np.zeros(2), budget=40, scale=0.3, settings=Settings(**changes))
        return {advice.code: advice.text for advice in result.advice}

    assert "The values rise with time" in codes(0.1)["drift"]
    assert "drift" not in codes(0.0)
    assert "drift" not in codes(0.1, drift=True)


def test_mistakes():
    for changes, words in (
        ({"drift": True, "blocks": "iteration"}, "drift: cannot be combined with blocks='iteration'"),
        ({"blocks": "daily"}, "blocks"),
        ({"drift": True, "standardize": False, "warp": False}, "use standardize=True"),
    ):
        with pytest.raises(InputError, match=words):
            Settings(**changes)
    optimizer = GIBO(np.zeros(D), settings=Settings(drift=True, blocks="given"))
    with pytest.raises(InputError, match="a number as its block, its time; that of query 0 has 'monday'"):
        advance(optimizer, 1, lambda query: Outcome(1.0, block="monday"))
