from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from dense import differences
from gibo import GaussianProcess
from gibo.errors import InputError
from gibo.kernels import Kernel, Matern52, SquaredExponential, squared_distance
from gibo.priors import LogNormal
from optimizer_helpers import assert_fit_is_the_maximum

D = 3
ARD = np.array([0.4, 1.3, 2.0])
STEP = 6e-6  # about the cube root of the rounding unit, in lengthscales: best for central differences


@dataclass(frozen=True, eq=False)
class RationalQuadratic(Kernel):
    """``k = s2·(1 + q/(2·alpha))^−alpha``: all that a new kernel with a fitted parameter of its own takes."""

    name = "rational-quadratic"
    alpha: float = 1.3
    priors: ClassVar = {"alpha": LogNormal(1.0, 1.0)}

    def profile(self, q, order):
        alpha, B = self.alpha, 1.0 + q / (2.0 * self.alpha)
        factors = (1.0, -0.5, (alpha + 1.0) / (4.0 * alpha), -(alpha + 1.0) * (alpha + 2.0) / (8.0 * alpha**2))
        return tuple(factor * B ** (-alpha - m) for m, factor in enumerate(factors[: order + 1]))

    def profile_by_log(self, name, q, order):
        alpha, B = self.alpha, 1.0 + q / (2.0 * self.alpha)
        log_slopes = [-alpha * np.log(B) + (alpha + m) * (1.0 - 1.0 / B) for m in range(order + 1)]
        profile = [slope * psi for slope, psi in zip(log_slopes, self.profile(q, order), strict=True)]
        if order == 2:
            profile[2] -= B ** (-alpha - 2.0) / (4.0 * alpha)
        return tuple(profile)


@pytest.fixture(params=[SquaredExponential, Matern52, RationalQuadratic])
def family(request):
    return request.param


@pytest.fixture(params=[ARD, 0.7], ids=["ard", "shared"])
def kernel(request, family):
    return family(request.param, 1.7)


@pytest.fixture
def points():
    """A (4, d) and B (5, d); two pairs coincide, and one lies farther than the others."""
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(4, D)), rng.normal(size=(5, D))
    B[0], B[1], B[4] = A[0], A[2], B[4] + 3.0
    return A, B


def along_dimensions(f, ell):
    """Central differences of f(shift) by the d components of a shift, stacked last."""
    return differences(f, np.zeros(D), STEP * ell)


def close(actual, numerical, rtol=1e-7):
    np.testing.assert_allclose(actual, numerical, rtol=rtol, atol=rtol * np.abs(numerical).max())


# -- derivatives by the points ----------------------------------------------------------------------------------------


def test_profile_derivatives(family):
    q, h = np.array([1e-2, 0.3, 1.0, 4.0, 20.0]), 1e-5
    profile = family().profile
    for order in range(3):
        numerical = (profile(q * (1 + h), order)[order] - profile(q * (1 - h), order)[order]) / (2 * h * q)
        np.testing.assert_allclose(profile(q, order + 1)[order + 1], numerical, rtol=1e-6)


def test_k_against_the_textbook(points):
    A, B = points
    r = cdist(A / ARD, B / ARD)
    np.testing.assert_allclose(SquaredExponential(ARD, 1.7).k(A, B), 1.7 * np.exp(-0.5 * r**2), rtol=1e-13)
    s = np.sqrt(5.0) * r
    np.testing.assert_allclose(Matern52(ARD, 1.7).k(A, B), 1.7 * (1 + s + s**2 / 3) * np.exp(-s), rtol=1e-13)


def test_derivatives_by_the_points(kernel, points):
    (A, B), ell = points, kernel.ell(D)
    close(kernel.dk_da(A, B), along_dimensions(lambda s: kernel.k(A + s, B), ell))
    close(kernel.dk_db(A, B), along_dimensions(lambda s: kernel.k(A, B + s), ell))
    close(kernel.d2k_dadb(A, B), along_dimensions(lambda s: kernel.dk_da(A, B + s), ell))


def test_derivatives_are_exact_where_two_points_coincide(kernel, points):
    A, _ = points
    A = A[:1] + 1e3  # no trace of where the points are
    assert np.array_equal(kernel.dk_da(A, A)[0, 0], np.zeros(D))
    assert np.array_equal(kernel.dk_db(A, A)[0, 0], np.zeros(D))
    assert np.array_equal(kernel.d2k_dadb(A, A)[0, 0], np.diag(kernel.gradient_variance(D)))


# -- derivatives by the hyperparameters -------------------------------------------------------------------------------


def sites(which="both"):
    rng = np.random.default_rng(5)
    X, G = rng.normal(size=(6, D)), rng.normal(size=(4, D))
    X[3], G[0], G[2] = X[1], X[0], G[1]  # two values, a value and a gradient, two gradients
    return X[: 6 * (which != "gradients")], G[: 4 * (which != "values")]


@pytest.mark.parametrize("which", ["values", "gradients", "both"])
def test_the_hyperparameter_gradient_against_the_sum_over_all_entries(kernel, which):
    X, G = sites(which)
    N = len(X) + G.size
    W = np.random.default_rng(1).normal(size=(N, N))
    W += W.T
    by_ell, by_s2 = kernel.hyperparameter_gradient(W, X, G)
    ell = kernel.ell(D)

    def joint(shift):
        other = kernel.with_hyperparameters(ell * np.exp(shift[:D]), kernel.variance * np.exp(shift[D]))
        return other.joint(X, G, X, G)

    dK = differences(joint, np.zeros(D + 1), 1e-5)
    brute = np.einsum("ij,ijp->p", W, dK)
    # The sum's terms cancel; the differences' errors do not.
    scale = np.einsum("ij,ijp->p", np.abs(W), np.abs(dK)).max()
    assert by_ell.shape == (D,)
    np.testing.assert_allclose(np.append(by_ell, by_s2), brute, rtol=1e-7, atol=1e-9 * scale)


# -- distances --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_squared_distance(offset):
    rng = np.random.default_rng(3)
    A = offset + rng.normal(size=(20, D))
    for B in (A, np.vstack([A[:4], offset + rng.normal(size=(15, D))])):
        exact = (((A[:, None] - B) / ARD) ** 2).sum(axis=-1)
        q = squared_distance(A, B, ARD)
        np.testing.assert_allclose(q, exact, rtol=1e-12, atol=1e-13)
        assert (q >= 0).all()
    same = squared_distance(A, A, ARD)
    assert np.array_equal(same.diagonal(), np.zeros(20))
    assert np.array_equal(same, same.T)


def test_squared_distance_of_close_points_beside_a_distant_one():
    near = 1e8 + np.arange(8.0)[:, None]
    A = np.vstack([[[0.0]], near])
    q = squared_distance(A, A.copy(), np.array([3.0]))[1:, 1:]
    np.testing.assert_allclose(q, (near - near.T) ** 2 / 9.0, rtol=1e-6)


# -- a parameter of the kernel's own ----------------------------------------------------------------------------------


@pytest.mark.parametrize("gradients", [0, 3])
def test_a_fit_takes_it_to_the_highest_posterior(gradients):
    rng = np.random.default_rng(5)
    X, G = rng.normal(size=(12, D)), rng.normal(size=(gradients, D))
    gp = GaussianProcess(RationalQuadratic(ARD, 1.7), noise=0.05, mean="estimated")
    gp = gp.condition(X, np.sin(X).sum(axis=1), *((G, np.cos(G), 0.1) if gradients else ()))
    fitted = assert_fit_is_the_maximum(gp, {"lengthscale": LogNormal(1.0, 0.5), **gp.kernel.priors}).gp
    assert abs(fitted.kernel.alpha - 1.3) > 1e-3


def test_a_parameter_of_its_own_is_positive_and_a_field():
    with pytest.raises(InputError, match="alpha: expected a positive"):
        RationalQuadratic(alpha=-1.0)
    careless = type("Careless", (Kernel,), {"priors": {"alpha": LogNormal(1.0, 1.0)}, "alpha": 1.0, "profile": None})
    with pytest.raises(InputError, match=r"alpha: .*put @dataclass\(frozen=True, eq=False\) before the class"):
        careless()


@pytest.mark.parametrize("bad", [0.0, np.inf, [1.0, 0.0], [], [[1.0]], "wide"])
def test_bad_hyperparameters_say_what_was_expected(bad):
    with pytest.raises(InputError, match="lengthscale: expected"):
        SquaredExponential(lengthscale=bad)
    with pytest.raises(InputError, match="variance: expected"):
        SquaredExponential(variance=bad)
