import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from gibo import GaussianProcess, GradientInformation, Matern52, SquaredExponential
from gibo.errors import InputError

D = 3
ELL = np.array([0.5, 1.2, 0.8])


@pytest.fixture(params=[SquaredExponential, Matern52])
def kernel(request):
    return request.param(ELL, 1.7)


@pytest.fixture(params=[False, True], ids=["values", "gradients"])
def data(request):
    """X, y and, perhaps, locations, values and noise of gradients; two points and two gradients coincide."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(7, D)), rng.normal(size=7)
    X[4] = X[1]
    if not request.param:
        return X, y
    G = rng.normal(size=(3, D))
    G[0], G[2] = X[0], G[1]
    return X, y, G, rng.normal(size=(3, D)), rng.uniform(0.01, 0.1, size=(3, D))


def dense(kernel, noise, mean, X, y, G=None, g=None, g_noise=None):
    """K, the centred observations and the covariance of the observations with values and gradients elsewhere."""
    G = X[:0] if G is None else G
    g, g_noise = (X[:0], X[:0]) if g is None else (g, g_noise)
    K = kernel.joint(X, G, X, G) + np.diag(np.concatenate([g_noise.ravel(), np.full(len(X), noise)]))
    return K, np.concatenate([g.ravel(), y - mean]), lambda X2, G2: kernel.joint(X, G, X2, G2)


def differences(f, x, step):
    """Central differences of f by the components of x, stacked last; a step for each component."""
    return np.stack([(f(x + s) - f(x - s)) / (2.0 * s.max()) for s in np.diag(step)], axis=-1)


def same(gp, other, rtol=1e-10):
    """All that two models of the same data say agrees."""
    x = np.random.default_rng(9).normal(size=(5, D))

    def close(a, b):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * max(np.abs(b).max(), 1e-300))

    for mine, others in zip(gp.predict(x), other.predict(x), strict=True):
        close(mine, others)
    for t in (x[0], gp.observations.X[0]):
        for mine, others in zip(gp.jacobian(t), other.jacobian(t), strict=True):
            close(mine, others)
    close(gp.prior_mean, other.prior_mean)
    close(gp.log_likelihood, other.log_likelihood)
    slopes, others = gp.log_likelihood_slopes(), other.log_likelihood_slopes()
    for name in slopes:
        close(slopes[name], others[name])


# -- the posterior ----------------------------------------------------------------------------------------------------


def test_posterior_against_dense_formulas(kernel, data):
    gp = GaussianProcess(kernel, noise=0.03, mean=0.4).condition(*data)
    K, targets, cross = dense(kernel, 0.03, 0.4, *data)
    x = np.vstack([np.random.default_rng(1).normal(size=(4, D)), data[0][:1]])
    k = cross(x, x[:0])
    assert gp.jitter == 0.0
    mean, variance = gp.predict(x)
    np.testing.assert_allclose(mean, 0.4 + k.T @ np.linalg.solve(K, targets), rtol=1e-10)
    posterior = kernel.k(x, x) - k.T @ np.linalg.solve(K, k)
    np.testing.assert_allclose(variance, posterior.diagonal(), rtol=1e-10, atol=1e-12)
    for t in x:
        Dt = cross(x[:0], t[None])
        H = kernel.d2k_dadb(t[None], t[None])[0, 0]
        mean, covariance = gp.jacobian(t)
        np.testing.assert_allclose(mean, Dt.T @ np.linalg.solve(K, targets), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(covariance, H - Dt.T @ np.linalg.solve(K, Dt), rtol=1e-9, atol=1e-11)
    sign, logdet = np.linalg.slogdet(K)
    likelihood = -0.5 * (targets @ np.linalg.solve(K, targets) + logdet + len(K) * math.log(2 * math.pi))
    assert sign == 1
    assert gp.log_likelihood == pytest.approx(likelihood, rel=1e-11)


def test_without_noise_the_mean_interpolates(kernel):
    rng = np.random.default_rng(2)
    X, y, G, g = rng.normal(size=(6, D)), rng.normal(size=6), rng.normal(size=(2, D)), rng.normal(size=(2, D))
    gp = GaussianProcess(kernel, noise=0.0, mean="estimated").condition(X, y, G, g, 0.0)
    np.testing.assert_allclose(gp.predict(X).mean, y, rtol=1e-8)
    np.testing.assert_allclose(gp.predict(X).variance, 0.0, atol=1e-10)
    for t, slope in zip(G, g, strict=True):
        np.testing.assert_allclose(gp.jacobian(t).mean, slope, rtol=1e-8)
        np.testing.assert_allclose(gp.jacobian(t).covariance, 0.0, atol=1e-9)


def test_one_point_gives_floats_and_several_give_arrays(kernel, data):
    for gp in (GaussianProcess(kernel, noise=0.1), GaussianProcess(kernel, noise=0.1).condition(*data)):
        x = np.random.default_rng(3).normal(size=(4, D))
        mean, variance = gp.predict(x)
        assert mean.shape == variance.shape == (4,)
        for i in range(4):
            one = gp.predict(x[i].tolist())
            assert type(one.mean) is float
            assert type(one.variance) is float
            assert one == pytest.approx((mean[i], variance[i]), rel=1e-10)
        assert gp.predict(x[:1]).mean.shape == (1,)
        assert gp.predict(x[:0]).mean.shape == (0,)
        assert gp.jacobian(x[0].tolist()).mean.shape == (D,)
        assert gp.jacobian(x[0]).covariance.shape == (D, D)


@pytest.mark.parametrize("mean", [0.0, -2.5, "estimated"])
def test_without_data_the_prior_stands(kernel, mean):
    expected = 0.0 if mean == "estimated" else mean
    prior = GaussianProcess(kernel, noise=0.1, mean=mean)
    empty = prior.condition(np.empty((0, D)), [])
    for gp in (prior, empty, empty.extend(np.empty((0, D)), [])):
        assert gp.n == 0
        assert gp.jitter == 0.0
        assert gp.predict(np.ones(D)) == (expected, 1.7)
        assert np.array_equal(gp.predict(np.ones((2, D))).mean, [expected, expected])
        assert np.array_equal(gp.predict(np.ones((2, D))).variance, [1.7, 1.7])
        jacobian = gp.jacobian(np.ones(D))
        assert np.array_equal(jacobian.mean, np.zeros(D))
        np.testing.assert_allclose(jacobian.covariance, kernel.d2k_dadb(np.ones((1, D)), np.ones((1, D)))[0, 0])
    same(empty.extend(np.ones((2, D)), [0.1, 0.2]), prior.condition(np.ones((2, D)), [0.1, 0.2]))


def test_no_data_are_a_likelihood_of_one_without_noise_on_the_console(kernel, capfd):
    empty = GaussianProcess(kernel, noise=0.1).condition(np.empty((0, D)), [])
    assert empty.log_likelihood == 0.0
    slopes = empty.log_likelihood_slopes()
    assert np.array_equal(slopes["lengthscale"], np.zeros(D))
    assert (slopes["variance"], slopes["noise"]) == (0.0, 0.0)
    assert capfd.readouterr() == ("", "")  # LAPACK writes its complaints past Python


def test_gradients_alone_are_data(kernel):
    G, g = np.random.default_rng(4).normal(size=(2, 2, D))
    prior = GaussianProcess(kernel, noise=0.1, mean="estimated")
    gp = prior.condition([], [], G, g, 1e-6)
    np.testing.assert_allclose(gp.jacobian(G[0]).mean, g[0], rtol=1e-3)
    assert gp.n == 0
    assert gp.prior_mean == 0.0
    same(gp.extend([G[0]], [2.0]), prior.condition([G[0]], [2.0], G, g, 1e-6))
    same(prior.condition([G[0]], [2.0]).extend([], [], G, g, 1e-6), prior.condition([G[0]], [2.0], G, g, 1e-6))


def test_gradient_noise_broadcasts(kernel):
    X, G, g = np.zeros((1, D)), *np.random.default_rng(5).normal(size=(2, 2, D))
    prior = GaussianProcess(kernel, noise=0.1)
    same(prior.condition(X, [1.0], G, g, 0.2), prior.condition(X, [1.0], G, g, np.full((2, D), 0.2)))
    by_point = prior.condition(X, [1.0], G, g, np.repeat([[0.1], [0.3]], D, axis=1))
    same(prior.condition(X, [1.0], G, g, [0.1, 0.3]), by_point)
    same(prior.condition(X, [1.0], G, g, [[0.1], [0.3]]), by_point)
    same(prior.condition(X, [1.0], G, g, [0.1, 0.2, 0.3]), prior.condition(X, [1.0], G, g, [[0.1, 0.2, 0.3]] * 2))


# -- extending --------------------------------------------------------------------------------------------------------

# Each step is (number of values, number of gradients).
ORDERS = [
    [(1, 0), (1, 0)],
    [(3, 0), (1, 0), (5, 0)],
    [(2, 1), (1, 0)],
    [(1, 0), (1, 1), (1, 0)],
    [(1, 1), (1, 1), (2, 2)],
    [(2, 0), (0, 1), (3, 0), (0, 2), (1, 1), (1, 0)],
    [(0, 1), (1, 0), (0, 1), (2, 0)],
]


@pytest.mark.parametrize("mean", [0.3, "estimated"])
@pytest.mark.parametrize("steps", ORDERS)
def test_extending_in_any_order_equals_conditioning_from_scratch(kernel, steps, mean):
    rng = np.random.default_rng(6)
    prior = gp = GaussianProcess(kernel, noise=0.02, mean=mean)
    X, y, G, g, g_noise = np.empty((0, D)), np.empty(0), np.empty((0, D)), np.empty((0, D)), np.empty((0, D))
    for values, gradients in steps:
        new_X, new_y = rng.normal(size=(values, D)), rng.normal(size=values)
        new_G, new_g = rng.normal(size=(2, gradients, D))
        new_noise = rng.uniform(0.01, 0.1, size=(gradients, D))
        X, y, G, g = np.vstack([X, new_X]), np.append(y, new_y), np.vstack([G, new_G]), np.vstack([g, new_g])
        g_noise = np.vstack([g_noise, new_noise])
        gp = gp.extend(new_X, new_y, *((new_G, new_g, new_noise) if gradients else ()))
        if len(X):
            same(gp, prior.condition(X, y, G, g, g_noise))
    assert gp.n == len(X)


def test_a_gp_does_not_change(kernel, data):
    X, y, *gradients = (part.copy() for part in data)
    gp = GaussianProcess(kernel, noise=0.02, mean="estimated").condition(X, y, *gradients)
    t = np.zeros(D)
    before = [
        *gp.predict(t),
        *gp.jacobian(t),
        gp.log_likelihood,
        *gp.log_likelihood_slopes().values(),
        gp.factor.L.copy(),
    ]
    gp.extend(t, 5.0)
    gp.extend([t], [5.0], [t], [t], 0.1)
    gp.condition([t], [5.0])
    for part in (X, y, *gradients):
        part[:] += 1.0  # nor does it hold on to the caller's arrays
    again = [*gp.predict(t), *gp.jacobian(t), gp.log_likelihood, *gp.log_likelihood_slopes().values(), gp.factor.L]
    fresh = GaussianProcess(kernel, noise=0.02, mean="estimated").condition(*data)
    same(gp, fresh)
    for name, held in vars(gp.observations).items():
        assert np.array_equal(held, getattr(fresh.observations, name), equal_nan=True), name
    for was, now in zip(before, again, strict=True):
        assert np.array_equal(was, now)
    with pytest.raises(AttributeError):
        gp.noise = 1.0


@pytest.mark.parametrize("noise", [0.0, 1e-18])
def test_extending_by_an_observed_point_without_noise_stays_between_the_values(kernel, noise):
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(8, D)), rng.normal(size=8)
    gp = GaussianProcess(kernel, noise=noise).condition(X, y)
    for x, value in zip(X, y, strict=True):
        again = gp.extend(x, value)
        np.testing.assert_allclose(again.predict(X).mean, y, atol=1e-6)
        differing = gp.extend(x, value + 0.1)
        assert value - 0.1 < differing.predict(x).mean < value + 0.2
        assert np.abs(differing.predict(X + 0.3).mean).max() < 10 * np.abs(gp.predict(X + 0.3).mean).max()


# -- mean, likelihood -------------------------------------------------------------------------------------------------


def test_the_estimated_mean_is_the_most_likely_one(kernel, data):
    X, y, *gradients = data
    gp = GaussianProcess(kernel, noise=0.05, mean="estimated").condition(X, y + 3.0, *gradients)

    def cost(m):
        return -GaussianProcess(kernel, noise=0.05, mean=m).condition(X, y + 3.0, *gradients).log_likelihood

    best = minimize_scalar(cost, bracket=(0.0, 6.0), tol=1e-10)
    assert gp.prior_mean == pytest.approx(best.x, rel=1e-6)
    assert gp.log_likelihood == pytest.approx(-best.fun, rel=1e-12)
    assert gp.log_likelihood > -cost(gp.prior_mean + 1e-3)
    assert gp.predict(np.full(D, 1e3)).mean == pytest.approx(gp.prior_mean)


# -- noise that differs between values --------------------------------------------------------------------------------


def test_the_noise_on_each_value(kernel, data):
    """K's diagonal, by a dense formula; a model that is extended; every derivative of the likelihood."""
    X, y, *gradients = data
    rng = np.random.default_rng(3)
    scale, known = rng.uniform(0.1, 1.0, len(y)), rng.uniform(0.0, 0.3, len(y)) * (np.arange(len(y)) > 2)
    scale[3] = 0.0

    def model(p):
        gp = GaussianProcess(kernel.with_hyperparameters(np.exp(p[:D]), np.exp(p[D])), np.exp(p[D + 1]), "estimated")
        return gp.condition(X, y, *gradients, noise_scale=scale, known_noise=known)

    p = np.log([*ELL, 1.7, 0.05])
    gp = model(p)
    K, centred, cross = dense(kernel, 0.05, gp.prior_mean, *data)
    K[-len(y) :, -len(y) :] += np.diag(0.05 * scale + known - 0.05)
    x = rng.normal(size=(4, D))
    np.testing.assert_allclose(
        gp.predict(x).mean, gp.prior_mean + cross(x, x[:0]).T @ np.linalg.solve(K, centred), rtol=1e-9
    )
    extended = GaussianProcess(kernel, noise=0.05, mean="estimated")
    extended = extended.condition(X[:4], y[:4], *gradients, noise_scale=scale[:4], known_noise=known[:4])
    same(extended.extend(X[4:], y[4:], noise_scale=scale[4:], known_noise=known[4:]), gp)
    by_ell, by_s2, by_noise = gp.log_likelihood_slopes().values()
    numerical = differences(lambda p: model(p).log_likelihood, p, np.full(D + 2, 1e-5))
    np.testing.assert_allclose([*by_ell, by_s2, by_noise], numerical, rtol=1e-7, atol=1e-7)


def test_repeated_values_are_their_mean_with_less_noise(kernel):
    rng = np.random.default_rng(4)
    X, y, r = rng.normal(size=(5, D)), rng.normal(size=5), 4
    repeats = rng.normal(size=r)
    prior = GaussianProcess(kernel, noise=0.2, mean=0.3)
    each = prior.condition(np.vstack([X, np.tile(X[:1], (r, 1))]), [*y, *repeats])
    merged = prior.condition([*X, X[0]], [*y, repeats.mean()], noise_scale=[1.0] * 5 + [1.0 / r])
    extended = prior.condition(X, y).extend(X[0], repeats.mean(), noise_scale=1.0 / r)
    known = prior.condition(
        [*X, X[0]], [*y, repeats.mean()], noise_scale=[1.0] * 5 + [0.0], known_noise=[0.0] * 5 + [0.05]
    )
    x = rng.normal(size=(4, D))
    for one in (merged, extended, known):
        for mine, others in zip(
            [*one.predict(x), *one.jacobian(x[0])], [*each.predict(x), *each.jacobian(x[0])], strict=True
        ):
            np.testing.assert_allclose(mine, others, rtol=1e-9, atol=1e-12)
        mine, others = GradientInformation(one, x[0]), GradientInformation(each, x[0])
        np.testing.assert_allclose(mine(x), others(x), rtol=1e-9)


# -- what users pass in -----------------------------------------------------------------------------------------------

I2 = np.eye(2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda gp: gp.condition(I2, [0.0]), "expected one value for each point, got 2 points and 1 values"),
        (lambda gp: gp.condition(np.eye(3), [0.0] * 3), "2 lengthscales do not fit points of 3 dimensions"),
        (lambda gp: gp.condition(I2, [0.0, 1.0], gradient_X=I2), "give gradients and gradient_noise"),
        (lambda gp: gp.condition(I2, [0.0, 1.0], None, I2, 0.1), "locations are missing; give gradient_X"),
        (lambda gp: gp.condition(I2, [0.0, 1.0], I2, I2[:1], 0.1), "one for each of the 2 rows of gradient_X, got 1"),
        (lambda gp: gp.condition(I2, [0.0, 1.0], I2, I2, -0.1), "gradient_noise: expected non-negative"),
        (lambda gp: gp.condition(I2, [0.0, 1.0], I2, I2, [0.1, 0.2, 0.3]), "gradient_noise: expected"),
        (
            lambda gp: gp.condition(I2, [0.0, 1.0]).extend([0.0, 0.0, 0.0], 1.0),
            "X: expected points of 2 dimensions, got 3",
        ),
        (lambda gp: gp.condition(I2, [0.0, 1.0]).predict([[0.0, np.nan]]), "x: expected finite numbers"),
        (lambda gp: gp.condition(I2, [0.0, 1.0]).jacobian([0.0] * 3), "x: expected a vector of 2 numbers, got 3"),
        (lambda gp: gp.condition(I2, [0.0, 1.0], known_noise=[0.1]), "known_noise: expected"),
        (lambda gp: gp.log_likelihood, r"no data yet; call condition\(X, y\) first"),
        (lambda gp: GaussianProcess(gp.kernel, noise=-1.0), "noise: expected a non-negative finite number, got -1.0"),
        (lambda gp: GaussianProcess(gp.kernel, noise=0.1, mean="zero"), "mean: expected"),
    ],
)
def test_mistakes_get_a_helpful_message(call, message):
    with pytest.raises(InputError, match=message):
        call(GaussianProcess(SquaredExponential([1.0, 2.0]), noise=0.1))


# -- numerics never give up -------------------------------------------------------------------------------------------


@st.composite
def situations(draw):
    """A model, data and two points: everything that is hard for the numerics, in any combination."""
    d, n = draw(st.integers(1, 6)), draw(st.one_of(st.just(1), st.integers(1, 15)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    ell = 10.0 ** rng.uniform(-3, 3, d if draw(st.booleans()) else ())
    family = draw(st.sampled_from([SquaredExponential, Matern52]))
    noise = draw(st.one_of(st.just(0.0), st.floats(-15, 6).map(lambda e: 10.0**e)))
    mean = draw(st.sampled_from([0.0, "estimated"]))
    gp = GaussianProcess(family(ell, 10.0 ** rng.uniform(-3, 3)), noise=noise, mean=mean)
    X = rng.normal(size=(n + 2, d))
    if draw(st.booleans()):
        X = X[rng.integers(0, 1 + n // 2, n + 2)]  # duplicates, also of what comes later
    scale = 10.0 ** draw(st.floats(-9, 9))
    y = scale * (np.ones(n + 2) if draw(st.booleans()) else rng.normal(size=n + 2))
    gradients = ()
    if draw(st.booleans()):
        m = int(rng.integers(1, 4))
        G = X[rng.integers(0, n + 2, m)]
        gradients = (G, scale * rng.normal(size=(m, d)), noise)
    return gp, X, y, gradients, rng.normal(size=d)


@given(situations())
@settings(deadline=None, derandomize=True, max_examples=40, database=None)
def test_numerics_never_give_up(situation):
    prior, X, y, gradients, t = situation
    n = len(y) - 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gp = prior.condition(X[:n], y[:n], *gradients)
        extended = gp.extend(X[n], y[n])
        further = extended.extend(X[n:], y[n:], *gradients)  # once more, and another
        for model in (gp, extended, further):
            for x in (t, X[0], X[-1]):
                mean, variance = model.predict(x)
                assert np.isfinite([mean, variance]).all()
                assert variance >= 0.0
                jacobian = model.jacobian(x)
                assert np.isfinite(jacobian.mean).all()
                assert np.isfinite(jacobian.covariance).all()
                assert (jacobian.covariance.diagonal() >= 0.0).all()
            assert np.isfinite(model.log_likelihood)
            for derivative in model.log_likelihood_slopes().values():
                assert np.isfinite(derivative).all()
            gi = GradientInformation(model, at=t)
            for acquisition in (gi, gi.extend(X[-1])):
                for x in (t, X[0], X[-1], X[0] + 1.0):
                    value, gradient = acquisition.value_and_gradient(x)
                    assert np.isfinite(value)
                    assert value >= 0.0
                    assert np.isfinite(gradient).all()
                assert np.isfinite(acquisition(X)).all()
                assert np.isfinite(acquisition.covariance).all()
