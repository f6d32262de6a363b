import numpy as np

from gibo.optimizers.random_search import RandomSearch


def test_uniform_within_bounds():
    opt = RandomSearch([1.0, -1.0], bounds=([0.0, -4.0], [1.0, 4.0]), batch=4000)
    X = np.array([query.x for query in opt.ask()])
    assert ((X >= [0.0, -4.0]) & (X <= [1.0, 4.0])).all()
    np.testing.assert_allclose(X.mean(axis=0), [0.5, 0.0], atol=0.2)
    np.testing.assert_allclose(X.std(axis=0), np.array([1.0, 8.0]) / np.sqrt(12.0), rtol=0.05)


def test_normal_around_the_start_without_bounds():
    opt = RandomSearch([1.0, -1.0], scale=[0.1, 3.0], batch=4000)
    X = np.array([query.x for query in opt.ask()])
    np.testing.assert_allclose(X.mean(axis=0), [1.0, -1.0], atol=0.2)
    np.testing.assert_allclose(X.std(axis=0), [0.1, 3.0], rtol=0.05)


def test_the_guess_is_the_best_seen():
    opt = RandomSearch([0.1, 0.2], bounds=(-1.0, 1.0), batch=3)
    assert opt.best is None
    assert opt.iterate.tolist() == [0.1, 0.2]
    queries = opt.ask()
    for query, value in zip(queries, [1.0, 5.0, None], strict=True):
        opt.tell(query, value, failed=value is None)
    assert opt.best.value == 5.0
    assert opt.iterate.tolist() == queries[1].x.tolist()
    opt.tell([0.5, 0.5], 6.0)
    assert opt.iterate.tolist() == [0.5, 0.5]
    opt.tell([2.0, 0.5], 7.0)  # seen, but out of bounds
    assert opt.iterate.tolist() == [0.5, 0.5]
    assert opt.best_seen.value == 7.0
