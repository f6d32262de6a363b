"""GIBO with a given full matrix of lengthscales: a linear change of the model's coordinates."""

import json

import numpy as np
import pytest

import gibo
from gibo import GIBO, InputError, Settings
from gibo.optimizers.coordinates import Coordinates
from gibo.outcome import Outcome

C = np.array([[1.0, 0.8, 0.0], [0.8, 1.0, 0.0], [0.0, 0.0, 1.0]])
SCALE = np.array([0.3, 0.1, 2.0])


def value(x):
    """A valley along x0 = x1."""
    return -float(10.0 * (x[0] - x[1]) ** 2 + (x[0] + x[1] - 2.0) ** 2 + x[2] ** 2)


def told(opt, iterations):
    for _ in range(iterations):
        for query in opt.ask():
            opt.tell(query, value(query.x))
    return opt


def test_distances_are_those_of_the_full_matrix():
    """Müller et al. 2021, appendix A.1."""
    points = Coordinates(SCALE, np.linalg.cholesky(C))
    L = np.linalg.inv(np.diag(SCALE) @ C @ np.diag(SCALE))
    a, b = np.random.default_rng(0).normal(size=(2, 3))
    z = points.to(a) - points.to(b)
    assert z @ z == pytest.approx((a - b) @ L @ (a - b), rel=1e-12)
    np.testing.assert_allclose(points.back(points.to(np.array([a, b]))), [a, b], rtol=1e-12)


@pytest.mark.parametrize("settings", [Settings(correlation=C), Settings.default(correlation=C)])
def test_it_climbs_and_its_gradient_is_the_slope_of_its_mean(settings):
    opt = told(GIBO(np.zeros(3), scale=SCALE, settings=settings), 8)
    assert opt.best.value > value(np.zeros(3)) + 0.5
    x, model = opt.iterate, opt.model()
    slope = [(model.mean(x + s) - model.mean(x - s)).item() / (2.0 * s.max()) for s in np.diag(1e-5 * SCALE)]
    np.testing.assert_allclose(opt.jacobian().mean, slope, rtol=1e-5, atol=1e-5)


def test_observed_gradients_are_read_in_its_coordinates():
    def told_gradients(opt):
        for _ in range(2):
            for query in opt.ask():
                slope = np.array([-20.0, 20.0, 0.0]) * (query.x[0] - query.x[1]) - 2.0 * query.x * [0.0, 0.0, 1.0]
                slope[:2] -= 2.0 * (query.x[0] + query.x[1] - 2.0)
                opt.tell(query, Outcome(value(query.x), gradient=slope, gradient_noise=1e-8))
        return slope

    opt = GIBO(np.zeros(3), scale=0.3, settings=Settings(correlation=C))
    slope = told_gradients(opt)
    last = opt.log.valued[-1].x
    np.testing.assert_allclose(opt.model().jacobian(last).mean, slope, atol=1e-2)


def test_queries_and_iterates_stay_within_the_bounds():
    bounds = (np.full(3, -0.2), np.full(3, 0.5))
    opt = told(GIBO(np.zeros(3), scale=0.3, bounds=bounds, settings=Settings(correlation=C)), 6)
    assert all((e.x >= bounds[0]).all() and (e.x <= bounds[1]).all() for e in opt.evaluations)
    assert opt.best.value > value(np.zeros(3)) + 1.0


def test_saved_and_loaded_it_goes_on_bit_for_bit():
    settings = Settings(correlation=C, fit_from=4)
    whole = told(GIBO(np.zeros(3), scale=0.3, settings=settings), 6)
    half = told(GIBO(np.zeros(3), scale=0.3, settings=settings), 3)
    loaded = told(GIBO.from_state(json.loads(json.dumps(half.state()))), 3)
    assert loaded.best.x.tolist() == whole.best.x.tolist()
    assert loaded.jacobian().mean.tolist() == whole.jacobian().mean.tolist()


def test_a_run_is_resumed(tmp_path):
    settings = Settings(correlation=C)
    whole = gibo.maximize(value, np.zeros(3), budget=16, scale=0.3, settings=settings)
    gibo.maximize(value, np.zeros(3), budget=8, scale=0.3, settings=settings, journal=tmp_path / "run")
    assert gibo.resume(tmp_path / "run", value, budget=16).x.tolist() == whole.x.tolist()


@pytest.mark.parametrize(
    "bad", ["full", np.eye(2) * 2.0, [[1.0, 0.5], [0.4, 1.0]], np.ones((2, 2)), [[1.0, 2.0], [2.0, 1.0]], np.eye(2)[:1]]
)
def test_bad_correlations(bad):
    with pytest.raises(InputError, match="correlation: expected"):
        Settings(correlation=bad)


def test_a_correlation_of_other_parameters():
    with pytest.raises(InputError, match="correlation: expected a matrix of 2 parameters, got one of 3"):
        GIBO(np.zeros(2), settings=Settings(correlation=C))
