"""GIBO with known hyperparameters, so that its steps can be computed by hand."""

from dataclasses import replace

import numpy as np

from gibo import GaussianProcess, Settings, SquaredExponential
from gibo.optimizers.moves import GradientStep
from gibo.optimizers.queries import Informative, RandomQueries
from gibo.steps import GradientAscent
from optimizer_helpers import bumpy

D = 3
X0 = np.array([0.2, -0.1, 0.5])
ELL = np.array([0.7, 1.3, 0.9])
AXES = Informative(plan_steps=60, basis="axes")
SCALE = np.array([0.3, 2.0, 1.0])


def fixed(step=GradientAscent(eta=0.3), normalization="paper", sampling="active", least_share=0.0, **changes):
    """The paper's settings with known hyperparameters, and nothing between the user's values and the model."""
    known = {
        "lengthscale": ELL,
        "variance": 1.5,
        "noise": 0.02,
        "mean": 0.0,
        "standardize": False,
        "M": 3,
        "N_m": 8,
        "N_g": 2,
        "move": GradientStep(step, normalization),
        "queries": RandomQueries() if sampling == "random" else replace(AXES, least_share=least_share),
    }
    return Settings.paper(**{**known, **changes})


def model(kernel=SquaredExponential, mean=0.0):
    return GaussianProcess(kernel(ELL, 1.5), noise=0.02, mean=mean)


def iterate_once(optimizer, value=bumpy):
    """One update; returns the queries of the iteration."""
    asked, goal = [], optimizer.iteration + 1
    while optimizer.iteration < goal:
        queries = optimizer.ask()
        asked += queries
        for query in queries:
            optimizer.tell(query, value(query.x))
    return asked


def data(optimizer, last=None):
    """X and y of the evaluations that have a value."""
    told = [e for e in optimizer.evaluations if e.value is not None]
    told = told if last is None else told[-last:]
    return np.array([e.x for e in told]), np.array([e.value for e in told])
