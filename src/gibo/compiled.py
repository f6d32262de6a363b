"""SciPy's compiled routines that gibo uses: BLAS, LAPACK and L-BFGS-B, without the packages around them.

Loading scipy.linalg and scipy.optimize takes half a second, several times what planning a batch takes, and `gibo ask`
is a process of its own. So the compiled modules are loaded by themselves. They have private names: where one is not
where it is expected, or L-BFGS-B's interface may be another one, the public functions are used. Both ways give the same
numbers bit for bit, because it is the same code that runs.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any

import numpy as np
import numpy.typing as npt

# The versions of SciPy whose L-BFGS-B is called directly.
KNOWN = ((1, 15), (1, 16), (1, 17))

CORRECTIONS, LINE_SEARCH_STEPS, MAXIMUM_EVALUATIONS = 10, 20, 15000  # as in scipy.optimize.fmin_l_bfgs_b
# What L-BFGS-B says that it is doing, or is told to do.
NEW_X, EVALUATE, STOP = 1, 3, 5

_Vector = npt.NDArray[np.float64]


@functools.cache
def blas() -> Any:
    """The functions of `scipy.linalg.blas`."""
    return _module("linalg", "_fblas") or importlib.import_module("scipy.linalg.blas")


@functools.cache
def lapack() -> Any:
    """The functions of `scipy.linalg.lapack`."""
    return _module("linalg", "_flapack") or importlib.import_module("scipy.linalg.lapack")


def minimise(
    cost: Callable[[_Vector], tuple[float, _Vector]],
    start: _Vector,
    low: _Vector,
    high: _Vector,
    *,
    factr: float,
    pgtol: float,
    maximum_steps: int,
) -> tuple[_Vector, float]:
    """The lowest point that L-BFGS-B finds within the bounds, and the cost there.

    As `scipy.optimize.fmin_l_bfgs_b` does it, bit for bit.

    Args:
        cost: its value and gradient at a point; it must give the same for the same point.
        start: where the search begins; (n,).
        low, high: bounds of each coordinate; infinite where there is none.
        factr: stop when the cost falls by less than this times the machine's precision.
        pgtol: stop when no component of the projected gradient is larger.
        maximum_steps: stop after so many.

    Example:
        >>> def cost(z):
        ...     return float(z @ z), 2.0 * z
        >>> low, high = np.array([1.0, 2.0]), np.array([np.inf, np.inf])
        >>> minimise(cost, np.array([3.0, 4.0]), low, high, factr=1e7, pgtol=1e-5, maximum_steps=50)
        (array([1., 2.]), 5.0)
    """
    setulb = _setulb()
    if setulb is None:
        from scipy.optimize import fmin_l_bfgs_b

        bounds = list(zip(low.tolist(), high.tolist(), strict=True))
        x, lowest, _ = fmin_l_bfgs_b(cost, start, bounds=bounds, factr=factr, pgtol=pgtol, maxiter=maximum_steps)
        return x, float(lowest)
    n, m = len(start), CORRECTIONS
    x = np.clip(start, low, high)
    has_low, has_high = np.isfinite(low), np.isfinite(high)
    kind = np.where(has_low, np.where(has_high, 2, 1), np.where(has_high, 3, 0)).astype(np.int32)
    low, high = np.where(has_low, low, 0.0), np.where(has_high, high, 0.0)
    f, g = 0.0, np.zeros(n)
    reals, ints = np.zeros(2 * m * n + 5 * n + 11 * m * m + 8 * m), np.zeros(3 * n, np.int32)
    task, line_task = np.zeros(2, np.int32), np.zeros(2, np.int32)
    saved = np.zeros(4, np.int32), np.zeros(44, np.int32), np.zeros(29)
    steps = evaluations = 0
    while True:
        setulb(m, x, low, high, kind, f, g, factr, pgtol, reals, ints, task, *saved, LINE_SEARCH_STEPS, line_task)
        if task[0] == EVALUATE:
            f, gradient = cost(x.copy())
            g = np.array(gradient, dtype=np.float64)
            evaluations += 1
        elif task[0] == NEW_X:
            steps += 1
            if steps >= maximum_steps or evaluations > MAXIMUM_EVALUATIONS:
                task[:] = STOP, 504
        else:
            return x, float(f)


@functools.cache
def _setulb() -> Any:
    """One step of L-BFGS-B, in SciPy's versions that we know; or None."""
    import scipy

    if tuple(map(int, scipy.__version__.split(".")[:2])) not in KNOWN:
        return None
    return getattr(_module("optimize", "_lbfgsb"), "setulb", None)


def _module(package: str, name: str) -> Any:
    """A compiled module of SciPy, without running the package's `__init__`; None if there is none."""
    import scipy  # which is small, and knows where its libraries are

    full = f"scipy.{package}.{name}"
    if full not in sys.modules:
        spec = PathFinder.find_spec(full, [f"{folder}/{package}" for folder in scipy.__path__])
        if spec is None or spec.loader is None:
            return None
        module = module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except ImportError:
            return None
        sys.modules.setdefault(full, module)  # the package, if it is loaded later, takes the same one
    return sys.modules[full]
