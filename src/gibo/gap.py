"""The gap between a simulator and the machine that it stands for.

Symbols
-------
J            the objective on the machine, a Gaussian process with the kernel k
S            the objective in the simulator
b            the source of an evaluation: `MACHINE` or `SIMULATOR`
f            factor, of the machine's process in the simulator's
h            the gap, a Gaussian process that is independent of J
η², ρ        shift, the variance of the gap's level; share, that of its shape as a share of the kernel's variance
σ², σ_S²     the variances of the noise on the machine's and on the simulator's values

    S(x) = f·J(x) + h(x),    cov(h(x), h(x')) = η² + ρ·k(x, x').

So the covariances of two values without noise are

    machine and machine       k
    machine and simulator     f·k
    simulator and simulator   (f² + ρ)·k + η²

and those with gradients are that of k times the same factors. The model predicts J: its covariance with a value of the
simulator is f·k. Gradient Information (`gibo.acquisition.information`) of a query at either source follows from the
same formulas, with these factors. A simulator that says nothing of the machine has a small f, or a large ρ: then
``corr(∇J, ∇S) = f/√(f² + ρ)`` is near 0, and its values do not change the model of J.

References: Kennedy and O'Hagan: Predicting the output from a complex computer code when fast approximations are
available, Biometrika 2000, who write the machine as a factor times the simulator plus a gap. Tang and Paulson: CAGES,
arXiv 2405.07760, for the gradient's information per cost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gibo._checks import positive
from gibo._linalg import Array
from gibo.blocks import BlockTerm
from gibo.observations import Observations

MACHINE, SIMULATOR = 0.0, 1.0


@dataclass(frozen=True)
class GapTerm(BlockTerm):
    """The covariances of values of a machine and of its simulator; see the module's text.

    Args:
        shift: η² ≥ 0, in the units of the values squared.
        share: ρ ≥ 0.
        factor: f > 0.
        simulator_noise: σ_S² ≥ 0.

    Example:
        >>> from gibo import GaussianProcess, SquaredExponential
        >>> gap = GapTerm(shift=100.0, share=0.0, factor=0.5, simulator_noise=1e-4)
        >>> gp = GaussianProcess(SquaredExponential(), noise=1e-4, blocks=gap)
        >>> gp.condition([[-0.1], [0.1]], [7.0, 7.1], blocks=[SIMULATOR, SIMULATOR]).jacobian([0.0]).mean.round(1)
        array([1.])
    """

    factor: float = 1.0
    simulator_noise: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "factor", positive("factor", self.factor))
        object.__setattr__(self, "simulator_noise", positive("simulator_noise", self.simulator_noise, or_zero=True))

    @property
    def hyperparameters(self) -> dict[str, float]:
        return {**super().hyperparameters, "factor": self.factor, "simulator_noise": self.simulator_noise}

    def weight(self, blocks: Array, blocks2: Array) -> Array:
        """1 for two values of the simulator, 0 otherwise: (n, m)."""
        return np.outer(blocks, blocks2)

    def factors(self, blocks: Array, blocks2: Array) -> Array:
        own = np.outer(self.target_factors(blocks), self.target_factors(blocks2))
        return own + self.share * self.weight(blocks, blocks2)

    def target_factors(self, blocks: Array) -> Array:
        return np.where(blocks == SIMULATOR, self.factor, 1.0)

    @property
    def weighs_target(self) -> bool:
        return True

    def variance(self, s2: float, block: float) -> float:
        return s2 * (self.factor**2 + self.share) + self.shift if block == SIMULATOR else s2

    def noise(self, noise: float, blocks: Array) -> Array:
        return np.where(blocks == SIMULATOR, self.simulator_noise, noise)

    def slopes(self, W: Array, K: Array, data: Observations) -> dict[str, float]:
        b, g, p = data.row_blocks, self.target_factors(data.row_blocks), data.g.size
        by_factor = 2.0 * float((g * b) @ (W * K) @ g)  # ∂(g_i·g_j)/∂log f = (b_i + b_j)·g_i·g_j
        by_noise = self.simulator_noise * float((b[p:] * data.noise_scale * W.diagonal()[p:]).sum())
        return {**super().slopes(W, K, data), "factor": by_factor, "simulator_noise": by_noise}
