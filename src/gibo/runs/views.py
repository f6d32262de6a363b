"""The predictions of a run's model as plain data, which the run's process records and a page shows.

A belief is made after each update. Its fields are those of `gibo.optimizers.log.Belief`, with ``low`` and ``high`` for
the interval; it is in the objective's own sign and in the units of the optimiser's vector:

    x, value, deviation, low, high       the recommended point, the model's value there and its 90 % interval
    iterate, gradient, gradient_deviation    the iterate after the update, and the gradient there
    lengthscale, noise                   hyperparameters; noise is a variance
    units                                the transformation of values, in the optimiser's sign

Views are made after each update, that of the model after some of them. The last ones are kept. They are in the
objective's own sign:

    {"model": {"point": [d values], "value": number,                                          in the user's units
               "slices": [{"parameter": index, "at": [], "mean": [], "low": [], "high": [],
                           "scale": {"change", "deviation"}, "range": {"change", "deviation"}}, …], most important first
               "contours": [{"parameters": [i, j], "at": [[], []], "mean": [[]]}, …]},  mean[a][b] at at[0][a], at[1][b]
     "believed": {"evaluations": how many there were, "start", "best": {"x", "value", "low", "high"} or null,
                  "limits": {name: probability that it holds at the recommended point}, if there are limits,
                  "violated": which ones the start violates, in words, if it is the recommended point}}

A slice is the model along one parameter through the recommended point: its mean and 90 % band. A contour is its mean
over two parameters. A change is that of the mean, with the standard deviation of the difference.
"""

from __future__ import annotations

import math
from contextlib import suppress
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from gibo._checks import as_vector, finite
from gibo._linalg import Array, solve_lower
from gibo._serialize import to_plain
from gibo.errors import GiboError, InputError
from gibo.gp import conditioned
from gibo.optimizers.base import Optimizer
from gibo.optimizers.log import Belief
from gibo.optimizers.model import Z90, Model
from gibo.outcome import Best
from gibo.runs.spec import Naming

VECTORS = ("x", "iterate", "gradient", "gradient_deviation", "lengthscale")
NUMBERS = ("value", "deviation", "low", "high", "noise")
POSITIONS, GRID = 25, 15  # points of a slice, and along each side of a contour
MOST_SLICES, CONTOURED = 30, 6  # parameters
# A box wider than this many scales is not shown whole, because the model knows only a small part of it.
WIDEST, REACH = 20.0, 3.0
DRAWN = "%.5g"  # digits of the numbers that are recorded for drawings


class Update(NamedTuple):
    """The model's predictions after the update of this number, with the number of evaluations.

    Attributes:
        belief: None if the journal has it already, and for an optimiser without a model.
        views: new views by kind; the journal keeps the others.
    """

    number: int
    evaluations: int
    belief: dict[str, Any] | None
    views: dict[str, Any]


def belief_to_plain(belief: Belief, sign: float) -> dict[str, Any]:
    """The belief in the objective's sign; −1 to minimise."""
    low, high = sorted((sign * belief.interval[0], sign * belief.interval[1]))
    own = {"value": sign * belief.value, "low": low, "high": high, "gradient": sign * belief.gradient}
    plain: dict[str, Any] = to_plain({**vars(belief), **own})
    del plain["interval"]
    return plain


def checked_belief(body: Any, d: int) -> dict[str, Any]:
    """The same data after a check, because a file may contain anything."""
    if not isinstance(body, dict) or not isinstance(body.get("units"), dict):
        raise InputError("a belief has names")
    for name in VECTORS:
        as_vector(name, body[name], d)
    for name in NUMBERS:
        finite(name, body[name])
    return body


def views_of(optimizer: Optimizer, sign: float, naming: Naming, drawn: bool = True) -> dict[str, Any]:
    """The views, see the module's docstring; without the model's, which takes longest, if not `drawn`. A view that
    cannot be computed is omitted."""
    found: dict[str, Any] = {}
    with suppress(GiboError):  # the numbers of a model may be extreme, and a picture must not end a run
        found["model"] = model_view(optimizer, sign, naming) if drawn else None
    with suppress(GiboError):
        found["believed"] = believed_view(optimizer, sign)
    return {name: view for name, view in found.items() if view is not None}


def believed_view(optimizer: Optimizer, sign: float) -> dict[str, Any] | None:
    """The model's estimates of the start and of the recommended point; None before any value."""
    if not optimizer.log.valued:
        return None
    best = optimizer.best
    found = {"start": _plain(optimizer.at_start(), sign), "best": _plain(best, sign)}
    limits = {} if best is None else {name: p for name, p in optimizer.limits_at(best.x).items() if math.isfinite(p)}
    violated = optimizer.violated_at_start() if best is not None and np.array_equal(best.x, optimizer.start) else []
    of_limits = {"limits": limits, "violated": violated} if limits else {}
    return {"evaluations": len(optimizer.log.evaluations), **found, **of_limits}


def _plain(best: Best | None, sign: float) -> dict[str, Any] | None:
    if best is None:
        return None
    low, high = best.signed(sign).interval or (None, None)
    return {"x": best.x.tolist(), "value": sign * best.value, "low": low, "high": high}


def model_view(optimizer: Optimizer, sign: float, naming: Naming) -> dict[str, Any] | None:
    """Slices and contours through the recommended point; None for an optimiser without a model."""
    best, model = optimizer.best, optimizer.model()
    if best is None or model is None or model.gp.observations is None:
        return None
    x, d, scale, (low, high) = best.x, optimizer.d, optimizer.scale, _drawn(optimizer, model, best.x)
    shown = list(range(d))
    if d > MOST_SLICES:  # the parameters with the largest change of the mean within one scale
        ends = model.mean(x + np.concatenate([-np.diag(scale), np.diag(scale), np.zeros((1, d))]))
        shown = np.argsort(-np.abs(ends[:-1] - ends[-1]).reshape(2, d).max(axis=0))[:MOST_SLICES].tolist()
    slices = []
    for i in shown:
        at, values = _positions(naming, i, low[i], high[i], POSITIONS)
        slices.append({"parameter": i, "at": values, **_slice(model, x, i, at, scale[i], sign)})
    slices.sort(key=lambda each: -abs(each["range"]["change"]))
    contours = []
    for i, j in combinations(sorted(each["parameter"] for each in slices[:CONTOURED]), 2):
        (a, of_a), (b, of_b) = (_positions(naming, k, low[k], high[k], GRID) for k in (i, j))
        X = np.tile(x, (len(a), len(b), 1))
        X[:, :, i], X[:, :, j] = np.meshgrid(a, b, indexing="ij")
        mean = sign * model.mean(X.reshape(-1, d)).reshape(len(a), len(b))
        contours.append({"parameters": [i, j], "at": [of_a, of_b], "mean": _short(mean)})
    point = list(naming(x).values())
    return {"point": point, "value": _short(sign * best.value), "slices": slices, "contours": contours}


def _slice(model: Model, x: Array, i: int, at: Array, scale: float, sign: float) -> dict[str, Any]:
    """The slice along parameter i through x (d,), at the entries `at` (n,) of the optimiser's vector."""
    n, gp, units = len(at), model.gp, model.units
    Z = np.tile(x, (n + 3, 1))
    Z[:, i] = [*at, x[i] - scale, x[i], x[i] + scale]
    Z /= model.scale
    k = gp.cross(Z)
    w = solve_lower(conditioned(gp)[1].L, k)
    u, S = gp.mean_at(Z) + k.T @ gp.a, gp.prior_covariance(Z, Z) - w.T @ w  # mean and covariance of the model's value
    variance = np.maximum(np.diagonal(S), 0.0)
    half = Z90 * np.sqrt(variance)
    y = sign * units.mean(u, variance + gp.noise, model.seen)
    band = np.sort([sign * units.mean(u + end, gp.noise, model.seen) for end in (-half, half)], axis=0)
    here = n + 1
    far = n if abs(y[n] - y[here]) >= abs(y[n + 2] - y[here]) else n + 2
    least, most = sorted((int(y[:n].argmin()), int(y[:n].argmax())))
    found = {"mean": _short(y[:n]), "low": _short(band[0, :n]), "high": _short(band[1, :n])}
    for name, a, b in (("scale", here, far), ("range", least, most)):
        rise = u[b] - u[a]
        slope = (y[b] - y[a]) / rise if abs(rise) > 1e-9 else units.mean_slope(float(u[a]), gp.noise)
        doubt = abs(slope) * np.sqrt(max(S[a, a] + S[b, b] - 2.0 * S[a, b], 0.0))
        found[name] = {"change": _short(y[b] - y[a]), "deviation": _short(doubt)}
    return found


def _drawn(optimizer: Optimizer, model: Model, x: Array) -> tuple[Array, Array]:
    """The limits of the drawing for each entry of the vector: (d,) and (d,)."""
    scale, seen = optimizer.scale, np.array([e.x for e in optimizer.log.valued[-model.gp.n :]])
    low = np.minimum(seen.min(axis=0), x - REACH * scale)
    high = np.maximum(seen.max(axis=0), x + REACH * scale)
    if optimizer.bounds is None:
        return low, high
    lower, upper = optimizer.bounds
    whole = upper - lower <= WIDEST * scale
    return np.where(whole, lower, np.maximum(low, lower)), np.where(whole, upper, np.minimum(high, upper))


def _positions(naming: Naming, i: int, low: float, high: float, count: int) -> tuple[Array, list[float]]:
    """Evenly spaced entries of the vector, and their values; for whole numbers the existing ones."""
    at, parameters = np.linspace(low, high, count), naming.parameters
    if parameters is not None and parameters[naming.names[i]].kind == "integer":
        at = np.unique([parameters[naming.names[i]].rounded(entry) for entry in at])
    return at, [naming.value(i, entry) for entry in at.tolist()]


def _short(numbers: Any) -> Any:
    return np.char.mod(DRAWN, numbers).astype(np.float64).tolist()
