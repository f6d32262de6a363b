"""Means that are fitted, made of a kernel, or given to an optimiser; `test_gp.py` has the posterior with a mean."""

import numpy as np
import pytest

import gibo
from dense import Wave, differences
from gibo import GaussianProcess, InputError, SquaredExponential
from gibo._serialize import from_plain, to_plain
from gibo.acquisition.confidence import PosteriorAtPoint
from gibo.map_fit import likelihood_of_values
from gibo.means import Fitted, KernelMean, LinearMean, QuadraticMean
from gibo.optimizers.units import Units
from optimizer_helpers import through_json

AT, STEP = np.array([0.1, 0.3, -0.2]), 1e-5


def data(seed, n):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)), rng.normal(size=n), rng.normal(size=(2, 3)), rng.normal(size=(2, 3))


# -- a mean up to a shift and a factor --------------------------------------------------------------------------------


def fitted_model(told=True, ell=(0.7, 1.1, 0.9), variance=1.3, noise=0.05):
    X, y, G, g = data(2, 9)
    gp = GaussianProcess(SquaredExponential(np.array(ell), variance), noise=noise, mean=Fitted(Wave(1.5)))
    return gp.condition(X, y, *((G, g, 0.2) if told else ()))


def with_random_factor(gp):
    """K, targets and f of the same model by dense algebra, where the factor of f is a random number of variance v."""
    (mean, kernel), data = (gp.mean.mean, gp.kernel), gp.observations
    centre, spread = mean(data.X).mean(), mean(data.X).std()

    def f(x):
        return (mean(x) - centre) / spread

    column = np.concatenate([(mean.gradient(data.G) / spread).ravel(), f(data.X)])
    K = kernel.joint(data.X, data.G, data.X, data.G) + np.diag(data.noise(gp.noise))
    v = data.y.var()
    return K, K + v * np.outer(column, column), data.targets(0.0), lambda x: v * f(x) * column


@pytest.mark.parametrize("told", [False, True])
def test_a_fitted_mean_is_a_random_factor_by_dense_algebra(told):
    gp, t = fitted_model(told), AT
    K, total, targets, cross = with_random_factor(gp)
    data, solve = gp.observations, np.linalg.solve
    one = np.concatenate([np.zeros(data.g.size), np.ones(len(data.y))])
    level = (one @ solve(total, targets)) / (one @ solve(total, one))
    weights = solve(total, targets - level * one)

    def mean(x):
        k = gp.kernel.joint(data.X, data.G, x[None], data.G[:0])[:, 0] + cross(x[None])
        return level + k @ weights

    assert gp.predict(t).mean == pytest.approx(mean(t), rel=1e-9)
    np.testing.assert_allclose(gp.jacobian(t).mean, differences(mean, t, STEP), rtol=1e-6)
    moments = PosteriorAtPoint(gp)(t)
    assert moments.mean == pytest.approx(mean(t), rel=1e-9)
    np.testing.assert_allclose(moments.mean_gradient, differences(mean, t, STEP), rtol=1e-6)
    fit = (targets - level * one) @ weights + np.linalg.slogdet(K)[1] + len(K) * np.log(2.0 * np.pi)
    assert gp.log_likelihood == pytest.approx(-0.5 * fit, rel=1e-9)
    w = np.column_stack([solve(np.linalg.cholesky(K), targets), 2.0 * solve(np.linalg.cholesky(K), targets)])
    square = (targets - level * one) @ weights
    np.testing.assert_allclose(gp.regression.squares(w), [square, 4.0 * square], rtol=1e-9)
    # Both shift and factor integrated out, less the shift alone.
    volume = [np.linalg.slogdet(A)[1] + np.log(one @ solve(A, one)) for A in (total, K)]
    assert gp.regression.log_occam_factor == pytest.approx(0.5 * (volume[0] - volume[1]), rel=1e-9)


def test_the_likelihoods_slopes_with_a_fitted_mean():
    hyperparameters = np.log([0.7, 1.1, 0.9, 1.3, 0.05])
    for told in (False, True):

        def model(z, told=told):
            *ell, variance, noise = np.exp(z)
            return fitted_model(told, ell, float(variance), float(noise))

        expected = differences(lambda z, model=model: model(z).log_likelihood, hyperparameters, STEP)
        gp = model(hyperparameters)
        slopes = gp.log_likelihood_slopes()
        found = [*slopes["lengthscale"], slopes["variance"], slopes["noise"]]
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
        if not told:
            value, fast = likelihood_of_values(gp, gp.observations)
            assert value == pytest.approx(gp.log_likelihood, rel=1e-10)
            np.testing.assert_allclose([*fast["lengthscale"], fast["variance"], fast["noise"]], found, rtol=1e-8)


def test_without_values_a_fitted_mean_is_zero():
    gp = GaussianProcess(SquaredExponential(), noise=0.1, mean=Fitted(Wave(1.5)))
    assert gp.predict(np.zeros(3)).mean == 0.0
    assert (gp.jacobian(np.zeros(3)).mean == 0.0).all()
    alike = gp.condition(np.eye(3), [2.0, 2.0, 2.0])
    assert alike.predict(np.array([9.0, 9.0, 9.0])).mean == pytest.approx(2.0)


@pytest.mark.parametrize("kernel", [SquaredExponential([0.7, 1.1, 0.9], 1.3), gibo.Matern52(0.8)])
def test_a_kernel_mean_is_that_of_a_gaussian_process(kernel):
    X, y, *_ = data(3, 8)
    gp, t = GaussianProcess(kernel, noise=0.05, mean=0.4).condition(X, y), AT
    mean = from_plain(through_json(to_plain(KernelMean(kernel, X, gp.a))))
    assert 0.4 + mean(t[None])[0] == pytest.approx(gp.predict(t).mean, rel=1e-10)
    np.testing.assert_allclose(mean.gradient(t[None])[0], gp.jacobian(t).mean, rtol=1e-9)


# -- in an optimiser --------------------------------------------------------------------------------------------------


def searched(mean, value, **told_at_iterate):
    """An optimiser after three iterations; at the iterate a gradient is told too."""
    opt = gibo.GIBO([0.0, 0.0], scale=[0.5, 2.0], seed=0, settings=gibo.Settings(mean=mean, warp=False))
    for _ in range(3):
        for query in opt.ask():
            gradient = -2.0 * (query.x - 3.0) if told_at_iterate and query.kind == "iterate" else None
            opt.tell(query, value(query.x), gradient=gradient, **(told_at_iterate if gradient is not None else {}))
    other = gibo.GIBO.from_state(through_json(opt.state()))
    assert other.uses_mean == opt.uses_mean
    assert [q.x.tolist() for q in other.ask()] == [q.x.tolist() for q in opt.ask()]
    return opt


def test_an_optimiser_with_the_true_mean_knows_the_gradient():
    """In its own units and scales; with gradients told too, exact or worthless ones."""
    mean = QuadraticMean(centre=(3.0, 3.0), curvature=(2.0, 2.0), top=100.0)
    opt = searched(mean, lambda x: 100.0 - float(((x - 3.0) ** 2).sum()), gradient_noise=[1e-6, 1e12])
    np.testing.assert_allclose(opt.jacobian().mean, -2.0 * (opt.iterate - 3.0), rtol=1e-6)


@pytest.mark.parametrize("factor", [0.01, -3.0])
def test_an_optimiser_finds_the_shift_and_the_factor(factor):
    mean = Fitted(QuadraticMean(centre=(3.0, 3.0), curvature=(2.0, 2.0)))
    opt = searched(mean, lambda x: 50.0 - factor * float(((x - 3.0) ** 2).sum()))
    assert opt.uses_mean
    expected = -2.0 * factor * (opt.iterate - 3.0)
    np.testing.assert_allclose(opt.jacobian().mean, expected, rtol=1e-2, atol=1e-2 * abs(factor))


def test_a_worthless_mean_changes_nothing():
    rng = np.random.default_rng(0)
    mean = KernelMean(SquaredExponential(1.0), rng.normal(size=(30, 3)), rng.normal(size=30))

    def queries(settings):
        opt, noise, found = gibo.GIBO(np.zeros(3), scale=0.3, settings=settings), np.random.default_rng(1), []
        for _ in range(6):
            for query in opt.ask():
                opt.tell(query, -float(((query.x - 1.0) ** 2).sum()) + 0.1 * noise.normal())
                found.append(query.x.tolist())
        return opt, found

    ignoring, found = queries(gibo.Settings(mean=Fitted(mean)))
    _, expected = queries(gibo.Settings())
    assert found == expected
    assert not ignoring.uses_mean


def test_values_are_warped_with_a_fitted_mean_and_the_warp_is_the_likeliest():
    settings = gibo.Settings(mean=Fitted(Wave(1.5)), fit="never")
    opt = gibo.GIBO(np.zeros(3), scale=0.3, settings=settings)
    for _ in range(5):
        for query in opt.ask():
            opt.tell(query, -float(np.exp(8.0 * query.x.sum())))
    model, y = opt.model(), np.array([e.value for e in opt.evaluations])
    assert model.units.warp != "none"
    candidates = list(Units.candidates(y))
    scores = [
        model.gp.condition(model.gp.observations.X, units.apply(y)).log_likelihood
        + float(units.log_slope(y).sum())
        - len(y) * np.log(units.spread)
        for units in candidates
    ]
    assert candidates[int(np.argmax(scores))] == model.units


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: gibo.Settings(mean=LinearMean((1.0, 2.0)), warp=False).resolve(3), "2 numbers do not fit points"),
        (
            lambda: gibo.Settings(mean=LinearMean((1.0,))),
            "mean: a mean that is a function .* cannot be warped",
        ),
        (lambda: QuadraticMean(centre=(0.0, 0.0), curvature=(1.0,)), "QuadraticMean.curvature"),
        (lambda: gibo.Settings(mean=Fitted(LinearMean((1.0, 2.0)))).resolve(3), "2 numbers do not fit points"),
        (lambda: KernelMean(SquaredExponential(), [[0.0, 1.0]], [1.0, 2.0]), "KernelMean.weights"),
    ],
)
def test_mistakes(make, words):
    with pytest.raises(InputError, match=words):
        make()
