"""Prior means with a gradient, against dense algebra and differences."""

from dataclasses import dataclass

import numpy as np
import pytest

import gibo
from gibo import GaussianProcess, InputError, SquaredExponential
from gibo.acquisition.confidence import PosteriorAtPoint
from gibo.acquisition.expected_improvement import means_at_data
from gibo.means import LinearMean, Mean, QuadraticMean
from optimizer_helpers import through_json


@dataclass(frozen=True)
class Wave(Mean):
    """A user's own."""

    size: float

    def __call__(self, X):
        return self.size * np.sin(X).sum(axis=1)

    def gradient(self, X):
        return self.size * np.cos(X)


MEANS = [
    LinearMean((1.0, -2.0, 0.5), 0.3),
    QuadraticMean(centre=(0.2, -0.1, 0.4), curvature=(1.0, 2.0, 0.5), top=0.7),
    Wave(1.5),
]


def data(seed=0, n=6):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)), rng.normal(size=n), rng.normal(size=(2, 3)), rng.normal(size=(2, 3))


def differences(f, x, h=1e-5):
    return np.array([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(len(x))])


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("gradients", [False, True])
def test_the_posterior_by_dense_algebra(mean, gradients):
    X, y, G, g = data()
    kernel = SquaredExponential([0.7, 1.1, 0.9], 1.3)
    told = (G, g, 0.2) if gradients else ()
    gp = GaussianProcess(kernel, noise=0.05, mean=mean).condition(X, y, *told)
    t = np.array([0.1, 0.3, -0.2])
    G, g = (G, g) if gradients else (G[:0], g[:0])
    K = kernel.joint(X, G, X, G) + np.diag([0.2] * g.size + [0.05] * len(y))
    residual = np.concatenate([(g - mean.gradient(G)).ravel(), y - mean(X)])
    weights = np.linalg.solve(K, residual)
    expected = float(mean(t[None])[0] + (kernel.joint(X, G, t[None], G[:0]).T @ weights)[0])
    assert gp.predict(t).mean == pytest.approx(expected, rel=1e-10)
    sign, logdet = np.linalg.slogdet(K)
    likelihood = -0.5 * (residual @ weights + logdet + len(K) * np.log(2 * np.pi))
    assert sign == 1.0
    assert gp.log_likelihood == pytest.approx(likelihood, rel=1e-10)
    # eq. (3): ∇m(t) + Dᵀ a is the slope of the posterior mean.
    jacobian = gp.jacobian(t)
    np.testing.assert_allclose(jacobian.mean, differences(lambda x: gp.predict(x).mean, t), rtol=1e-6, atol=1e-8)
    plain = GaussianProcess(kernel, noise=0.05).condition(X, y, *told)
    np.testing.assert_array_equal(jacobian.covariance, plain.jacobian(t).covariance)
    # The same after an extension, and for what climbs on the posterior.
    np.testing.assert_allclose(gp.extend(t, 0.4).jacobian(t).mean, again(gp, t).jacobian(t).mean, rtol=1e-8)
    moments = PosteriorAtPoint(gp)(t)
    assert moments.mean == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(moments.mean_gradient, jacobian.mean, rtol=1e-9)
    np.testing.assert_allclose(means_at_data(gp), gp.predict(X).mean, rtol=1e-9)


def again(gp, t):
    data = gp.observations
    told = (data.G, data.g, data.g_noise) if len(data.G) else ()
    return gp.condition(np.vstack([data.X, t]), np.append(data.y, 0.4), *told)


@pytest.mark.parametrize("mean", MEANS)
def test_without_data_there_is_the_mean(mean):
    gp, t = GaussianProcess(SquaredExponential(), noise=0.1, mean=mean), np.array([0.1, 0.3, -0.2])
    assert gp.predict(t).mean == pytest.approx(float(mean(t[None])[0]))
    np.testing.assert_allclose(gp.jacobian(t).mean, differences(lambda x: float(mean(x[None])[0]), t), rtol=1e-7)


@pytest.mark.parametrize("mean", MEANS)
def test_the_likelihoods_slope_is_right(mean):
    X, y, G, g = data(1)

    def model(log_variance):
        kernel = SquaredExponential([0.7, 1.1, 0.9], float(np.exp(log_variance[0])))
        return GaussianProcess(kernel, noise=0.05, mean=mean).condition(X, y, G, g, 0.2)

    slope = differences(lambda z: model(z).log_likelihood, np.array([0.2]))
    assert model(np.array([0.2])).log_likelihood_slopes()["variance"] == pytest.approx(slope[0], rel=1e-6)


def optimizer(**changes):
    mean = QuadraticMean(centre=(3.0, 3.0), curvature=(2.0, 2.0), top=100.0)
    return gibo.GIBO([0.0, 0.0], scale=[0.5, 2.0], seed=0, settings=gibo.Settings(mean=mean, warp=False, **changes))


@pytest.mark.parametrize("standardize", [True, False])
def test_an_optimiser_with_the_true_mean_knows_the_gradient(standardize):
    """In its own units and scales; with gradients told too, exact or worthless ones."""
    opt = optimizer(standardize=standardize)
    for _ in range(3):
        for query in opt.ask():
            gradient = -2.0 * (query.x - 3.0) if query.kind == "iterate" else None
            noise = None if gradient is None else [1e-6, 1e12]
            opt.tell(query, 100.0 - float(((query.x - 3.0) ** 2).sum()), gradient=gradient, gradient_noise=noise)
    np.testing.assert_allclose(opt.jacobian().mean, -2.0 * (opt.iterate - 3.0), rtol=1e-6)
    other = gibo.GIBO.from_state(through_json(opt.state()))
    assert [q.x.tolist() for q in other.ask()] == [q.x.tolist() for q in opt.ask()]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: gibo.GIBO([0.0] * 3, settings=gibo.Settings(mean=LinearMean((1.0, 2.0)), warp=False)),
            "2 numbers do not fit points",
        ),
        (
            lambda: gibo.Settings(mean=LinearMean((1.0,))),
            "mean: a mean that is a function cannot be warped",
        ),
        (lambda: QuadraticMean(centre=(0.0, 0.0), curvature=(1.0,)), "QuadraticMean.curvature"),
        (lambda: LinearMean((np.nan,)), "LinearMean.slope"),
    ],
)
def test_mistakes(make, words):
    with pytest.raises(InputError, match=words):
        make()
