"""Bayesian optimisation in a box that grows and shrinks with success, in the manner of TuRBO (Eriksson et al. 2019).

A region has a start, data of its own, a centre (its best point by the model) and a half-width L:

    ask    at first: its start and random points of its box; then: Thompson samples of its box        `_propose`
    tell   …values…; the last one:  better than the centre? L doubles after 3 such batches, halves
           after max(4, d)/batch others; below 1/128 the region is given up and a new one begins     `_update`

What is kept of a region that was given up is its best point; the recommended point is the best of all regions. z stands
for parameters in units of `scale`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gibo import _linalg as linalg
from gibo._linalg import Array, single_thread
from gibo.acquisition.expected_improvement import means_at_data
from gibo.gp import Jacobian
from gibo.optimizers.base import Optimizer
from gibo.optimizers.model import Model, Surrogate
from gibo.outcome import QUERY, Best, Evaluation
from gibo_studies.rivals.local_entropy import covariance_at
from gibo_studies.rivals.local_model import STANDARD

SUCCESSES = 3  # batches in a row after which the box grows
# Half-widths in units of `scale`; the first is 1. TuRBO's cube has an end, but a scale may be far too small.
SMALLEST, LARGEST = 2.0**-7, 2.0**6
CANDIDATES = 300
CHANGED = 20  # parameters of a candidate that differ from the centre, on average, at most
WINDOW = 400  # of a region's values, because the time grows with the cube of it
BETTER = 1e-3  # of the values' spread
# Numbers of the region that a memo keeps.
KEPT = ("start", "first", "centre", "length", "successes", "failures", "fitted", "champion")


class TrustRegionBO(Optimizer):
    """Bayesian optimisation within a trust region, with restarts. It maximises.

    Failures are passed over. Points from elsewhere are used like queries; gradients are not used.

    Args:
        x0, scale, bounds, seed: see `gibo.Optimizer`.
        batch: queries per iteration.

    Reference: Eriksson, Pearce, Gardner, Turner, Poloczek: Scalable global optimization via local Bayesian
    optimization, NeurIPS 2019. Success is here judged by the model, because values are noisy.
    """

    method = "trust-region-bo"
    title = "Trust region BO"

    def __init__(self, x0: npt.ArrayLike, *, batch: int = 4, **search: Any) -> None:
        super().__init__(x0, **search)
        self.batch = batch
        self._initial = min(max(self.d, 4), 20)  # values of a region before its model is used
        self._failures_allowed = math.ceil(max(4, self.d) / self.batch)
        self._champion: tuple[int, float] | None = None  # of earlier regions: its id, and what it was believed to give
        self._open_region(self.x0)

    def _open_region(self, start: Array) -> None:
        self._start, self._first = start, self.log.next_id
        self._centre: int | None = None
        self._length, self._successes, self._failures, self._fitted = 1.0, 0, 0, 0
        self._surrogate = Surrogate.initial(STANDARD.resolve(self.d), self.scale)

    # -- what it knows ------------------------------------------------------------------------------------------------

    @property
    def best(self) -> Best | None:
        """The evaluated point with the highest mean under the model of this region, or the best of earlier ones."""
        with single_thread():
            found = self._highest()
        if found is not None and (self._champion is None or found[1] >= self._champion[1]):
            return Best(found[0].x.copy(), found[1])
        if self._champion is None:
            return None
        return Best(self.log.evaluations[self._champion[0]].x.copy(), self._champion[1])

    def jacobian(self) -> Jacobian:
        with single_thread():
            return self._model().jacobian(self._iterate)

    # -- the search ---------------------------------------------------------------------------------------------------

    def _propose(self) -> list[tuple[Array, str]]:
        data = self._data()
        if len(data) < self._initial or self._centre is None:
            lower, upper = self._box(self._start / self.scale)
            count = max(1, self._initial - len(data))
            X = list((lower + (upper - lower) * self._rng.random((count, self.d))) * self.scale)
            if self._first == self.log.next_id:  # nothing of this region has been asked
                X[0] = self._start
            return [(x, QUERY) for x in X]
        if len(data) >= max(1.1 * self._fitted, self._fitted + 1):
            self._surrogate, self._fitted = self._surrogate.fit(data), len(data)
        centre = self.log.evaluations[self._centre].x / self.scale
        candidates = self._candidates(centre, *self._box(centre))
        return [(z * self.scale, QUERY) for z in self._thompson(self._model(), candidates)]

    def _candidates(self, centre: Array, lower: Array, upper: Array) -> Array:
        """Points of the box that differ from its centre in some parameters, one at least."""
        shape = (CANDIDATES, self.d)
        changed = self._rng.random(shape) < CHANGED / self.d
        changed[np.arange(CANDIDATES), self._rng.integers(self.d, size=CANDIDATES)] = True
        Z = np.where(changed, lower + (upper - lower) * self._rng.random(shape), centre)
        return np.clip(Z, lower, upper)

    def _thompson(self, model: Model, Z: Array) -> list[Array]:
        """For each query a sample of the posterior at all candidates; asked is where it is highest."""
        gp = model.gp
        root = linalg.cholesky(covariance_at(gp, Z), jitter=1e-8 * gp.kernel.variance).L
        samples = np.asarray(gp.predict(Z).mean) + (root @ self._rng.standard_normal((len(Z), self.batch))).T
        chosen: list[int] = []
        for sample in samples:
            sample[chosen] = -np.inf
            chosen.append(int(sample.argmax()))
        return [Z[i] for i in chosen]

    def _update(self, batch: list[Evaluation]) -> None:
        self._iteration += 1
        found, before = self._highest(), self._centre
        if found is not None and before is None:
            self._centre = found[0].id
        elif found is not None and before is not None:
            model = self._model()
            gain = (found[1] - float(model.mean(self.log.evaluations[before].x[None])[0])) / model.units.spread
            self._count(success=found[0].id in {e.id for e in batch} and gain > BETTER)
            self._centre = found[0].id
        if self._length < SMALLEST:
            best = self._highest()
            if best is not None and (self._champion is None or best[1] > self._champion[1]):
                self._champion = (best[0].id, best[1])
            self._open_region(self._anywhere())
        recommended = self.best
        self._iterate = self.x0.copy() if recommended is None else recommended.x

    def _count(self, success: bool) -> None:
        self._successes, self._failures = (self._successes + 1, 0) if success else (0, self._failures + 1)
        if self._successes == SUCCESSES:
            self._length, self._successes = min(2.0 * self._length, LARGEST), 0
        elif self._failures == self._failures_allowed:
            self._length, self._failures = 0.5 * self._length, 0

    def _anywhere(self) -> Array:
        """Where a new region starts: uniform between finite bounds, otherwise around x0."""
        x = self.x0 + 2.0 * self.scale * self._rng.standard_normal(self.d)
        uniform = self._rng.random(self.d)
        if self.bounds is not None:
            finite = np.isfinite(self.bounds).all(axis=0)
            x[finite] = (self.bounds[0] + (self.bounds[1] - self.bounds[0]) * uniform)[finite]
        return self.clip(x)

    def _box(self, centre: Array) -> tuple[Array, Array]:
        """Longer where the lengthscale is, with the volume of a cube; within the bounds; in z."""
        ell = self._surrogate.hyperparameters.lengthscale
        half = self._length * ell / math.exp(float(np.log(ell).mean()))
        lower, upper = centre - half, centre + half
        if self.bounds is not None:
            low, high = (bound / self.scale for bound in self.bounds)
            lower, upper = np.clip(lower, low, high), np.clip(upper, low, high)
        return lower, upper

    # -- its data -----------------------------------------------------------------------------------------------------

    def _data(self) -> list[Evaluation]:
        """The region's last values, and its centre's."""
        data = [e for e in self.log.valued if e.id >= self._first]
        old = [e for e in data[:-WINDOW] if e.id == self._centre]
        return old + data[-WINDOW:]

    def _model(self) -> Model:
        return self._surrogate.given(self._data())

    def _highest(self) -> tuple[Evaluation, float] | None:
        """The region's point within the bounds that has the highest mean under its model, and that mean."""
        data = self._data()
        eligible = np.array([np.array_equal(self.clip(e.x), e.x) for e in data], dtype=bool)
        if not eligible.any():
            return None
        model = self._model()
        mean = np.where(eligible, means_at_data(model.gp), -np.inf)
        i = int(mean.argmax())
        return data[i], float(model.units.shift + model.units.spread * mean[i])

    def _used_again(self) -> Sequence[Evaluation]:
        champion = [] if self._champion is None else [self.log.evaluations[self._champion[0]]]
        return [*champion, *self._data()]

    # -- memo ---------------------------------------------------------------------------------------------------------

    def _memo(self) -> dict[str, Any]:
        return {**self._surrogate.memo(), **{name: getattr(self, f"_{name}") for name in KEPT}}

    def _recall(self, memo: dict[str, Any]) -> None:
        self._surrogate = Surrogate.initial(STANDARD.resolve(self.d), self.scale).recall(memo)
        for name in KEPT:
            setattr(self, f"_{name}", memo[name])
        self._start = np.array(memo["start"], dtype=np.float64)
