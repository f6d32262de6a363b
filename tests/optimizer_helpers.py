"""What tests of optimisers share: an objective, a loop, and views that can be compared."""

import json

import numpy as np


def noisy(query):
    """A quadratic with its maximum at 0.3 and noise that belongs to the query."""
    return -float(((query.x - 0.3) ** 2).sum()) + 0.1 * float(np.random.default_rng(query.seed).normal())


def bumpy(x):
    return float(np.sin(3.0 * x).sum() - (x**2).sum())


def advance(optimizer, iterations, value=noisy, order=list):
    """Ask and tell until so many more updates are made; returns all queries that were pending or asked on the way."""
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


def through_json(data):
    return json.loads(json.dumps(data, allow_nan=False))


def shuffled(queries):
    return [queries[i] for i in np.random.default_rng(len(queries)).permutation(len(queries))]


def same_from_here_on(one, two, iterations=2):
    assert snapshot(one) == snapshot(two)
    assert as_data(advance(one, iterations)) == as_data(advance(two, iterations))
    assert snapshot(one) == snapshot(two)
