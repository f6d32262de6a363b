"""What tests of models and optimisers share: an objective, a loop, views that can be compared, a log-posterior."""

import json

import numpy as np
import pytest

from dense import differences
from gibo import fit


def noisy(query):
    """A quadratic with its maximum at 0.3 and noise that belongs to the query."""
    return -float(((query.x - 0.3) ** 2).sum()) + 0.1 * float(np.random.default_rng(query.seed).normal())


def hill(x):
    return -float(((x - 0.1) ** 2).sum())


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


def assert_fit_is_the_maximum(gp, priors):
    """A fit ends where the slopes of the log-posterior are zero, or point out of a support, by central differences."""
    fitted = fit(gp, priors)
    assert fitted.warning is None
    assert fitted.log_posterior > log_posterior(gp, priors)
    assert fitted.log_posterior == pytest.approx(log_posterior(fitted.gp, priors), rel=1e-10)
    for name, prior in priors.items():
        value = np.atleast_1d(fitted.gp.hyperparameters[name])

        def at(z, name=name):
            number = float(np.exp(z[0])) if len(z) == 1 else np.exp(z)
            return log_posterior(fitted.gp.with_hyperparameters(**{name: number}).given(gp.observations), priors)

        low, high = prior.support
        slopes = differences(at, np.log(np.clip(value, 1.0001 * low, 0.9999 * high)), 1e-5)
        outwards = np.where(value > 0.999 * high, slopes > 0.0, (value < 1.001 * low) & (slopes < 0.0))
        np.testing.assert_allclose(np.where(outwards, 0.0, slopes), 0.0, atol=0.01)
    return fitted
