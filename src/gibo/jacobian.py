"""What a model knows about the objective's gradient at a point, and how sure that makes it of an ascent.

Symbols: μ (d,) the mean and S (d, d) the covariance of the gradient.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gibo import _linalg as linalg
from gibo._checks import as_vector
from gibo._linalg import Array


class Jacobian(NamedTuple):
    """Mean (d,) and covariance (d, d) of the objective's gradient at one point.

    Example:
        >>> jacobian = Jacobian(np.array([3.0, 0.0]), np.eye(2))
        >>> round(jacobian.certainty(), 3), jacobian.probability_of_ascent(np.array([0.0, 1.0]))
        (0.989, 0.5)
    """

    mean: Array
    covariance: Array

    def certainty(self) -> float:
        """How sure the gradient is not to be zero: the mass of the posterior that is nearer to its mean than zero is.

        ``P(χ²_d ≤ μᵀ S⁻¹ μ)``, the credible level of the ellipsoid around μ whose border runs through zero. Near 1 the
        gradient is known; where it is lost in its uncertainty this is as likely to be low as high, in any dimension. (A
        step along μ itself seems to ascend ever more surely, the more dimensions there are.)
        """
        largest = float(np.abs(self.mean).max(initial=0.0))
        if largest < 1e-100:  # zero, or what is left far from all data, where the covariance is the prior's
            return 0.0
        relative = self.covariance / largest**2
        if not float(relative.trace()) > 0.0:
            return 1.0
        z = linalg.solve_lower(linalg.cholesky(relative).L, self.mean / largest)
        return _chi_square_cdf(float(z @ z), len(self.mean))

    def probability_of_ascent(self, step: npt.ArrayLike) -> float:
        """Probability that the objective rises along `step`, ``Φ(stepᵀ μ/√(stepᵀ S step))``; ½ for a step of zero.

        It is the model's own belief, and an optimistic one: the hyperparameters are taken for known, and the step was
        chosen to look good.
        """
        step = as_vector("step", step, len(self.mean))
        slope, variance = float(step @ self.mean), float(step @ self.covariance @ step)
        if slope == 0.0:
            return 0.5
        if variance <= 0.0:
            return 1.0 if slope > 0 else 0.0
        return 0.5 * math.erfc(-slope / math.sqrt(2.0 * variance))


def _chi_square_cdf(x: float, d: int) -> float:
    """P(χ²_d ≤ x), by its finite sum for whole d; scipy.special has it too, but is slow to load.

    ``P(χ²_{d+2} ≤ x) = P(χ²_d ≤ x) − h^(d/2)·e^(−h)/Γ(d/2 + 1)`` with h = x/2, from ``erf(√h)`` (d = 1) or
    ``1 − e^(−h)`` (d = 2) on.
    """
    h = 0.5 * x
    if h <= 0.0:
        return 0.0
    start = 1 if d % 2 else 2
    p = math.erf(math.sqrt(h)) if start == 1 else -math.expm1(-h)
    terms = (math.exp(0.5 * k * math.log(h) - h - math.lgamma(0.5 * k + 1.0)) for k in range(start, d, 2))
    return max(0.0, p - math.fsum(terms))
