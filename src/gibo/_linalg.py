"""The numerics: Cholesky factors with jitter, their extension, triangular solves, L-BFGS-B.

Symbols
-------
K : (n, n)   symmetric, positive semi-definite
L : (n, n)   lower triangular, Fortran-ordered (so that BLAS needs no copy), ``L Lᵀ = K`` with at most `jitter` added
             to the diagonal
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.linalg import blas, lapack
from threadpoolctl import ThreadpoolController

from gibo.errors import NumericalError

Array: TypeAlias = npt.NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)

# Bytes; see `_threadpools`.
KEPT_MEMORY = 16 << 20


class Factor(NamedTuple):
    """A Cholesky factor and the jitter: the largest number that was added to an entry of the diagonal."""

    L: Array
    jitter: float


def cholesky(K: Array, jitter: float = 0.0, least_pivot: float = 0.0) -> Factor:
    """Factorise ``K + jitter·I``; the jitter grows tenfold only as long as the factorisation fails.

    A pivot within rounding error of zero (or below `least_pivot`) counts as a failure: it would turn into a huge,
    meaningless solution.

    >>> cholesky(np.eye(2)).jitter
    0.0
    """
    diagonal = K.diagonal()
    top = float(diagonal.max()) if K.size else 0.0
    if not np.isfinite(top) or not np.isfinite(K).all():
        raise NumericalError("the covariance matrix is not finite; check the data and the hyperparameters")
    smallest_pivot = max(len(K) * EPS * top, least_pivot)
    while True:
        shifted = np.array(K if K.flags.f_contiguous else K.T, order="F")  # Fortran order, which is faster
        if jitter > 0.0:
            np.fill_diagonal(shifted, diagonal + jitter)
        L, info = lapack.dpotrf(shifted, lower=1, clean=1, overwrite_a=1)
        if info == 0 and (not K.size or float(L.diagonal().min()) ** 2 > smallest_pivot):
            return Factor(L, jitter)
        # The largest eigenvalue is at most n·top, so the loop ends at the latest when the jitter reaches that.
        jitter = max(10.0 * jitter, 10.0 * smallest_pivot, float(np.finfo(np.float64).tiny))


def extend(factor: Factor, B: Array, C: Array) -> Factor:
    """Factor of ``[[K, B], [Bᵀ, C]]`` from the factor of K (Müller et al. 2021, appendix A.3), in O(n²) per row.

    ``B`` is (n, k), ``C`` is (k, k). The new rows carry at least the jitter of the old ones.
    """
    n, k = B.shape
    W = solve_lower(factor.L, B)
    shifted = C + factor.jitter * np.eye(k)
    # Rounding is relative to the whole matrix; the corner is a small difference of large numbers.
    top = max(
        float(np.einsum("ij,ij->i", factor.L, factor.L).max(initial=0.0)), float(shifted.diagonal().max(initial=0.0))
    )
    corner = cholesky(shifted - W.T @ W, least_pivot=(n + k) * EPS * top)
    L = np.zeros((n + k, n + k), order="F")
    L[:n, :n] = factor.L
    L[n:, :n] = W.T
    L[n:, n:] = corner.L
    return Factor(L, factor.jitter + corner.jitter)


def solve_lower(L: Array, b: Array, overwrite: bool = False) -> Array:
    """``L⁻¹ b`` for a vector or a matrix b; a vector may be overwritten."""
    if not b.size:
        return b.copy()
    if b.ndim == 1:
        vector: Array = blas.dtrsv(L, b, lower=1, overwrite_x=overwrite)
        return vector
    solution: Array = blas.dtrsm(1.0, L, b, lower=1)
    return solution


def solve_upper(L: Array, b: Array, overwrite: bool = False) -> Array:
    """``L⁻ᵀ b`` for a vector or a matrix b; a vector may be overwritten."""
    if not b.size:
        return b.copy()
    if b.ndim == 1:
        vector: Array = blas.dtrsv(L, b, lower=1, trans=1, overwrite_x=overwrite)
        return vector
    solution: Array = blas.dtrsm(1.0, L, b, lower=1, trans_a=1)
    return solution


def solve(L: Array, b: Array) -> Array:
    """``K⁻¹ b``."""
    return solve_upper(L, solve_lower(L, b))


def inverse(L: Array) -> Array:
    """``K⁻¹``, symmetric and dense."""
    upper = inverse_upper(L)
    P: Array = upper + upper.T
    np.fill_diagonal(P, upper.diagonal())
    return P


def inverse_upper(L: Array) -> Array:
    """The upper triangle of ``K⁻¹``, zeros below."""
    if not L.size:
        return L.copy()
    lower, _ = lapack.dpotri(L, lower=1)  # fills the lower triangle; the upper one stays zero as in L
    upper: Array = lower.T
    return upper


def leading_eigenvectors(S: Array, count: int) -> Array:
    """The eigenvectors of the `count` largest eigenvalues of a symmetric matrix, as columns, the largest last."""
    d = len(S)
    work, whole_work, _ = lapack.dsyevr_lwork(d, lower=1)
    sizes = {"lwork": int(work), "liwork": int(whole_work)}
    _, V, found, _, info = lapack.dsyevr(S, range="I", il=max(1, d - count + 1), iu=d, lower=1, **sizes)
    if info != 0:  # LAPACK's fast method for a few eigenvectors can fail if many eigenvalues coincide
        return np.linalg.eigh(S)[1][:, -count:]
    leading: Array = V[:, :found]
    return leading


def minimize(
    cost: Callable[[Array], tuple[float, Array]],
    start: Array,
    low: Array,
    high: Array,
    *,
    factr: float,
    pgtol: float,
    maximum_steps: int,
) -> tuple[Array, float]:
    """Minimise a cost within bounds with L-BFGS-B; returns the point and its cost.

    This search fits hyperparameters and maximises acquisition functions.

    Args:
        cost: its value and gradient at a point; deterministic.
        start: where the search begins; (n,).
        low, high: bounds of each coordinate; infinite if there is none.
        factr: stop when the cost falls by less than this times the machine's precision.
        pgtol: stop when no component of the projected gradient is larger.
        maximum_steps: the largest number of steps.

    Example:
        >>> import numpy as np
        >>> def cost(z):
        ...     return float(z @ z), 2.0 * z
        >>> low, high = np.array([1.0, 2.0]), np.array([np.inf, np.inf])
        >>> minimize(cost, np.array([3.0, 4.0]), low, high, factr=1e7, pgtol=1e-5, maximum_steps=50)
        (array([1., 2.]), 5.0)
    """
    from scipy.optimize import fmin_l_bfgs_b  # imported here: it takes as long to load as all other imports

    at, gradient = b"", start

    def value(x: Array) -> float:
        nonlocal at, gradient
        found, gradient = cost(x)
        at = x.tobytes()
        return found

    # SciPy asks for the gradient right after the value at the same point. Its own cache costs a tenth of a plan's time.
    def slope(x: Array) -> Array:
        if x.tobytes() != at:
            value(x)
        return gradient

    bounds = list(zip(low.tolist(), high.tolist(), strict=True))
    x, lowest, _ = fmin_l_bfgs_b(value, start, slope, bounds=bounds, factr=factr, pgtol=pgtol, maxiter=maximum_steps)
    return x, float(lowest)


@contextmanager
def single_thread() -> Iterator[None]:
    """A context in which BLAS uses one thread, which is faster on these small matrices.

    Results are then the same on machines with different numbers of cores. Underflow to zero is allowed in this context,
    also if a user told NumPy to raise on it.
    """
    with _threadpools().limit(limits=1, user_api="blas"), np.errstate(under="ignore"):
        yield


@functools.cache
def _threadpools() -> ThreadpoolController:
    # The C library returns the memory of arrays to the system and requests it again at every step of a fit, which takes
    # half of the time. After a block of this size was freed, it keeps up to twice as much (see mallopt(3)).
    np.empty(KEPT_MEMORY, np.uint8)
    # NumPy and SciPy each have a BLAS. The controller knows only loaded libraries; both are loaded here.
    return ThreadpoolController()
