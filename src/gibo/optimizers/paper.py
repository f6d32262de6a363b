"""The paper's settings for its synthetic study (Müller et al. 2021, table 1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gibo._checks import as_vector, batch_size, finite, positive_int
from gibo._linalg import Array
from gibo.optimizers.moves import GradientStep
from gibo.optimizers.settings import Settings
from gibo.priors import Uniform
from gibo.steps import GradientAscent


def mean_distance(d: int) -> float:
    """``Δ(d)``: upper bound on the mean distance of two random points in the unit cube, scaled so that Δ(2) = 0.1.

    Anderssen et al. 1976, with the bracket that the paper misplaces in the right place.

    >>> mean_distance(2)
    0.1
    """

    d = positive_int("d", d)

    def bound(n: int) -> float:
        return math.sqrt(n / 6.0) * math.sqrt((1.0 + 2.0 * math.sqrt(1.0 - 3.0 / (5.0 * n))) / 3.0)

    return 0.1 * bound(d) / bound(2)


def lengthscale_distribution(d: int, gamma: float = 0.3) -> Uniform:
    """``ℓ(d)``: the distribution of the lengthscales in the synthetic study."""
    mean, gamma = 2.0 * mean_distance(d), finite("gamma", gamma)
    return Uniform(mean * (1.0 - gamma), mean * (1.0 + gamma))


def within_model(lengthscale: Sequence[float] | Array) -> Settings:
    """The paper's settings for the within-model comparison, where the true hyperparameters are known.

    Args:
        lengthscale: (d,) the true lengthscales, for an optimiser with scale 1. The variance is 1, the noise has
            standard deviation 0.1.
    """
    ell = as_vector("lengthscale", lengthscale)
    d = len(ell)
    return Settings.paper(
        lengthscale=ell,
        variance=1.0,
        noise=0.1**2,
        mean=0.0,
        standardize=False,
        M=d,
        N_m=5 * d,
        delta=0.2,
        delta_unit="absolute",
        fit="never",
        move=GradientStep(GradientAscent(eta=0.25), "paper"),
    )


def out_of_model(d: int) -> Settings:
    """The paper's settings for the out-of-model comparison: lengthscales and variance are fitted under hyperpriors."""
    return replace(
        within_model(np.ones(batch_size("d", d))),
        lengthscale=lengthscale_distribution(d),
        variance=Uniform(0.1, 5.0),
        fit="each",
        fit_from=1,
        fit_at="iterate",
    )
