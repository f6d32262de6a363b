"""GIBO with known hyperparameters, so that its model and its steps can be computed by hand; it notes how it plans."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gibo import GIBO, GaussianProcess, GradientInformation, Settings, SquaredExponential
from gibo.optimizers.moves import GradientStep
from gibo.optimizers.queries import Informative, RandomQueries
from gibo.steps import GradientAscent
from optimizer_helpers import advance, bumpy

D = 3
X0 = np.array([0.2, -0.1, 0.5])
ELL = np.array([0.7, 1.3, 0.9])
SCALE = np.array([0.3, 2.0, 1.0])


class Choice(NamedTuple):
    """What queries were chosen with, in the model's coordinates, and the queries."""

    information: GradientInformation
    Z: np.ndarray


CHOICES: list[Choice] = []


@dataclass(frozen=True)
class Noted(Informative):
    """It keeps its choices."""

    def choose(self, information, *others):
        CHOICES.append(Choice(information, super().choose(information, *others)))
        return CHOICES[-1].Z


def fixed(step=GradientAscent(eta=0.3), normalization="paper", sampling="active", least_share=0.0, **changes):
    """The paper's settings with known hyperparameters, and nothing between the user's values and the model."""
    known = {"lengthscale": ELL, "variance": 1.5, "noise": 0.02, "mean": 0.0, "standardize": False}
    sizes = {"M": 3, "N_m": 8, "N_g": 2}
    queries = RandomQueries() if sampling == "random" else Noted(least_share, plan_steps=60, basis="axes")
    return Settings.paper(
        **{**known, **sizes, "move": GradientStep(step, normalization), "queries": queries, **changes}
    )


def iterate_once(optimizer, value=bumpy):
    """One update; returns the queries of the iteration."""
    return advance(optimizer, 1, value=lambda query: value(query.x))


def told(settings, outcome=lambda query: bumpy(query.x), iterations=2, scale=SCALE, **options):
    """An optimiser after some iterations; `outcome` gives what is told of a query."""
    optimizer = GIBO(X0, scale=scale, settings=settings, **options)
    advance(optimizer, iterations, value=outcome)
    return optimizer


def data(optimizer, last=None):
    """X and y of the evaluations that have a value."""
    told = [e for e in optimizer.evaluations if e.value is not None]
    told = told if last is None else told[-last:]
    return np.array([e.x for e in told]), np.array([e.value for e in told])


def model(kernel=SquaredExponential, scale=1.0, variance=1.0, mean=0.0, **options):
    """The model of `fixed`, in the user's units; the variance and the mean are those of the values."""
    return GaussianProcess(kernel(ELL * scale, 1.5 * variance), 0.02 * variance, mean, **options)
