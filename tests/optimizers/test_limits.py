"""Limits on measured quantities, and failures that teach."""

import numpy as np
import pytest

from gibo import GIBO, GaussianProcess, InputError, Limits, Outcome, Settings, SquaredExponential
from gibo.acquisition.confidence import LowerConfidenceBound
from gibo.acquisition.information import GradientInformation
from gibo.optimizers.limits import CAREFUL_WIDTH
from gibo.optimizers.region import WEIGHT, Region, Side, _Lagrangian, _Probability
from optimizer_helpers import through_json

LEVEL = 0.8


def quantity(seed, d=2, n=12):
    """A model of data at random in the square (−1, 1)."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, d))
    kernel = SquaredExponential(lengthscale=rng.uniform(0.7, 1.4, d), variance=1.3)
    return GaussianProcess(kernel, noise=0.02, mean="estimated").condition(X, rng.standard_normal(n))


def region():
    one, other = quantity(1), quantity(2)
    return Region({"a": [Side(one, -0.7, 1.0, 0.8), Side(one, 0.9, -1.0, 0.8)], "b": [Side(other, 0.6, -1.0, 0.8)]})


def differences(f, z, h=1e-5):
    return np.array([(f(z + h * e) - f(z - h * e)) / (2.0 * h) for e in np.eye(len(z))])


def test_probabilities_are_those_of_sampling():
    z, rng = np.array([0.3, -0.2]), np.random.default_rng(0)
    (mean, variance), limits = quantity(1).predict(z), region()
    c = mean + np.sqrt(variance + quantity(1).noise) * rng.standard_normal(400_000)
    assert limits.probabilities(z)["a"] == pytest.approx(((c > -0.7) & (c < 0.9)).mean(), abs=3e-3)


def test_slack_is_zero_where_the_limit_holds_with_the_confidence():
    side = Side(quantity(1), 0.9, -1.0, 0.8)
    Z = np.random.default_rng(3).uniform(-1.0, 1.0, (50, 2))
    assert ((side.slack(Z) >= 0.0) == (side.ratio(Z) >= 0.8)).all()


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_gradients_are_those_of_differences(sign):
    side = Side(quantity(1), 0.2, sign, 0.8)
    limits, bound = region(), LowerConfidenceBound(quantity(5), 0.5)
    sides = [side for each in limits.sides.values() for side in each]
    lagrangian, probability = _Lagrangian(bound, sides, np.array([0.5, 0.1, 2.0]), WEIGHT), _Probability(sides)
    for z in np.random.default_rng(4).uniform(-1.0, 1.0, (5, 2)):
        for batch, single in (
            (side.slack, side.slack_and_gradient),
            (side.ratio, side.ratio_and_gradient),
            (lagrangian, lagrangian.value_and_gradient),
            (probability, probability.value_and_gradient),
        ):
            value, gradient = single(z)
            assert value == pytest.approx(batch(z[None])[0], rel=1e-9)
            np.testing.assert_allclose(gradient, differences(lambda z, f=batch: f(z[None])[0], z), rtol=2e-5, atol=1e-7)


def test_the_highest_point_of_the_region_by_brute_force():
    grid = np.stack(np.meshgrid(*[np.linspace(-1.0, 1.0, 201)] * 2), axis=-1).reshape(-1, 2)
    X = np.random.default_rng(7).uniform(-1.0, 1.0, (15, 2))
    hill = GaussianProcess(SquaredExponential(), noise=0.01).condition(X, -((X - [0.8, 0.8]) ** 2).sum(axis=1))
    limits, bound, ones = region(), LowerConfidenceBound(hill, 0.5), np.ones(2)
    inside = grid[limits.slack(grid) >= 0.0]
    assert 0 < len(inside) < 0.8 * len(grid)
    free = grid[bound(grid).argmax()]
    z = limits.highest(bound, free, grid[::400], -ones, ones, ones)
    assert limits.slack(z[None])[0] >= 0.0
    assert bound(z[None])[0] > bound(inside).max() - 0.01
    assert limits.slack(free[None])[0] < 0.0


def test_without_a_point_inside_the_most_probable_one_is_taken():
    grid = np.stack(np.meshgrid(*[np.linspace(-1.0, 1.0, 101)] * 2), axis=-1).reshape(-1, 2)
    limits, ones = Region({"a": [Side(quantity(1), 8.0, 1.0, 1.6)]}), np.ones(2)
    z = limits.highest(LowerConfidenceBound(quantity(7), 0.5), ones, grid[::500], -ones, ones, ones)
    assert limits.probabilities(z)["a"] >= 0.99 * max(limits.probabilities(z)["a"] for z in grid[::50])


def test_the_way_back_to_the_iterate_ends_where_the_limits_hold():
    gp = GaussianProcess(SquaredExponential(), noise=1e-4, mean=0.0).condition([[-1.0], [0.0], [1.0]], [-1.0, 0.0, 1.0])
    both = Region({"c": [Side(gp, 0.5, -1.0, 1.0), Side(gp, -0.5, 1.0, 1.0)]})
    assert both.back(np.array([0.1]), np.zeros(1)) == [0.1]
    pulled = both.back(np.array([0.9]), np.zeros(1))
    assert 0.2 < pulled[0] < 0.5
    assert both.slack(pulled[None])[0] >= 0.0


def test_careful_queries_leave_an_iterate_where_a_limit_only_just_holds():
    optimizer = search(Machine(0), 24, limits=Limits({"load": (None, LEVEL)}, careful=True))
    assert len(optimizer.iterations) > 4
    for step in optimizer.iterations:
        batch = [e.x for e in optimizer.evaluations if e.query.iteration == step.number and e.kind == "query"]
        assert max(np.linalg.norm(x - step.x) for x in batch) > 0.03


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


class PassingOver(GIBO):
    """Failures teach nothing."""

    def _region(self, limited=True):
        return None


def search(machine, iterations=12, d=4, kind=GIBO, **options):
    optimizer = kind(np.zeros(d), scale=0.3, seed=1, **options)
    for _ in range(iterations):
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


def test_a_query_that_would_fail_is_replaced_by_the_most_informative_one_that_should_not():
    grid = np.stack(np.meshgrid(*[np.linspace(-1.0, 1.0, 81)] * 2), axis=-1).reshape(-1, 2)
    X = np.random.default_rng(3).uniform(-1.0, 1.0, (5, 2))
    gp = GaussianProcess(SquaredExponential(), noise=0.01).condition(X, X.sum(axis=1))
    information, limits, ones = GradientInformation(gp, at=np.zeros(2)), region(), np.ones(2)
    inside, outside = grid[limits.slack(grid) >= 0.0], grid[limits.slack(grid) < 0.0]
    free = outside[information(outside).argmax()]
    z = limits.replaced(information, free, np.zeros(2), -ones, ones, ones, mirrors=False)
    assert limits.slack(z[None])[0] >= 0.0
    assert information(z) > 0.98 * information(inside).max()


def test_a_limit_that_is_far_away_changes_nothing():
    points = [
        [e.x.tolist() for e in search(Machine(0), 4, limits=limits).evaluations]
        for limits in (None, {"load": (None, 1e6)})
    ]
    assert points[0] == points[1]


def test_no_step_is_longer_than_the_largest():
    steps = [np.abs(step.step).max() for step in search(Machine(0), 6, largest_step=0.5).iterations]
    assert max(steps) == pytest.approx(0.5 * 0.3)


@pytest.mark.parametrize("machine", [lambda: Machine(0), lambda: Machine(0, failing=lambda m, x: m.rng.random() < 0.3)])
def test_a_search_with_limits_and_failures_continues(machine):
    optimizer = search(machine(), 5, limits=Limits({"load": (-3.0, LEVEL)}, careful=True, confidence=0.9))
    again = GIBO.from_state(through_json(optimizer.state()))
    value = Machine(9)
    optimizer.ask(), again.ask()
    for query in optimizer.pending:
        outcome = value(query)
        optimizer.tell(query, outcome)
        again.tell(query, outcome)
    assert [q.x.tolist() for q in optimizer.ask()] == [q.x.tolist() for q in again.ask()]


def test_failures_behind_a_wall_become_rare():
    def behind(machine, x):
        return machine.load(x) > LEVEL

    shares = {}
    for kind in (GIBO, PassingOver):
        machines = [Machine(seed, failing=behind) for seed in range(4)]
        for machine in machines:
            optimizer = search(machine, 16, kind=kind)
            assert kind is PassingOver or machine.value(optimizer.best.x) > 0.6 * machine.value(np.zeros(4))
        shares[kind] = np.mean([machine.failed for machine in machines])
    assert shares[GIBO] < 0.5 * shares[PassingOver]


@pytest.mark.parametrize(("share", "left"), [(0.1, 0.01), (0.5, 0.1)])
def test_random_failures_do_no_harm(share, left):
    for seed in range(3):
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


def test_a_value_without_a_measurement_is_refused():
    optimizer = GIBO([0.0], limits={"load": (None, 1.0)})
    query = optimizer.ask()[0]
    with pytest.raises(InputError, match="'load' has a limit"):
        optimizer.tell(query, 1.0, measured={"other": 1.0})
    optimizer.tell(query, 1.0, measured={"load": 0.0})


def test_a_careful_search_refuses_a_start_that_violates():
    optimizer = GIBO([0.0], limits=Limits({"load": (None, 1.0)}, careful=True))
    (query,) = optimizer.ask()
    optimizer.tell(query, 1.0, measured={"load": 2.0})
    with pytest.raises(InputError, match="load is 2, above its upper limit 1"):
        optimizer.ask()


def test_limits_and_failures_with_blocks_and_drift():
    for settings in (Settings(drift=True), Settings(blocks="iteration")):
        machine = Machine(0, failing=lambda m, x: m.load(x) > LEVEL + 0.2)
        best = search(machine, 6, limits={"load": (None, LEVEL)}, settings=settings).best.x
        assert machine.load(best) <= LEVEL
