"""Limits on measured quantities, and failures that teach."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_ndtr, ndtr

from dense import differences
from gibo import GIBO, GaussianProcess, InputError, Limits, Outcome, Settings, SquaredExponential
from gibo.acquisition.confidence import LowerConfidenceBound
from gibo.acquisition.information import GradientInformation
from gibo.optimizers.failures import MEAN, NOT_RANDOM, RANDOM, VARIANCE, failing
from gibo.optimizers.limits import CAREFUL_WIDTH
from gibo.optimizers.region import Region, Side
from optimizer_helpers import as_data, through_json

LEVEL = 0.8
GRID = np.stack(np.meshgrid(*[np.linspace(-1.0, 1.0, 201)] * 2), axis=-1).reshape(-1, 2)
ONES = np.ones(2)


def quantity(seed, d=2, n=12):
    """A model of data at random in the square (−1, 1)."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, d))
    kernel = SquaredExponential(lengthscale=rng.uniform(0.7, 1.4, d), variance=1.3)
    return GaussianProcess(kernel, noise=0.02, mean="estimated").condition(X, rng.standard_normal(n))


def region():
    one, other = quantity(1), quantity(2)
    return Region({"a": [Side(one, -0.7, 1.0, 0.8), Side(one, 0.9, -1.0, 0.8)], "b": [Side(other, 0.6, -1.0, 0.8)]})


# -- the region -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_slack_and_probability_of_a_side(sign):
    side, Z = Side(quantity(1), 0.2, sign, 0.8), np.random.default_rng(3).uniform(-1.0, 1.0, (50, 2))
    # No slack is where the limit holds with the confidence.
    assert ((side.slack(Z) >= 0.0) == (side.ratio(Z) >= 0.8)).all()
    for z in Z[:5]:
        for batch, single in ((side.slack, side.slack_and_gradient), (side.ratio, side.ratio_and_gradient)):
            value, gradient = single(z)
            assert value == pytest.approx(batch(z[None])[0], rel=1e-9)
            expected = differences(lambda z, f=batch: f(z[None])[0], z, 1e-5)
            np.testing.assert_allclose(gradient, expected, rtol=2e-5, atol=1e-7)
    (mean, variance), z = quantity(1).predict(Z[0]), Z[0]
    c = mean + np.sqrt(variance + quantity(1).noise) * np.random.default_rng(0).standard_normal(400_000)
    assert region().probabilities(z)["a"] == pytest.approx(((c > -0.7) & (c < 0.9)).mean(), abs=3e-3)


def test_the_highest_point_of_the_region_by_brute_force():
    X = np.random.default_rng(7).uniform(-1.0, 1.0, (15, 2))
    hill = GaussianProcess(SquaredExponential(), noise=0.01).condition(X, -((X - [0.8, 0.8]) ** 2).sum(axis=1))
    limits, bound = region(), LowerConfidenceBound(hill, 0.5)
    inside = GRID[limits.slack(GRID) >= 0.0]
    assert 0 < len(inside) < 0.8 * len(GRID)
    free = GRID[bound(GRID).argmax()]
    z = limits.highest(bound, free, GRID[::400], -ONES, ONES, ONES)
    assert limits.slack(z[None])[0] >= 0.0
    assert bound(z[None])[0] > bound(inside).max() - 0.01
    assert limits.slack(free[None])[0] < 0.0
    # Without a point inside the most probable one is taken.
    narrow = Region({"a": [Side(quantity(1), 8.0, 1.0, 1.6)]})
    z = narrow.highest(bound, ONES, GRID[::500], -ONES, ONES, ONES)
    assert narrow.probabilities(z)["a"] >= 0.99 * max(narrow.probabilities(z)["a"] for z in GRID[::200])


def test_a_query_that_would_fail_is_replaced_by_the_most_informative_one_that_should_not():
    X = np.random.default_rng(3).uniform(-1.0, 1.0, (5, 2))
    gp = GaussianProcess(SquaredExponential(), noise=0.01).condition(X, X.sum(axis=1))
    information, limits = GradientInformation(gp, at=np.zeros(2)), region()
    inside, outside = GRID[limits.slack(GRID) >= 0.0], GRID[limits.slack(GRID) < 0.0]
    free = outside[information(outside).argmax()]
    z = limits.replaced(information, free, np.zeros(2), -ONES, ONES, ONES, mirrors=False)
    assert limits.slack(z[None])[0] >= 0.0
    assert information(z) > 0.98 * information(inside).max()


def test_the_way_back_to_the_iterate_ends_where_the_limits_hold():
    gp = GaussianProcess(SquaredExponential(), noise=1e-4, mean=0.0).condition([[-1.0], [0.0], [1.0]], [-1.0, 0.0, 1.0])
    both = Region({"c": [Side(gp, 0.5, -1.0, 1.0), Side(gp, -0.5, 1.0, 1.0)]})
    assert both.back(np.array([0.1]), np.zeros(1)) == [0.1]
    pulled = both.back(np.array([0.9]), np.zeros(1))
    assert 0.2 < pulled[0] < 0.5
    assert both.slack(pulled[None])[0] >= 0.0


# -- where evaluations fail -------------------------------------------------------------------------------------------

KERNEL = SquaredExponential(np.array([1.0, 2.0]), VARIANCE)


def wall(n=60, random=0.0):
    rng = np.random.default_rng(0)
    Z = rng.uniform(-1.5, 1.5, (n, 2))
    return Z, (Z[:, 0] > 0.5) | (rng.random(n) < random)


def test_the_posterior_is_that_of_the_weighted_likelihood_by_brute_force():
    Z, failed = wall(30, 0.1)
    gp, eps = failing(Z, failed, KERNEL)
    K, sign, n = KERNEL.k(Z, Z), np.where(failed, 1.0, -1.0), len(Z)
    W, f = 1.0 / gp.observations.known_noise, np.asarray(gp.predict(Z).mean)
    P = np.linalg.inv(K + np.diag(1.0 / W))
    others = [np.flatnonzero(np.arange(n) != i) for i in range(n)]
    p = np.empty(n)
    for i, rest in enumerate(others):  # each one left out, by the regression on the others
        inverse = np.linalg.inv((K + np.diag(1.0 / W))[np.ix_(rest, rest)])
        mean = MEAN + K[i, rest] @ inverse @ (gp.observations.y[rest] - MEAN)
        p[i] = ndtr(mean / math.sqrt(1.0 + K[i, i] - K[i, rest] @ inverse @ K[rest, i]))
    r = np.where(failed, (1.0 - eps) * p / (eps + (1.0 - eps) * p), 1.0)
    assert eps == pytest.approx(((1.0 - r).sum() + RANDOM) / (n + RANDOM + NOT_RANDOM), abs=5e-3)

    def loss(a):
        f = MEAN + K @ a
        return 0.5 * a @ K @ a - r @ log_ndtr(sign * f)

    at = MEAN + K @ minimize(loss, P @ (gp.observations.y - MEAN), method="BFGS", options={"gtol": 1e-6}).x
    np.testing.assert_allclose(f, at, atol=0.02)


def test_a_place_that_fails_is_told_from_failures_at_random():
    Z, failed = wall(random=0.0)
    gp, clean = failing(Z, failed, KERNEL)
    _, mixed = failing(*wall(random=0.3), KERNEL)
    assert (np.asarray(gp.predict(np.array([[1.2, 0.0], [-0.5, 0.0]])).mean) > 0.0).tolist() == [True, False]
    assert clean < 0.05 < 0.15 < mixed < 0.4
    rng = np.random.default_rng(1)
    gp, everywhere = failing(Z, rng.random(len(Z)) < 0.5, KERNEL)
    assert 0.25 < everywhere < 0.6
    assert (np.asarray(gp.predict(Z).mean) < 0.0).mean() > 0.9


# -- in a search ------------------------------------------------------------------------------------------------------


class Machine:
    """A noisy quadratic whose maximum lies behind a limit; it counts violations and failures."""

    def __init__(self, seed, d=4, failing=None):
        self.rng, self.failing = np.random.default_rng(seed), failing
        direction = self.rng.standard_normal(d)
        self.normal = direction / np.linalg.norm(direction)
        self.optimum = 2.0 * self.normal + 0.3 * self.rng.standard_normal(d)
        self.violated, self.failed = [], []

    def load(self, x):
        return float(self.normal @ x) + 0.1 * float(np.sin(2.0 * x).mean())

    def value(self, x):
        return -float(((x - self.optimum) ** 2).sum())

    def __call__(self, query):
        self.violated.append(self.load(query.x) > LEVEL)
        self.failed.append(self.failing is not None and self.failing(self, query.x))
        if self.failed[-1]:
            return Outcome.failed(True)
        noise = 0.03 * self.rng.standard_normal(2)
        return Outcome(self.value(query.x) + noise[0], measured={"load": self.load(query.x) + 0.2 * noise[1]})


def search(machine, batches=12, d=4, **options):
    optimizer = GIBO(np.zeros(d), scale=0.3, seed=1, **options)
    for _ in range(batches):
        for query in optimizer.ask():
            optimizer.tell(query, machine(query))
    return optimizer


@pytest.mark.parametrize("careful", [False, True])
def test_the_recommended_point_satisfies_the_limits_and_careful_queries_do(careful):
    machines = [Machine(seed) for seed in range(4)]
    for machine in machines:
        optimizer = search(machine, 48 if careful else 12, limits=Limits({"load": (None, LEVEL)}, careful=careful))
        best = optimizer.best.x
        assert machine.load(best) <= LEVEL
        assert optimizer.limits_at(best)["load"] >= 0.95
        assert machine.value(best) > 0.6 * machine.value(np.zeros(4))
    violated = np.mean([machine.violated for machine in machines])
    assert violated < 0.05 if careful else violated > 0.1


def test_a_careful_search_asks_one_query_at_a_time_and_leaves_an_iterate_that_violates():
    optimizer = GIBO(np.zeros(4), scale=0.3, seed=1, limits=Limits({"load": (None, LEVEL)}, careful=True))
    asked = []
    for i in range(20):
        (query,) = optimizer.ask()
        asked.append((query.iteration, query.kind))
        assert np.abs(query.x - optimizer.iterate).max() <= CAREFUL_WIDTH * 0.3 + 1e-12
        load = 2.0 * LEVEL if asked[-1] == (2, "iterate") else 0.1 * float(query.x[0])
        optimizer.tell(query, float(query.x.sum()) + 0.01 * i, measured={"load": load})
    first, M = ["iterate"] + 4 * ["query"], optimizer.settings.sizes[0]
    assert [kind for iteration, kind in asked if iteration == 0] == first
    assert [kind for iteration, kind in asked if iteration == 1] == ["iterate"] + M * ["query"]
    assert [kind for iteration, kind in asked if iteration == 2] == ["iterate"]


def test_a_point_that_was_measured_to_violate_is_not_recommended():
    rng, optimizer = np.random.default_rng(0), GIBO(np.zeros(2), scale=0.3, seed=1, limits={"load": (None, 1.0)})
    for _ in range(4):
        for query in optimizer.ask():
            load = min(0.3 * rng.standard_normal(), 0.9)
            optimizer.tell(query, -float(((query.x - 2.0) ** 2).sum()), measured={"load": load})
    top = optimizer.best.x + 0.1
    optimizer.tell(optimizer.external(top), -float(((top - 2.0) ** 2).sum()), measured={"load": 1.01})
    assert optimizer.limits_at(top)["load"] > 0.99  # the model takes the excess for noise
    assert not np.array_equal(optimizer.best.x, top)
    assert optimizer.violated_at_start() == []


def test_a_limit_that_is_far_away_changes_nothing():
    free, limited = (search(Machine(0), 4, limits=limits) for limits in (None, {"load": (None, 1e6)}))
    assert [e.x.tolist() for e in free.evaluations] == [e.x.tolist() for e in limited.evaluations]


def test_no_step_is_longer_than_the_largest():
    steps = [np.abs(step.step).max() for step in search(Machine(0), 6, largest_step=0.5).iterations]
    assert max(steps) == pytest.approx(0.5 * 0.3)


def test_failures_behind_a_wall_become_rare():
    """Of a search that only passes over failures 79 % are failures."""
    machines = [Machine(seed, failing=lambda machine, x: machine.load(x) > LEVEL) for seed in range(4)]
    for machine in machines:
        best = search(machine, 16).best.x
        assert machine.value(best) > 0.6 * machine.value(np.zeros(4))
    assert np.mean([machine.failed for machine in machines]) < 0.45


@pytest.mark.parametrize(("share", "left"), [(0.1, 0.01), (0.5, 0.1)])
def test_random_failures_do_no_harm(share, left):
    for seed in range(2):
        machine = Machine(seed, failing=lambda m, x: m.rng.random() < share)
        best = search(machine, 16).best.x
        assert machine.value(best) > left * machine.value(np.zeros(4))


# -- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({}, "got none"),
        ({"load": 3.0}, "load"),
        ({"load": (None, None)}, "neither"),
        ({"load": (2.0, 1.0)}, "lower below upper"),
        ([["load", None, 1.0], ["load", 0.0, None]], "twice"),
        ("load", "by name"),
    ],
)
def test_mistakes_in_limits_are_named(limits, words):
    with pytest.raises(InputError, match=words):
        GIBO([0.0], limits=limits)


def test_a_value_without_a_measurement_and_a_careful_start_that_violates_are_refused():
    optimizer = GIBO([0.0], limits=Limits({"load": (None, 1.0)}, careful=True))
    (query,) = optimizer.ask()
    with pytest.raises(InputError, match="'load' has a limit"):
        optimizer.tell(query, 1.0, measured={"other": 1.0})
    optimizer.tell(query, 1.0, measured={"load": 2.0})
    with pytest.raises(InputError, match="load is 2, above its upper limit 1"):
        optimizer.ask()


def test_limits_and_failures_with_blocks_and_drift():
    for settings in (Settings(drift=True), Settings(blocks="iteration")):
        machine = Machine(0, failing=lambda m, x: m.load(x) > LEVEL + 0.2)
        optimizer = search(machine, 6, limits={"load": (None, LEVEL)}, settings=settings)
        assert machine.load(optimizer.best.x) <= LEVEL
        again = GIBO.from_state(through_json(optimizer.state()))
        assert as_data(again.ask()) == as_data(optimizer.ask())
