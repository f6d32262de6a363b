"""Augmented Random Search: steps along random directions, weighted by the differences of returns along them.

One iteration at the iterate t, with N directions δ_i ~ N(0, I):

    ask    t + ν·δ_i and t − ν·δ_i for i = 1 … N, all at once                      `_propose`
    tell   …their returns r_i⁺ and r_i⁻, in any order…
           the last one:  t ← t + α/(b·σ_R) · Σ (r_i⁺ − r_i⁻)·δ_i  over the b       `_update`
           directions with the largest max(r_i⁺, r_i⁻)

σ_R is the standard deviation of the 2b returns in the sum (see `ddof`). The iterate itself is never evaluated.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gibo._checks import batch_size, natural, positive
from gibo._linalg import Array
from gibo.errors import InputError
from gibo.optimizers.base import Optimizer
from gibo.outcome import QUERY, Best, Evaluation


class ARS(Optimizer):
    """Augmented Random Search, V1 and V1-t. It maximises.

    ``t ← t + α/(b·σ_R) · Σ (r⁺ − r⁻)·δ``; see the module's docstring. V2 is the same search with a policy that
    normalises its states; the policy does that.

    If one side of a direction failed, the direction is left out of the sum. If all are left out or all returns are
    equal, there is no step. Queries and iterates are clipped to the bounds; the directions in the sum are not. Points
    that it did not ask for are kept in `evaluations` without influence.

    Args:
        x0: (d,) the start.
        scale: positive; the change of a parameter that has a clear effect, roughly: one number or one per parameter.
        bounds: None, or (lower, upper); no query and no iterate leaves them.
        seed: of all random choices.
        step_size: α, in units of `scale`.
        noise: ν, the distance of the queries from the iterate, in units of `scale`.
        directions: N; by default ``1 + d//8``, the choice of Müller et al. 2021.
        top: b, the number of directions that are used; by default all (V1), fewer for V1-t.
        ddof: σ_R divides by ``2b − ddof``: 0 as in the code of ARS's authors, or 1, a sample's, as in the published
            code of Müller et al. 2021; then steps are shorter by ``√(1 − 1/(2b))``, 0.71 with one direction.

    Example:
        >>> from gibo import ARS
        >>> opt = ARS([0.0, 0.0], scale=0.3, seed=1)
        >>> for _ in range(100):
        ...     for query in opt.ask():
        ...         opt.tell(query, -float(((query.x - 1.0) ** 2).sum()))
        >>> bool(abs(opt.iterate - 1.0).max() < 0.3)
        True

    Reference: Mania, Guy, Recht: Simple random search of static linear policies is competitive for reinforcement
    learning, NeurIPS 2018, algorithms 1 and 2.
    """

    most_parameters = None
    method = "ars"

    def __init__(
        self,
        x0: npt.ArrayLike,
        *,
        scale: npt.ArrayLike = 1.0,
        bounds: npt.ArrayLike | None = None,
        seed: int = 0,
        step_size: float = 0.15,
        noise: float = 0.3,
        directions: int | None = None,
        top: int | None = None,
        ddof: int = 0,
    ) -> None:
        super().__init__(x0, scale=scale, bounds=bounds, seed=seed)
        self.step_size = positive("step_size", step_size)
        self.noise = positive("noise", noise)
        self.directions = 1 + self.d // 8 if directions is None else batch_size("directions", directions)
        self.top = self.directions if top is None else batch_size("top", top)
        if self.top > self.directions:
            raise InputError(f"top: at most all {self.directions} directions can be used, got {self.top}")
        self.ddof = natural("ddof", ddof)
        if self.ddof > 1:
            raise InputError(f"ddof: expected 0 or 1, got {self.ddof}")
        self._value: float | None = None
        self._deltas = np.empty((0, self.d))

    @property
    def best(self) -> Best | None:
        """The iterate, with the mean of the last batch's returns as its value.

        These returns are from points around the iterate before the last step; the iterate itself is never evaluated.
        """
        return None if self._value is None else Best(self.iterate, self._value)

    def _propose(self) -> list[tuple[Array, str]]:
        self._deltas = self._rng.standard_normal((self.directions, self.d))
        offsets = self.noise * self.scale * self._deltas
        return [(self._iterate + sign * offset, QUERY) for offset in offsets for sign in (1.0, -1.0)]

    def _update(self, batch: list[Evaluation]) -> None:
        self._iteration += 1
        values = np.array([np.nan if e.value is None else e.value for e in batch])
        if np.isnan(values).all():
            return
        self._value = float(np.nanmean(values))
        returns = values.reshape(self.directions, 2)  # r⁺ and r⁻
        complete = np.flatnonzero(~np.isnan(returns).any(axis=1))
        ranked = complete[np.argsort(-returns[complete].max(axis=1), kind="stable")]
        used = np.sort(ranked[: self.top])  # in the order of drawing, so that the sum of all equals V1's bit for bit
        sigma = float(returns[used].std(ddof=self.ddof)) if len(used) else 0.0
        if not sigma > 0.0:
            return
        weights = (returns[used, 0] - returns[used, 1]) / sigma
        step = self.step_size / len(used) * (weights @ self._deltas[used])
        self._iterate = self.clip(self._iterate + step * self.scale)
