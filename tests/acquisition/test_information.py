"""Gradient Information is the decrease of the covariance's trace, for every kind of model."""

from dataclasses import replace

import numpy as np
import pytest

from dense import CASES, ELL, KERNELS, NOISE, D, Dense, T, data, differences, model, with_value
from gibo import GaussianProcess, GradientInformation
from gibo import _linalg as linalg

each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)


def same(gi, other, x, rtol=1e-8):
    """The value, gradient and covariance of two of them agree at points x."""
    scale = other(x).max()
    np.testing.assert_allclose(gi(x), other(x), rtol=rtol, atol=rtol * scale)
    np.testing.assert_allclose(gi.covariance, other.covariance, rtol=rtol, atol=rtol * np.abs(other.covariance).max())
    for point in x:
        (value, slope), (others_value, others_slope) = gi.value_and_gradient(point), other.value_and_gradient(point)
        assert value == pytest.approx(others_value, rel=rtol, abs=rtol * scale)
        np.testing.assert_allclose(slope, others_slope, rtol=rtol, atol=rtol * max(np.abs(others_slope).max(), scale))


@each_kernel
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("gradients", [False, True], ids=["values", "gradients"])
def test_it_is_the_decrease_of_the_trace(kernel, name, gradients):
    case = CASES[name]
    given = data(case, gradients)
    gp, before = model(case, kernel, given), np.trace(Dense(case, kernel, given).posterior("g", T)[1])
    # A new block, one with values, the last one; the two sources.
    for block in (None,) if case.term is None else (0.0, 1.0) if name == "gap" else (None, 2.0, 4.0, 9.0):
        here = block if block is not None else 9.5 if case.term is None or case.term.now is None else case.term.now
        gi = GradientInformation(gp, T, block)
        X = np.vstack([T, T + 0.4, T + 1e-3 * ELL, given["X"][2], given["X"][7]])
        for x in X:
            after = np.trace(Dense(case, kernel, with_value(given, x, here)).posterior("g", T)[1])
            alpha, slope = gi.value_and_gradient(x)
            assert alpha == pytest.approx(before - after, rel=1e-9, abs=1e-12 * before)
            np.testing.assert_allclose(slope, differences(gi, x, 1e-5 * ELL), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(gi(X), [gi(x) for x in X], rtol=1e-10, atol=1e-13)
        told = {} if case.term is None else {"blocks": here}
        grown, extended = gi.extend(X[1]).extend(X[3]), gp.extend(X[1], 3.0, **told).extend(X[3], -1.0, **told)
        if block is not None or case.term is None:  # one more value of a new block is no longer of a new one
            same(grown, GradientInformation(extended, T, block), X)
        if block is not None:
            other = 0.0 if name == "gap" else 1.0
            same(grown.in_block(other), GradientInformation(extended, T, other), X)


@pytest.mark.parametrize("n", [0, 1])
def test_without_data_and_from_the_first_value_on(n):
    gp = GaussianProcess(KERNELS[0], NOISE)
    gp = gp.condition([T], [1.0]) if n else gp
    x, before = T + 0.4, np.trace(gp.jacobian(T).covariance)
    gi = GradientInformation(gp, T)
    assert gi(x) == pytest.approx(before - np.trace(gp.extend(x, 0.0).jacobian(T).covariance), rel=1e-10)
    np.testing.assert_allclose(gi.value_and_gradient(x)[1], differences(gi, x, 1e-5 * ELL), rtol=1e-6)
    same(gi.extend(x), GradientInformation(gp.extend(x, 0.0), T), np.array([x, T, T - 0.2]))


def test_jitter_counts_as_noise():
    # Of rounding's size it would not show; a large one is as good.
    X = np.random.default_rng(6).normal(size=(5, D))
    gp = GaussianProcess(KERNELS[0], noise=0.02).condition(X, np.zeros(5))
    gp = replace(gp, factor=linalg.cholesky(KERNELS[0].k(X, X) + 0.02 * np.eye(5), jitter=0.3))
    gi = GradientInformation(gp, at=T)
    for x in (T, T + 0.3, X[0]):
        after = np.trace(gp.extend(x, 0.0).jacobian(T).covariance)
        assert gi(x) == pytest.approx(np.trace(gp.jacobian(T).covariance) - after, rel=1e-10, abs=1e-12)


def test_one_point_gives_a_float_and_several_give_an_array():
    gi = GradientInformation(GaussianProcess(KERNELS[0], NOISE), at=T.tolist())
    assert type(gi(T.tolist())) is float
    assert gi(T[None][:0]).shape == (0,)


@each_kernel
def test_it_does_not_depend_on_where_the_origin_is(kernel):
    X, x = np.random.default_rng(4).normal(size=(2, 6, D))
    prior = GaussianProcess(kernel, noise=0.02)
    here = GradientInformation(prior.condition(X, np.zeros(6)), at=T)
    there = GradientInformation(prior.condition(X + 1e6, np.zeros(6)), at=T + 1e6)
    np.testing.assert_allclose(there(x + 1e6), here(x), rtol=1e-6)  # x + 1e6 itself is rounded to 1e-10


@pytest.mark.parametrize("noise", [0.0, 1e-16])
def test_asking_again_where_nothing_is_left_to_learn_gives_nothing(noise):
    X = np.random.default_rng(5).normal(size=(8, D))
    gi = GradientInformation(GaussianProcess(KERNELS[0], noise=noise).condition(X, np.zeros(8)), at=T)
    total = np.trace(gi.covariance)
    for x in X:
        assert gi(x) <= 1e-6 * total
        assert gi.extend(x)(x) <= 1e-6 * total
