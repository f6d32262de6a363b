"""Where the iterate goes: to the highest lower bound, back after failures; and which points the model compares."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from known_model import ELL, X0, D, data, fixed, iterate_once

import gibo
from gibo import GaussianProcess, Settings, SquaredExponential
from gibo.acquisition.confidence import LowerConfidenceBound
from gibo.optimizers.model import Model
from gibo.optimizers.moves import BoundStep
from gibo.optimizers.scale import ScaleRule
from gibo.priors import SharedLogNormal
from optimizer_helpers import bumpy

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


def test_the_gradient_of_a_bound_against_differences():
    X = np.random.default_rng(4).uniform(-1.0, 1.0, (6, D))
    bound = LowerConfidenceBound(GaussianProcess(SquaredExponential(ELL), 0.1).condition(X, X[:, 0]), 0.7)
    x, h = np.array([0.2, -0.4, 0.1]), 1e-6
    value, gradient = bound.value_and_gradient(x)
    assert value == pytest.approx(float(bound(x[None])[0]), rel=1e-9)
    steps = h * np.eye(D)
    np.testing.assert_allclose(gradient, (bound(x + steps) - bound(x - steps)) / (2.0 * h), rtol=1e-6)


# -- the recommended point --------------------------------------------------------------------------------------------


def test_an_interval_a_bound_and_a_probability_by_hand():
    """The interval is the mean − 0.5 ± 2·1.645 standard deviations: for the choice of the point, and for the fit."""
    X = np.array([[0.0], [0.5], [2.0]])
    gp = GaussianProcess(SquaredExponential(1.0), 0.5).condition(X, [0.0, 3.0, -3.0])
    surrogate = gibo.GIBO([0.0], settings=Settings.paper(standardize=False))._surrogate
    model = Model(gp, surrogate.given([]).units, np.ones(1))
    x = np.array([0.4])
    mean, variance = (float(moment) for moment in gp.predict(x))
    sd = np.sqrt(variance)
    expected = (mean + sd * (-0.5 - 2.0 * 1.6448536), mean + sd * (-0.5 + 2.0 * 1.6448536))
    assert model.interval(x) == pytest.approx(expected)
    assert model.lower_bound(x[None], 1.5)[0] == pytest.approx(mean - 1.5 * sd)
    # No value is farther from those that were seen than they are from each other.
    wide = GaussianProcess(SquaredExponential(1.0, 100.0), 0.5).condition(X, [0.0, 3.0, -3.0])
    assert Model(wide, model.units, model.scale).interval(np.array([50.0])) == (-9.0, 9.0)
    # Values at neighbours rise and fall together.
    Z = np.array([[0.4], [0.8]])
    k, K = gp.kernel.k(Z, X), gp.kernel.k(X, X) + 0.5 * np.eye(3)
    covariance = gp.kernel.k(Z, Z) - k @ np.linalg.solve(K, k.T)
    above = float(np.subtract(*gp.predict(Z).mean)) / np.sqrt(
        covariance[0, 0] + covariance[1, 1] - 2.0 * covariance[0, 1]
    )
    assert 0.02 < model.probability_above(*Z) < 0.98
    assert model.probability_above(*Z) == pytest.approx(0.5 * (1.0 + math.erf(above / math.sqrt(2.0))))


@pytest.mark.parametrize(
    ("evidence", "probability", "leaves"),
    [(3.1, 0.96, True), (2.9, 0.96, False), (3.1, 0.94, False), (300.0, 0.94, False)],
)
def test_how_sure_is_sure_enough_to_leave_the_start(monkeypatch, evidence, probability, leaves):
    """Twenty times likelier than noise, and a probability of 0.95."""
    monkeypatch.setattr(Model, "evidence", evidence)
    monkeypatch.setattr(Model, "probability_above", lambda self, x, y: probability)
    optimizer = gibo.GIBO(np.zeros(3), scale=0.3, seed=0)
    for query in optimizer.ask():
        optimizer.tell(query, float(query.x.sum()))
    assert bool(optimizer.best.x.any()) == leaves


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
    assert optimizer._model(optimizer._judged(), optimizer._present()).gp.n == 6
    assert (optimizer._model(optimizer._judged(), optimizer._present()).gp.observations.X == X0).all(axis=1).any()
    assert optimizer._model().gp.n == 5


# -- a rule for the scale ---------------------------------------------------------------------------------------------

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
    for _ in range(3):
        planned = optimizer._surrogate.hyperparameters.lengthscale
        values = [bumpy(query.x) for query in iterate_once(optimizer)]
        found, fitted = SEEN[-1], optimizer._surrogate.hyperparameters.lengthscale
        assert found.here == values[:1]
        assert found.around == values[1:]
        assert (found.n, found.d) == (len(optimizer.evaluations), 3)
        assert found.evidence == pytest.approx(optimizer.model().evidence)
        assert found.shortened == pytest.approx(np.exp(np.log(planned / fitted).mean()))
    assert SEEN[-1].shortened != 1.0


@pytest.mark.parametrize(("by", "most"), [(2.0, 10.0), (0.5, 0.1)])
def test_lengthscales_and_their_prior_are_rescaled_by_ten_at_most(by, most):
    settings = Settings(scale_rule=Noting(by), fit="never")
    optimizer = gibo.GIBO(np.zeros(3), scale=0.3, seed=1, settings=settings)
    first = optimizer._surrogate.hyperparameters.lengthscale
    for k in range(1, 6):
        iterate_once(optimizer)
        factor = min(by**k, most) if by > 1.0 else max(by**k, most)
        np.testing.assert_allclose(optimizer._surrogate.hyperparameters.lengthscale, factor * first)
        prior = optimizer._surrogate.priors()["lengthscale"]
        assert isinstance(prior, SharedLogNormal)
        assert prior.median == pytest.approx(factor * optimizer.settings.lengthscale.median)
