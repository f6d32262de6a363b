import numpy as np
import pytest

from gibo import InputError
from gibo.optimizers.ars import ARS
from optimizer_helpers import advance


def test_queries_are_pairs_around_the_iterate():
    opt = ARS([1.0, 2.0], scale=[0.1, 10.0], noise=0.5, directions=3)
    X = np.array([query.x for query in opt.ask()])
    assert X.shape == (6, 2)
    np.testing.assert_allclose(X[::2] + X[1::2], np.tile([2.0, 4.0], (3, 1)))
    deltas = np.random.default_rng(0).standard_normal((3, 2))
    np.testing.assert_allclose(X[::2], [1.0, 2.0] + 0.5 * np.array([0.1, 10.0]) * deltas)


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("top", [None, 2, 1])
def test_the_step_by_hand(top, ddof):
    scale = np.array([0.5, 2.0, 1.0])
    opt = ARS(np.zeros(3), scale=scale, step_size=0.2, noise=0.1, directions=3, top=top, ddof=ddof, seed=4)
    queries = opt.ask()
    deltas = [queries[2 * i].x / (0.1 * scale) for i in range(3)]
    returns = [(2.0, 3.0), (-4.0, 4.0), (2.5, 0.5)]
    for query, value in zip(queries, np.ravel(returns), strict=True):
        opt.tell(query, value)
    # By max(r+, r-): 4.0 (the second), 3.0 (the first), 2.5 (the third). By their means the second would be the last.
    used = {None: [0, 1, 2], 2: [0, 1], 1: [1]}[top]
    sigma = np.std([returns[i] for i in used], ddof=ddof)
    step = sum((returns[i][0] - returns[i][1]) * deltas[i] for i in used)
    np.testing.assert_allclose(opt.iterate, 0.2 / (len(used) * sigma) * scale * step, rtol=1e-12)
    assert opt.best.value == pytest.approx(np.mean(returns))
    assert opt.best.x.tolist() == opt.iterate.tolist()


def test_the_largest_returns_there_may_be_give_the_same_step_as_small_ones():
    one, two = ARS([0.1, 0.2]), ARS([0.1, 0.2])
    for opt, size in ((one, 1.0), (two, 1e100)):
        advance(opt, 1, value=lambda query, size=size: (1.0 - 2.0 * (query.id % 2)) * size)
    np.testing.assert_allclose(two.iterate, one.iterate, rtol=1e-12)
    assert two.iterate.tolist() != [0.1, 0.2]


def test_a_direction_with_a_failed_side_is_left_out():
    opt, other = (ARS(np.zeros(2), directions=2, seed=1) for _ in range(2))
    queries = opt.ask()
    for query, value in zip(queries, [5.0, None, 1.0, 2.0], strict=True):
        opt.tell(query, value, failed=value is None)
    delta = queries[2].x / 0.3
    np.testing.assert_allclose(opt.iterate, 0.15 / 0.5 * (1.0 - 2.0) * delta, rtol=1e-12)
    assert opt.best.value == pytest.approx(8.0 / 3.0)
    for query in other.ask():  # one side of each
        other.tell(query, **({"failed": True} if query.id % 2 else {"value": 1.0 + query.id}))
    assert other.iterate.tolist() == [0.0, 0.0]
    assert other.best.value == 2.0


@pytest.mark.parametrize(("d", "directions"), [(4, 1), (8, 2), (36, 5)])
def test_the_number_of_directions_by_default(d, directions):
    assert len(ARS(np.zeros(d)).ask()) == 2 * directions


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"ddof": 2}, "ddof: expected 0 or 1, got 2"),
        ({"directions": 2, "top": 3}, "top: at most all 2"),
    ],
)
def test_mistakes_are_named(arguments, words):
    with pytest.raises(InputError, match=words):
        ARS([0.0], **arguments)
