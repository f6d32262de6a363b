"""The Gaussian process with each kind of mean, noise and blocks, against dense algebra and differences."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from dense import CASES, ELL, KERNELS, NOISE, D, Dense, T, data, differences, model
from gibo import GaussianProcess, GradientInformation, Jacobian, Matern52, SquaredExponential
from gibo.acquisition.confidence import PosteriorAtPoint
from gibo.acquisition.expected_improvement import means_at_data
from gibo.blocks import BlockTerm
from gibo.errors import InputError
from gibo.gap import GapTerm

each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
with_and_without_gradients = pytest.mark.parametrize("gradients", [False, True], ids=["values", "gradients"])


def same(gp, other, rtol=1e-10):
    """All that two models of the same data say agrees."""
    x = np.random.default_rng(9).normal(size=(5, D))
    pairs = [*zip(gp.predict(x), other.predict(x), strict=True), (gp.log_likelihood, other.log_likelihood)]
    for t in (x[0], other.observations.X[0]):
        pairs += zip(gp.jacobian(t), other.jacobian(t), strict=True)
    slopes = gp.log_likelihood_slopes(), other.log_likelihood_slopes()
    for mine, others in pairs + [(slopes[0][name], slopes[1][name]) for name in slopes[1]]:
        np.testing.assert_allclose(mine, others, rtol=rtol, atol=rtol * max(np.abs(others).max(), 1e-300))


# -- the posterior ----------------------------------------------------------------------------------------------------


@each_kernel
@each_case
@with_and_without_gradients
def test_the_posterior(kernel, case, gradients):
    given = data(case, gradients)
    gp, dense = model(case, kernel, given), Dense(case, kernel, given)
    assert gp.log_likelihood == pytest.approx(dense.log_likelihood, rel=1e-10)
    posterior = PosteriorAtPoint(gp)
    for x in (T, T + 1.0, given["X"][0]):
        mean, variance = dense.posterior("v", x)
        assert gp.predict(x) == pytest.approx((mean.item(), variance.item()), rel=1e-9, abs=1e-12)
        gradient, covariance = dense.posterior("g", x)
        found = gp.jacobian(x)
        np.testing.assert_allclose(found.mean, gradient, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.covariance, covariance, rtol=1e-9, atol=1e-11)
        moments = posterior(x)
        np.testing.assert_allclose(moments[:2], gp.predict(x), rtol=1e-9, atol=1e-12)
        slopes = differences(lambda x: np.array(gp.predict(x)), x, 1e-5 * ELL)
        np.testing.assert_allclose(moments[2:], slopes, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(means_at_data(gp), gp.predict(given["X"]).mean, rtol=1e-9, atol=1e-12)


@each_kernel
@each_case
@with_and_without_gradients
def test_slopes_of_the_likelihood(kernel, case, gradients):
    given = data(case, gradients)
    gp = model(case, kernel, given)
    for name, slope in gp.log_likelihood_slopes().items():
        value = np.atleast_1d(gp.hyperparameters[name])
        if not value.any():
            continue

        def likelihood(z, name=name):
            number = float(np.exp(z[0])) if len(z) == 1 else np.exp(z)
            return gp.with_hyperparameters(**{name: number}).condition(**given).log_likelihood

        np.testing.assert_allclose(np.atleast_1d(slope), differences(likelihood, np.log(value), 1e-5), atol=1e-6)


@each_case
def test_extending_equals_conditioning(case):
    given = data(case, gradients=False)
    first, rest = ({name: part[where] for name, part in given.items()} for where in (slice(5), slice(5, None)))
    same(model(case, KERNELS[0], first).extend(**rest), model(case, KERNELS[0], given), rtol=1e-9)


# Each step is (number of values, number of gradients).
ORDERS = [[(2, 1), (1, 0)], [(2, 0), (0, 1), (3, 0), (0, 2), (1, 1), (1, 0)], [(0, 1), (1, 0), (0, 1), (2, 0)]]


@pytest.mark.parametrize("steps", ORDERS)
def test_extending_in_any_order_equals_conditioning(steps):
    rng = np.random.default_rng(6)
    prior = gp = GaussianProcess(KERNELS[0], noise=0.02, mean="estimated")
    arrived = [np.empty((0, D)), np.empty(0), np.empty((0, D)), np.empty((0, D)), np.empty((0, D))]
    for n, m in steps:
        new = [rng.normal(size=(n, D)), rng.normal(size=n), *rng.normal(size=(2, m, D)), rng.uniform(size=(m, D))]
        arrived = [np.concatenate(parts) for parts in zip(arrived, new, strict=True)]
        gp = gp.extend(*(new if m else new[:2]))
    same(gp, prior.condition(*arrived))


def test_gradient_noise_is_a_number_or_one_of_each_point_or_parameter():
    X, G, g = np.zeros((1, D)), *np.random.default_rng(5).normal(size=(2, 2, D))
    prior = GaussianProcess(KERNELS[0], noise=0.1)
    by_point, by_parameter = [[0.1] * D, [0.3] * D], [[0.1, 0.2, 0.3]] * 2
    cases = [(0.2, np.full((2, D), 0.2)), ([0.1, 0.3], by_point), ([[0.1], [0.3]], by_point)]
    for short, full in (*cases, ([0.1, 0.2, 0.3], by_parameter)):
        same(prior.condition(X, [1.0], G, g, short), prior.condition(X, [1.0], G, g, full))


def test_without_noise_the_mean_interpolates_also_where_a_point_comes_again():
    rng = np.random.default_rng(8)
    X, y, (G, g) = rng.normal(size=(8, D)), rng.normal(size=8), rng.normal(size=(2, 2, D))
    gp = GaussianProcess(KERNELS[0], noise=0.0, mean="estimated").condition(X, y, G, g, 0.0)
    np.testing.assert_allclose(gp.predict(X).mean, y, rtol=1e-7)
    np.testing.assert_allclose(gp.predict(X).variance, 0.0, atol=1e-9)
    for t, slope in zip(G, g, strict=True):
        np.testing.assert_allclose(gp.jacobian(t).mean, slope, rtol=1e-7)
        np.testing.assert_allclose(gp.jacobian(t).covariance, 0.0, atol=1e-8)
    for noise in (0.0, 1e-18):
        gp = GaussianProcess(KERNELS[0], noise=noise).condition(X, y)
        for x, value in zip(X, y, strict=True):
            np.testing.assert_allclose(gp.extend(x, value).predict(X).mean, y, atol=1e-6)
            differing = gp.extend(x, value + 0.1)
            assert value - 0.1 < differing.predict(x).mean < value + 0.2
            assert np.abs(differing.predict(X + 0.3).mean).max() < 10 * np.abs(gp.predict(X + 0.3).mean).max()


@each_kernel
def test_one_point_gives_floats_and_several_give_arrays(kernel):
    x = np.random.default_rng(3).normal(size=(4, D))
    for gp in (GaussianProcess(kernel, noise=0.1), model(CASES["constant"], kernel, data(CASES["constant"], True))):
        mean, variance = gp.predict(x)
        assert mean.shape == variance.shape == (4,)
        one = gp.predict(x[1].tolist())
        assert type(one.mean) is type(one.variance) is float
        assert one == pytest.approx((mean[1], variance[1]), rel=1e-10)
        assert (gp.predict(x[:1]).mean.shape, gp.predict(x[:0]).mean.shape) == ((1,), (0,))


@each_case
def test_without_values_the_prior_stands(case, capfd):
    """Also with data that are none: without a word of LAPACK, which writes its complaints past Python."""
    prior = GaussianProcess(KERNELS[0], NOISE, case.mean, blocks=case.term)
    empty = prior.condition(np.empty((0, D)), [], **({"blocks": []} if case.term else {}))
    shift, factor = (0.7, 1.4) if case.term and case.term.now else (0.0, 1.0)
    nothing = Dense(case._replace(mean=0.0 if case.mean == "estimated" else case.mean), KERNELS[0], data(case, False))
    for gp in (prior, empty):
        assert (gp.n, gp.jitter) == (0, 0.0)
        assert gp.predict(T) == pytest.approx((nothing.block_of_means([("v", T, None)])[0], 1.7 * factor + shift))
        np.testing.assert_allclose(gp.jacobian(T).mean, nothing.block_of_means([("g", T, None)]))
        np.testing.assert_allclose(gp.jacobian(T).covariance, factor * np.diag(1.7 / ELL**2))
    assert empty.log_likelihood == 0.0
    assert not any(np.any(slope) for slope in empty.log_likelihood_slopes().values())
    assert capfd.readouterr() == ("", "")


def test_gradients_alone_are_data():
    G, g = np.random.default_rng(4).normal(size=(2, 2, D))
    gp = GaussianProcess(KERNELS[0], noise=0.1, mean="estimated").condition([], [], G, g, 1e-6)
    np.testing.assert_allclose(gp.jacobian(G[0]).mean, g[0], rtol=1e-3)
    assert (gp.n, gp.prior_mean) == (0, 0.0)


def test_a_gp_does_not_change():
    given = data(CASES["estimated"], gradients=True)
    gp = model(CASES["estimated"], KERNELS[0], given)
    gp.extend([T], [5.0], [T], [T], 0.1)
    gp.condition([T], [5.0])
    for part in (given["X"], given["y"], given["gradient_X"], given["gradients"]):
        part[:] += 1.0  # nor does it hold on to the caller's arrays
    same(gp, model(CASES["estimated"], KERNELS[0], data(CASES["estimated"], gradients=True)))
    with pytest.raises(AttributeError):
        gp.noise = 1.0


# -- the gradient's posterior -----------------------------------------------------------------------------------------


def test_the_probability_of_ascent_is_that_of_sampled_gradients():
    rng = np.random.default_rng(1)
    A, mean, step = rng.normal(size=(3, 3)), 0.5 * rng.normal(size=3), rng.normal(size=3)
    sampled = (rng.multivariate_normal(mean, A @ A.T, size=40_000) @ step > 0).mean()
    assert Jacobian(mean, A @ A.T).probability_of_ascent(step) == pytest.approx(sampled, abs=0.01)


@pytest.mark.parametrize("d", [1, 2, 5, 30, 200])
@pytest.mark.parametrize("unit", [1e-90, 1.0, 1e90])
def test_the_certainty_is_the_credible_level_at_zero_in_any_unit(d, unit):
    rng = np.random.default_rng(d)
    A, mean = rng.normal(size=(d, d)), rng.normal(size=d)
    S = A @ A.T + 0.1 * np.eye(d)
    expected = chi2(d).cdf(mean @ np.linalg.solve(S, mean))
    assert Jacobian(unit * mean, unit**2 * S).certainty() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("mean", "covariance", "certainty", "probability"),
    [
        ([0, 0], np.eye(2), 0.0, 0.5),
        ([0, 0], np.zeros((2, 2)), 0.0, 0.5),
        ([1, 1], np.zeros((2, 2)), 1.0, 1.0),
        ([1e6, 1e6], 1e-12 * np.eye(2), 1.0, 1.0),
        ([1e-300, 1e-300], np.eye(2), 0.0, 0.5),  # a mean that is left far from all data
        ([1, 1], np.ones((2, 2)), chi2(2).cdf(1.0), 0.841344746),  # singular
    ],
)
def test_the_edges_of_certainty(mean, covariance, certainty, probability):
    jacobian = Jacobian(np.array(mean, dtype=float), covariance)
    assert jacobian.certainty() == pytest.approx(certainty, rel=1e-6)
    assert jacobian.probability_of_ascent(np.ones(2)) == pytest.approx(probability)
    assert jacobian.probability_of_ascent(-np.ones(2)) == pytest.approx(1.0 - probability)
    assert jacobian.probability_of_ascent(np.zeros(2)) == 0.5


# -- what users pass in -----------------------------------------------------------------------------------------------

I2 = np.eye(2)
GP = GaussianProcess(SquaredExponential([1.0, 2.0]), noise=0.1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: GP.condition(I2, [0.0]), "expected one value for each point, got 2 points and 1 values"),
        (lambda: GP.condition(np.eye(3), [0.0] * 3), "2 lengthscales do not fit points of 3 dimensions"),
        (lambda: GP.condition(I2, [0.0, 1.0], gradient_X=I2), "give gradients and gradient_noise"),
        (lambda: GP.condition(I2, [0.0, 1.0], None, I2, 0.1), "locations are missing; give gradient_X"),
        (lambda: GP.condition(I2, [0.0, 1.0], I2, I2[:1], 0.1), "one for each of the 2 rows of gradient_X, got 1"),
        (lambda: GP.condition(I2, [0.0, 1.0], I2, I2, -0.1), "gradient_noise: expected non-negative"),
        (lambda: GP.condition(I2, [0.0, 1.0], I2, I2, [0.1, 0.2, 0.3]), "gradient_noise: expected"),
        (lambda: GP.condition(I2, [0.0, 1.0]).extend([0.0] * 3, 1.0), "X: expected points of 2 dimensions, got 3"),
        (lambda: GP.condition(I2, [0.0, 1.0]).predict([[0.0, np.nan]]), "x: expected finite numbers"),
        (lambda: GP.condition(I2, [0.0, 1.0]).jacobian([0.0] * 3), "x: expected a vector of 2 numbers, got 3"),
        (lambda: GP.condition(I2, [0.0, 1.0], known_noise=[0.1]), "known_noise: expected"),
        (lambda: GP.log_likelihood, r"no data yet; call condition\(X, y\) first"),
        (lambda: GaussianProcess(GP.kernel, noise=-1.0), "noise: expected a non-negative finite number, got -1.0"),
        (lambda: GaussianProcess(GP.kernel, noise=0.1, mean="zero"), "mean: expected"),
        (
            lambda: GaussianProcess(GP.kernel, 0.1, blocks=BlockTerm(1.0, 0.0)).condition(I2, [0.0, 1.0]),
            "blocks: expected the block of each value",
        ),
        (lambda: GP.condition(I2, [0.0, 1.0], blocks=[1.0]), "blocks: expected 2 numbers"),
        (lambda: BlockTerm(1.0, 0.0, timescale=1.0), "timescale, now: give both"),
        (lambda: GapTerm(0.1, 0.1, factor=0.0), "factor: expected a positive finite number"),
        (lambda: GapTerm(0.1, 0.1, simulator_noise=-1.0), "simulator_noise"),
    ],
)
def test_mistakes_get_a_helpful_message(call, message):
    with pytest.raises(InputError, match=message):
        call()


# -- numerics never give up -------------------------------------------------------------------------------------------


@st.composite
def situations(draw):
    """A model, data and a point: everything that is hard for the numerics, in any combination."""
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
        gradients = (X[rng.integers(0, n + 2, m)], scale * rng.normal(size=(m, d)), noise)
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
        for each in (gp, extended, extended.extend(X[n:], y[n:], *gradients)):  # once more, and another
            found = [each.log_likelihood, *each.log_likelihood_slopes().values()]
            positive = []
            for x in (t, X[0], X[-1]):
                (mean, variance), jacobian = each.predict(x), each.jacobian(x)
                found += [mean, variance, *jacobian]
                positive += [variance, jacobian.covariance.diagonal()]
            gi = GradientInformation(each, at=t)
            for acquisition in (gi, gi.extend(X[-1])):
                for x in (t, X[0], X[-1], X[0] + 1.0):
                    value, gradient = acquisition.value_and_gradient(x)
                    found += [value, gradient]
                    positive += [value]
                found += [acquisition(X), acquisition.covariance]
            assert all(np.isfinite(part).all() for part in found)
            assert all(np.all(part >= 0.0) for part in positive)
