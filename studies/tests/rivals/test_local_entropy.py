"""Local entropy search against brute force, differences and samples."""

import numpy as np
import pytest

import gibo
from gibo_studies.rivals import LocalEntropySearch
from gibo_studies.rivals.local_entropy import Paths, covariance_at, gains, plan

D = 2


def model(noise=0.05, n=6):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (n, D))
    gp = gibo.GaussianProcess(gibo.SquaredExponential([0.7, 1.1], variance=1.4), noise, mean="estimated")
    return gp.condition(X, 2.0 + np.sin(2.0 * X[:, 0]) - X[:, 1] ** 2)


def test_paths_have_the_posteriors_mean_and_covariance():
    gp, count = model(), 6_000
    paths = Paths.draw(gp, D, count, np.random.default_rng(1))
    Z = np.array([[0.0, 0.0], [0.6, -0.3], [1.8, 1.5]])
    values = np.array([paths.value_and_gradient(np.repeat(z[None], count, axis=0))[0] for z in Z])
    # The features of one draw are common to all of its paths: an error of the prior's covariance of about 1/√F.
    np.testing.assert_allclose(values.mean(axis=1), gp.predict(Z).mean, atol=0.07)
    np.testing.assert_allclose(np.cov(values), covariance_at(gp, Z), atol=0.15)


@pytest.mark.parametrize("gp", [model(), gibo.GaussianProcess(gibo.SquaredExponential([0.7, 1.1]), 0.1)])
def test_a_paths_gradient_is_that_of_its_values(gp):
    rng, h = np.random.default_rng(3), 1e-5
    paths = Paths.draw(gp, D, 4, rng)
    Z = rng.normal(size=(4, D))
    gradient = paths.value_and_gradient(Z)[1]
    for j, e in enumerate(np.eye(D)):
        differences = (paths.value_and_gradient(Z + h * e)[0] - paths.value_and_gradient(Z - h * e)[0]) / (2.0 * h)
        np.testing.assert_allclose(gradient[:, j], differences, atol=1e-6)


def variance_given(gp, z, known):
    """Of the objective at z given the data and the values at known points, by one large system."""
    X = np.concatenate([gp.observations.X, known])
    noise = np.concatenate([np.full(gp.n, gp.noise), np.full(len(known), 1e-9)])
    k = gp.kernel.k(X, z[None])[:, 0]
    return gp.kernel.variance - k @ np.linalg.solve(gp.kernel.k(X, X) + np.diag(noise), k)


def test_the_gain_is_the_entropy_that_knowing_a_way_removes():
    gp, rng = model(), np.random.default_rng(6)
    ways = rng.uniform(-1.5, 1.5, (3, 2, D))
    Z = ways.reshape(-1, D)
    found = gains(covariance_at(gp, Z), gp.noise, 3)
    for z, gain in zip(Z, found, strict=True):
        before = 0.5 * np.log(gp.predict(z).variance + gp.noise)
        after = np.mean([0.5 * np.log(variance_given(gp, z, way) + gp.noise) for way in ways])
        assert gain == pytest.approx(before - after, abs=1e-5)
    assert (found > 0.0).all()


def test_a_batch_is_planned_query_by_query_each_given_those_before():
    gp, rng = model(), np.random.default_rng(7)
    ways = rng.uniform(-1.5, 1.5, (5, 3, D))
    Z, found = ways.reshape(-1, D), plan(gp, ways, 3)
    for query in found:
        best = Z[int(gains(covariance_at(gp, Z), gp.noise, 5).argmax())]
        np.testing.assert_array_equal(query, best)
        gp = gp.extend(query, 0.0)


def test_it_climbs_a_noisy_bowl_and_says_what_it_cannot_do():
    rng, top = np.random.default_rng(8), np.array([0.4, -0.3, 0.2])
    opt = LocalEntropySearch(np.zeros(3), scale=0.3, seed=0, batch=2, ways=16)
    for _ in range(15):
        for query in opt.ask():
            opt.tell(query, -float(((query.x - top) ** 2).sum()) + 0.01 * rng.standard_normal())
    assert ((opt.best.x - top) ** 2).sum() < 0.1 * (top @ top)
    assert {e.kind for e in opt.evaluations} == {"query"}  # none is evaluated to stay there
    with pytest.raises(gibo.InputError, match="squared exponential kernel alone"):
        LocalEntropySearch(np.zeros(3), settings=gibo.Settings(kernel="matern52"))
