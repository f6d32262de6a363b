"""The choice of an iteration's queries in the box around the iterate, in units of `scale`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gibo._checks import one_of, positive, positive_int
from gibo._linalg import Array
from gibo._serialize import Serializable
from gibo.acquisition.information import GradientInformation, plan


def spread(lower: Array, upper: Array, n: int, rng: np.random.Generator) -> Array:
    """A Latin hypercube: points (n, d) of a box, one in each of n slices of each dimension."""
    slices = rng.permuted(np.tile(np.arange(n), (len(lower), 1)), axis=1).T
    points: Array = lower + (upper - lower) * (slices + rng.random(slices.shape)) / n
    return points


class Queries(Serializable, ABC):
    """Base of the ways to choose queries; derive a frozen dataclass to write one."""

    def directions(self, d: int, seed: int) -> Array | None:
        """The columns of an orthogonal matrix (d, d), fixed for a run. Directions that are equally uncertain are
        queried in their order. None: the parameters."""
        return None

    @abstractmethod
    def choose(
        self,
        information: GradientInformation,
        lower: Array,
        upper: Array,
        M: int,
        rng: np.random.Generator,
        directions: Array | None,
    ) -> Array:
        """Up to M queries (M, d) in the box, at least one."""


@dataclass(frozen=True)
class Informative(Queries):
    """Each query has maximal Gradient Information given the earlier ones (Müller et al. 2021, lines 7 to 12).

    Args:
        least_share: an iteration has fewer than M queries if the next one would remove less than this share of the
            gradient's remaining uncertainty.
        least_gain: an iteration ends after a query that removes less than this, in the model's units; the published
            code's rule.
        plan_steps: largest number of steps of the climb to a query. A query near its optimum is as good.
        basis: the order of directions that are equally uncertain, as all are at first. ``"orthogonal"``: random
            orthogonal directions, each of which changes all parameters, so that nothing depends on the order of the
            parameters. ``"axes"``: the parameters in their order, as in the paper.
    """

    least_share: float = 0.0
    least_gain: float = 0.0
    plan_steps: int = 8
    basis: Literal["orthogonal", "axes"] = "orthogonal"

    def __post_init__(self) -> None:
        for name in ("least_share", "least_gain"):
            object.__setattr__(self, name, positive(name, getattr(self, name), or_zero=True))
        positive_int("plan_steps", self.plan_steps)
        one_of("basis", self.basis, ("orthogonal", "axes"))

    def directions(self, d: int, seed: int) -> Array | None:
        if self.basis == "axes":
            return None
        Q, R = np.linalg.qr(np.random.default_rng([seed, d]).standard_normal((d, d)))
        basis: Array = Q * np.sign(R.diagonal())  # uniform over the orthogonal matrices (Mezzadri 2007)
        return basis

    def choose(
        self,
        information: GradientInformation,
        lower: Array,
        upper: Array,
        M: int,
        rng: np.random.Generator,
        directions: Array | None,
    ) -> Array:
        ends = (self.least_share, self.least_gain, self.plan_steps)
        return plan(information, lower, upper, M, rng, *ends, directions).X


@dataclass(frozen=True)
class RandomQueries(Queries):
    """Random queries in the box: the ablation of the choice."""

    def choose(
        self,
        information: GradientInformation,
        lower: Array,
        upper: Array,
        M: int,
        rng: np.random.Generator,
        directions: Array | None,
    ) -> Array:
        X: Array = lower + (upper - lower) * rng.random((M, len(lower)))
        return X
