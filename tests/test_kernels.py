from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from gibo import GaussianProcess, GradientInformation
from gibo.errors import InputError
from gibo.kernels import Kernel, Matern52, SquaredExponential, squared_distance
from gibo.map_fit import fit
from gibo.priors import LogNormal
from optimizer_helpers import assert_slopes_of_the_log_posterior, log_posterior

D = 3
ARD = np.array([0.4, 1.3, 2.0])
STEP = 6e-6  # about the cube root of the rounding unit, in lengthscales: best for central differences


@dataclass(frozen=True, eq=False)
class RationalQuadratic(Kernel):
    """``k = s2·(1 + q/(2·alpha))^−alpha``: all that a new kernel with a fitted parameter of its own takes."""

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
    shifts = np.diag(STEP * ell)
    return np.stack([(f(s) - f(-s)) / (2.0 * s.max()) for s in shifts], axis=-1)


def close(actual, numerical, rtol=1e-7):
    np.testing.assert_allclose(actual, numerical, rtol=rtol, atol=rtol * np.abs(numerical).max())


# -- derivatives by the points ----------------------------------------------------------------------------------------


def test_profile_derivatives(family):
    q, h = np.array([1e-2, 0.3, 1.0, 4.0, 20.0]), 1e-5
    profile = family().profile
    for order in range(4):
        assert len(profile(q, order)) == order + 1
    exact = profile(q, 3)
    for lower, higher in ((0, 1), (1, 2), (2, 3)):
        numerical = (profile(q * (1 + h), 3)[lower] - profile(q * (1 - h), 3)[lower]) / (2 * h * q)
        np.testing.assert_allclose(exact[higher], numerical, rtol=1e-6)


def test_k_against_the_textbook(points):
    A, B = points
    r = cdist(A / ARD, B / ARD)
    np.testing.assert_allclose(SquaredExponential(ARD, 1.7).k(A, B), 1.7 * np.exp(-0.5 * r**2), rtol=1e-13)
    s = np.sqrt(5.0) * r
    np.testing.assert_allclose(Matern52(ARD, 1.7).k(A, B), 1.7 * (1 + s + s**2 / 3) * np.exp(-s), rtol=1e-13)


# -- a parameter of the kernel's own ----------------------------------------------------------------------------------


def test_the_profile_by_the_logarithm_of_a_parameter():
    q, h = np.array([0.0, 0.3, 1.0, 4.0, 20.0]), 1e-5
    for order in range(3):
        up, down = (RationalQuadratic(alpha=1.3 * np.exp(s)).profile(q, order) for s in (h, -h))
        exact = RationalQuadratic(alpha=1.3).profile_by_log("alpha", q, order)
        for mine, more, less in zip(exact, up, down, strict=True):
            np.testing.assert_allclose(mine, (more - less) / (2.0 * h), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("gradients", [0, 3])
def test_a_fit_moves_it_along_the_slope_of_the_posterior(gradients):
    rng = np.random.default_rng(5)
    X, G = rng.normal(size=(12, D)), rng.normal(size=(gradients, D))
    gp = GaussianProcess(RationalQuadratic(ARD, 1.7), noise=0.05, mean="estimated")
    gp = gp.condition(X, np.sin(X).sum(axis=1), *((G, np.cos(G), 0.1) if gradients else ()))
    priors = {"lengthscale": LogNormal(1.0, 0.5), **gp.kernel.priors}
    assert_slopes_of_the_log_posterior(gp, priors)
    fitted = fit(gp, priors).gp
    assert fitted.kernel.alpha != 1.3
    assert log_posterior(fitted, priors) > log_posterior(gp, priors)


def test_a_parameter_of_its_own_is_positive_and_a_field():
    with pytest.raises(InputError, match="alpha: expected a positive"):
        RationalQuadratic(alpha=-1.0)
    careless = type("Careless", (Kernel,), {"priors": {"alpha": LogNormal(1.0, 1.0)}, "alpha": 1.0, "profile": None})
    with pytest.raises(InputError, match=r"alpha: .*put @dataclass\(frozen=True, eq=False\) before the class"):
        careless()


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


@pytest.mark.parametrize(("family", "factor"), [(SquaredExponential, 1.0), (Matern52, 5.0 / 3.0)])
def test_gradient_variance_against_the_closed_form(family, factor):
    np.testing.assert_allclose(family(ARD, 1.7).gradient_variance(D), factor * 1.7 / ARD**2, rtol=1e-14)


@pytest.mark.parametrize("distance", [1e-200, 1e-160, 1e-12, 1e2, 1e6])
def test_derivatives_are_finite_at_any_distance(kernel, distance):
    A, B = np.zeros((1, D)), np.full((1, D), distance)
    for derivative in (kernel.k, kernel.dk_da, kernel.d2k_dadb):
        assert np.isfinite(derivative(A, B)).all()
    W = np.ones((2 + 2 * D, 2 + 2 * D))
    by_ell, by_s2 = kernel.hyperparameter_gradient(W, np.vstack([A, B]), np.vstack([A, B]))
    assert np.isfinite(by_ell).all()
    assert np.isfinite(by_s2)


# -- derivatives by the hyperparameters -------------------------------------------------------------------------------


def by_log_hyperparameters(kernel, f, h=1e-5):
    """Central differences of f(kernel) by log ell (each) and log s2, stacked last: (…, d + 1)."""
    ell = kernel.ell(D)

    def at(shift):
        return f(kernel.with_hyperparameters(ell * np.exp(shift[:D]), kernel.variance * np.exp(shift[D])))

    return np.stack([(at(s) - at(-s)) / (2.0 * h) for s in h * np.eye(D + 1)], axis=-1)


def sites(which):
    rng = np.random.default_rng(5)
    X, G = rng.normal(size=(6, D)), rng.normal(size=(4, D))
    if which == "values":
        return X, G[:0]
    if which == "gradients":
        return X[:0], G
    if which == "duplicates":
        X[3], G[0], G[2] = X[1], X[0], G[1]  # two values, a value and a gradient, two gradients
    return X, G


@pytest.mark.parametrize("which", ["values", "gradients", "both", "duplicates"])
def test_the_hyperparameter_gradient_against_the_sum_over_all_entries(kernel, which):
    X, G = sites(which)
    N = len(X) + G.size
    W = np.random.default_rng(1).normal(size=(N, N))
    W += W.T
    by_ell, by_s2 = kernel.hyperparameter_gradient(W, X, G)
    dK = by_log_hyperparameters(kernel, lambda k: k.joint(X, G, X, G))
    brute = np.einsum("ij,ijp->p", W, dK)
    scale = np.einsum(
        "ij,ijp->p", np.abs(W), np.abs(dK)
    ).max()  # the sum's terms cancel; the differences' errors do not
    assert by_ell.shape == (D,)
    np.testing.assert_allclose(np.append(by_ell, by_s2), brute, rtol=1e-7, atol=1e-9 * scale)


# -- values and gradients together ------------------------------------------------------------------------------------


def test_joint_is_made_of_the_blocks(kernel):
    X, G = sites("duplicates")
    rng = np.random.default_rng(2)
    X2, G2 = rng.normal(size=(2, D)), np.vstack([G[:1], rng.normal(size=(1, D))])
    p, p2 = G.size, G2.size  # gradients stand first, point by point
    J = kernel.joint(X, G, X2, G2)
    assert J.shape == (p + len(X), p2 + len(X2))
    np.testing.assert_allclose(J[p:, p2:], kernel.k(X, X2), rtol=1e-14)
    for i in range(len(G)):
        rows = slice(i * D, (i + 1) * D)
        for j in range(len(X2)):
            np.testing.assert_allclose(J[rows, p2 + j], kernel.dk_da(G[[i]], X2[[j]])[0, 0], rtol=1e-14)
        for j in range(len(G2)):
            columns = slice(j * D, (j + 1) * D)
            np.testing.assert_allclose(J[rows, columns], kernel.d2k_dadb(G[[i]], G2[[j]])[0, 0], rtol=1e-14)
    for i in range(len(X)):
        for j in range(len(G2)):
            columns = slice(j * D, (j + 1) * D)
            np.testing.assert_allclose(J[p + i, columns], kernel.dk_db(X[[i]], G2[[j]])[0, 0], rtol=1e-14)


# -- distances --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("same", [True, False])
def test_squared_distance(offset, same):
    rng = np.random.default_rng(3)
    A = offset + rng.normal(size=(20, D))
    B = A if same else np.vstack([A[:4], offset + rng.normal(size=(15, D))])
    q = squared_distance(A, B, ARD)
    np.testing.assert_allclose(q, cdist(A / ARD, B / ARD, "sqeuclidean"), rtol=1e-7 if offset else 1e-12, atol=1e-12)
    exact = (((A[:, None] - B) / ARD) ** 2).sum(axis=-1)  # cdist itself loses digits by dividing before subtracting
    np.testing.assert_allclose(q, exact, rtol=1e-12, atol=1e-13)
    assert (q >= 0).all()
    if same:
        assert np.array_equal(q.diagonal(), np.zeros(20))
        assert np.array_equal(q, q.T)


def test_squared_distance_of_close_points_beside_a_distant_one():
    near = 1e8 + np.arange(8.0)[:, None]
    A = np.vstack([[[0.0]], near])
    q = squared_distance(A, A.copy(), np.array([3.0]))[1:, 1:]
    np.testing.assert_allclose(q, (near - near.T) ** 2 / 9.0, rtol=1e-6)


# -- a new kernel takes one class with one method ---------------------------------------------------------------------


def test_a_new_kernel_takes_one_class_with_one_method(family):
    rng = np.random.default_rng(4)
    X, y, t, x = rng.normal(size=(6, D)), rng.normal(size=6), rng.normal(size=D), rng.normal(size=D)
    gp = GaussianProcess(family(ARD, 1.7), noise=0.01).condition(X, y, X[:2] + 0.1, rng.normal(size=(2, D)), 0.1)
    close(gp.jacobian(t).mean, along_dimensions(lambda s: np.array(gp.predict(t + s).mean), ARD))
    gi = GradientInformation(gp, at=t)
    after = gp.extend(x, 0.3).jacobian(t).covariance
    assert gi(x) == pytest.approx(np.trace(gp.jacobian(t).covariance) - np.trace(after), rel=1e-10)
    close(gi.value_and_gradient(x)[1], along_dimensions(lambda s: np.array(gi(x + s)), ARD))


@pytest.mark.parametrize("bad", [0.0, np.inf, [1.0, 0.0], [], [[1.0]], "wide"])
def test_bad_hyperparameters_say_what_was_expected(bad):
    with pytest.raises(InputError, match="lengthscale: expected"):
        SquaredExponential(lengthscale=bad)
    with pytest.raises(InputError, match="variance: expected"):
        SquaredExponential(variance=bad)
