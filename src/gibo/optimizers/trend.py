"""Whether values drift: what a linear trend in time would explain of them that a model without one does not."""

from __future__ import annotations

import math

import numpy as np

from gibo._linalg import Array, solve_lower
from gibo.gp import GaussianProcess, conditioned


def trend(gp: GaussianProcess, times: Array) -> float:
    """The slope of the values in time, in its standard errors, from a model given values alone at these times (n,).

    By generalised least squares with the model's covariance K, beside a constant:
    ``tᵀK⁻¹r/√(tᵀK⁻¹t)``, where t and the residuals r are orthogonal to 1 in K⁻¹. About standard normal where nothing
    drifts and the model is right.
    """
    data, factor = conditioned(gp)
    one, t, r = solve_lower(factor.L, np.column_stack([np.ones(len(times)), times, data.y - gp.mean_at(data.X)])).T
    t, r = (v - (v @ one) / (one @ one) * one for v in (t, r))
    square = float(t @ t)
    return float(t @ r) / math.sqrt(square) if square > 0.0 else 0.0
