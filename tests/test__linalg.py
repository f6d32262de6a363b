import numpy as np
import pytest
from scipy.linalg import eigh

from gibo import _linalg as linalg
from gibo.errors import GiboError, NumericalError


def spd(n, seed=0):
    A = np.random.default_rng(seed).normal(size=(n, n))
    return A @ A.T + n * np.eye(n)


def singular(n, rank, seed=0, scale=1.0):
    A = np.random.default_rng(seed).normal(size=(n, rank))
    return scale * (A @ A.T)


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_cholesky_needs_no_jitter_for_a_positive_definite_matrix(n):
    K = spd(n)
    L, jitter = linalg.cholesky(K)
    assert jitter == 0.0
    np.testing.assert_allclose(L, np.linalg.cholesky(K), rtol=1e-12, atol=1e-12)
    assert np.array_equal(L, np.tril(L))
    assert L.flags.f_contiguous


def test_cholesky_leaves_its_argument_alone():
    for K in (spd(5), np.ones((4, 4)), np.asfortranarray(np.ones((4, 4)))):
        before = K.copy()
        linalg.cholesky(K)
        assert np.array_equal(K, before)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize(("n", "rank"), [(2, 1), (6, 3), (30, 1), (30, 29)])
def test_jitter_is_reported_and_no_larger_than_rounding_explains(n, rank, scale):
    K = singular(n, rank, scale=scale)
    L, jitter = linalg.cholesky(K)
    top = K.diagonal().max()
    assert 0.0 < jitter <= 1e3 * n * np.finfo(float).eps * top
    np.testing.assert_allclose(L @ L.T, K + jitter * np.eye(n), rtol=0, atol=1e-14 * n * top)


def test_jitter_grows_with_the_indefiniteness():
    # Eigenvalues 1 ± c: all below c − 1 would not be enough, and ten times that is more than is ever needed.
    for excess in (1e-12, 1e-8, 1e-3, 1.0):
        K = np.array([[1.0, 1.0 + excess], [1.0 + excess, 1.0]])
        L, jitter = linalg.cholesky(K)
        assert excess <= jitter <= 11.0 * excess + 1e-13
        np.testing.assert_allclose(L @ L.T, K + jitter * np.eye(2), atol=1e-14)


def test_a_pivot_of_the_size_of_rounding_counts_as_singular():
    K = np.array([[1.0, 1.0], [1.0, 1.0 + 2.0**-52]])
    assert np.linalg.cholesky(K)[1, 1] > 0  # LAPACK alone lets it pass
    L, jitter = linalg.cholesky(K)
    assert jitter > 0.0
    assert np.abs(linalg.solve(L, np.array([1.0, -1.0]))).max() < 1e15


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", [(0, 0), (2, 1)])
def test_a_matrix_that_is_not_finite_raises(bad, where):
    K = spd(3)
    K[where] = K[where[::-1]] = bad
    with pytest.raises(NumericalError, match="not finite") as error:
        linalg.cholesky(K)
    assert isinstance(error.value, GiboError)
    assert isinstance(error.value, ArithmeticError)


@pytest.mark.parametrize("jitter", [0.0, 0.3])
@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("n", [1, 8, 50])
def test_extending_equals_factorising_from_scratch(n, k, jitter):
    K = spd(n + k, seed=n)
    extended = linalg.extend(linalg.cholesky(K[:n, :n], jitter), K[:n, n:], K[n:, n:])
    scratch = linalg.cholesky(K, jitter)
    assert extended.jitter == scratch.jitter == jitter
    assert extended.L.flags.f_contiguous
    np.testing.assert_allclose(extended.L, scratch.L, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("seed", range(10))
def test_extending_by_a_repeated_row_is_as_careful_as_factorising_from_scratch(seed):
    # What is left of a repeated row is rounding error of either sign; a pivot that small makes solutions meaningless.
    n = 8
    X = np.random.default_rng(seed).normal(size=(n, 2))
    q = ((X[:, None] - X) ** 2).sum(axis=-1)
    K = np.exp(-0.5 * q)
    factor = linalg.cholesky(K)
    assert factor.jitter == 0.0
    extended = linalg.extend(factor, K[:, :1], K[:1, :1])
    scratch = linalg.cholesky(np.block([[K, K[:, :1]], [K[:1], K[:1, :1]]]))
    assert extended.jitter > 0.0
    assert extended.L[n, n] ** 2 > 0.01 * scratch.L[n, n] ** 2


@pytest.mark.parametrize("shape", [(6,), (6, 1), (6, 4), (6, 0)])
def test_solves(shape):
    K = spd(6)
    L = linalg.cholesky(K).L
    b = np.random.default_rng(1).normal(size=shape)
    before = b.copy()
    np.testing.assert_allclose(linalg.solve_lower(L, b), np.linalg.solve(L, b), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(linalg.solve_upper(L, b), np.linalg.solve(L.T, b), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(linalg.solve(L, b), np.linalg.solve(K, b), rtol=1e-12, atol=1e-14)
    assert np.array_equal(b, before)


@pytest.mark.parametrize("n", [1, 9])
def test_inverse_is_dense_and_symmetric(n):
    K = spd(n)
    P = linalg.inverse(linalg.cholesky(K).L)
    np.testing.assert_allclose(P, np.linalg.inv(K), rtol=1e-11, atol=1e-14)
    assert np.array_equal(P, P.T)


@pytest.mark.parametrize("d", [1, 2, 3, 8, 36, 100])
def test_leading_eigenvectors_are_scipys(d):
    A = np.random.default_rng(d).standard_normal((d, d))
    S = A @ A.T
    count = min(4, d)
    V = linalg.leading_eigenvectors(S, 4)
    assert V.shape == (d, count)
    assert (eigh(S, subset_by_index=[d - count, d - 1], check_finite=False)[1] == V).all()
    values = np.linalg.eigvalsh(S)[-count:]
    assert np.allclose(S @ V, V * values, atol=1e-9 * values.max())
