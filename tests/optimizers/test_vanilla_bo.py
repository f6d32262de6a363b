import numpy as np
import pytest

from gibo import GaussianProcess, InputError, SquaredExponential
from gibo.optimizers.vanilla_bo import VanillaBO
from gibo.priors import LogNormal, Uniform
from optimizer_helpers import advance

KNOWN = {"lengthscale": 0.4, "variance": 1.0, "noise": 0.01}


def make(d=2, **options):
    return VanillaBO(np.full(d, 0.5), **{"bounds": (0.0, 1.0), "scale": 0.3, "seed": 1, **options})


@pytest.mark.parametrize("options", [{}, {"kernel": "matern52"}, {"mean": "estimated"}, {"scale": 0.1}])
def test_it_starts_at_x0_and_finds_the_maximum_among_several(options):
    def height(x):
        return np.sin(9.0 * x) + x

    opt = make(**options)
    assert (opt.best, opt.at_start()) == (None, None)
    asked = advance(opt, 40, lambda query: float(height(query.x).sum()))
    assert asked[0].x.tolist() == opt.at_start().x.tolist() == [0.5, 0.5]
    assert len(asked) == 40
    assert 2.0 * height(np.linspace(0.0, 1.0, 1001)).max() - height(opt.iterate).sum() < 0.05
    assert opt.best.value == pytest.approx(height(opt.iterate).sum(), abs=0.1)


def test_the_model_that_grew_is_the_model_made_at_once():
    opt = make(d=3, scale=1.0, **KNOWN)
    advance(opt, 30)
    X, y = np.array([e.x for e in opt.evaluations]), np.array([e.value for e in opt.evaluations])
    at_once = GaussianProcess(SquaredExponential(0.4), noise=0.01).condition(X, y)
    points = np.random.default_rng(0).random((20, 3))
    for mine, other in zip(opt.model().gp.predict(points), at_once.predict(points), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-8, atol=1e-10)
    i = int(np.argmax(at_once.predict(X).mean))
    assert opt.iterate.tolist() == X[i].tolist()
    assert opt.best.value == pytest.approx(at_once.predict(X[i]).mean, rel=1e-8)
    np.testing.assert_allclose(opt.jacobian().mean, at_once.jacobian(X[i]).mean, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("fit_every", "expected"), [(10, [1, 2, 4, 8, 16, 26, 36]), (3, [1, 2, 4, 7, 10, 13]), (1, list(range(1, 39)))]
)
def test_fits_are_after_each_doubling_and_then_regular(fit_every, expected):
    # Nothing is fitted here, but the values are standardised anew at the same times.
    opt, found, units = make(fit_every=fit_every, standardize=True, **KNOWN), [], None
    for n in range(39):
        opt.ask()
        if opt.model() is not None and opt.model().units != units:
            found, units = [*found, n], opt.model().units
        advance(opt, 1)
    assert found[: len(expected)] == expected


def test_hyperparameters_are_fitted_once_there_are_enough_values():
    opt = make(lengthscale=LogNormal(1.0, 1.0), variance=Uniform(0.1, 5.0), noise=1e-4, fit_from=8, scale=1.0)
    advance(opt, 7)
    opt.ask()
    assert set(opt.model().gp.kernel.ell(2)) == {LogNormal(1.0, 1.0).mean}
    advance(opt, 30, value=lambda query: float(np.sin(12.0 * query.x[0])))
    first, second = opt.model().gp.kernel.lengthscale
    assert first < 0.5 * second  # the second parameter has no influence


def test_a_failed_query_is_not_asked_again():
    opt = make(d=2, scale=1.0, **KNOWN)
    advance(opt, 6)
    failed = []
    for _ in range(4):
        (query,) = opt.ask()
        assert all(np.abs(query.x - x).max() > 0.02 for x in failed)
        failed.append(query.x)
        opt.tell(query, failed=True)
    assert all((opt.iterate != x).any() for x in failed)
    advance(opt, 5)
    assert np.isfinite(opt.best.value)


def test_points_from_elsewhere_are_used():
    opt = make(scale=1.0, **KNOWN)
    advance(opt, 3, value=lambda query: 0.0)
    opt.tell([0.9, 0.1], 2.0)
    assert opt.iterate.tolist() == [0.9, 0.1]
    assert np.abs(opt.ask()[0].x - [0.9, 0.1]).max() < 0.5
    opt.tell([1.5, 0.1], 3.0)  # out of bounds: the model knows of it, the guess stays within
    assert opt.iterate.tolist() == [0.9, 0.1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"bounds": None}, "bounds: this method searches a box"),
        ({"bounds": (0.0, np.inf)}, "bounds: this method searches a box"),
        ({"lengthscale": [1.0, 2.0, 3.0]}, "lengthscale: expected a number or 2 numbers"),
    ],
)
def test_mistakes_are_named(arguments, words):
    with pytest.raises(InputError, match=words):
        make(**arguments)
