"""Evaluations that share a day, a seed or a moment: against dense formulas made pair by pair."""

import numpy as np
import pytest

from gibo import GaussianProcess, GradientInformation, InputError, Matern52, SquaredExponential, fit
from gibo.acquisition.confidence import PosteriorAtPoint
from gibo.acquisition.expected_improvement import means_at_data
from gibo.blocks import BlockTerm
from gibo.priors import LogNormal
from optimizer_helpers import assert_slopes_of_the_log_posterior

D = 3
ELL = np.array([0.5, 1.2, 0.8])
T = np.array([0.1, -0.3, 0.2])
NOISE = 0.05
TERMS = {
    "shift": BlockTerm(0.7, 0.0),
    "share": BlockTerm(0.0, 0.4),
    "both": BlockTerm(0.7, 0.4),
    "drift": BlockTerm(0.7, 0.4, timescale=2.0, now=4.5),
}


@pytest.fixture(params=TERMS.values(), ids=TERMS.keys())
def term(request):
    return request.param


@pytest.fixture(params=[SquaredExponential, Matern52])
def kernel(request):
    return request.param(ELL, 1.7)


def data(gradients):
    """Values, and perhaps gradients, of the blocks 1 to 4; two points coincide within a block, two across blocks."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, D)), rng.normal(size=8)
    blocks = np.array([1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 4.0])
    X[1], X[7] = X[0], X[4]
    if not gradients:
        return {"X": X, "y": y, "blocks": blocks}
    G = np.vstack([X[2], rng.normal(size=D)])
    of_gradients = {"gradient_X": G, "gradients": rng.normal(size=(2, D)), "gradient_noise": 0.1}
    return {"X": X, "y": y, "blocks": blocks, **of_gradients, "gradient_blocks": [2.0, 3.0]}


def weight(term, b, b2):
    return float(b == b2) if term.timescale is None else np.exp(-abs(b - b2) / term.timescale)


def dense(kernel, term, given, x, now_weight):
    """K without noise, and the covariances of the observations with value and gradient of the objective at x (d,)."""
    G, of_gradients = given.get("gradient_X", np.empty((0, D))), given.get("gradient_blocks", [])
    rows = [("g", g[None], b) for g, b in zip(G, of_gradients, strict=True)]
    rows += [("v", p[None], b) for p, b in zip(given["X"], given["blocks"], strict=True)]

    def pair(kind, a, kind2, b, w):
        if kind == kind2 == "v":
            return kernel.k(a, b) * (1.0 + term.share * w) + term.shift * w
        of_kernel = {"vg": kernel.dk_db, "gv": kernel.dk_da, "gg": kernel.d2k_dadb}[kind + kind2](a, b)[0, 0]
        return (1.0 + term.share * w) * (of_kernel[:, None] if kind + kind2 == "gv" else np.atleast_2d(of_kernel))

    def block(left, right, weights):
        return np.block([[pair(k, a, k2, b, weights(c, c2)) for k2, b, c2 in right] for k, a, c in left])

    K = block(rows, rows, lambda b, b2: weight(term, b, b2))
    value, gradient = (block(rows, [(k, x[None], None)], lambda b, _: now_weight(b)) for k in "vg")
    return K, value, gradient


def priors_of(term):
    names = ("shift", "share") if term.timescale is None else ("shift", "share", "timescale")
    return {name: LogNormal(1.0, 1.0) for name in (*names, "lengthscale", "variance", "noise")}


@pytest.mark.parametrize("gradients", [False, True], ids=["values", "gradients"])
def test_the_posterior_against_the_dense_formula(kernel, term, gradients):
    given = data(gradients)
    gp = GaussianProcess(kernel, NOISE, 0.3, blocks=term).condition(**given)
    now = (lambda b: 0.0) if term.now is None else (lambda b: weight(term, b, term.now))
    K, value, gradient = dense(kernel, term, given, T, now)
    noise = np.full(len(K), NOISE)
    noise[: len(K) - 8] = 0.1
    K += np.diag(noise)
    g = given.get("gradients", np.empty((0, D)))
    a = np.linalg.solve(K, np.concatenate([np.ravel(g), given["y"] - 0.3]))
    factor, shift = (1.0, 0.0) if term.now is None else (1.0 + term.share, term.shift)
    mean, variance = gp.predict(T)
    assert mean == pytest.approx(0.3 + (value.T @ a).item(), rel=1e-10)
    assert variance == pytest.approx(1.7 * factor + shift - (value.T @ np.linalg.solve(K, value)).item(), rel=1e-10)
    jacobian = gp.jacobian(T)
    np.testing.assert_allclose(jacobian.mean, gradient.T @ a, rtol=1e-9)
    S = factor * np.diag(kernel.gradient_variance(D)) - gradient.T @ np.linalg.solve(K, gradient)
    np.testing.assert_allclose(jacobian.covariance, S, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(means_at_data(gp), gp.predict(given["X"]).mean, rtol=1e-10)
    if not gradients:
        first, rest = ({name: part[where] for name, part in given.items()} for where in (slice(5), slice(5, None)))
        extended = GaussianProcess(kernel, NOISE, 0.3, blocks=term).condition(**first).extend(**rest)
        np.testing.assert_allclose(extended.jacobian(T).mean, jacobian.mean, rtol=1e-9)
        assert extended.log_likelihood == pytest.approx(gp.log_likelihood, rel=1e-10)


@pytest.mark.parametrize("gradients", [False, True], ids=["values", "gradients"])
@pytest.mark.parametrize("block", [None, 2.0, 4.0, 9.0])
def test_gradient_information_is_the_trace_difference(kernel, term, gradients, block):
    gp = GaussianProcess(kernel, NOISE, blocks=term).condition(**data(gradients))
    of_queries = (9.5 if term.now is None else term.now) if block is None else block  # a new one
    gi = GradientInformation(gp, T, block)
    for x in (T, T + 0.4, gp.observations.X[2], gp.observations.X[7]):
        after = gp.extend(x, 0.0, blocks=of_queries)
        brute = gp.jacobian(T).covariance.trace() - after.jacobian(T).covariance.trace()
        alpha, slope = gi.value_and_gradient(x)
        assert alpha == pytest.approx(brute, abs=1e-12 * gp.jacobian(T).covariance.trace())
        assert gi(x[None])[0] == pytest.approx(alpha, rel=1e-10, abs=1e-13)
        numerical = [(gi(x + s) - gi(x - s)) / (2.0 * s.max()) for s in np.diag(1e-5 * ELL)]
        np.testing.assert_allclose(slope, numerical, rtol=1e-6, atol=1e-6)
        if block is not None or term.now is not None:
            extended, fresh, X = gi.extend(x).in_block(1.0), GradientInformation(after, T, 1.0), gp.observations.X
            np.testing.assert_allclose(extended(X), fresh(X), rtol=1e-8, atol=1e-10)
            np.testing.assert_allclose(extended.covariance, fresh.covariance, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("gradients", [False, True], ids=["values", "gradients"])
def test_the_gradient_of_the_log_posterior(kernel, term, gradients):
    gp = GaussianProcess(kernel, NOISE, "estimated", blocks=term).condition(**data(gradients))
    priors = {name: prior for name, prior in priors_of(term).items() if np.all(gp.hyperparameters[name])}
    assert_slopes_of_the_log_posterior(gp, priors)


def test_a_fit_finds_how_much_days_differ():
    rng = np.random.default_rng(7)
    X, blocks = rng.uniform(-1.0, 1.0, (60, 2)), np.repeat(np.arange(12.0), 5)
    y = np.sin(2.0 * X).sum(axis=1) + 3.0 * rng.normal(size=12)[blocks.astype(int)] + 0.05 * rng.normal(size=60)
    gp = GaussianProcess(SquaredExponential(1.0), 0.1, "estimated", blocks=BlockTerm(0.1, 0.1))
    gp = gp.condition(X, y, blocks=blocks)
    fitted = fit(gp, priors_of(gp.blocks)).gp
    assert 3.0 < fitted.blocks.shift < 30.0
    assert fitted.blocks.share < 0.3
    assert fitted.noise < 0.05


def test_the_posterior_at_a_point_and_its_gradient(kernel, term):
    gp = GaussianProcess(kernel, NOISE, blocks=term).condition(**data(gradients=False))
    at = PosteriorAtPoint(gp)
    moments, (mean, variance) = at(T), gp.predict(T)
    assert (moments.mean, moments.variance) == (pytest.approx(mean), pytest.approx(variance))
    for s, of_mean, of_variance in zip(
        np.diag(1e-5 * ELL), moments.mean_gradient, moments.variance_gradient, strict=True
    ):
        up, down = at(T + s), at(T - s)
        assert of_mean == pytest.approx((up.mean - down.mean) / (2.0 * s.max()), rel=1e-6, abs=1e-8)
        assert of_variance == pytest.approx((up.variance - down.variance) / (2.0 * s.max()), rel=1e-6, abs=1e-8)


def test_bad_blocks_say_what_was_expected():
    gp = GaussianProcess(SquaredExponential(), 0.1, blocks=BlockTerm(1.0, 0.0))
    for blocks, words in ((None, "the block of each value"), ([1.0], "2 numbers")):
        with pytest.raises(InputError, match=f"blocks: expected {words}"):
            gp.condition([[0.0], [1.0]], [0.0, 1.0], blocks=blocks)
    with pytest.raises(InputError, match="timescale, now: give both"):
        BlockTerm(1.0, 0.0, timescale=1.0)
