"""Every optimiser: what it asks, by which chance, within which bounds; and which arguments it refuses."""

import numpy as np
import pytest
from every_optimizer import DRAWN, X0, D, every_class, every_optimizer

from gibo import InputError, Optimizer
from optimizer_helpers import advance, as_data, noisy, snapshot

BOUNDS = [
    pytest.param(X0, ([0.0999, -0.2001, 0.3999, -1e-9], [0.1001, -0.1999, 0.4001, 1e-9]), id="tight"),
    pytest.param([0.1, 0.7, 0.7, 0.7], ([0.1, 0.0, 0.0, 0.0], [0.3, 0.7, 0.7, 0.7]), id="x0-in-a-corner"),
    pytest.param(X0, (-np.inf, 0.4), id="one-sided"),
]


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
def test_iterations_are_counted(make):
    optimizer = make(X0)
    for expected in (1, 2, 3):
        advance(optimizer, 1)
        assert optimizer.iteration == expected


@every_optimizer
def test_ask_gives_what_is_still_open(make):
    optimizer = make(X0)
    queries = optimizer.ask()
    assert as_data(optimizer.ask()) == as_data(queries)
    for i, query in enumerate(queries[:-1]):
        optimizer.tell(query, 0.1 * i)
        assert as_data(optimizer.ask()) == as_data(queries[i + 1 :])


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
def test_rounding_leads_nowhere_beyond_the_bounds(make):
    upper = np.random.default_rng(0).uniform(0.1, 1.0, D)
    lower = upper - 0.03
    # Dividing by such a scale and multiplying again does not always give the same number.
    optimizer = make(upper, (lower, upper), scale=[0.3, 0.7, 1.1, 1.3])
    asked = advance(optimizer, 3, value=lambda query: float(query.x.sum()))
    for x in [optimizer.iterate, optimizer.best.x, *(query.x for query in asked)]:
        assert (lower <= x).all()
        assert (x <= upper).all()


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


# -- mistakes in the arguments ----------------------------------------------------------------------------------------


@every_class
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"x0": [0.0, np.nan]}, "x0: expected finite numbers, got nan at index 1"),
        ({"scale": [1.0, -1.0, 1.0, 1.0]}, "scale: expected positive"),
        ({"scale": [1.0, 2.0]}, r"scale: expected a number or 4 numbers.*got shape \(2,\)"),
        ({"bounds": (1.0, -1.0)}, "bounds: lower must be below upper.*dimension 0 has 1.0 and -1.0"),
        ({"bounds": (0.2, 1.0)}, r"x0: must lie within the bounds; dimension 0 is 0.1, bounds \[0.2, 1.0\]"),
        ({"seed": -1}, "seed: expected a whole number of at least 0, got -1"),
    ],
    ids=str,
)
def test_mistakes_are_named(make, arguments, words):
    with pytest.raises(InputError, match=words):
        make(**{"x0": X0, **arguments})


@every_class
@pytest.mark.parametrize("seed", [np.int64(7), 2**70])
def test_any_whole_number_is_a_seed(make, seed):
    optimizer = make(X0, seed=seed)
    advance(optimizer, 1)
    assert as_data(Optimizer.from_state(snapshot(optimizer)).ask()) == as_data(optimizer.ask())


@every_optimizer
def test_it_is_shown_in_a_short_line(make):
    opt = make(X0)
    for query in opt.ask():
        opt.tell(query, 1.0)
    text = repr(opt)
    assert text.startswith(f"{type(opt).__name__}({opt.d} parameters, {len(opt.evaluations)} told")
    assert len(text) < 80
