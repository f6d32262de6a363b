"""Noise that is known, repeats, blocks and drift: the optimiser's model against one that is made by hand."""

import numpy as np
import pytest
from known_model import ELL, SCALE, X0, D, fixed

import gibo
from gibo import GIBO, GaussianProcess, GradientInformation, InputError, Outcome, Settings, SquaredExponential
from gibo.blocks import BlockTerm
from gibo.optimizers.rows import BLOCK_PRIORS, DRIFT_PRIORS
from optimizer_helpers import advance, as_data, bumpy, snapshot, through_json


def told(settings, outcome, iterations=2, **options):
    """An optimiser after some iterations; `outcome` gives what is told of a query."""
    optimizer = GIBO(X0, scale=SCALE, settings=settings, **options)
    while optimizer.iteration < iterations:
        for query in optimizer.ask():
            optimizer.tell(query, outcome(query))
    return optimizer


def window(optimizer, n=8):
    rows = optimizer.log.valued[-n:]
    return rows, np.array([e.x for e in rows]), np.array([e.value for e in rows])


def assert_same_model(optimizer, gp):
    """That the optimiser's gradient is the one of this model in the user's units."""
    expected = gp.jacobian(optimizer.iterate)
    np.testing.assert_allclose(optimizer.jacobian().mean, expected.mean, rtol=1e-7)
    np.testing.assert_allclose(optimizer.jacobian().covariance, expected.covariance, rtol=1e-7, atol=1e-9)


# -- noise and repeats ------------------------------------------------------------------------------------------------


def with_noise(query):
    kinds = {"repeats": 1 + query.id % 4}, {"noise": 0.01 * (1 + query.id)}
    return Outcome(40.0 * bumpy(query.x), **kinds[query.id % 2])


def test_repeats_and_known_noise_are_the_models():
    optimizer = told(fixed(standardize=True), with_noise)
    rows, X, y = window(optimizer)
    var = y.var()
    gp = GaussianProcess(SquaredExponential(ELL * SCALE, 1.5 * var), noise=0.02 * var, mean=y.mean())
    scale = [0.0 if e.noise else 1.0 / e.repeats for e in rows]
    assert_same_model(optimizer, gp.condition(X, y, noise_scale=scale, known_noise=[e.noise or 0.0 for e in rows]))


def test_values_with_a_known_noise_are_not_warped():
    def value(query):
        return -float(np.exp(4.0 * query.x.sum()))

    assert told(Settings(), value, 4).model().units.warp != "none"
    assert told(Settings(), lambda query: Outcome(value(query), noise=0.01), 4).model().units.warp == "none"


def test_queries_are_planned_for_the_noise_that_values_have():
    far = [np.abs(told(fixed(M=2), lambda q, r=r: Outcome(bumpy(q.x), repeats=r)).ask()[-1].x).max() for r in (1, 1000)]
    assert far[0] != far[1]


# -- blocks and drift -------------------------------------------------------------------------------------------------


def block(query):
    return "monday" if query.id < 5 else 2


CASES = {
    "given": ({"blocks": "given"}, block),
    "iteration": ({"blocks": "iteration"}, None),
    "drift": ({"drift": True}, None),
    "times": ({"drift": True, "blocks": "given"}, lambda query: 3.5 * query.id),
}


@pytest.mark.parametrize("case", CASES)
def test_blocks_and_times_are_the_models(case):
    changes, of = CASES[case]
    settings = fixed(standardize=True, fit="never", **changes)
    optimizer = told(settings, lambda query: Outcome(40.0 * bumpy(query.x), block=of and of(query)))
    rows, X, y = window(optimizer)
    var = y.var()
    priors = DRIFT_PRIORS if settings.drift else BLOCK_PRIORS
    term = {name: prior.mean * (var if name == "shift" else 1.0) for name, prior in priors.items()}
    if settings.drift:
        blocks = [float(e.id) for e in rows]
        term["now"] = blocks[-1]
    else:
        blocks = [float(e.iteration if case == "iteration" else e.id < 5) for e in rows]
    gp = GaussianProcess(SquaredExponential(ELL * SCALE, 1.5 * var), 0.02 * var, y.mean(), blocks=BlockTerm(**term))
    assert_same_model(optimizer, gp.condition(X, y, blocks=blocks))
    # What a query tells: M = 3 queries and the iterate will push the others out of the window.
    coming = {"given": blocks[-1], "iteration": -7.0}.get(case)
    information = GradientInformation(gp.condition(X[4:], y[4:], blocks=blocks[4:]), optimizer.iterate, coming)
    found = optimizer._information(iterate_comes=True).covariance
    expected = information.extend(optimizer.iterate).covariance * np.outer(SCALE, SCALE) / var
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


def test_a_query_says_its_block_and_its_value_gets_it():
    optimizer = GIBO(X0, scale=SCALE, settings=Settings(blocks="given", M=3, M_first=3))
    first = optimizer.ask()
    assert {query.block for query in first} == {None}
    for query, day in zip(first, (None, 2, "monday", "tuesday"), strict=True):
        optimizer.tell(query, 1.0 + query.id, block=day)
    second = optimizer.ask()
    assert {query.block for query in second} == {"tuesday"}  # of the last value by its id
    for query, day in zip(second, (None, "friday", None, None), strict=True):
        optimizer.tell(query, bumpy(query.x), block=day)
    days = [e.block for e in optimizer.evaluations]
    assert days == [None, 2, "monday", "tuesday", "tuesday", "friday", "tuesday", "tuesday"]
    assert {query.block for query in optimizer.ask()} == {"tuesday"}


def test_the_block_of_an_iteration_is_its_seed():
    optimizer = told(Settings(blocks="iteration"), lambda query: bumpy(query.x), 2)
    assert all(e.block == e.query.seed for e in optimizer.evaluations)
    assert {query.block for query in optimizer.ask()} == {optimizer.pending[0].seed}
    optimizer.tell(np.zeros(D), 1.0)
    assert optimizer.evaluations[-1].block is None
    assert {query.block for query in told(Settings(), lambda query: 1.0 * query.id, 2).ask()} == {None}


def test_what_is_pending_counts_in_the_block_that_it_was_planned_for():
    """Two of an iteration's queries are late: what the next ones tell is that of a model with both in their day."""
    optimizer = GIBO(X0, scale=SCALE, settings=fixed(standardize=True, fit="never", blocks="given"))
    day = iter("aaaabb")
    for _ in range(2):
        for query in optimizer.ask()[: None if optimizer.iteration == 0 else 2]:
            optimizer.tell(query, 40.0 * bumpy(query.x), block=next(day))
    late = optimizer.pending
    optimizer.proceed()
    assert [query.block for query in late] == ["a", "a"]
    _, X, y = window(optimizer, 4)
    var = y.var()
    term = {name: prior.mean * (var if name == "shift" else 1.0) for name, prior in BLOCK_PRIORS.items()}
    gp = GaussianProcess(SquaredExponential(ELL * SCALE, 1.5 * var), 0.02 * var, y.mean(), blocks=BlockTerm(**term))
    information = GradientInformation(gp.condition(X, y, blocks=[0, 0, 1, 1]), optimizer.iterate, 0)
    for query in late:
        information = information.extend(query.x)
    expected = information.in_block(1).extend(optimizer.iterate).covariance * np.outer(SCALE, SCALE) / var
    found = optimizer._information(iterate_comes=True).covariance
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("changes", [{"blocks": "given"}, {"blocks": "iteration"}, {"drift": True}])
def test_a_saved_one_goes_on_bit_for_bit(changes):
    def value(query):
        return Outcome(bumpy(query.x), block="a" if query.id % 3 else None, noise=0.01 if query.id % 2 else None)

    settings = Settings(**changes)
    one = told(settings, value, 3)
    one.ask()
    again = GIBO.from_state(through_json(one.state()))
    assert snapshot(again) == snapshot(one)
    for optimizer in (one, again):
        for query in optimizer.pending:
            optimizer.tell(query, value(query))
    assert as_data(again.ask()) == as_data(one.ask())


def test_a_day_that_shifts_all_values_does_not_mislead():
    """Each iteration is a day with a level of its own, far above the slope."""
    levels = np.random.default_rng(0).normal(size=100) * 20.0

    def on_days(query):
        value = -float(((query.x - 1.0) ** 2).sum()) + levels[query.iteration]
        return Outcome(value, block=query.iteration)

    plain, with_days = (told(Settings(blocks=blocks), on_days, 12) for blocks in (None, "given"))
    far = [float(np.linalg.norm(o.iterate - 1.0)) for o in (plain, with_days)]
    assert far[1] < 0.3 * far[0]


def test_clear_errors():
    with pytest.raises(InputError, match="drift: cannot be combined with blocks='iteration'"):
        Settings(drift=True, blocks="iteration")
    with pytest.raises(InputError, match="blocks"):
        Settings(blocks="daily")
    with pytest.raises(InputError, match="use standardize=True"):
        Settings(drift=True, standardize=False, warp=False)
    optimizer = GIBO(np.zeros(D), settings=Settings(drift=True, blocks="given"))
    with pytest.raises(InputError, match="a number as its block, its time; that of query 0 has 'monday'"):
        advance(optimizer, 1, lambda query: Outcome(1.0, block="monday"))
    with pytest.raises(InputError, match="noise"):
        optimizer.tell(np.zeros(D), 1.0, noise=-1.0)


# -- from outside -----------------------------------------------------------------------------------------------------


def test_a_trend_in_time_is_that_of_generalised_least_squares():
    optimizer = told(fixed(standardize=True), lambda query: bumpy(query.x) + 0.3 * query.id, 6)
    rows, X, y = window(optimizer)
    gp = GaussianProcess(SquaredExponential(ELL * SCALE, 1.5 * y.var()), noise=0.02 * y.var())
    K = gp.kernel.k(X, X) + gp.noise * np.eye(len(y))
    A = np.column_stack([np.ones(len(y)), [e.id for e in rows]])
    precision = A.T @ np.linalg.solve(K, A)
    slope = np.linalg.solve(precision, A.T @ np.linalg.solve(K, y))[1]
    expected = slope / np.sqrt(np.linalg.inv(precision)[1, 1])
    assert optimizer.model().trend(A[:, 1]) == pytest.approx(expected, rel=1e-6)


def test_a_run_notices_a_drift_and_says_so():
    def codes(drifting, **changes):
        count, rng = iter(range(1000)), np.random.default_rng(0)
        step = 0.1 if drifting else 0.0

        def machine(x):
            return float(((x - 0.5) ** 2).sum()) + step * next(count) + 0.1 * rng.standard_normal()

        result = gibo.minimize(machine, np.zeros(2), budget=40, scale=0.3, settings=Settings(**changes))
        return {advice.code: advice.text for advice in result.advice}

    assert "The values rise with time" in codes(True)["drift"]
    assert "drift" not in codes(False)
    assert "drift" not in codes(True, drift=True)


def test_queries_are_planned_with_the_baseline_that_comes_with_them():
    optimizer = told(fixed(standardize=True, fit="never"), lambda query: 40.0 * bumpy(query.x), 2)
    optimizer.baseline = 2
    _, X, y = window(optimizer, 3)  # of the window of 8, without what 3 queries, the iterate and the start push out
    var = y.var()
    gp = GaussianProcess(SquaredExponential(ELL * SCALE, 1.5 * var), 0.02 * var, y.mean()).condition(X, y)
    information = GradientInformation(gp, optimizer.iterate)
    expected = information.extend(X0).extend(optimizer.iterate).covariance * np.outer(SCALE, SCALE) / var
    np.testing.assert_allclose(optimizer._information(iterate_comes=True).covariance, expected, rtol=1e-7, atol=1e-9)
    assert [query.kind for query in optimizer.ask()][-1] == "baseline"
