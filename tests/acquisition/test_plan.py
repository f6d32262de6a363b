import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import fmin_l_bfgs_b
from scipy.stats import qmc

from gibo import GaussianProcess, GradientInformation, Matern52, SquaredExponential
from gibo._linalg import single_thread
from gibo.acquisition.information import maximize, plan
from gibo.optimizers.queries import Informative


def situation(seed, d=None):
    """A model and the box to search around t, drawn at random: (gp, t, lower, upper)."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 41)) if d is None else d
    n = int(rng.integers(1, 5 * d + 1))
    ell = rng.uniform(0.1, 1.0) * rng.uniform(0.5, 1.5, d)
    if rng.random() < 0.5:
        ell *= np.sqrt(d)  # what makes functions of many variables as smooth as those of few
    variance = rng.uniform(0.3, 3.0)
    noise = variance * 10.0 ** rng.uniform(-4.0, 0.0)
    family = (Matern52, SquaredExponential, SquaredExponential)[seed % 3]
    half = np.full(d, rng.choice([0.1, 0.2, 0.5, 1.0])) if seed % 2 else ell * rng.choice([0.5, 1.0, 2.0])
    t = rng.uniform(size=d)
    X = t + half * rng.choice([1.0, 2.0]) * rng.uniform(-1.0, 1.0, (n, d))
    X[-1] = t
    gp = GaussianProcess(family(ell, variance), noise=noise).condition(X, rng.normal(size=n))
    return gp, t, t - half, t + half


def best_of_many(gi, lower, upper, restarts=20, samples=256):
    """The largest α of many climbs from the best of many samples."""
    low, high = gi.to_scaled(lower), gi.to_scaled(upper)
    starts = low + (high - low) * qmc.Sobol(len(low), rng=1).random(samples)
    alphas = gi.scaled_batch(starts)
    unit = alphas.max()

    def cost(u):
        value, gradient = gi.scaled_value_and_gradient(u)
        return -value / unit, -gradient / unit

    bounds = np.stack([low, high], axis=1)
    climbs = (fmin_l_bfgs_b(cost, starts[i], bounds=bounds) for i in np.argsort(-alphas)[:restarts])
    return unit * max(-reached for _, reached, _ in climbs)


def test_with_little_noise_the_best_query_near_the_iterate_is_found():
    """There it is at a small share of a lengthscale, where few of many samples of the box are."""
    for seed in range(20):
        gp, t, lower, upper = situation(seed, d=20)
        gp = replace(gp, noise=1e-7 * gp.kernel.variance).given(gp.observations)
        gi = GradientInformation(gp, at=t)
        x, alpha = maximize(gi, lower, upper, np.random.default_rng(seed))
        near = t + 10.0 ** np.linspace(-3.0, 0.0, 13)[:, None, None] * (x - t) * np.array([1.0, -1.0])[:, None]
        assert alpha >= 0.99 * gi(near.reshape(-1, 20)).max()
        assert alpha >= 0.9 * best_of_many(gi, lower, upper, restarts=2)


def test_it_finds_what_many_restarts_find():
    shares = []
    with single_thread():
        for seed in range(40):
            gp, t, lower, upper = situation(seed)
            gi = GradientInformation(gp, at=t)
            x, alpha = maximize(gi, lower, upper, np.random.default_rng(seed))
            assert (lower <= x).all()
            assert (x <= upper).all()
            assert alpha == pytest.approx(gi(x), rel=1e-9)
            shares.append(alpha / best_of_many(gi, lower, upper))
    assert np.mean(shares) >= 0.995
    assert np.min(shares) >= 0.9


def test_in_a_small_box_it_finds_the_best_corner():
    d, shares = 8, []
    for seed in range(30):
        gp, t, *_ = situation(seed, d)
        half = 0.1 * gp.kernel.ell(d)
        X = t + half * np.random.default_rng(seed).uniform(-1.0, 1.0, (6, d))
        gi = GradientInformation(gp.condition(X, np.zeros(6)), at=t)
        _, alpha = maximize(gi, t - half, t + half, np.random.default_rng(seed))
        corners = t + half * np.array(list(itertools.product([-1.0, 1.0], repeat=d)))
        shares.append(min(alpha / gi(corners).max(), 1.0))
    assert np.mean(shares) >= 0.995
    assert np.min(shares) >= 0.9


def test_where_nothing_can_be_learnt_a_point_of_the_box_comes_back():
    gi = GradientInformation(GaussianProcess(SquaredExponential(1e-3), noise=0.1), at=[0.0, 0.0])
    # 10,000 lengthscales away α underflows to 0.
    x, alpha = maximize(gi, np.full(2, 10.0), np.full(2, 11.0), np.random.default_rng(0))
    assert ((x >= 10.0) & (x <= 11.0)).all()
    assert alpha == 0.0


@pytest.mark.parametrize(("seed", "d", "turned"), [(0, 1, False), (1, 2, True), (3, 5, True), (2, 12, False)])
@pytest.mark.parametrize("gradients", [False, True], ids=["values", "gradients"])
@pytest.mark.parametrize("ties", [False, True], ids=["", "ties"])
def test_a_plan_equals_asking_and_telling_one_by_one(seed, d, turned, gradients, ties):
    basis = Informative().directions(d, seed) if turned else None
    gp, t, lower, upper = situation(seed, d)
    if ties:  # of the information of all directions, as in a first iteration
        gp = GaussianProcess(type(gp.kernel)(0.5, 1.0), gp.noise).condition([t], [0.0])
        lower, upper = t - 0.3, t + 0.3
    if gradients:
        gp = gp.extend(t, 0.1, [t + 0.1, lower], np.random.default_rng(0).normal(size=(2, d)), 0.1)
    planned = plan(GradientInformation(gp, at=t), lower, upper, 6, np.random.default_rng(seed), basis=basis)
    assert planned.X.shape == (6, d)
    rng, values = np.random.default_rng(seed), np.random.default_rng(99)
    for x, alpha in zip(planned.X, planned.information, strict=True):
        asked, information = maximize(GradientInformation(gp, at=t), lower, upper, rng, basis=basis)
        np.testing.assert_allclose(x, asked, rtol=1e-9, atol=1e-9)
        assert alpha == pytest.approx(information, rel=1e-9)
        gp = gp.extend(asked, 100.0 * values.normal())


def changed(X, t):
    """How many parameters each query changes by a tenth of its largest change."""
    change = np.abs(X - t)
    return (change > 0.1 * change.max(axis=1, keepdims=True)).sum(axis=1)


def test_a_random_orthogonal_basis_changes_all_parameters_and_tells_as_much():
    d, t = 12, np.zeros(12)
    gp, box = GaussianProcess(SquaredExponential(np.ones(d), 1.0), 0.1), 3.0 * np.ones(d)
    gi = GradientInformation(gp, at=t)
    bases = [None, *(Informative().directions(d, seed) for seed in range(40))]
    axes, *some = [plan(gi, -box, box, 6, np.random.default_rng(0), basis=basis) for basis in bases]
    assert (changed(axes.X[:1], t) == 1).all()
    for each in some:
        np.testing.assert_allclose(each.information, axes.information, rtol=1e-3)
    first = np.array([each.X[0] for each in some])
    assert np.median(changed(first, t)) > d / 2
    # No parameter, no pair of them and no side is preferred: the directions are uncorrelated, with a mean of 0.
    unit = first / np.linalg.norm(first, axis=1, keepdims=True)
    np.testing.assert_allclose(d * unit.T @ unit / len(some), np.eye(d), atol=0.8)
    np.testing.assert_allclose(math.sqrt(d) * unit.mean(axis=0), 0.0, atol=0.6)


@pytest.mark.parametrize("d", [1, 2, 7])
def test_directions_are_an_orthogonal_matrix_that_the_seed_decides(d):
    Q = Informative().directions(d, 3)
    np.testing.assert_allclose(Q.T @ Q, np.eye(d), atol=1e-12)
    assert np.array_equal(Q, Informative().directions(d, 3))
    assert not np.array_equal(Q, Informative().directions(d, 4)) or d == 1
    assert Informative(basis="axes").directions(d, 3) is None


def test_a_plan_ends_when_a_query_tells_too_little():
    gp, t, lower, upper = situation(2, d=4)
    gi = GradientInformation(gp, at=t)
    whole = plan(gi, lower, upper, 30, np.random.default_rng(0))
    assert len(whole.X) == 30
    remaining = np.trace(gi.covariance) - np.append(0.0, np.cumsum(whole.information))[:-1]
    share = whole.information / remaining
    least = float(np.sort(share)[15])
    expected = 1 + int(np.argmax(share[1:] < least))  # the first one always stays
    assert 1 <= expected < 30
    short = plan(gi, lower, upper, 30, np.random.default_rng(0), least_share=least)
    assert len(short.X) == len(short.information) == expected
    assert np.array_equal(short.X, whole.X[:expected])
    assert plan(gi, lower, upper, 5, np.random.default_rng(0), least_share=1.1).X.shape == (1, 4)


def test_the_published_rule_ends_with_the_first_query_that_says_little():
    """src/optimizers.py of the published code: after a query, but the first, whose acquisition changed by less."""
    gp, t, lower, upper = situation(2, d=4)
    gi = GradientInformation(gp, at=t)
    whole = plan(gi, lower, upper, 12, np.random.default_rng(0))
    least = float(np.sort(whole.information[1:])[4])
    last = 1 + int(np.flatnonzero(whole.information[1:] < least)[0])
    assert 1 < last < 11
    short = plan(gi, lower, upper, 12, np.random.default_rng(0), least_gain=least)
    np.testing.assert_array_equal(short.X, whole.X[: last + 1])
    assert len(plan(gi, lower, upper, 5, np.random.default_rng(0), least_gain=1e9).X) == 2


def test_a_short_climb_ends_between_its_start_and_the_best_place():
    gp, t, lower, upper = situation(2, d=8)
    gi = GradientInformation(gp, at=t)
    found = [maximize(gi, lower, upper, np.random.default_rng(0), steps)[1] for steps in (1, 3, 8, 60)]
    assert found == sorted(found)
    assert found[0] < 0.999 * found[-1]
    planned = [plan(gi, lower, upper, 1, np.random.default_rng(0), maximum_steps=n).information[0] for n in (1, 60)]
    assert planned == [found[0], found[-1]]
