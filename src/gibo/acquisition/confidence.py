"""The lower confidence bound of the objective: high where the model is sure of a high value."""

from __future__ import annotations

import math

import numpy as np

from gibo._checks import finite, instance
from gibo._linalg import Array
from gibo.acquisition.expected_improvement import PosteriorAtPoint
from gibo.gp import GaussianProcess


class LowerConfidenceBound:
    """``mean(x) − β·sd(x)``, with its gradient.

    Example:
        >>> from gibo import GaussianProcess, SquaredExponential
        >>> gp = GaussianProcess(SquaredExponential(), noise=0.01).condition([[0.0]], [1.0])
        >>> bound = LowerConfidenceBound(gp, 1.0)
        >>> bool(bound(np.array([[0.0], [2.0]])).argmax() == 0)
        True
    """

    def __init__(self, gp: GaussianProcess, beta: float) -> None:
        self.gp = instance("gp", gp, GaussianProcess, "a GaussianProcess")
        self.beta, self._posterior = finite("beta", beta), PosteriorAtPoint(gp)

    def __call__(self, x: Array) -> Array:
        mean, variance = (np.asarray(moment) for moment in self.gp.predict(x))
        bound: Array = mean - self.beta * np.sqrt(np.maximum(variance, 0.0))
        return bound

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        mean, variance, mean_gradient, variance_gradient = self._posterior(x)
        sd = math.sqrt(max(variance, 1e-12 * self.gp.kernel.variance))
        return mean - self.beta * sd, mean_gradient - (0.5 * self.beta / sd) * variance_gradient
