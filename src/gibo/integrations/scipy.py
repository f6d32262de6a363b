"""GIBO as a method of SciPy: ``scipy.optimize.minimize(f, x0, method=gibo.integrations.scipy.minimize, options=…)``."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import OptimizeResult

from gibo._checks import Box, as_bounds, as_vector, describe, is_like_bounds
from gibo._linalg import Array
from gibo.errors import InputError
from gibo.outcome import Outcome
from gibo.parameters import SHARE
from gibo.runs.api import minimize as gibo_minimize
from gibo.runs.result import Result

# The status of a result; 99 as in SciPy if a callback raised StopIteration.
DONE, FAILED, STOPPED = 0, 1, 99


def minimize(
    fun: Callable[..., Any],
    x0: npt.ArrayLike,
    args: tuple[Any, ...] = (),
    *,
    jac: Callable[..., Any] | None = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    callback: Callable[..., Any] | None = None,
    budget: int | None = None,
    scale: npt.ArrayLike | None = None,
    seed: int = 0,
    gradient_noise: npt.ArrayLike | None = None,
    maxfev: int | None = None,
    tol: float | None = None,
    **options: Any,
) -> OptimizeResult:
    """Minimise with GIBO under SciPy's conventions; for ``scipy.optimize.minimize(..., method=this)``.

    Args:
        fun: called as ``fun(x, *args)``.
        x0: (d,) the start.
        args: further arguments of fun.
        jac: the gradient, called as fun; used if ``gradient_noise`` is given, else ignored with a warning.
        hess, hessp: ignored with a warning.
        bounds: ``scipy.optimize.Bounds`` or d pairs, None for no bound.
        constraints: not supported.
        callback: called after each iteration, as ``callback(xk)`` or ``callback(intermediate_result=result)``; the run
            stops if it raises StopIteration.
        budget, maxfev: the largest number of evaluations; by default 50 per parameter.
        scale: the change of a parameter that has a clear effect, roughly; by default a tenth of its range if all have
            bounds, else 1.
        seed: of all random choices.
        gradient_noise: the variance of the gradient's noise, one number or one per parameter; small for an exact
            gradient.
        tol: has no meaning for a noisy objective; ignored with a warning.
        options: those of `gibo.minimize`, such as ``workers=4``, ``journal="runs/f"`` or ``target=0.1``.

    Returns:
        ``x``, the recommended point, and ``fun``, the model's value there, without noise; ``nfev``, ``nit``,
        ``success``, ``status`` (0: regular end, 1: interrupted or too many failures, 99: ended by the callback),
        ``message``; ``jac``, the mean of the gradient's posterior; ``result``, gibo's result.

    Example:
        >>> import scipy.optimize
        >>> f = lambda x: float(((x - 1) ** 2).sum())
        >>> found = scipy.optimize.minimize(f, [0, 0], method=minimize, options={"budget": 60, "scale": 0.3})
        >>> found.success, found.nfev, bool(abs(found.x - 1).max() < 0.1)
        (True, 60, True)
    """
    start = as_vector("x0", x0)
    if not isinstance(constraints, (list, tuple)) or constraints:
        raise InputError(
            "constraints: not supported; use bounds, or let the objective raise an exception if it has no value"
        )
    if budget is not None and maxfev is not None:
        raise InputError("budget, maxfev: both mean the same; give only one of them")
    jac = jac if callable(jac) else None
    passed = {"hess": hess, "hessp": hessp, "tol": tol, "jac": jac if gradient_noise is None else None}
    for name in [name for name, value in passed.items() if value is not None]:
        hint = "; to use it, give options={'gradient_noise': its variance}" if name == "jac" else ""
        warnings.warn(f"gibo does not use {name}{hint}", RuntimeWarning, stacklevel=3)
    if gradient_noise is not None and jac is None:
        raise InputError("gradient_noise: expected jac with it, got none")
    box = _bounds(bounds, len(start))
    monitor = None if callback is None else _Monitor(callback)
    result = gibo_minimize(
        _Objective(fun, args, jac if gradient_noise is not None else None, gradient_noise),
        start,
        budget=next(number for number in (budget, maxfev, 50 * len(start)) if number is not None),
        scale=_scale(box) if scale is None else scale,
        bounds=box,
        seed=seed,
        callback=monitor,
        **options,
    )
    return _optimize_result(result, monitor is not None and monitor.stopped)


class _Objective:
    """fun with its further arguments; a class, so that it can be pickled if fun can."""

    def __init__(self, fun: Any, args: Any, jac: Any, gradient_noise: Any) -> None:
        if not callable(fun):
            raise InputError(f"fun: expected a function of a vector, got {describe(fun)}")
        self.fun, self.jac, self.gradient_noise = fun, jac, gradient_noise
        self.args = args if isinstance(args, tuple) else (args,)

    def __call__(self, x: Array) -> Any:
        value = self.fun(np.copy(x), *self.args)  # objectives for SciPy may write to x
        if self.jac is None:
            return value
        return Outcome(value, self.jac(np.copy(x), *self.args), self.gradient_noise)


class _Monitor:
    """SciPy's callback as gibo's."""

    def __init__(self, callback: Callable[..., Any]) -> None:
        self.callback, self.stopped = callback, False
        try:
            parameters = list(inspect.signature(callback).parameters)
        except Exception:  # some built-in functions have no signature
            parameters = []
        self.whole = parameters == ["intermediate_result"]  # SciPy also checks the name

    def __call__(self, result: Result) -> bool:
        try:
            if self.whole:
                self.callback(intermediate_result=_optimize_result(result, stopped=False))
            else:
                self.callback(np.copy(result.x))
        except StopIteration:
            self.stopped = True
        return self.stopped


def _bounds(bounds: Any, d: int) -> Any:
    """None or a Box; in two dimensions, pairs are always read as pairs."""
    if bounds is None or is_like_bounds(bounds):
        return bounds if bounds is None else Box(*as_bounds(bounds, d) or (-np.inf, np.inf))
    try:
        pairs = [(-np.inf if low is None else low, np.inf if high is None else high) for low, high in bounds]
    except Exception:  # a foreign object may raise anything
        pairs = []
    if len(pairs) != d:
        raise InputError(f"bounds: expected {d} pairs or scipy.optimize.Bounds, got {describe(bounds)}")
    return Box(*as_bounds(Box(*zip(*pairs, strict=True)), d) or (-np.inf, np.inf))


def _scale(box: Any) -> Array | float:
    width = np.array(np.inf) if box is None else np.asarray(box.ub) - np.asarray(box.lb)
    return SHARE * width if np.isfinite(width).all() and (width > 0.0).all() else 1.0


def _optimize_result(result: Result, stopped: bool) -> OptimizeResult:
    ended_early = not result.status.is_regular
    failed = not np.isfinite(result.value) or (ended_early and not stopped)
    make: Any = OptimizeResult  # its type stubs have no fields
    found: OptimizeResult = make(
        x=result.x,
        fun=result.value,
        jac=None if result.jacobian is None else result.jacobian.mean,
        nfev=len(result.history),
        nit=len(result.history.evaluations),
        success=not failed,
        status=FAILED if failed else STOPPED if stopped else DONE,
        message="stopped by the callback" if stopped else result.reason,
        result=result,
    )
    return found
