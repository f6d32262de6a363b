import numpy as np
import pytest

from gibo import RandomSearch


@pytest.mark.parametrize(
    ("options", "mean", "sd"),
    [
        ({"bounds": ([0.0, -4.0], [1.0, 4.0])}, [0.5, 0.0], [1.0 / 12**0.5, 8.0 / 12**0.5]),  # uniform
        ({"scale": [0.1, 3.0]}, [1.0, -1.0], [0.1, 3.0]),  # normal around the start
    ],
    ids=["bounds", "scale"],
)
def test_the_distribution_of_points(options, mean, sd):
    X = np.array([query.x for query in RandomSearch([1.0, -1.0], batch=4000, **options).ask()])
    np.testing.assert_allclose(X.mean(axis=0), mean, atol=0.2)
    np.testing.assert_allclose(X.std(axis=0), sd, rtol=0.05)


def test_the_guess_is_the_best_seen_within_bounds():
    opt = RandomSearch([0.1, 0.2], bounds=(-1.0, 1.0), batch=3)
    queries = opt.ask()
    for query, value in zip(queries, [1.0, 5.0, None], strict=True):
        opt.tell(query, value, failed=value is None)
    assert (opt.best.value, opt.iterate.tolist()) == (5.0, queries[1].x.tolist())
    opt.tell([0.5, 0.5], 6.0)
    opt.tell([2.0, 0.5], 7.0)  # seen, but out of bounds
    assert opt.iterate.tolist() == [0.5, 0.5]
    assert opt.best_seen.value == 7.0
