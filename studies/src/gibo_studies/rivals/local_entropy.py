"""Local entropy search: queries that tell most about where an ascent from the best point leads (Stenger et al. 2026).

    ask        at first x0; then: fit the hyperparameters  →  ascents on functions drawn from the posterior
               →  the points on their ways that tell most about these ways                          `_queries`
    tell       …values…; the last one:  the iterate is the evaluated point with the highest mean    `_move`

    paths      f_s, functions drawn from the posterior                                        `Paths`
    ascents    S_s, points on the way of gradient ascent on f_s, all from one start           `ascents`
    gain       α(z) = H[y(z)] − mean over s of H[y(z) | f at S_s]                             `gains`

The entropies are those of normal distributions, in closed form; what is averaged over are the ways alone. Queries are
sought among the points of the ways, so that one covariance matrix of all of them is all that is needed.

Symbols: S ways of P points each, T = S·P, F features, n values.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gibo import _linalg as linalg
from gibo._linalg import Array
from gibo.errors import InputError
from gibo.gp import GaussianProcess
from gibo.means import Mean
from gibo.optimizers.model import Model
from gibo.outcome import QUERY
from gibo_studies.rivals.local_model import STANDARD, LocalModelSearch

FEATURES = 512
POINTS = 8  # on each way, of which the values are taken for known
STEPS, STRIDE = 100, 0.05  # of an ascent; the stride in lengthscales
BETAS = (0.9, 0.999)  # Adam's
LEAST_NOISE = 1e-6  # of the variance: without any, a value at a known point would tell infinitely little


class Paths(NamedTuple):
    """Functions drawn from the posterior of a model with a squared exponential kernel, for points z.

    ``f_s(z) = m + √(2 s2/F)·cos(z Ω + phase)·w_s + k(z, X) v_s``: a draw from the prior by random features, and what
    the data say of the difference between them and it. Wilson et al. 2020.
    """

    gp: GaussianProcess
    frequencies: Array
    phases: Array
    weights: Array
    corrections: Array

    @classmethod
    def draw(cls, gp: GaussianProcess, d: int, count: int, rng: np.random.Generator) -> Paths:
        """So many functions of d parameters."""
        frequencies = rng.standard_normal((d, FEATURES)) / gp.kernel.ell(d)[:, None]
        phases, weights = 2.0 * math.pi * rng.random(FEATURES), rng.standard_normal((FEATURES, count))
        paths = cls(gp, frequencies, phases, weights, np.zeros((gp.n, count)))
        if gp.observations is None or gp.factor is None:
            return paths
        X, y = gp.observations.X, gp.observations.y
        prior = paths._amplitude * np.cos(X @ frequencies + phases) @ weights
        noisy = prior + math.sqrt(gp.noise) * rng.standard_normal(prior.shape)
        residuals = (y - gp.prior_mean)[:, None] - noisy
        return paths._replace(corrections=linalg.solve(gp.factor.L, residuals))

    @property
    def _amplitude(self) -> float:
        return math.sqrt(2.0 * self.gp.kernel.variance / FEATURES)

    def value_and_gradient(self, Z: Array) -> tuple[Array, Array]:
        """Values (S,) and gradients (S, d) of each function at a point of its own, Z (S, d)."""
        angles, w = Z @ self.frequencies + self.phases, self._amplitude * self.weights.T
        value = self.gp.prior_mean + (np.cos(angles) * w).sum(axis=1)
        gradient = -(np.sin(angles) * w) @ self.frequencies.T
        if self.gp.observations is not None:
            X, square = self.gp.observations.X, self.gp.kernel.ell(Z.shape[1]) ** 2
            kv = self.gp.kernel.k(Z, X) * self.corrections.T
            value, gradient = value + kv.sum(axis=1), gradient - (kv.sum(axis=1)[:, None] * Z - kv @ X) / square
        return value, gradient


def ascents(paths: Paths, start: Array, lower: Array, upper: Array, points: int) -> Array:
    """So many points (S, points, d) on the way of each path's ascent from the start, within the bounds; by Adam."""
    ell = paths.gp.kernel.ell(len(start))
    Z = np.repeat(start[None], paths.weights.shape[1], axis=0)
    first, second, way = np.zeros_like(Z), np.zeros_like(Z), []
    seen = set(np.linspace(STEPS / points, STEPS, points).round().astype(int).tolist())
    for step in range(1, STEPS + 1):
        slope = paths.value_and_gradient(Z)[1] * ell
        first += (1.0 - BETAS[0]) * (slope - first)
        second += (1.0 - BETAS[1]) * (slope**2 - second)
        unbiased = first / (1.0 - BETAS[0] ** step), np.sqrt(second / (1.0 - BETAS[1] ** step)) + 1e-12
        Z = np.clip(Z + STRIDE * ell * unbiased[0] / unbiased[1], lower, upper)
        if step in seen:
            way.append(Z)
    return np.stack(way, axis=1)


def covariance_at(gp: GaussianProcess, Z: Array) -> Array:
    """The posterior covariance (T, T) of the objective's values at Z (T, d)."""
    C: Array = gp.kernel.k(Z, Z)
    if gp.factor is not None:
        W = linalg.solve_lower(gp.factor.L, gp.cross(Z))
        C = C - W.T @ W
    return C


def gains(C: Array, noise: float, ways: int) -> Array:
    """α (T,) at all points of the ways, whose covariance is C, way after way; in nats."""
    P, before = len(C) // ways, np.maximum(C.diagonal(), 0.0)
    top = float(before.max(initial=0.0))
    after = np.zeros(len(C))
    for s in range(ways):
        block = slice(s * P, (s + 1) * P)
        L = linalg.cholesky(C[block, block], jitter=1e-9 * top).L
        removed = linalg.solve_lower(L, C[block])
        after += np.log(np.maximum(before - np.einsum("pt,pt->t", removed, removed), 0.0) + noise)
    gain: Array = 0.5 * (np.log(before + noise) - after / ways)
    return gain


def plan(gp: GaussianProcess, ways: Array, count: int) -> Array:
    """The points (count, d) of the ways (S, P, d) that tell most, each given those before it."""
    S, _, d = ways.shape
    Z, noise = ways.reshape(-1, d), max(gp.noise, LEAST_NOISE * gp.kernel.variance)
    C, chosen = covariance_at(gp, Z), []
    for _ in range(count):
        best = int(gains(C, noise, S).argmax())
        chosen.append(best)
        C = C - np.outer(C[best], C[best]) / (C[best, best] + noise)  # a value there, whatever it will be
    return Z[chosen]


class LocalEntropySearch(LocalModelSearch):
    """Local search by what queries tell about the way of an ascent from the best point. It maximises.

    Args:
        x0, scale, bounds, seed, settings: see `LocalModelSearch`; here by default with a window of 1000 values. The
            kernel must be the squared exponential, and the mean no function.
        batch: queries per iteration.
        ways: how many functions are drawn, and ascended. The paper has 250.

    Reference: Stenger, Lindicke, von Rohr, Trimpe: Local entropy search over descent sequences for Bayesian
    optimization, ICLR 2026.
    """

    method = "local-entropy-search"
    title = "Local entropy search"

    default_settings = replace(STANDARD, N_m=1000)  # the method has no window, but time grows with the cube of it

    def __init__(self, x0: npt.ArrayLike, *, batch: int = 1, ways: int = 64, **search: Any) -> None:
        super().__init__(x0, **search)
        if self.settings.kernel != "squared_exponential" or isinstance(self.settings.mean, Mean):
            raise InputError("settings: expected the squared exponential kernel alone, and a mean that is no function")
        self.batch, self.ways = batch, ways

    def _propose(self) -> list[tuple[Array, str]]:
        if self._iteration == 0:
            return [(self._iterate, QUERY)]
        self._surrogate = self._fitted()
        unbounded = np.full(self.d, np.inf)
        Z = self._queries(self._model(), self._inside(-unbounded), self._inside(unbounded))
        return [(z * self.scale, QUERY) for z in Z]

    def _queries(self, model: Model, lower: Array, upper: Array) -> Array:
        paths = Paths.draw(model.gp, self.d, self.ways, self._rng)
        return plan(model.gp, ascents(paths, self._iterate / self.scale, lower, upper, POINTS), self.batch)

    def _move(self, model: Model) -> Array:
        best = self.best
        return (self._iterate if best is None else best.x) / self.scale
