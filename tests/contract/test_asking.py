"""Every optimiser: what it asks, by which chance, within which bounds; and which arguments it refuses."""

import numpy as np
import pytest
from every_optimizer import DRAWN, X0, D, every_class, every_optimizer

from gibo import InputError, Optimizer
from optimizer_helpers import advance, as_data, noisy, snapshot


@every_optimizer
def test_queries_ids_seeds_and_chance(make):
    """The same seed gives the same run; a query's seed depends on the seed and the id alone."""
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    one, two, asked = make(X0, seed=3), make(X0, seed=3), []
    for iteration in range(3):
        news = advance(one, 1)
        assert {query.iteration for query in news} == {iteration}
        assert one.iteration == iteration + 1
        asked += news
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002
    np.random.seed(2)  # noqa: NPY002
    assert as_data(advance(two, 3)) == as_data(asked)
    assert one.iterate.tolist() == two.iterate.tolist()
    assert [query.id for query in asked] == list(range(len(asked)))
    for query in asked:
        assert (query.x.shape, query.x.dtype) == ((D,), np.float64)
        assert np.isfinite(query.x).all()
    seeds = {query.id: query.seed for query in asked}
    assert len(set(seeds.values())) == len(seeds)
    other = advance(make([1.0] * D, (-3.0, 3.0), seed=3), 3, value=lambda query: float(query.x[0]))
    assert all(query.seed == seeds[query.id] for query in other if query.id in seeds)
    assert not set(seeds.values()) & {query.seed for query in advance(make(X0, seed=6), 3)}


@pytest.mark.parametrize("make", DRAWN)
def test_another_seed_gives_other_points(make):
    one, two = (np.array([query.x for query in advance(make(X0, seed=seed), 2)]) for seed in (3, 4))
    assert not np.array_equal(one, two)


@every_optimizer
def test_ask_gives_what_is_still_open(make):
    optimizer = make(X0)
    queries = optimizer.ask()
    assert as_data(optimizer.ask()) == as_data(queries)
    for i, query in enumerate(queries[:-1]):
        assert query.iteration == optimizer.iteration
        optimizer.tell(query, 0.1 * i)
        assert as_data(optimizer.ask()) == as_data(queries[i + 1 :])
    text = repr(optimizer)
    assert text.startswith(f"{type(optimizer).__name__}({D} parameters, {len(queries) - 1} told")
    assert len(text) < 80


@every_optimizer
def test_before_the_first_ask_it_may_begin_elsewhere(make):
    moved, elsewhere = make(X0), [0.2] * D
    moved.start_at(elsewhere)
    assert snapshot(moved) == snapshot(make(elsewhere))


UPPER = np.random.default_rng(0).uniform(0.1, 1.0, D)


@every_optimizer
@pytest.mark.parametrize(
    ("x0", "bounds", "scale"),
    [
        pytest.param(X0, ([0.0999, -0.2001, 0.3999, -1e-9], [0.1001, -0.1999, 0.4001, 1e-9]), 0.5, id="tight"),
        pytest.param([0.1, 0.7, 0.7, 0.7], ([0.1, 0.0, 0.0, 0.0], [0.3, 0.7, 0.7, 0.7]), 0.5, id="x0-in-a-corner"),
        pytest.param(X0, (-np.inf, 0.4), 0.5, id="one-sided"),
        # Dividing by such a scale and multiplying again does not always give the same number.
        pytest.param(UPPER, (UPPER - 0.03, UPPER), [0.3, 0.7, 1.1, 1.3], id="rounding"),
    ],
)
def test_nothing_leaves_the_bounds(make, x0, bounds, scale):
    optimizer = make(x0, bounds, scale=scale)
    lower, upper = (np.broadcast_to(side, D) for side in bounds)
    # Rising along every parameter, so that the iterates press against the bounds.
    for _ in range(4):
        asked = advance(optimizer, 1, value=lambda query: float(query.x.sum()))
        for x in [optimizer.iterate, optimizer.best.x, optimizer.best_seen.x, *(query.x for query in asked)]:
            assert (lower <= x).all()
            assert (x <= upper).all()


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
    advance(optimizer, 1, value=noisy)
    assert as_data(Optimizer.from_state(snapshot(optimizer)).ask()) == as_data(optimizer.ask())
