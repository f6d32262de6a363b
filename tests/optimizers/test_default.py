"""The default method: where it moves, which scale it finds, what it recommends; what it promises of units and order."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from known_model import ELL, X0, data, fixed, iterate_once, model

import gibo
from gibo import GaussianProcess, Settings, SquaredExponential
from gibo.acquisition.confidence import LowerConfidenceBound
from gibo.means import Fitted, QuadraticMean
from gibo.optimizers.model import Model
from gibo.optimizers.moves import BoundStep
from gibo.optimizers.queries import spread
from gibo.optimizers.scale import Findings, ScaleRule, ScaleSearch
from gibo.optimizers.units import Units
from gibo.outcome import ITERATE, QUERY, SURVEY
from optimizer_helpers import bumpy

WEIGHTS = np.array([1.0, 3.0, 0.3, 1.0])
TOP = np.array([1.0, -0.5, 0.5, 0.0])


def bowl(x, rng=None, noise=0.1):
    noise = 0.0 if rng is None else noise * rng.standard_normal()
    return float(-(WEIGHTS * (x - TOP) ** 2).sum() + noise)


def run(optimizer, objective, budget):
    while len(optimizer.evaluations) < budget:
        for query in optimizer.ask():
            optimizer.tell(query, objective(query.x))
    return optimizer


# -- promises ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ends", [None, np.array([[-2.0], [1.2]])])
def test_rescaling_the_parameters_with_their_scale_rescales_the_queries(ends):
    """With bounds the search begins with a survey."""
    unit = np.array([1000.0, 0.01, 1.0, 7.0])
    bounds, in_units = (None, None) if ends is None else (ends * np.ones(4), ends * unit)
    one = run(gibo.GIBO(np.zeros(4), scale=0.3, bounds=bounds, seed=2), bowl, 40)
    two = run(gibo.GIBO(np.zeros(4), scale=0.3 * unit, bounds=in_units, seed=2), lambda x: bowl(x / unit), 40)
    for a, b in zip(one.evaluations, two.evaluations, strict=True):
        np.testing.assert_allclose(a.x * unit, b.x, rtol=1e-5, atol=1e-5 * unit.min())


@pytest.mark.parametrize("bounds", [None, (-2.0, 2.0)])
def test_the_order_of_the_parameters_does_not_matter_in_distribution(bounds):
    """The gain after 16 values over 20 seeds, where one of six parameters matters: first or last in order."""

    def gains(j):
        found = []
        for seed in range(20):
            optimizer = gibo.GIBO(np.zeros(6), scale=0.3, bounds=bounds, seed=seed)
            found.append(-((run(optimizer, lambda x: -((x[j] - 1.0) ** 2), 16).iterate[j] - 1.0) ** 2))
        return np.array(found)

    first, last = gains(0), gains(5)
    error = np.sqrt((first.var() + last.var()) / 20)
    assert abs(first.mean() - last.mean()) < 3.0 * error


def test_pure_noise_rarely_leaves_the_start():
    """docs/algorithm.md has 300 runs; at 5 % more than 3 of these 12 would come by chance twice in 1,000 times."""
    left = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        optimizer = run(gibo.GIBO(np.zeros(5), scale=0.3, seed=seed), lambda x: rng.standard_normal(), 40)  # noqa: B023
        left += not np.array_equal(optimizer.best.x, np.zeros(5))
    assert left <= 3


@pytest.mark.parametrize("wrong", [0.1, 1.0, 10.0])
def test_a_wrong_scale_is_found_out_and_the_recommended_point_was_evaluated(wrong):
    rng = np.random.default_rng(0)
    optimizer = run(gibo.GIBO(np.zeros(4), scale=0.4 * wrong, seed=0), lambda x: bowl(x, rng, 0.02), 120)
    assert bowl(optimizer.best.x) > 0.1 * bowl(np.zeros(4))
    assert any(np.array_equal(optimizer.best.x, e.x) for e in optimizer.evaluations)


# -- the step to the highest bound ------------------------------------------------------------------------------------


@pytest.mark.parametrize("beta", [0.0, 0.5, 2.0])
def test_a_bound_step_ends_at_the_highest_bound_of_the_box(beta):
    rng = np.random.default_rng(3)
    X = rng.uniform(-1.0, 1.0, (8, 2))
    gp = GaussianProcess(SquaredExponential([0.8, 1.2]), 0.01).condition(X, np.sin(2.0 * X).sum(axis=1))
    lower, upper = np.full(2, -0.8), np.full(2, 0.8)
    grid = np.stack(np.meshgrid(*[np.linspace(-0.8, 0.8, 81)] * 2), axis=-1).reshape(-1, 2)
    mean, variance = gp.predict(grid)
    highest = grid[(mean - beta * np.sqrt(variance)).argmax()]
    found, state = BoundStep(beta).next(gp, np.zeros(2), lower, upper, {})
    np.testing.assert_allclose(found, highest, atol=0.02)
    assert state == {}
    bound, x, steps = LowerConfidenceBound(gp, beta), np.array([0.2, -0.4]), 1e-6 * np.eye(2)
    value, gradient = bound.value_and_gradient(x)
    assert value == pytest.approx(float(bound(x[None])[0]), rel=1e-9)
    np.testing.assert_allclose(gradient, (bound(x + steps) - bound(x - steps)) / 2e-6, rtol=1e-5)


# -- the recommended point --------------------------------------------------------------------------------------------


def test_an_interval_a_bound_and_a_probability_by_hand():
    """The interval is the mean − 0.5 ± 2·1.645 standard deviations: for the choice of the point, and for the fit."""
    X, units = np.array([[0.0], [0.5], [2.0]]), Units(0.0, 1.0)
    gp = GaussianProcess(SquaredExponential(1.0), 0.5).condition(X, [0.0, 3.0, -3.0])
    judge, x = Model(gp, units, np.ones(1)), np.array([0.4])
    mean, variance = gp.predict(x)
    sd = np.sqrt(variance)
    expected = (mean + sd * (-0.5 - 2.0 * 1.6448536), mean + sd * (-0.5 + 2.0 * 1.6448536))
    assert judge.interval(x) == pytest.approx(expected)
    assert judge.lower_bound(x[None], 1.5)[0] == pytest.approx(mean - 1.5 * sd)
    # No value is farther from those that were seen than they are from each other.
    wide = GaussianProcess(SquaredExponential(1.0, 100.0), 0.5).condition(X, [0.0, 3.0, -3.0])
    assert Model(wide, units, np.ones(1)).interval(np.array([50.0])) == (-9.0, 9.0)
    # Values at neighbours rise and fall together.
    Z = np.array([[0.4], [0.8]])
    k, K = gp.kernel.k(Z, X), gp.kernel.k(X, X) + 0.5 * np.eye(3)
    covariance = gp.kernel.k(Z, Z) - k @ np.linalg.solve(K, k.T)
    spread_of_difference = np.sqrt(np.array([1.0, -1.0]) @ covariance @ np.array([1.0, -1.0]))
    above = float(np.subtract(*gp.predict(Z).mean)) / spread_of_difference
    assert 0.02 < judge.probability_above(*Z) < 0.98
    assert judge.probability_above(*Z) == pytest.approx(0.5 * (1.0 + math.erf(above / math.sqrt(2.0))))
    assert judge.probability_above(x, x) == 0.5
    # The evidence against noise alone.
    y = np.array([0.0, 3.0, -3.0])
    assert judge.evidence == pytest.approx(gp.log_likelihood + 1.5 * (np.log(2.0 * np.pi * y.var()) + 1.0))


@pytest.mark.parametrize(
    ("evidence", "probability", "leaves"),
    [(3.1, 0.96, True), (2.9, 0.96, False), (3.1, 0.94, False), (300.0, 0.94, False)],
)
def test_how_sure_is_sure_enough_to_leave_the_start(monkeypatch, evidence, probability, leaves):
    """Twenty times likelier than noise, and a probability of 0.95; a start that failed is left."""
    monkeypatch.setattr(Model, "evidence", evidence)
    monkeypatch.setattr(Model, "probability_above", lambda self, x, y: probability)
    for fails in (False, True):
        optimizer = gibo.GIBO(np.zeros(3), scale=0.3, seed=0)
        for query in optimizer.ask():
            failed = fails and not query.x.any()
            optimizer.tell(query, None if failed else float(query.x.sum()), failed=failed)
        assert bool(optimizer.best.x.any()) == (leaves or fails)


@pytest.mark.parametrize("caution", [0.0, 1.0, 3.0])
def test_the_recommended_point_by_hand(caution):
    """One high value far away is less certain than several that are a little lower, side by side."""
    optimizer = gibo.GIBO(X0, settings=fixed(noise=0.3, only_evaluated=True, caution=caution, N_m=100))
    optimizer.tell(X0 - 3.0, -5.0)
    optimizer.tell(X0 + 3.0, 2.5)
    for offset in (1.0, 1.01, 1.02, 1.03, 1.04):
        optimizer.tell(X0 + offset, 2.0)
    X, y = data(optimizer)
    mean, variance = GaussianProcess(SquaredExponential(ELL, 1.5), 0.3).condition(X, y).predict(X)
    chosen = X[(mean - caution * np.sqrt(variance)).argmax()]
    assert optimizer.best.x.tolist() == chosen.tolist()
    assert (chosen.tolist() == (X0 + 3.0).tolist()) == (caution == 0.0)


def test_the_start_stays_in_the_comparison_when_it_has_left_the_window():
    optimizer = gibo.GIBO(X0, settings=fixed(N_m=5, only_evaluated=True))
    for _ in range(3):
        iterate_once(optimizer)
    X, y = data(optimizer)
    with_start = model().condition([X[0], *X[-5:]], [y[0], *y[-5:]])
    assert optimizer.best.value == pytest.approx(with_start.predict(optimizer.best.x).mean)
    np.testing.assert_allclose(optimizer.model().gp.observations.X, X[-5:])


def test_the_recommended_point_is_judged_by_a_model_of_all_values():
    """Also within an iteration; looking there does not change the search. A single value has no interval."""
    watched, other = (gibo.GIBO(np.zeros(6), scale=0.3, seed=1) for _ in range(2))
    for k in range(4):
        for i, (query, same) in enumerate(zip(watched.ask(), other.ask(), strict=True)):
            assert (query.x == same.x).all()
            watched.tell(query, bumpy(query.x))
            other.tell(same, bumpy(same.x))
            assert (watched.best.interval is None) == (len(watched.evaluations) == 1)
            if k == 3 and i < 2:
                believed = watched.model().gp.kernel.ell(6)
                assert believed != pytest.approx(watched.iterations[-1].lengthscale / 0.3, rel=1e-6)
    assert (watched.iterate == other.iterate).all()


# -- a rule for the scale ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("evidence", "n", "here", "around", "shortened", "factor"),
    [
        (10.0, 20, [0.0], [1.0, -1.0], 1.0, None),  # a signal of half a nat per value
        (10.0, 20, [2.0], [1.0, -1.0], 1.0, 0.5),  # on top
        (1.0, 20, [2.0], [1.0, -1.0], 1.6, 0.8),  # on top, and the fit has shortened the lengthscales
        (10.0, 20, [2.0], [1.0, -1.0], 3.0, None),  # by more than the rule would
        (1.0, 20, [0.0], [1.0, -1.0], 1.0, 2.0),  # noise
        (1.0, 7, [0.0], [1.0, -1.0], 1.0, 1.0),  # too few values to tell
        (1.0, 7, [3.0], [3.0, 3.0], 1.0, 2.0),  # a plateau
        (1.0, 20, [], [], 1.0, 2.0),
    ],
)
def test_the_scale_rule(evidence, n, here, around, shortened, factor):
    assert ScaleSearch().factor(Findings(evidence, n, 4, here, around, shortened)) == factor


SEEN = []


@dataclass(frozen=True)
class Noting(ScaleRule):
    """It keeps what it is told, and always rescales by one factor."""

    by: float = 1.0

    def factor(self, found):
        SEEN.append(found)
        return self.by


def test_a_rule_is_told_what_the_iteration_found():
    SEEN.clear()
    optimizer = gibo.GIBO(np.zeros(3), scale=0.3, seed=1, settings=Settings(scale_rule=Noting()))
    planned = 0.9 * 3.0**0.8 * 0.3  # the prior's median, in the parameters' units
    for _ in range(3):
        values = [bumpy(query.x) for query in iterate_once(optimizer)]
        found, fitted = SEEN[-1], optimizer.iterations[-1].lengthscale
        assert (found.here, found.around) == (values[:1], values[1:])
        assert (found.n, found.d) == (len(optimizer.evaluations), 3)
        assert found.evidence == pytest.approx(optimizer.model().evidence)
        assert found.shortened == pytest.approx(np.exp(np.log(planned / fitted).mean()))
        planned = fitted
    assert SEEN[-1].shortened != 1.0


@pytest.mark.parametrize(("by", "most"), [(2.0, 10.0), (0.5, 0.1)])
def test_lengthscales_and_their_prior_are_rescaled_by_ten_at_most(by, most):
    def lengthscales(iterations, **changes):
        settings, rng = Settings(scale_rule=Noting(by), **changes), np.random.default_rng(0)
        optimizer = gibo.GIBO(np.zeros(3), scale=0.3, seed=1, settings=settings)
        for _ in range(iterations):
            iterate_once(optimizer, lambda x: rng.standard_normal())
        return optimizer.model().gp.kernel.lengthscale

    first = 0.9 * 3.0**0.8
    for k in (1, 2, 6):
        factor = min(by**k, most) if by > 1.0 else max(by**k, most)
        np.testing.assert_allclose(lengthscales(k, fit="never"), factor * first)
    # Noise says nothing of lengthscales, so a fit finds those of the prior.
    fitted = lengthscales(6).mean() / first
    assert fitted > 4.0 if by > 1.0 else fitted < 0.4


# -- the survey of finite bounds --------------------------------------------------------------------------------------


def test_a_latin_hypercube_has_a_point_in_each_slice():
    points = spread(np.zeros(3), np.array([1.0, 2.0, 4.0]), 5, np.random.default_rng(0))
    slices = np.sort(np.floor(points / np.array([1.0, 2.0, 4.0]) * 5), axis=0)
    assert (slices == np.arange(5)[:, None]).all()


@pytest.mark.parametrize("scale", [0.05, 1.0])
def test_the_search_goes_on_at_the_best_point_of_the_survey(scale):
    optimizer = gibo.GIBO(np.full(5, 0.2), scale=scale, bounds=(0.0, 1.0), seed=3)
    queries = iterate_once(optimizer, lambda x: -float(((x - 0.8) ** 2).sum()))
    assert [query.kind for query in queries] == [ITERATE] + 4 * [SURVEY]
    X = np.array([query.x for query in queries])
    assert (X >= 0.0).all()
    assert (abs(X - 0.2) <= min(5.0 * scale, 0.8) + 1e-12).all()
    assert (optimizer.iterate == X[int(np.argmin(((X - 0.8) ** 2).sum(axis=1)))]).all()
    # Its points count for the first design, but an iteration has at least M queries.
    assert [query.kind for query in optimizer.ask()] == [ITERATE] + 3 * [QUERY]


@pytest.mark.parametrize(
    "options",
    [
        {"bounds": None},
        {"bounds": (0.0, np.inf)},
        {"largest_step": 2.0},
        {"limits": gibo.Limits({"torque": (None, 1.0)}, careful=True)},
        {"settings": Settings(survey=0)},
        {"settings": Settings(mean=Fitted(QuadraticMean(np.zeros(5), np.ones(5))))},
        {"sources": {"simulator": 1, "robot": 50}},
        {"settings": Settings.paper()},
        {},  # something is known
    ],
)
def test_no_survey_where_the_search_must_stay_near_or_something_is_known(options):
    optimizer = gibo.GIBO(np.full(5, 0.2), **{"scale": 0.1, "bounds": (0.0, 1.0), **options})
    if not options:
        optimizer.tell(np.full(5, 0.3), 1.0)
    assert SURVEY not in [query.kind for query in optimizer.ask()]


def test_a_survey_that_fails_leaves_the_search_at_its_start():
    optimizer = gibo.GIBO(np.full(3, 0.2), scale=0.1, bounds=(0.0, 1.0))
    for query in optimizer.ask():
        optimizer.tell(query, failed=query.kind == SURVEY, value=None if query.kind == SURVEY else 1.0)
    assert (optimizer.iterate == 0.2).all()
