"""What a run's model says about each parameter, for a page to draw. The process that holds a run records it.

Symbols and shapes
------------------
x (d,)      the recommended point
slice       the model along one parameter through x: mean and 90 % band
contour     the model's mean over two parameters, through x
change      by how much the model's mean changes, with the standard deviation of that difference

All numbers are in the objective's sign and in the units that the user gave the parameters.

    {"model": {"point": [d values], "value": number,
               "slices": [{"parameter": index, "at": [], "mean": [], "low": [], "high": [],
                           "scale": {"change", "deviation"}, "range": {"change", "deviation"}}, …], most important first
               "contours": [{"parameters": [i, j], "at": [[], []], "mean": [[]]}, …]},  mean[a][b] at at[0][a], at[1][b]
     "verdict": {"code", "text", "evaluations": how many there were,
                 "start", "best": {"x", "value", "low", "high"} or null}}

Only the x of a verdict is the optimiser's vector, as all vectors of a journal are.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import combinations
from typing import Any

import numpy as np

from gibo._linalg import Array, solve_lower
from gibo.errors import GiboError
from gibo.gp import conditioned
from gibo.optimizers.base import Optimizer
from gibo.optimizers.model import Z90
from gibo.outcome import Best, Evaluation
from gibo.runs.advice import Facts, verdict
from gibo.runs.spec import Naming

POSITIONS, GRID = 25, 15  # of a slice, and along each side of a contour
MOST_SLICES, CONTOURED = 30, 6  # parameters
# A box that is wider than this many scales is not shown whole: a model of a small part of it has nothing to say there.
WIDEST, REACH = 20.0, 3.0
DIGITS = 5  # significant ones that are recorded


def views_of(optimizer: Optimizer, sign: float, naming: Naming, by_hand: bool = False) -> dict[str, Any]:
    """See the module's text; what cannot be computed is left out."""
    found: dict[str, Any] = {}
    with suppress(GiboError):  # the numbers of a model may be extreme; a run must not end for its picture
        found["model"] = model_view(optimizer, sign, naming)
    with suppress(GiboError):
        found["verdict"] = verdict_view(optimizer, sign, naming, by_hand)
    return {name: view for name, view in found.items() if view is not None}


def verdict_view(optimizer: Optimizer, sign: float, naming: Naming, by_hand: bool = False) -> dict[str, Any] | None:
    """The sentence of `gibo status` and the believed value of the start; None before any value."""
    if not optimizer.log.valued:
        return None
    told = [Evaluation(e.query, e.outcome.signed(sign)) for e in optimizer.evaluations]
    best, start = (None if each is None else each.signed(sign) for each in (optimizer.best, optimizer.at_start()))
    recommended = optimizer.iterate if best is None else best.x
    facts = Facts.of(
        optimizer,
        told,
        optimizer.log.iterations,
        minimize=sign < 0,
        naming=naming,
        recommended=recommended.tolist(),
        iterations=optimizer.iteration,
        by_hand=by_hand,
    )
    said = verdict(facts, start, best)
    known = {"code": said.code, "text": said.text, "evaluations": len(told)}
    return {**known, "start": _believed(start), "best": _believed(best)}


def model_view(optimizer: Optimizer, sign: float, naming: Naming) -> dict[str, Any] | None:
    """Slices and contours through the recommended point; None for an optimiser without a model."""
    best, model = optimizer.best, optimizer.model()
    if best is None or model is None or model.gp.observations is None:
        return None
    slicer = _Slicer(optimizer, best.x, sign, naming)
    slices = [slicer.slice(i) for i in slicer.most_important()]
    slices.sort(key=lambda each: -abs(each["range"]["change"]))
    contoured = sorted(each["parameter"] for each in slices[:CONTOURED])
    return {
        "point": list(naming(best.x).values()),
        "value": _short(sign * best.value),
        "slices": slices,
        "contours": slicer.contours(list(combinations(contoured, 2))),
    }


class _Slicer:
    def __init__(self, optimizer: Optimizer, x: Array, sign: float, naming: Naming) -> None:
        model = optimizer.model()
        assert model is not None
        self.model, self.gp, self.x, self.sign, self.naming = model, model.gp, x, sign, naming
        self.scale = optimizer.scale
        seen = np.array([e.x for e in optimizer.log.valued[-model.gp.n :]])
        low, high = np.minimum(seen.min(axis=0), x - REACH * self.scale), seen.max(axis=0)
        high = np.maximum(high, x + REACH * self.scale)
        if optimizer.bounds is not None:
            lower, upper = optimizer.bounds
            whole = upper - lower <= WIDEST * self.scale
            low, high = np.where(whole, lower, np.maximum(low, lower)), np.where(whole, upper, np.minimum(high, upper))
        self.low, self.high = low, high

    def most_important(self) -> list[int]:
        """Those within whose scale the mean changes most; all if they are few."""
        d = len(self.x)
        if d <= MOST_SLICES:
            return list(range(d))
        steps = np.diag(self.scale)
        means = self._mean(np.concatenate([self.x - steps, self.x + steps, self.x[None]]))
        change = np.abs(means[:-1] - means[-1]).reshape(2, d).max(axis=0)
        return [int(i) for i in np.argsort(-change)[:MOST_SLICES]]

    def positions(self, i: int, count: int) -> Array:
        """Evenly spaced entries of the vector over what is shown of a parameter; of whole numbers those there are."""
        at = np.linspace(self.low[i], self.high[i], count)
        parameters = self.naming.parameters
        if parameters is None or parameters[self.naming.names[i]].kind != "integer":
            return at
        return np.unique([parameters[self.naming.names[i]].rounded(entry) for entry in at])

    def slice(self, i: int) -> dict[str, Any]:
        at = self.positions(i, POSITIONS)
        n, entries = len(at), np.concatenate([at, self.x[i] + self.scale[i] * np.array([-1.0, 0.0, 1.0])])
        X = np.repeat(self.x[None], len(entries), axis=0)
        X[:, i] = entries
        Z = X / self.model.scale
        W = solve_lower(conditioned(self.gp)[1].L, self.gp.cross(Z))
        u = self.gp.mean_at(Z) + self.gp.cross(Z).T @ self.gp.a
        S = self.gp.prior_covariance(Z, Z) - W.T @ W
        variance = np.maximum(np.diagonal(S), 0.0)
        y, half = self._value(u, variance), Z90 * np.sqrt(variance)
        low, high = np.sort([self._value(u - half, 0.0), self._value(u + half, 0.0)], axis=0)

        def change(a: int, b: int) -> dict[str, float]:
            """From a to b; the deviation is that of the model's own values, on the way back to the user's."""
            doubt = float(np.sqrt(max(S[a, a] + S[b, b] - 2.0 * S[a, b], 0.0)))
            slope = (
                (y[b] - y[a]) / (u[b] - u[a])
                if abs(u[b] - u[a]) > 1e-9
                else self.model.units.mean_slope(u[a], self.gp.noise)
            )
            return {"change": _short(y[b] - y[a]), "deviation": _short(abs(slope) * doubt)}

        far = max((n, n + 2), key=lambda b: abs(y[b] - y[n + 1]))
        least, most = sorted((int(y[:n].argmin()), int(y[:n].argmax())))
        return {
            "parameter": i,
            "at": self._values(i, at),
            **{name: [_short(v) for v in curve[:n]] for name, curve in (("mean", y), ("low", low), ("high", high))},
            "scale": change(n + 1, far),
            "range": change(least, most),
        }

    def contours(self, pairs: list[tuple[int, int]]) -> list[dict[str, Any]]:
        grids = []
        for i, j in pairs:
            a, b = np.meshgrid(self.positions(i, GRID), self.positions(j, GRID), indexing="ij")
            X = np.broadcast_to(self.x, (*a.shape, len(self.x))).copy()
            X[..., i], X[..., j] = a, b
            grids.append(X)
        flat = [X.reshape(-1, len(self.x)) for X in grids]
        means = np.split(self._mean(np.concatenate(flat)), np.cumsum([len(X) for X in flat])[:-1]) if flat else []
        return [
            {
                "parameters": [i, j],
                "at": [self._values(i, X[:, 0, i]), self._values(j, X[0, :, j])],
                "mean": [[_short(v) for v in row] for row in mean.reshape(X.shape[:2])],
            }
            for (i, j), X, mean in zip(pairs, grids, means, strict=True)
        ]

    def _mean(self, X: Array) -> Array:
        return self.sign * self.model.mean(X)

    def _value(self, u: Array, variance: Array | float) -> Array:
        """The objective's mean where the model's value is normal with this mean and variance."""
        return self.sign * self.model.units.mean(u, variance + self.gp.noise, self.model.seen)

    def _values(self, i: int, entries: Array) -> list[float]:
        return [self.naming.value(i, float(entry)) for entry in entries]


def _believed(best: Best | None) -> dict[str, Any] | None:
    if best is None:
        return None
    low, high = (None, None) if best.interval is None else best.interval
    return {"x": best.x.tolist(), "value": best.value, "low": low, "high": high}


def _short(number: float) -> float:
    return float(f"{number:.{DIGITS}g}")
