"""What every optimiser must do, whatever it does inside. A new optimiser is one more line in OPTIMIZERS."""

import json

import numpy as np
import pytest

from gibo import (
    ARS,
    CMAES,
    GIBO,
    Adam,
    InputError,
    Optimizer,
    Query,
    QueryError,
    RandomSearch,
    Settings,
    VanillaBO,
    out_of_model,
    within_model,
)
from gibo.optimizers.settings import lengthscale_distribution

D = 4
X0 = [0.1, -0.2, 0.4, 0.0]


def gibo(settings=lambda d: None):
    def make(x0, bounds=None, seed=0, scale=0.5):
        d = len(x0) if isinstance(x0, (list, np.ndarray)) and len(x0) else D
        return GIBO(x0, scale=scale, bounds=bounds, seed=seed, settings=settings(d))

    return make


def plain(kind, **options):
    def make(x0, bounds=None, seed=0, scale=0.5):
        return kind(x0, scale=scale, bounds=bounds, seed=seed, **options)

    return make


def vanilla_bo(x0, bounds=None, seed=0, scale=0.5):
    """It needs a box, and a finite one; where the suite has none, it gets a large one."""
    if bounds is None:
        bounds = (-3.0, 3.0)
    try:
        return VanillaBO(x0, scale=scale, bounds=bounds, seed=seed)
    except InputError as error:
        if "finite bounds" not in str(error):
            raise
        return VanillaBO(x0, scale=scale, bounds=[np.clip(b, -3.0, 3.0) for b in bounds], seed=seed)


# Each makes an optimiser from (x0, bounds, seed) and, by keyword, scale.
OPTIMIZERS = [
    pytest.param(gibo(), id="gibo"),
    pytest.param(gibo(lambda d: within_model([lengthscale_distribution(d).mean] * d)), id="gibo-within-model"),
    pytest.param(gibo(out_of_model), id="gibo-out-of-model"),
    pytest.param(gibo(lambda d: Settings(sampling="random")), id="gibo-random"),
    pytest.param(gibo(lambda d: Settings(fit_after_iterate=True)), id="gibo-fit-after-iterate"),
    pytest.param(gibo(lambda d: Settings(kernel="matern52")), id="gibo-matern"),
    pytest.param(gibo(lambda d: Settings(step=Adam())), id="gibo-adam"),
    pytest.param(plain(ARS, directions=3), id="ars"),
    pytest.param(plain(ARS, directions=4, top=2), id="ars-top"),
    pytest.param(plain(CMAES), id="cma-es"),
    pytest.param(vanilla_bo, id="vanilla-bo"),
    pytest.param(plain(RandomSearch, batch=2), id="random-search"),
]

# Those whose points are drawn. The others use chance only to start a search for points, which may end at the same ones.
DRAWN = [
    parameter
    for parameter in OPTIMIZERS
    if parameter.id in ("gibo-random", "ars", "ars-top", "cma-es", "random-search")
]

every_optimizer = pytest.mark.parametrize("make", OPTIMIZERS)

BOUNDS = [
    pytest.param(X0, (-1.0, 1.0), id="numbers"),
    pytest.param(X0, ([0.0999, -0.2001, 0.3999, -1e-9], [0.1001, -0.1999, 0.4001, 1e-9]), id="tight"),
    pytest.param([0.0] * D, (0.0, 1.0), id="x0-on-lower"),
    pytest.param([0.1, 0.7, 0.7, 0.7], ([0.1, 0.0, 0.0, 0.0], [0.3, 0.7, 0.7, 0.7]), id="x0-in-a-corner"),
    pytest.param(X0, (-np.inf, 0.4), id="one-sided"),
]


def noisy(query):
    """A quadratic with its maximum at 0.3 and noise that belongs to the query."""
    return -float(((query.x - 0.3) ** 2).sum()) + 0.1 * float(np.random.default_rng(query.seed).normal())


def advance(optimizer, iterations, value=noisy, order=list):
    """Ask and tell until so many more updates are made; returns all queries that were open or asked on the way."""
    asked, goal = [], optimizer.iteration + iterations
    while optimizer.iteration < goal:
        queries = optimizer.ask()
        asked += queries
        for query in order(queries):
            optimizer.tell(query, value(query))
    return asked


def as_data(queries):
    return [(q.id, q.x.tolist(), q.seed, q.kind, q.iteration) for q in queries]


def snapshot(optimizer):
    return json.dumps(optimizer.state(), allow_nan=False)


# -- asking -----------------------------------------------------------------------------------------------------------


@every_optimizer
def test_queries_have_their_shape_and_ids_that_rise_by_one(make):
    asked = advance(make(X0), 3)
    assert [query.id for query in asked] == list(range(len(asked)))
    for query in asked:
        assert query.x.shape == (D,)
        assert query.x.dtype == np.float64
        assert np.isfinite(query.x).all()


@every_optimizer
def test_ask_gives_at_least_one_query_of_the_present_iteration(make):
    optimizer = make(X0)
    for _ in range(4):
        queries = optimizer.ask()
        assert queries
        assert {query.iteration for query in queries} == {optimizer.iteration}
        for query in queries:
            optimizer.tell(query, noisy(query))


@every_optimizer
@pytest.mark.parametrize("bounds", [None, (-0.25, 0.45)], ids=["free", "bounded"])
def test_what_is_foreseen_comes_first(make, bounds):
    optimizer = make(X0, bounds=bounds)
    for _ in range(4):
        before = snapshot(optimizer)
        first = optimizer.foreseen()
        assert snapshot(optimizer) == before
        queries = optimizer.ask()
        assert first is None or as_data([first]) == as_data(queries[:1])
        assert optimizer.foreseen() is None  # all that is known is out
        for query in queries:
            optimizer.tell(query, noisy(query))


@every_optimizer
def test_ask_again_gives_the_same(make):
    optimizer = make(X0)
    first = as_data(optimizer.ask())
    assert as_data(optimizer.ask()) == first
    advance(optimizer, 1)
    second = as_data(optimizer.ask())
    assert as_data(optimizer.ask()) == second
    assert first != second


@every_optimizer
def test_ask_gives_what_is_still_open(make):
    optimizer = make(X0)
    queries = optimizer.ask()
    for i, query in enumerate(queries[:-1]):
        optimizer.tell(query, 0.1 * i)
        assert as_data(optimizer.ask()) == as_data(queries[i + 1 :])


@every_optimizer
def test_iterations_are_counted(make):
    optimizer = make(X0)
    assert optimizer.iteration == 0
    for expected in (1, 2, 3):
        advance(optimizer, 1)
        assert optimizer.iteration == expected


@every_optimizer
@pytest.mark.parametrize(("x0", "bounds"), BOUNDS)
def test_nothing_leaves_the_bounds(make, x0, bounds):
    optimizer = make(x0, bounds)
    lower, upper = (np.broadcast_to(side, D) for side in bounds)
    # Rising along every parameter, so that the iterates press against the bounds.
    for _ in range(5):
        asked = advance(optimizer, 1, value=lambda query: float(query.x.sum()))
        for x in [optimizer.iterate, optimizer.best.x, optimizer.best_seen.x, *(query.x for query in asked)]:
            assert (lower <= x).all()
            assert (x <= upper).all()


@every_optimizer
@pytest.mark.parametrize("seed", range(3))
def test_rounding_leads_nowhere_beyond_the_bounds(make, seed):
    upper = np.random.default_rng(seed).uniform(0.1, 1.0, D)
    lower = upper - 0.03
    # Dividing by such a scale and multiplying again does not always give the same number.
    optimizer = make(upper, (lower, upper), scale=[0.3, 0.7, 1.1, 1.3])
    asked = advance(optimizer, 3, value=lambda query: float(query.x.sum()))
    for x in [optimizer.iterate, optimizer.best.x, *(query.x for query in asked)]:
        assert (lower <= x).all()
        assert (x <= upper).all()


@every_optimizer
@pytest.mark.parametrize("d", [1, 2, 3])
def test_few_parameters(make, d):
    optimizer = make([0.1] * d)
    asked = advance(optimizer, 3)
    assert all(query.x.shape == (d,) for query in asked)
    assert optimizer.iterate.shape == optimizer.best.x.shape == (d,)


# -- chance -----------------------------------------------------------------------------------------------------------


@every_optimizer
def test_the_same_seed_gives_the_same_run(make):
    one, two = make(X0, seed=3), make(X0, seed=3)
    assert as_data(advance(one, 4)) == as_data(advance(two, 4))
    assert one.iterate.tolist() == two.iterate.tolist()


@pytest.mark.parametrize("make", DRAWN)
def test_another_seed_gives_other_points(make):
    one, two = (np.array([query.x for query in advance(make(X0, seed=seed), 2)]) for seed in (3, 4))
    assert not np.array_equal(one, two)


@every_optimizer
def test_numpy_global_generator_is_neither_used_nor_moved(make):
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    one = as_data(advance(make(X0), 2))
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002
    np.random.seed(2)  # noqa: NPY002
    assert as_data(advance(make(X0), 2)) == one


@every_optimizer
def test_seeds_of_queries_differ_and_depend_on_the_seed_and_the_id_only(make):
    one = {query.id: query.seed for query in advance(make(X0, seed=5), 3)}
    other_run = make([1.0] * D, (-3.0, 3.0), seed=5)
    two = {query.id: query.seed for query in advance(other_run, 3, value=lambda query: float(query.x[0]))}
    assert len(set(one.values())) == len(one)
    common = one.keys() & two.keys()
    assert len(common) >= 3
    assert all(one[i] == two[i] for i in common)
    other_seed = {query.id: query.seed for query in advance(make(X0, seed=6), 3)}
    assert not set(one.values()) & set(other_seed.values())


# -- telling ----------------------------------------------------------------------------------------------------------


def shuffled(queries):
    return [queries[i] for i in np.random.default_rng(len(queries)).permutation(len(queries))]


@every_optimizer
@pytest.mark.parametrize("order", [lambda queries: queries[::-1], shuffled], ids=["reversed", "shuffled"])
def test_the_order_of_telling_does_not_matter(make, order):
    one, two = make(X0), make(X0)
    assert as_data(advance(one, 4)) == as_data(advance(two, 4, order=order))
    assert as_data(one.ask()) == as_data(two.ask())
    assert one.iterate.tolist() == two.iterate.tolist()


@every_optimizer
def test_looking_changes_nothing(make):
    one, two = make(X0), make(X0)
    for _ in range(3):
        queries = one.ask()
        for query in queries:
            one.tell(query, noisy(query))
            _ = one.best, one.best_seen, one.iterate, one.iteration, one.evaluations, one.jacobian(), one.state()
    for _ in range(3):
        for query in two.ask():
            two.tell(query, noisy(query))
    assert as_data(one.ask()) == as_data(two.ask())


@every_optimizer
def test_evaluations_are_what_was_told(make):
    optimizer = make(X0)
    asked = advance(optimizer, 2, order=shuffled)
    told = optimizer.evaluations
    assert [e.id for e in told] == [query.id for query in asked]
    assert [e.value for e in told] == [noisy(query) for query in asked]
    assert [e.x.tolist() for e in told] == [query.x.tolist() for query in asked]
    assert [e.kind for e in told] == [query.kind for query in asked]
    assert all(e.failure is None for e in told)


@every_optimizer
def test_unknown_queries_are_refused(make):
    optimizer = make(X0)
    stranger = Query(99, np.zeros(D), 0, "query", 0)
    for _ in range(2):  # before the first ask and after it
        with pytest.raises(QueryError, match="query 99 is unknown"):
            optimizer.tell(stranger, 1.0)
        optimizer.ask()


@every_optimizer
def test_a_query_of_another_optimiser_is_refused(make):
    optimizer, other = make(X0), make(X0)
    optimizer.ask()
    advance(other, 3)
    foreign = other.ask()[0]
    before = snapshot(optimizer)
    with pytest.raises(QueryError, match=f"query {foreign.id} is unknown"):
        optimizer.tell(foreign, 1.0)
    assert snapshot(optimizer) == before


@every_optimizer
def test_a_query_is_told_once(make):
    optimizer = make(X0)
    first = optimizer.ask()[0]
    optimizer.tell(first, 1.0)
    before = snapshot(optimizer)
    for again in ({"value": 2.0}, {"failed": True}):
        with pytest.raises(QueryError, match=f"query {first.id} was told before"):
            optimizer.tell(first, **again)
    assert snapshot(optimizer) == before
    advance(optimizer, 2)
    with pytest.raises(QueryError, match=f"query {first.id} was told before"):
        optimizer.tell(first, 1.0)


BAD_VALUES = [np.nan, np.inf, -np.inf, "1.0", None, [1.0, 2.0], np.array([1.0, 2.0]), 1.0 + 2.0j, np.complex128(1.0)]


@every_optimizer
@pytest.mark.parametrize("value", BAD_VALUES, ids=repr)
def test_a_value_that_is_no_finite_number_is_refused_and_the_query_stays_open(make, value):
    optimizer = make(X0)
    query = optimizer.ask()[-1]
    before = snapshot(optimizer)
    with pytest.raises(InputError, match="value: expected"):
        optimizer.tell(query, value)
    assert snapshot(optimizer) == before
    optimizer.tell(query, 1.0)


@every_optimizer
@pytest.mark.parametrize("value", [1, True, np.float32(1.0), np.int64(1), np.array(1.0), np.array([1.0])], ids=repr)
def test_anything_that_is_one_real_number_is_a_value(make, value):
    optimizer = make(X0)
    optimizer.tell(optimizer.ask()[0], value)
    assert optimizer.evaluations[0].value == 1.0
    assert type(optimizer.evaluations[0].value) is float


@every_optimizer
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"gradient": [1.0]}, f"gradient: expected a vector of {D} numbers, got 1"),
        ({"gradient": [np.nan] * D, "gradient_noise": 1.0}, "gradient: expected finite"),
        ({"gradient": [1.0] * D}, "gradient_noise"),
        ({"gradient": [1.0] * D, "gradient_noise": -1.0}, "gradient_noise: expected non-negative"),
        ({"gradient": [1.0] * D, "gradient_noise": np.inf}, "gradient_noise: expected .*finite"),
        ({"gradient": [1.0] * D, "gradient_noise": [1.0, 1.0]}, "gradient_noise: expected"),
        ({"gradient": [1.0] * D, "gradient_noise": "much"}, "gradient_noise: expected"),
        ({"failed": True}, "or failed, not both"),
    ],
)
def test_mistakes_beside_the_value_are_refused_and_the_query_stays_open(make, arguments, words):
    optimizer = make(X0)
    query = optimizer.ask()[0]
    before = snapshot(optimizer)
    with pytest.raises(InputError, match=words):
        optimizer.tell(query, 1.0, **arguments)
    assert snapshot(optimizer) == before


@every_optimizer
def test_gradients_are_welcome(make):
    optimizer = make(X0)
    for _ in range(3):
        for query in optimizer.ask():
            optimizer.tell(query, noisy(query), gradient=-2.0 * (query.x - 0.3), gradient_noise=0.01)
    assert optimizer.evaluations[0].gradient.tolist() == (-2.0 * (optimizer.evaluations[0].x - 0.3)).tolist()
    assert np.isfinite(optimizer.iterate).all()


# -- failures ---------------------------------------------------------------------------------------------------------


@every_optimizer
def test_failed_queries_are_survived(make):
    optimizer = make(X0)
    for _ in range(6):
        for query in optimizer.ask():
            if query.id % 3 == 1:
                optimizer.tell(query, failed="the robot fell" if query.id % 2 else True)
            else:
                optimizer.tell(query, noisy(query))
    failed = [e for e in optimizer.evaluations if e.failure is not None]
    assert [e.id for e in failed] == [e.id for e in optimizer.evaluations if e.id % 3 == 1]
    assert failed[0].failure == "the robot fell"
    assert all(e.value is None for e in failed)
    assert all(e.value is not None for e in optimizer.evaluations if e.id % 3 != 1)
    assert np.isfinite(optimizer.iterate).all()
    assert np.isfinite(optimizer.best.value)


@every_optimizer
def test_all_may_fail(make):
    optimizer = make(X0, (-1.0, 1.0))
    for _ in range(6):
        for query in optimizer.ask():
            assert np.isfinite(query.x).all()
            optimizer.tell(query, failed=True)
    assert optimizer.best_seen is None
    assert optimizer.best is None
    assert np.isfinite(optimizer.iterate).all()
    advance(optimizer, 3)  # and then it recovers
    assert np.isfinite(optimizer.best.value)


# -- points from elsewhere --------------------------------------------------------------------------------------------


@every_optimizer
def test_points_from_elsewhere_are_accepted(make):
    optimizer = make(X0)
    elsewhere = np.random.default_rng(0).uniform(-0.5, 0.5, (3, D))
    optimizer.tell(elsewhere[0], 1.0)  # before the first ask
    queries = optimizer.ask()
    optimizer.tell(elsewhere[1].tolist(), 2.0)  # within a batch
    assert as_data(optimizer.ask()) == as_data(queries)
    for query in queries:
        optimizer.tell(query, noisy(query))
    optimizer.tell(elsewhere[2], failed="it broke")  # between batches
    told = [e for e in optimizer.evaluations if e.kind == "told"]
    assert [e.x.tolist() for e in told] == elsewhere.tolist()
    assert [e.value for e in told] == [1.0, 2.0, None]
    assert told[2].failure == "it broke"
    assert optimizer.best_seen.value == 2.0
    asked = advance(optimizer, 2)
    ids = [e.id for e in optimizer.evaluations]
    assert ids == list(range(len(ids)))
    assert np.isfinite([query.x for query in asked]).all()


@every_optimizer
@pytest.mark.parametrize("x", [[0.0] * (D + 1), [np.nan] * D, "abcd", None, [[0.0] * D]], ids=repr)
def test_points_from_elsewhere_must_be_points(make, x):
    optimizer = make(X0)
    before = snapshot(optimizer)
    with pytest.raises(InputError, match="x: expected"):
        optimizer.tell(x, 1.0)
    assert snapshot(optimizer) == before


@every_optimizer
def test_what_the_user_does_to_arrays_does_not_reach_inside(make):
    one, two = make(X0), make(X0)
    point, start = np.array([0.2] * D), np.array(X0)
    one.tell(point, 0.5)
    two.tell(point, 0.5)
    point[:] = 7.0
    changed = make(start)
    start[:] = 7.0
    assert changed.iterate.tolist() == X0
    for optimizer in (one, two):
        advance(optimizer, 2)
    one.iterate[:] = 7.0
    one.best.x[:] = 7.0
    one.best_seen.x[:] = 7.0
    assert as_data(one.ask()) == as_data(two.ask())
    assert snapshot(one) == snapshot(two)


@every_optimizer
def test_a_query_cannot_be_changed(make):
    query = make(X0).ask()[0]
    with pytest.raises(ValueError, match="read-only"):
        query.x[0] = 9.0
    with pytest.raises(AttributeError):
        query.id = 7


@every_optimizer
def test_a_query_from_a_saved_state_cannot_be_changed_either(make):
    optimizer = make(X0)
    optimizer.ask()
    query = Optimizer.from_state(snapshot(optimizer)).ask()[0]
    with pytest.raises(ValueError, match="read-only"):
        query.x[0] = 9.0


# -- best -------------------------------------------------------------------------------------------------------------


@every_optimizer
def test_best_seen_is_the_highest_value_told(make):
    optimizer = make(X0)
    assert optimizer.best_seen is None
    assert optimizer.best is None
    asked = advance(optimizer, 4)
    values = [noisy(query) for query in asked]
    winner = asked[int(np.argmax(values))]
    assert optimizer.best_seen.value == max(values)
    assert optimizer.best_seen.x.tolist() == winner.x.tolist()


@every_optimizer
def test_best_is_a_point_with_a_believable_value(make):
    optimizer = make(X0)
    advance(optimizer, 6)
    x, value = optimizer.best
    assert x.shape == (D,)
    values = [e.value for e in optimizer.evaluations]
    assert min(values) - 1.0 < value < max(values) + 1.0


@every_optimizer
def test_it_climbs(make):
    def height(x):
        return -float(((np.asarray(x) - 0.3) ** 2).sum())

    start = [-0.7] * D
    optimizer = make(start)
    advance(optimizer, 15, value=lambda query: height(query.x))
    assert height(optimizer.best.x) > 0.75 * height(start)
    assert height(optimizer.iterate) > 0.75 * height(start)


@every_optimizer
def test_the_jacobian_is_a_mean_and_a_covariance_or_none(make):
    optimizer = make(X0)
    for _ in range(3):
        jacobian = optimizer.jacobian()
        if jacobian is not None:
            assert jacobian.mean.shape == (D,)
            assert jacobian.covariance.shape == (D, D)
            assert np.linalg.eigvalsh(jacobian.covariance).min() > -1e-9 * np.trace(jacobian.covariance)
        advance(optimizer, 1)


@every_optimizer
@pytest.mark.parametrize(
    ("factor", "shift"), [(1e9, 0.0), (1e-9, 0.0), (1.0, 1e6), (1.0, -1e6), (-1.0, 0.0), (0.0, 3.0)]
)
def test_objectives_of_any_size_are_survived(make, factor, shift):
    optimizer = make(X0)
    asked = advance(optimizer, 5, value=lambda query: factor * noisy(query) + shift)
    assert np.isfinite([query.x for query in asked]).all()
    assert np.isfinite(optimizer.iterate).all()
    assert np.isfinite(optimizer.best.value)


# -- state ------------------------------------------------------------------------------------------------------------


def nothing(optimizer):
    return optimizer


def asked_once(optimizer):
    optimizer.ask()


def in_the_first_batch(optimizer):
    optimizer.tell(optimizer.ask()[-1], 0.3)


def in_a_later_batch(optimizer):
    advance(optimizer, 2)
    optimizer.tell(optimizer.ask()[-1], 0.3)


def after_iterations(optimizer):
    advance(optimizer, 3)


def with_failures_gradients_and_points_from_elsewhere(optimizer):
    optimizer.tell([0.2] * D, 0.4)
    for query in optimizer.ask():
        optimizer.tell(query, noisy(query), gradient=[0.5] * D, gradient_noise=[0.1] * D)
    for query in optimizer.ask():
        optimizer.tell(query, failed="it broke")
    advance(optimizer, 1)
    optimizer.ask()


@every_optimizer
@pytest.mark.parametrize("bounds", [None, ([-1.0, -1.0, 0.3, -0.3], [1.0, np.inf, 0.9, 0.3])], ids=str)
@pytest.mark.parametrize(
    "history",
    [
        nothing,
        asked_once,
        in_the_first_batch,
        in_a_later_batch,
        after_iterations,
        with_failures_gradients_and_points_from_elsewhere,
    ],
)
def test_stopping_and_continuing_is_the_same_as_not_stopping(make, history, bounds):
    optimizer = make(X0, bounds, seed=4)
    history(optimizer)
    text = snapshot(optimizer)
    again = Optimizer.from_state(json.loads(text))
    assert type(again) is type(optimizer)
    assert snapshot(again) == text
    assert as_data(advance(optimizer, 3)) == as_data(advance(again, 3))
    assert optimizer.iterate.tolist() == again.iterate.tolist()
    assert optimizer.best.x.tolist() == again.best.x.tolist()
    assert optimizer.best.value == again.best.value
    assert optimizer.evaluations[-1].value == again.evaluations[-1].value
    assert snapshot(optimizer) == snapshot(again)


@every_optimizer
def test_a_state_does_not_change_when_the_optimiser_goes_on(make):
    optimizer = make(X0)
    advance(optimizer, 1)
    state = optimizer.state()
    before = json.dumps(state)
    advance(optimizer, 2)
    assert json.dumps(state) == before


@every_optimizer
def test_a_state_comes_back_through_its_own_class_and_from_text(make):
    optimizer = make(X0)
    advance(optimizer, 1)
    text = snapshot(optimizer)
    for again in (type(optimizer).from_state(text), Optimizer.from_state(text)):
        assert type(again) is type(optimizer)
        assert as_data(again.ask()) == as_data(Optimizer.from_state(text).ask())


@every_optimizer
@pytest.mark.parametrize(
    ("lower", "upper"), [([0.0, 2.0], [1.0, 3.0]), ([0.0, 0.0], [1.0, 2.0]), ([-1.0, -2.0], [3.0, 4.0])]
)
def test_a_state_keeps_the_bounds_of_two_parameters(make, lower, upper):
    from scipy.optimize import Bounds

    optimizer = make([0.5 * (low + high) for low, high in zip(lower, upper, strict=True)], Bounds(lower, upper))
    again = Optimizer.from_state(snapshot(optimizer))
    assert again.bounds[0].tolist() == lower
    assert again.bounds[1].tolist() == upper


def without(key):
    return lambda state: {name: value for name, value in state.items() if name != key}


BAD_STATES = {
    "not-json": lambda state: "{broken",
    "empty-text": lambda state: "",
    "a-list": lambda state: [],
    "text-of-a-number": lambda state: "3",
    "nothing": lambda state: None,
    "empty": lambda state: {},
    "no-format": without("format"),
    "no-rng": without("rng"),
    "no-arguments": without("arguments"),
    "no-own": without("own"),
    "no-evaluations": without("evaluations"),
    "another-format": lambda state: {**state, "format": 99},
    "unknown-optimizer": lambda state: {**state, "optimizer": "Nobody"},
    "rng-of-another-kind": lambda state: {**state, "rng": {"bit_generator": "Nobody"}},
    "rng-is-text": lambda state: {**state, "rng": "random"},
    "id-is-text": lambda state: {**state, "next_id": "many"},
    "evaluations-are-numbers": lambda state: {**state, "evaluations": [1.0]},
    "evaluation-without-value": lambda state: {**state, "evaluations": [{"id": 0}]},
    "waiting-are-numbers": lambda state: {**state, "waiting": [1.0]},
    "no-iterate": without("iterate"),
    "own-is-text": lambda state: {**state, "own": "mine"},
    "unknown-argument": lambda state: {**state, "arguments": {**state["arguments"], "colour": "red"}},
    "bad-argument": lambda state: {**state, "arguments": {**state["arguments"], "seed": -1}},
}


@every_optimizer
@pytest.mark.parametrize("spoil", BAD_STATES.values(), ids=BAD_STATES.keys())
def test_bad_states_are_refused(make, spoil):
    optimizer = make(X0)
    advance(optimizer, 1)
    with pytest.raises(InputError):
        Optimizer.from_state(spoil(optimizer.state()))


# -- mistakes in the arguments ----------------------------------------------------------------------------------------


@every_optimizer
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"x0": []}, "x0: expected a vector of one or more numbers, got 0"),
        ({"x0": 1.0}, r"x0: expected a vector.*got shape \(\)"),
        ({"x0": [[0.0, 1.0]]}, r"x0: expected a vector.*got shape \(1, 2\)"),
        ({"x0": [0.0, np.nan]}, "x0: expected finite numbers, got nan at index 1"),
        ({"x0": ["a", "b"]}, "x0: expected numbers, got"),
        ({"x0": None}, "x0: expected numbers, got None"),
        ({"x0": [0.0, [1.0, 2.0]]}, "x0: expected numbers, got"),
        ({"scale": 0.0}, "scale: expected positive.*got 0"),
        ({"scale": -1.0}, "scale: expected positive.*got -1"),
        ({"scale": [1.0, -1.0, 1.0, 1.0]}, "scale: expected positive"),
        ({"scale": np.nan}, "scale: expected finite numbers, got nan"),
        ({"scale": [1.0, 2.0]}, r"scale: expected a number or 4 numbers.*got shape \(2,\)"),
        ({"scale": [[1.0] * D]}, r"scale: expected a number or 4 numbers.*got shape \(1, 4\)"),
        ({"scale": "big"}, "scale: expected numbers, got str 'big'"),
        ({"scale": None}, "scale: expected numbers, got None"),
        ({"scale": [[1.0], [1.0, 2.0]]}, "scale: expected"),
        ({"bounds": (1.0, -1.0)}, "bounds: lower must be below upper.*dimension 0 has 1.0 and -1.0"),
        ({"bounds": (0.0, 0.0)}, "bounds: lower must be below upper"),
        ({"bounds": (0.2, 1.0)}, r"x0: must lie within the bounds; dimension 0 is 0.1, bounds \[0.2, 1.0\]"),
        ({"bounds": ([0.0] * 3, [1.0] * 3)}, "bounds: expected"),
        ({"bounds": (np.nan, 1.0)}, "bounds: expected numbers, got NaN"),
        ({"bounds": 1.0}, r"bounds: expected \(lower, upper\)"),
        ({"bounds": ("a", "b")}, "bounds: expected numbers, got 'a'"),
        ({"seed": -1}, "seed: expected a whole number of at least 0, got -1"),
        ({"seed": 1.5}, "seed: expected a whole number of at least 0, got 1.5"),
        ({"seed": "x"}, "seed: expected a whole number of at least 0, got 'x'"),
        ({"seed": None}, "seed: expected a whole number of at least 0, got None"),
        ({"seed": True}, "seed: expected a whole number of at least 0, got True"),
    ],
    ids=str,
)
def test_mistakes_are_named(make, arguments, words):
    with pytest.raises(InputError, match=words):
        make(**{"x0": X0, **arguments})


@every_optimizer
@pytest.mark.parametrize("seed", [0, 7, np.int64(7), 2**70])
def test_any_whole_number_is_a_seed(make, seed):
    optimizer = make(X0, seed=seed)
    advance(optimizer, 1)
    assert as_data(Optimizer.from_state(snapshot(optimizer)).ask()) == as_data(optimizer.ask())


@every_optimizer
def test_the_scale_may_differ_between_parameters(make):
    optimizer = make(X0, scale=[0.1, 1.0, 10.0, 0.5])
    asked = np.array([query.x for query in advance(optimizer, 6)])
    assert np.isfinite(asked).all()


@every_optimizer
def test_an_interrupted_update_is_made_up_for(make, monkeypatch):
    optimizer, untouched = make(X0), make(X0)
    advance(optimizer, 1)
    advance(untouched, 1)
    update = type(optimizer)._update

    def interrupted(self, batch):
        raise KeyboardInterrupt

    queries = optimizer.ask()
    for query in queries[:-1]:
        optimizer.tell(query, noisy(query))
    with monkeypatch.context() as patch:
        patch.setattr(type(optimizer), "_update", interrupted)
        with pytest.raises(KeyboardInterrupt):
            optimizer.tell(queries[-1], noisy(queries[-1]))
    assert type(optimizer)._update is update
    for query in untouched.ask():
        untouched.tell(query, noisy(query))
    assert as_data(optimizer.ask()) == as_data(untouched.ask())
    assert snapshot(optimizer) == snapshot(untouched)


@every_optimizer
def test_another_optimizers_query_is_refused(make):
    optimizer, other = make(X0), make([0.3, 0.2, 0.1, 0.4])
    for own, foreign in zip(optimizer.ask(), other.ask(), strict=True):
        if own.x.tolist() != foreign.x.tolist():
            with pytest.raises(QueryError, match="unknown to this optimiser"):
                optimizer.tell(foreign, 1.0)
    assert not optimizer.evaluations


# -- a record of asks and tells ---------------------------------------------------------------------------------------


def batch_as_text(optimizer, queries):
    """What an ask leaves for a record."""
    batch = [{"id": q.id, "x": q.x.tolist(), "seed": q.seed, "kind": q.kind, "iteration": q.iteration} for q in queries]
    return json.dumps({"batch": batch, "thought": optimizer.thought()}, allow_nan=False)


def recall(optimizer, text):
    data = json.loads(text)
    batch = [Query(q["id"], np.array(q["x"]), q["seed"], q["kind"], q["iteration"]) for q in data["batch"]]
    optimizer.recall(batch, data["thought"])


class Recorded:
    """An optimiser and the record from which another one can be brought to where it stands."""

    def __init__(self, optimizer):
        self.optimizer, self.record = optimizer, []

    def ask(self):
        fresh = not self.optimizer.is_waiting
        queries = self.optimizer.ask()
        if fresh:
            asked = [query for query in queries if query.id in self.optimizer.state()["batch"]]
            self.record.append(("ask", batch_as_text(self.optimizer, asked), {}))
        return queries

    def tell(self, query, value=None, **others):
        self.optimizer.tell(query, value, **others)
        self.record.append(("tell", query, {"value": value, **others}))

    def move_on(self):
        self.optimizer.move_on()
        self.record.append(("move_on", None, {}))

    def repeat(self, fresh):
        for what, about, arguments in self.record:
            if what == "ask":
                recall(fresh, about)
            elif what == "tell":
                fresh.tell(about, **arguments)
            else:
                fresh.move_on()
        return fresh


# Points from elsewhere and outcomes of queries, as often as they are to come.
EVENTS = ["point", "failed point", "point with gradient", *["failed"] * 2, *["gradient"] * 3, *["value"] * 10]


def something_happens(recorded, event, rng):
    """Tell of a point from elsewhere, or of any query that is out; if none is, ask first. Returns what was told."""
    x = rng.uniform(-0.2, 0.35, D)
    outcomes = {
        "point": {"value": 0.3},
        "failed point": {"failed": "it broke"},
        "point with gradient": {"value": -1.0, "gradient": x, "gradient_noise": 0.1},
    }
    if event in outcomes:
        recorded.tell(x, **outcomes[event])
        return x
    queries = recorded.ask()
    query = queries[rng.integers(len(queries))]
    if event == "failed":
        recorded.tell(query, failed="the robot fell" if query.id % 2 else True)
    elif event == "gradient":
        recorded.tell(query, noisy(query), gradient=-2.0 * (query.x - 0.3), gradient_noise=[0.01] * D)
    else:
        recorded.tell(query, noisy(query))
    return query


def same_from_here_on(one, two, iterations=2):
    assert snapshot(one) == snapshot(two)
    assert as_data(advance(one, iterations)) == as_data(advance(two, iterations))
    assert snapshot(one) == snapshot(two)


@every_optimizer
@pytest.mark.parametrize(
    ("seed", "bounds"), [(0, None), (1, ([-1.0, -1.0, -0.3, -0.3], [1.0, np.inf, 0.9, 0.4]))], ids=["free", "bounds"]
)
def test_a_record_of_asks_and_tells_brings_another_one_to_the_same_place_at_any_time(make, seed, bounds):
    recorded, rng = Recorded(make(X0, bounds, seed=4)), np.random.default_rng(seed)
    for event in rng.permutation(EVENTS):
        something_happens(recorded, event, rng)
        assert snapshot(recorded.repeat(make(X0, bounds, seed=4))) == snapshot(recorded.optimizer)
        if not recorded.optimizer.is_waiting:
            recorded.ask()
            assert snapshot(recorded.repeat(make(X0, bounds, seed=4))) == snapshot(recorded.optimizer)
    same_from_here_on(recorded.repeat(make(X0, bounds, seed=4)), recorded.optimizer)


@every_optimizer
def test_looking_at_an_optimiser_does_not_make_it_differ_from_one_that_recalls(make):
    """What is computed for a look, such as a model, must not leak into what comes next."""
    recorded, rng = Recorded(make(X0)), np.random.default_rng(5)
    for event in rng.permutation(EVENTS):
        something_happens(recorded, event, rng)
        _ = recorded.optimizer.best, recorded.optimizer.jacobian(), recorded.optimizer.iterate
    same_from_here_on(recorded.repeat(make(X0)), recorded.optimizer)


@every_optimizer
def test_a_recalled_batch_is_like_an_asked_one(make):
    optimizer = Recorded(make(X0))
    asked = optimizer.ask()
    again = optimizer.repeat(make(X0))
    assert again.is_waiting
    assert as_data(again.ask()) == as_data(asked)
    with pytest.raises(ValueError, match="read-only"):
        again.ask()[0].x[0] = 9.0


@every_optimizer
def test_the_order_of_telling_does_not_matter_after_a_recall_either(make):
    recorded = Recorded(make(X0))
    for _ in range(3):
        for query in recorded.ask():
            recorded.tell(query, noisy(query))
    again = make(X0)
    tells = []
    for what, about, arguments in [*recorded.record, ("ask", None, {})]:
        if what == "tell":
            tells.append((about, arguments))
            continue
        for query, told in tells[::-1]:
            again.tell(query, **told)
        tells = []
        if about is not None:
            recall(again, about)
    same_from_here_on(again, recorded.optimizer)


@every_optimizer
def test_a_batch_is_not_recalled_while_the_one_before_is_out(make):
    optimizer = Recorded(make(X0))
    optimizer.ask()
    text = optimizer.record[0][1]
    before = snapshot(optimizer.optimizer)
    with pytest.raises(QueryError, match="still out; tell them first"):
        recall(optimizer.optimizer, text)
    assert snapshot(optimizer.optimizer) == before


@every_optimizer
@pytest.mark.parametrize("spoil", ["skipped", "twice", "empty", "gap"])
def test_queries_that_do_not_come_next_are_not_recalled(make, spoil):
    recorded = Recorded(make(X0, seed=3))
    for _ in range(2):
        for query in recorded.ask():
            recorded.tell(query, noisy(query))
    (_, first, _), (_, second, _) = [entry for entry in recorded.record if entry[0] == "ask"][:2]
    optimizer, text = make(X0, seed=3), first
    data = json.loads(first)
    if spoil == "skipped":
        text = second
    elif spoil == "twice":
        recall(optimizer, first)
        for what, about, arguments in recorded.record[1:]:
            if what == "ask":
                break
            optimizer.tell(about, **arguments)
    elif spoil == "empty":
        text = json.dumps({**data, "batch": []})
    else:
        text = json.dumps({**data, "batch": [*data["batch"], {**data["batch"][-1], "id": 77}]})
    before = snapshot(optimizer)
    with pytest.raises(QueryError, match="not the queries that come next; the next id is"):
        recall(optimizer, text)
    assert snapshot(optimizer) == before
    assert as_data(optimizer.ask()) == as_data(Optimizer.from_state(before).ask())


@pytest.mark.parametrize("make", [p for p in OPTIMIZERS if p.id in ("ars", "ars-top", "cma-es", "random-search")])
def test_those_that_draw_their_points_again_notice_other_points_and_can_then_be_given_the_right_ones(make):
    recorded = Recorded(make(X0, seed=3))
    for _ in range(2):
        for query in recorded.ask():
            recorded.tell(query, noisy(query))
    recorded.ask()
    *before, (_, text, _) = recorded.record
    recorded.record = before
    optimizer = recorded.repeat(make(X0, seed=3))
    data, state = json.loads(text), snapshot(optimizer)
    data["batch"][0]["x"][0] += 0.01
    with pytest.raises(InputError, match="would ask other queries than it did"):
        recall(optimizer, json.dumps(data))
    assert snapshot(optimizer) == state
    recall(optimizer, text)
    same_from_here_on(optimizer, recorded.optimizer)


# -- going on before all values are there -----------------------------------------------------------------------------

PATIENT = [p for p in OPTIMIZERS if not p.id.startswith("gibo") and p.id != "random-search"]
IMPATIENT = [p for p in OPTIMIZERS if p not in PATIENT]


def to_a_batch_of_several(optimizer):
    """Ask until several queries are open at once; with fit-after-iterate the iterate comes alone."""
    while len(optimizer.ask()) < 2:
        query = optimizer.ask()[0]
        optimizer.tell(query, noisy(query))
    return optimizer.ask()


@pytest.mark.parametrize("make", PATIENT)
def test_those_that_need_all_values_do_not_go_on_without(make):
    optimizer = make(X0)
    optimizer.ask()
    optimizer.tell(optimizer.ask()[0], 0.5)
    before = snapshot(optimizer)
    with pytest.raises(InputError, match=f"{type(optimizer).__name__} cannot go on before all values"):
        optimizer.move_on()
    assert snapshot(optimizer) == before


@pytest.mark.parametrize("make", IMPATIENT)
def test_going_on_needs_something_told(make):
    optimizer = make(X0)
    for _ in range(2):  # before the first ask and after it
        before = snapshot(optimizer)
        with pytest.raises(QueryError, match="nothing to go on with"):
            optimizer.move_on()
        assert snapshot(optimizer) == before
        optimizer.ask()


@pytest.mark.parametrize("make", IMPATIENT)
@pytest.mark.parametrize("late_first", [True, False])
def test_late_values_are_kept_in_their_place_and_the_next_batch_is_asked_meanwhile(make, late_first):
    optimizer = make(X0)
    queries = to_a_batch_of_several(optimizer)
    late = queries[0] if late_first else queries[-1]
    for query in queries:
        if query is not late:
            optimizer.tell(query, noisy(query))
    assert 0.0 < optimizer.told_share < 1.0
    before = optimizer.iteration
    optimizer.move_on()
    assert optimizer.iteration == before + 1
    assert not optimizer.is_waiting
    assert optimizer.told_share == 1.0
    asked = optimizer.ask()
    assert late.id in [query.id for query in asked]
    news = [query for query in asked if query.id != late.id]
    assert min(query.id for query in news) > max(query.id for query in queries)
    optimizer.tell(late, 0.123)
    assert [query.id for query in optimizer.ask()] == [query.id for query in news]
    for query in news:
        optimizer.tell(query, noisy(query))
    told = {e.id: e for e in optimizer.evaluations}
    assert told[late.id].value == 0.123
    assert told[late.id].iteration == late.iteration
    assert sorted(told) == list(range(len(told)))
    with pytest.raises(QueryError, match="was told before"):
        optimizer.tell(late, 1.0)


@pytest.mark.parametrize("make", IMPATIENT)
def test_late_values_count(make):
    def later(value):
        optimizer = make(X0, seed=1)
        *others, late = to_a_batch_of_several(optimizer)
        for query in others:
            optimizer.tell(query, noisy(query))
        optimizer.move_on()
        news = [query for query in optimizer.ask() if query.id != late.id]
        optimizer.tell(late, value)
        for query in news:
            optimizer.tell(query, noisy(query))
        advance(optimizer, 1)
        return optimizer

    low, high = later(-3.0), later(3.0)
    assert high.best_seen.value == 3.0
    assert low.iterate.tolist() != high.iterate.tolist()
    if isinstance(low, GIBO):
        assert low.jacobian().mean.tolist() != high.jacobian().mean.tolist()


@pytest.mark.parametrize("make", IMPATIENT)
def test_a_late_failure_changes_nothing_that_a_value_would(make):
    optimizer = make(X0)
    *others, late = to_a_batch_of_several(optimizer)
    for query in others:
        optimizer.tell(query, noisy(query))
    optimizer.move_on()
    optimizer.tell(late, failed="it took too long")
    advance(optimizer, 2)
    assert next(e for e in optimizer.evaluations if e.id == late.id).failure == "it took too long"
    assert np.isfinite(optimizer.best.value)


@pytest.mark.parametrize("make", IMPATIENT)
def test_a_record_with_late_values_brings_another_one_to_the_same_place_at_any_time(make):
    recorded, rng = Recorded(make(X0, seed=4)), np.random.default_rng(1)
    optimizer, went_on, late = recorded.optimizer, 0, 0
    for event in rng.permutation(EVENTS):
        if optimizer.is_waiting and optimizer.told_share > 0.0 and rng.random() < 0.6:
            recorded.move_on()
            went_on += 1
        before = optimizer.iteration
        told = something_happens(recorded, event, rng)
        late += isinstance(told, Query) and told.iteration < before
        if went_on:
            text = snapshot(optimizer)
            assert snapshot(recorded.repeat(make(X0, seed=4))) == text
            assert snapshot(Optimizer.from_state(text)) == text
    assert went_on >= 2
    assert late >= 1
    same_from_here_on(recorded.repeat(make(X0, seed=4)), optimizer)
