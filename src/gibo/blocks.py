"""The common shift of the evaluations of one block: a day, an operator, a random seed, or a time of a drift.

Symbols
-------
b, b'        the blocks of two evaluations, numbers; for blocks that are ordered in time, their times
w(b, b')     correlation of two blocks: 1 if they are equal and 0 otherwise; in time ``exp(−|b − b'|/tau)``
shift        η², the variance of the shift that a block adds to all its values
share        ρ, the variance of a block's change of the objective's shape, as a share of the kernel's variance
tau, now     the timescale of the drift, and the time for which the model predicts the objective
k, K         the kernel; the covariance of all observations

An evaluation at x in the block b has the value ``J(x) + h_b(x) + noise``. The processes h_b are independent of J, and

    cov(h_b(x), h_b'(x')) = w(b, b')·(η² + ρ·k(x, x')).

Hence the covariance of two values is ``k + w·(η² + ρ·k)``. With gradients it is that of k times ``1 + ρ·w``.
For blocks without an order the model predicts J, whose covariance with a value is k alone. In time it predicts
``J + h_now``, the objective now: its covariance with a value of the time b has the weight ``w(b, now)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gibo._checks import finite, positive
from gibo._linalg import Array
from gibo._serialize import Serializable
from gibo.errors import InputError
from gibo.observations import Observations


@dataclass(frozen=True)
class BlockTerm(Serializable):
    """The additional covariance of evaluations of one block; see the module's text.

    Args:
        shift: η² ≥ 0, in the units of the values squared.
        share: ρ ≥ 0.
        timescale: tau, for blocks that are ordered in time; None for others.
        now: with a timescale, the time for which the model predicts the objective.

    Example:
        >>> from gibo import GaussianProcess, SquaredExponential
        >>> gp = GaussianProcess(SquaredExponential(), noise=1e-4, blocks=BlockTerm(shift=100.0, share=0.0))
        >>> X, y = [[-0.1], [0.1], [-0.1], [0.1]], [1.0, 1.2, 7.0, 7.2]  # two days: the level differs
        >>> gp.condition(X, y, blocks=[1, 1, 2, 2]).jacobian([0.0]).mean.round(1)
        array([1.])
    """

    shift: float
    share: float
    timescale: float | None = None
    now: float | None = None

    def __post_init__(self) -> None:
        for name in ("shift", "share"):
            object.__setattr__(self, name, positive(name, getattr(self, name), or_zero=True))
        if (self.timescale is None) != (self.now is None):
            raise InputError(
                "timescale, now: give both for blocks that are ordered in time, and none of them otherwise"
            )
        if self.timescale is not None:
            object.__setattr__(self, "timescale", positive("timescale", self.timescale))
            object.__setattr__(self, "now", finite("now", self.now))

    @property
    def hyperparameters(self) -> dict[str, float]:
        """The numbers that a fit can change, by name."""
        found = {"shift": self.shift, "share": self.share}
        return found if self.timescale is None else {**found, "timescale": self.timescale}

    def weight(self, blocks: Array, blocks2: Array) -> Array:
        """``w`` for all pairs: (n, m)."""
        if self.timescale is None:
            return np.asarray(blocks[:, None] == blocks2, dtype=np.float64)
        return np.exp(-np.abs(blocks[:, None] - blocks2) / self.timescale)

    def weight_now(self, blocks: Array) -> Array:
        """``w`` (n,) between each block and the objective that the model describes."""
        if self.now is None:
            return np.zeros(len(blocks))
        return self.weight(blocks, np.array([self.now]))[:, 0]

    def factors(self, blocks: Array, blocks2: Array) -> Array:
        """The factor on k in the covariance of all pairs, ``1 + ρ·w``: (n, m)."""
        return 1.0 + self.share * self.weight(blocks, blocks2)

    def target_factors(self, blocks: Array) -> Array:
        """The same (n,) between each block and the objective that the model describes."""
        return 1.0 + self.share * self.weight_now(blocks)

    def target_prior(self, k: Array, level: float = 1.0) -> Array:
        """The covariance of the objective from that of the kernel; with the level 0, of its gradients."""
        return k if self.now is None else k * (1.0 + self.share) + level * self.shift

    @property
    def weighs_target(self) -> bool:
        """Whether the covariance of an observation with the objective is not k alone."""
        return self.timescale is not None

    def add(self, K: Array, blocks: Array, blocks2: Array, p: int, p2: int) -> Array:
        """K, made from the kernel alone, with this term; the first p rows and p2 columns are of gradients."""
        extended: Array = K * self.factors(blocks, blocks2)
        extended[p:, p2:] += self.shift * self.weight(blocks[p:], blocks2[p2:])
        return extended

    def add_target(self, K: Array, blocks: Array, p: int, p2: int) -> Array:
        """The same where the columns of K are the objective's."""
        if not self.weighs_target:
            return K
        extended: Array = K * self.target_factors(blocks)[:, None]
        extended[p:, p2:] += self.shift * self.weight_now(blocks[p:])[:, None]
        return extended

    def variance(self, s2: float, block: float) -> float:
        """Prior variance of a value in this block, without noise, where that of the kernel is s2."""
        return s2 * (1.0 + self.share) + self.shift

    def noise(self, noise: float, blocks: Array) -> float | Array:
        """The noise variance of values in these blocks: the model's, or one (n,) for each value."""
        return noise

    def slopes(self, W: Array, K: Array, data: Observations) -> dict[str, float]:
        """``Σ_ij W_ij ∂add(K)_ij`` by the logarithm of each of the `hyperparameters`; see `add`."""
        blocks, p = data.row_blocks, data.g.size
        w = self.weight(blocks, blocks)
        Ww = W * w
        found = {"shift": self.shift * float(Ww[p:, p:].sum()), "share": self.share * float(np.vdot(Ww, K))}
        if self.timescale is not None:
            Ww *= np.abs(blocks[:, None] - blocks) / self.timescale  # ∂w/∂log tau = w·|b − b'|/tau
            found["timescale"] = self.share * float(np.vdot(Ww, K)) + self.shift * float(Ww[p:, p:].sum())
        return found


class QueryBlock(NamedTuple):
    """The factors and offsets that the block of the next queries adds to the kernel's covariances.

    factor (n + 1,): ``1 + ρ·w`` with the block of each value, and with the present at t in the last entry.
    gradient_factor (m,): the same with the block of each gradient;  offset (n,): ``η²·w`` with that of each value.
    """

    term: BlockTerm
    of_values: Array
    of_gradients: Array
    block: float | None
    factor: Array
    gradient_factor: Array
    offset: Array

    @classmethod
    def of(cls, term: BlockTerm, of_values: Array, of_gradients: Array, block: float | None) -> QueryBlock:
        nothing = np.empty(0)
        return cls(term, of_values, of_gradients, block, nothing, nothing, nothing).weighed()

    def weighed(self) -> QueryBlock:
        """With the weights of the present blocks."""
        term, here = self.term, np.array([self._here])
        factor = np.append(term.factors(self.of_values, here)[:, 0], term.target_factors(here))
        offset = term.shift * term.weight(self.of_values, here)[:, 0]
        return self._replace(factor=factor, gradient_factor=term.factors(self.of_gradients, here)[:, 0], offset=offset)

    def more(self) -> QueryBlock:
        """With one more value, in the block of the queries."""
        return self._replace(of_values=np.append(self.of_values, self._here)).weighed()

    def variance(self, s2: float) -> float:
        """Prior variance of a value without noise."""
        return self.term.variance(s2, self._here)

    def noise(self, noise: float) -> float:
        """Noise variance of a value."""
        return float(np.max(self.term.noise(noise, np.array([self._here]))))

    @property
    def _here(self) -> float:
        """The queries' block; NaN for a new block, because NaN equals no other block."""
        if self.block is not None:
            return self.block
        return math.nan if self.term.now is None else self.term.now
