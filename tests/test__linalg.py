import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eigh
from scipy.optimize import rosen, rosen_der

from gibo import _linalg as linalg
from gibo.errors import NumericalError


def spd(n, seed=0):
    A = np.random.default_rng(seed).normal(size=(n, n))
    return A @ A.T + n * np.eye(n)


def singular(n, rank, seed=0, scale=1.0):
    A = np.random.default_rng(seed).normal(size=(n, rank))
    return scale * (A @ A.T)


def test_cholesky_leaves_its_argument_alone():
    for K in (spd(5), np.ones((4, 4)), np.asfortranarray(np.ones((4, 4)))):
        before = K.copy()
        L, jitter = linalg.cholesky(K)
        assert np.array_equal(K, before)
        assert (jitter == 0.0) == (len(K) == 5)
        assert np.array_equal(L, np.tril(L))
        assert L.flags.f_contiguous


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize(("n", "rank"), [(2, 1), (6, 3), (30, 1), (30, 29)])
def test_jitter_is_reported_and_no_larger_than_rounding_explains(n, rank, scale):
    K = singular(n, rank, scale=scale)
    L, jitter = linalg.cholesky(K)
    top = K.diagonal().max()
    assert 0.0 < jitter <= 1e3 * n * np.finfo(float).eps * top
    np.testing.assert_allclose(L @ L.T, K + jitter * np.eye(n), rtol=0, atol=1e-14 * n * top)


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
    with pytest.raises(NumericalError, match="not finite"):
        linalg.cholesky(K)


@pytest.mark.parametrize("jitter", [0.0, 0.3])
@pytest.mark.parametrize(("n", "k"), [(1, 1), (8, 2), (50, 5)])
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


@pytest.mark.parametrize("shape", [(6,), (6, 4), (6, 0)])
def test_solves_and_the_inverse(shape):
    K = spd(6)
    L = linalg.cholesky(K).L
    b = np.random.default_rng(1).normal(size=shape)
    before = b.copy()
    for solved, A in ((linalg.solve_lower, L), (linalg.solve_upper, L.T), (linalg.solve, K)):
        np.testing.assert_allclose(solved(L, b), np.linalg.solve(A, b), rtol=1e-12, atol=1e-14)
    assert np.array_equal(b, before)
    P = linalg.inverse(L)
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


# -- L-BFGS-B --------------------------------------------------------------------------------------------------------

OPTIONS = {"factr": 1e7, "pgtol": 1e-5}


def rosenbrock(z):
    return float(rosen(z)), rosen_der(z)


def rough(z):
    """With many bumps, so that line searches take several evaluations."""
    return float(z @ z + np.sin(9.0 * z).sum()), 2.0 * z + 9.0 * np.cos(9.0 * z)


def wall(z):
    """Not finite beyond 2, as a model whose matrix cannot be factorised is reported."""
    return (1e100, np.zeros_like(z)) if (z > 2.0).any() else (-float(z.sum()), -np.ones_like(z))


def flat(z):
    return 1.0, np.zeros_like(z)


ENDS = st.floats(-3.0, 3.0) | st.just(np.inf)


@settings(deadline=None)
@given(
    cost=st.sampled_from([rosenbrock, rough, wall, flat]),
    points=st.lists(st.tuples(st.floats(-4.0, 4.0), ENDS, ENDS), min_size=2, max_size=7),
    steps=st.sampled_from([1, 2, 7, 200]),
)
def test_it_stays_in_the_bounds_and_ends_no_higher_than_it_starts(cost, points, steps):
    start, a, b = map(np.array, zip(*points, strict=True))
    low, high = np.where(np.isinf(a), -np.inf, np.minimum(a, b)), np.maximum(a, b)
    x, lowest = linalg.minimize(cost, start, low, high, maximum_steps=steps, **OPTIONS)
    assert ((low <= x) & (x <= high)).all()
    assert type(lowest) is float
    assert lowest == cost(x)[0]
    assert lowest <= cost(np.clip(start, low, high))[0]


def test_it_finds_a_minimum_inside_and_one_on_the_border():
    low, high = np.full(4, -2.0), np.full(4, 2.0)
    x, lowest = linalg.minimize(rosenbrock, np.full(4, -1.0), low, high, maximum_steps=500, **OPTIONS)
    np.testing.assert_allclose(x, 1.0, atol=1e-3)
    assert lowest < 1e-6
    x, _ = linalg.minimize(
        rosenbrock, np.full(2, -1.0), np.full(2, -2.0), np.array([0.5, 2.0]), maximum_steps=500, **OPTIONS
    )
    np.testing.assert_allclose(x, [0.5, 0.25], atol=1e-4)


def test_its_arguments_and_the_points_that_the_cost_keeps_do_not_change():
    kept = []

    def keeping(z):
        kept.append((z, z.copy()))
        return rough(z)

    start, low, high = np.array([3.0, 4.0]), np.array([1.0, -np.inf]), np.array([np.inf, np.inf])
    x, _ = linalg.minimize(keeping, start, low, high, maximum_steps=50, **OPTIONS)
    assert x is not start
    assert (start.tolist(), low.tolist(), high.tolist()) == ([3.0, 4.0], [1.0, -np.inf], [np.inf, np.inf])
    assert len(kept) > 3
    assert all((z == copy).all() for z, copy in kept)
