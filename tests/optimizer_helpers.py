"""What tests of models and optimisers share: an objective, a loop, views that can be compared, a log-posterior."""

import json

import numpy as np
import pytest

from gibo.map_fit import _Space


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


def log_posterior(gp, priors):
    densities = [prior.log_density(np.atleast_1d(gp.hyperparameters[name])) for name, prior in priors.items()]
    return gp.log_likelihood + sum(float(np.sum(density)) for density in densities)


def assert_slopes_of_the_log_posterior(gp, priors, h=1e-5):
    """The gradient that a fit climbs, against central differences of the log-posterior itself."""
    space = _Space(gp, priors)
    z = space.start + 0.05
    value, analytic = space.log_posterior(z)

    def at(z):
        return log_posterior(space.prior_model(z).given(gp.observations), priors)

    assert value == pytest.approx(at(z), rel=1e-10)
    assert analytic.shape == z.shape == space.low.shape
    for derivative, step in zip(analytic, h * np.eye(len(z)), strict=True):
        assert derivative == pytest.approx((at(z + step) - at(z - step)) / (2.0 * h), rel=1e-5, abs=1e-5)
