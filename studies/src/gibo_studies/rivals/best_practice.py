"""Global Bayesian optimisation with the defaults of BoTorch since 0.12 (Hvarfner, Hellsten, Nardi 2024)."""

from __future__ import annotations

import math
from typing import Self

import numpy as np
import numpy.typing as npt

from gibo._linalg import Array
from gibo.acquisition.expected_improvement import Improvement
from gibo.gp import GaussianProcess
from gibo.optimizers.vanilla_bo import VanillaBO
from gibo.priors import LogNormal
from gibo_studies.rivals.noisy_improvement import LogNoisyExpectedImprovement


class BestPracticeBO(VanillaBO):
    """`gibo.VanillaBO` with log noisy expected improvement: what is improved on is uncertain too.

    Reference: Ament et al.: Unexpected improvements to expected improvement, NeurIPS 2023.
    """

    method = "best-practice-bo"
    title = "Vanilla BO (best practice)"

    @classmethod
    def on_the_unit_cube(cls, x0: npt.ArrayLike, lower: Array, upper: Array, seed: int) -> Self:
        """The box (d,) to (d,) as the unit cube, with lengthscales that grow with √d.

        Reference: Hvarfner, Hellsten, Nardi: Vanilla Bayesian optimization performs great in high dimensions, ICML
        2024.
        """
        return cls(
            x0,
            bounds=(lower, upper),
            scale=upper - lower,
            seed=seed,
            lengthscale=LogNormal(math.exp(math.sqrt(2.0)) * math.sqrt(len(lower)), math.sqrt(3.0)),
            variance=1.0,
            noise=LogNormal(math.exp(-4.0), 1.0),
            mean="estimated",
            standardize=True,
            fit_from=4,
        )

    def _improvement(self, gp: GaussianProcess, evaluated: npt.NDArray[np.bool_]) -> Improvement:
        return LogNoisyExpectedImprovement(gp, self._rng)
