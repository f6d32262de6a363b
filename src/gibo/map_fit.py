"""Maximum a posteriori hyperparameters: log marginal likelihood plus log-priors, by L-BFGS-B with exact gradients.

The search runs over the logarithms of the hyperparameters, but maximises the density over the hyperparameters
themselves. It starts at the model's present hyperparameters, so that later fits have a warm start.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gibo._checks import instance, one_of, positive_int
from gibo._linalg import Array, cholesky, inverse_upper, minimize
from gibo.errors import InputError, NumericalError
from gibo.gp import GaussianProcess, conditioned
from gibo.kernels import squared_distance
from gibo.observations import Observations
from gibo.priors import Prior

# If a prior has no bounded support, the search stays within this factor of the prior's mean.
SEARCH_FACTOR = 1e6


@dataclass(frozen=True)
class FitWarning:
    """The reason why a fit kept the old hyperparameters."""

    message: str


class Fit(NamedTuple):
    """The model with its new hyperparameters, and the log-posterior reached; or the old ones, NaN, and a warning."""

    gp: GaussianProcess
    log_posterior: float
    evaluations: int
    warning: FitWarning | None


def fit(gp: GaussianProcess, priors: Mapping[str, Prior], maximum_steps: int = 50) -> Fit:
    """MAP estimate of the hyperparameters that have a prior; the others do not change.

    Args:
        gp: a model with data; the search starts at its hyperparameters.
        priors: a prior for any of ``"lengthscale"`` (the same for each dimension), ``"variance"``, ``"noise"``
            and the kernel's own parameters, see `gibo.Kernel`.
        maximum_steps: of L-BFGS-B.

    Returns:
        A `Fit`. If the log-posterior is not finite anywhere, it has the old model and a `FitWarning`; `fit` does not
        raise.

    Example:
        >>> from gibo import GaussianProcess, SquaredExponential
        >>> from gibo.priors import LogNormal
        >>> gp = GaussianProcess(SquaredExponential(), noise=0.01).condition([[0.0], [1.0], [2.0]], [0.0, 0.8, 0.9])
        >>> better = fit(gp, {"lengthscale": LogNormal(1.0, 0.5), "variance": LogNormal(1.0, 1.0)}).gp
        >>> better.log_likelihood > gp.log_likelihood
        True
    """
    instance("gp", gp, GaussianProcess, "a GaussianProcess")
    instance("priors", priors, Mapping, "priors by the names of hyperparameters")
    for name, prior in priors.items():
        one_of("priors", name, gp.hyperparameters)
        instance(f"priors: {name}", prior, Prior, "a prior, such as LogNormal(1.0, 0.5)")
    positive_int("maximum_steps", maximum_steps)
    if not priors:
        return Fit(gp, gp.log_likelihood, 0, None)
    space = _Space(gp, priors)  # raises if there are no data
    evaluations = 0

    def cost(z: Array) -> tuple[float, Array]:
        nonlocal evaluations
        evaluations += 1
        try:
            value, gradient = space.log_posterior(z)
        except (NumericalError, InputError, FloatingPointError, OverflowError):
            return 1e100, np.zeros_like(z)
        if not (math.isfinite(value) and np.isfinite(gradient).all()):
            return 1e100, np.zeros_like(z)
        return -value, -gradient

    with np.errstate(all="ignore"):
        z, lowest, low, high = space.start, math.inf, space.low, space.high
        # A prior near the largest float leaves no room between the bounds.
        if np.isfinite(z).all() and not np.isposinf(low).any() and not np.isneginf(high).any():
            z, lowest = minimize(cost, z, low, high, factr=1e10, pgtol=1e-3, maximum_steps=maximum_steps)
    if not lowest < 1e100:
        message = "the log-posterior is not finite anywhere near the start; the old hyperparameters are kept"
        return Fit(gp, math.nan, evaluations, FitWarning(message))
    return Fit(space.prior_model(z).given(space.data), -float(lowest), evaluations, None)


def likelihood_of_values(gp: GaussianProcess, data: Observations) -> tuple[float, dict[str, Any]]:
    """`log_likelihood` and `log_likelihood_slopes` of a model given values alone, in half the time.

    For a model without blocks. Distances are computed once. With the diagonal matrix D
    of the noise, ``K = s2·psi + D``, ``a = K⁻¹ r`` and ``P = K⁻¹``, of which the upper triangle is all that is needed,

        tr((a aᵀ − P) ∂K/∂log s2) = aᵀ(K − D)a − tr(P(K − D)) = aᵀr − aᵀDa − n + tr(PD)

    and by log ell the sum over pairs of ``−2·s2·(a_i a_j − P_ij)·psi'(q_ij)·(z_i − z_j)²``.
    """
    kernel, (n, d) = gp.kernel, data.X.shape
    ell = kernel.ell(d)
    q = squared_distance(data.X, data.X, ell)
    psi, dpsi = kernel.profile(q, 1)
    K = kernel.variance * psi
    np.einsum("ii->i", K)[:] += data.noise(gp.noise)
    model = replace(gp, observations=data, factor=cholesky(K))
    a, P = model.a, inverse_upper(conditioned(model)[1].L)
    own = {name: kernel.variance * kernel.profile_by_log(name, q, 0)[0] for name in kernel.priors}
    by_own = {name: 0.5 * (float(a @ dK @ a) - _symmetric_product(P, dK)) for name, dK in own.items()}
    Z = (data.X - data.X.mean(axis=0)) / ell
    # Σ_ij B_ij (z_i − z_j)² = 2·(Σ_i (row sums of B)_i z_i² − zᵀ B z), for B = a aᵀ∘psi' and for B = P∘psi'.
    aZ = a[:, None] * Z
    along = (a * dpsi.dot(a)).dot(Z * Z) - np.einsum("nd,nd->d", aZ, dpsi.dot(aZ))
    B = P * dpsi  # its upper triangle; the diagonal is in both parts twice and cancels
    along -= (B.sum(axis=0) + B.sum(axis=1)).dot(Z * Z) - 2.0 * np.einsum("nd,nd->d", Z, B.dot(Z))
    scale, diagonal = data.noise_scale, P.diagonal()
    inverse_trace, square = float((scale * diagonal).sum()), float(a.dot(scale * a))
    noise = gp.noise + model.jitter  # the jitter is not scaled, so its rest belongs to `further`, like known noise
    further = data.known_noise + model.jitter * (1.0 - scale)
    by_s2 = float(a.dot(model.residuals)) - noise * square - n + noise * inverse_trace
    by_s2 += float(further.dot(diagonal - a * a))
    by_noise = gp.noise * (square - inverse_trace)
    by_ell = -2.0 * kernel.variance * along
    slopes = {"lengthscale": by_ell, "variance": 0.5 * by_s2, "noise": 0.5 * by_noise, **by_own}
    return model.log_likelihood, slopes


def _symmetric_product(upper: Array, B: Array) -> float:
    """``tr(A B)`` of symmetric matrices, of A the upper triangle with zeros below."""
    return 2.0 * float(np.vdot(upper, B)) - float(upper.diagonal() @ B.diagonal())


class _Space:
    """The logarithms z of the free hyperparameters, in the order of `gp.hyperparameters`.

    Attributes:
        start: z at the model's hyperparameters.
        low, high: the ends of the search for each entry of z.
    """

    def __init__(self, gp: GaussianProcess, priors: Mapping[str, Any]) -> None:
        self.gp, self.priors, (self.data, _) = gp, priors, conditioned(gp)
        self.names, starts, low, high = [], [], [], []
        for name, value in gp.hyperparameters.items():
            if name in priors:
                (lower, upper), mean = priors[name].support, priors[name].mean
                self.names.append(name)
                starts.append(np.atleast_1d(value))
                low.append(np.full(np.size(value), math.log(max(lower, mean / SEARCH_FACTOR))))
                high.append(np.full(np.size(value), math.log(min(upper, mean * SEARCH_FACTOR))))
        self.ends = np.cumsum([len(each) for each in starts])
        self.low, self.high = np.concatenate(low), np.concatenate(high)
        with np.errstate(divide="ignore"):  # a noise of zero starts at the lower bound
            self.start: Array = np.clip(np.log(np.concatenate(starts)), self.low, self.high)

    def split(self, z: Array) -> dict[str, Array]:
        return dict(zip(self.names, np.split(z, self.ends[:-1]), strict=True))

    def prior_model(self, z: Array) -> GaussianProcess:
        """The model with these hyperparameters, without the data."""
        values: dict[str, Any] = {}
        for name, part in self.split(z).items():
            # Rounding in exp(log(bound)) must not leave the support.
            value = np.clip(np.exp(part), *self.priors[name].support)
            values[name] = value if np.ndim(self.gp.hyperparameters[name]) else float(value[0])
        return self.gp.with_hyperparameters(**values)

    def log_posterior(self, z: Array) -> tuple[float, Array]:
        """Log marginal likelihood plus the log-densities of the hyperparameters, and the gradient by z."""
        gp, slopes = self.prior_model(z), []
        if self.data.g.size or gp.blocks is not None:
            model = gp.given(self.data)
            likelihood, by_log = model.log_likelihood, model.log_likelihood_slopes()
        else:
            likelihood, by_log = likelihood_of_values(gp, self.data)
        for name, part in self.split(z).items():
            slope = np.atleast_1d(by_log[name])
            if name == "lengthscale" and len(part) == 1:
                slope = slope.sum(keepdims=True)  # one lengthscale shared by all dimensions
            x = np.exp(part)
            slopes.append(slope + self.priors[name].gradient(x) * x)
        densities = (p.log_density(np.atleast_1d(gp.hyperparameters[name])) for name, p in self.priors.items())
        log_prior = sum(float(np.sum(each)) for each in densities)
        return likelihood + log_prior, np.concatenate(slopes)
