"""The Gaussian process of the objective, and its posterior of the objective's gradient.

Symbols and shapes
------------------
X (n, d), y (n,)      query locations and observed values
G (m, d), g (m, d)    locations and values of observed gradients (usually m = 0)
k, noise              the kernel; the **variance** of the noise on a value
m                     the constant prior mean
K (N, N)              covariance of all N = m·d + n observations, gradients first, point by point, then values; noise
                      on the diagonal;  ``K = L Lᵀ``
a (N,)                ``K⁻¹ (observations − prior mean)``
t (d,)                the point at which the gradient is predicted
D (N, d)              covariance of the observations with ∇J(t); its row for a value at x is ``∂k(t, x)/∂t``
H (d, d)              prior covariance of ∇J(t)
V (N, d)              ``L⁻¹ D``
S (d, d)              posterior covariance of ∇J(t), ``H − Vᵀ V``

A `GaussianProcess` is a value: conditioning and extending return a new one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from gibo import _linalg as linalg
from gibo._checks import as_finite, as_vector, finite, instance, moderate, one_or_many, positive
from gibo._linalg import Array, Factor
from gibo.blocks import BlockTerm
from gibo.errors import InputError, NumericalError
from gibo.kernels import Kernel
from gibo.means import Fitted, Mean, Regression, ShiftedAndScaled
from gibo.observations import Observations, checked


class Prediction(NamedTuple):
    """Mean and variance of the objective (without the noise of an observation)."""

    mean: float | Array
    variance: float | Array


class Jacobian(NamedTuple):
    """Mean μ (d,) and covariance S (d, d) of the objective's gradient at a point, and the probability of ascent.

    Example:
        >>> jacobian = Jacobian(np.array([3.0, 0.0]), np.eye(2))
        >>> round(jacobian.certainty(), 3), jacobian.probability_of_ascent(np.array([0.0, 1.0]))
        (0.989, 0.5)
    """

    mean: Array
    covariance: Array

    def certainty(self) -> float:
        """The model's probability that the gradient is not zero: the posterior mass that is nearer to the mean than
        zero is.

        ``P(χ²_d ≤ μᵀ S⁻¹ μ)``, the credible level of the ellipsoid around μ whose border runs through zero. Near 1 the
        gradient is known. If only noise is known, the certainty is uniform between 0 and 1 in any dimension. (The
        probability that a step along μ itself ascends grows with the dimension.)
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

        It is optimistic, because it treats the hyperparameters as known and because the step was chosen to look good.
        """
        step = as_vector("step", step, len(self.mean))
        slope, variance = float(step @ self.mean), float(step @ self.covariance @ step)
        if slope == 0.0:
            return 0.5
        if variance <= 0.0:
            return 1.0 if slope > 0 else 0.0
        return 0.5 * math.erfc(-slope / math.sqrt(2.0 * variance))


@dataclass(frozen=True, eq=False)
class GaussianProcess:
    """A Gaussian process: a prior, or after conditioning a posterior.

    Args:
        kernel: covariance function of the objective.
        noise: variance of the noise on an observed value; 0 makes the posterior mean interpolate.
        mean: the constant prior mean; or a `gibo.means.Mean`; or ``"estimated"``: its most likely value given the data
            and the kernel, ``1ᵀK⁻¹y / 1ᵀK⁻¹1`` (generalised least squares); or a `gibo.means.Fitted`, whose shift and
            factor are estimated in the same way.
        blocks: the common shift of evaluations of one block; see `gibo.blocks`.

    Example:
        >>> from gibo import GaussianProcess, SquaredExponential
        >>> gp = GaussianProcess(SquaredExponential(lengthscale=0.5), noise=0.01)
        >>> gp = gp.condition([[0.0], [0.5], [1.0]], [0.0, 0.9, 1.0])
        >>> gp.jacobian([0.5]).mean.round(2)
        array([1.39])

    Reference: Rasmussen and Williams 2006, algorithm 2.1; Müller et al. 2021, section 2.2.
    """

    kernel: Kernel
    noise: float
    mean: float | Literal["estimated"] | Mean | Fitted = 0.0
    observations: Observations | None = None
    factor: Factor | None = None
    blocks: BlockTerm | None = None

    def __post_init__(self) -> None:
        instance("kernel", self.kernel, Kernel, "a kernel such as SquaredExponential()")
        object.__setattr__(self, "noise", positive("noise", self.noise, or_zero=True))
        if not isinstance(self.mean, (Mean, Fitted)) and not (isinstance(self.mean, str) and self.mean == "estimated"):
            object.__setattr__(self, "mean", finite("mean", self.mean))
            moderate("mean", np.array(self.mean))
        moderate("noise", np.array(self.noise))
        if self.blocks is not None:
            instance("blocks", self.blocks, BlockTerm, "gibo.blocks.BlockTerm(shift, share)")

    # -- data ---------------------------------------------------------------------------------------------------------

    def condition(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        gradient_X: npt.ArrayLike | None = None,
        gradients: npt.ArrayLike | None = None,
        gradient_noise: npt.ArrayLike | None = None,
        *,
        noise_scale: npt.ArrayLike = 1.0,
        known_noise: npt.ArrayLike = 0.0,
        blocks: npt.ArrayLike | None = None,
        gradient_blocks: npt.ArrayLike | None = None,
    ) -> GaussianProcess:
        """The posterior given values y at X and, optionally, gradients; they replace earlier data.

        Args:
            X: (n, d) locations.
            y: (n,) values.
            gradient_X: (m, d) locations of observed gradients.
            gradients: (m, d) the observed gradients.
            gradient_noise: their noise variance: a number, or an array that broadcasts to (m, d).
            noise_scale, known_noise: numbers, or one per value: the noise on a value has the variance
                ``noise·noise_scale + known_noise``. The mean of r repeated values has the scale 1/r; a value with a
                noise variance that you know has the scale 0 and that variance.
            blocks, gradient_blocks: for a model with `blocks`, the block of each value and of each gradient.
        """
        rest = gradient_X, gradients, gradient_noise, noise_scale, known_noise, blocks, gradient_blocks
        return self.given(checked(X, y, *rest))

    def given(self, data: Observations) -> GaussianProcess:
        """`condition` on data that are already checked."""
        K = self._covariance(data, data)
        np.einsum("ii->i", K)[:] += self._noise_of(data)
        return replace(self, observations=data, factor=linalg.cholesky(K))

    def extend(self, X: npt.ArrayLike, y: npt.ArrayLike, *gradients: npt.ArrayLike, **others: Any) -> GaussianProcess:
        """The posterior given one point ((d,) and a number) or several more; the arguments are those of `condition`.

        A value takes O(N²) instead of O(N³), because its row is the last one of K. With new gradients, whose rows come
        first, the factor is computed anew.
        """
        X = as_finite("X", X)
        X = X[None] if X.ndim == 1 and X.size else X
        new = checked(X, np.atleast_1d(as_finite("y", y)), *gradients, **others)
        old = self.observations
        if old is None or self.factor is None:
            return self.given(new)
        if new.X.shape[1] != old.X.shape[1]:
            raise InputError(f"X: expected points of {old.X.shape[1]} dimensions, got {new.X.shape[1]}")
        if len(new.G):
            return self.given(old.append(new))
        B, C = self._covariance(old, new), self._covariance(new, new) + np.diag(self._noise_of(new))
        return replace(self, observations=old.append(new), factor=linalg.extend(self.factor, B, C))

    def _covariance(self, data: Observations, data2: Observations) -> Array:
        """Covariance (N, N2) of observations with observations, without their noise."""
        K = self.kernel.joint(data.X, data.G, data2.X, data2.G)
        if self.blocks is None:
            return K
        if np.isnan(data.row_blocks).any() or np.isnan(data2.row_blocks).any():
            raise InputError("blocks: expected the block of each value and gradient; this model has a block term")
        return self.blocks.add(K, data.row_blocks, data2.row_blocks, data.g.size, data2.g.size)

    def _noise_of(self, data: Observations) -> Array:
        """The noise variances (N,) of observations."""
        return data.noise(self.noise if self.blocks is None else self.blocks.noise(self.noise, data.blocks))

    @property
    def hyperparameters(self) -> dict[str, float | Array]:
        """All positive numbers that a fit can change, by name."""
        k, of_blocks = self.kernel, {} if self.blocks is None else self.blocks.hyperparameters
        return {"lengthscale": k.lengthscale, "variance": k.variance, "noise": self.noise, **k.own, **of_blocks}

    def with_hyperparameters(self, **values: Any) -> GaussianProcess:
        """The prior without data, with these hyperparameters changed."""
        values = self.hyperparameters | values
        noise, blocks = values.pop("noise"), self.blocks
        if blocks is not None:
            blocks = replace(blocks, **{name: values.pop(name) for name in blocks.hyperparameters})
        return GaussianProcess(self.kernel.with_hyperparameters(**values), noise, self.mean, blocks=blocks)

    @property
    def n(self) -> int:
        """Number of observed values."""
        return 0 if self.observations is None else self.observations.y.size

    @property
    def jitter(self) -> float:
        """The number that was added to the diagonal of K to factorise it."""
        return 0.0 if self.factor is None else self.factor.jitter

    # -- the posterior ------------------------------------------------------------------------------------------------

    @cached_property
    def prior_mean(self) -> float:
        """The constant prior mean m, given or estimated; 0 if m is a function."""
        if isinstance(self.mean, (Mean, Fitted)):
            return 0.0
        if self.mean != "estimated":
            return float(self.mean)
        if self.observations is None or self.factor is None or not self.n:
            return 0.0
        one = np.concatenate([np.zeros(self.observations.g.size), np.ones(self.n)])
        b = linalg.solve(self.factor.L, one)
        return float(b @ self.observations.targets(0.0)) / float(b @ one)

    @cached_property
    def mean_function(self) -> Mean | None:
        """The prior mean m if it is a function, a fitted one with its shift and factor; None if it is constant."""
        if not isinstance(self.mean, Fitted):
            return self.mean if isinstance(self.mean, Mean) else None
        if self.observations is None or not self.n:
            return ShiftedAndScaled(self.mean.mean, 0.0, 0.0)
        targets = linalg.solve_lower(conditioned(self)[1].L, self.observations.targets(0.0))
        return self.regression.function(self.mean.mean, targets)

    @cached_property
    def regression(self) -> Regression:
        """The fit of a fitted mean to the data."""
        data, factor = conditioned(self)
        assert isinstance(self.mean, Fitted)
        return Regression.of(self.mean.mean, data, factor.L)

    @cached_property
    def a(self) -> Array:
        """``a = K⁻¹ (observations − prior mean)``."""
        return linalg.solve(conditioned(self)[1].L, self.residuals)

    def predict(self, x: npt.ArrayLike) -> Prediction:
        """Mean and variance of the objective at x: numbers for (d,), arrays (p,) for (p, d)."""
        points, one = one_or_many("x", x, None if self.observations is None else self.observations.X.shape[1])
        mean = self.mean_at(points)
        variance = np.full(len(points), self.prior_variance)
        if self.observations is not None and self.factor is not None:
            k = self.cross(points)
            mean += k.T @ self.a
            w = linalg.solve_lower(self.factor.L, k)
            variance = np.maximum(variance - np.einsum("np,np->p", w, w), 0.0)
        known("prediction", mean, variance)
        return Prediction(float(mean[0]), float(variance[0])) if one else Prediction(mean, variance)

    def jacobian(self, x: npt.ArrayLike) -> Jacobian:
        """Posterior of the objective's gradient at x (d,). Müller et al. 2021, eq. (3)."""
        t = moderate("x", as_vector("x", x, None if self.observations is None else self.observations.X.shape[1]))
        H = self.prior_gradient_covariance(len(t))
        slope = 0.0 if self.mean_function is None else self.mean_function.gradient(t[None])[0]
        if self.observations is None or self.factor is None:
            return Jacobian(np.zeros(len(t)) + slope, H)
        D = self.cross_gradient(t)
        V = linalg.solve_lower(self.factor.L, D)
        mean, covariance = D.T @ self.a + slope, schur_complement(H, V)
        known("gradient", mean, covariance)
        return Jacobian(mean, covariance)

    @property
    def prior_variance(self) -> float:
        """Of the objective at a point."""
        s2 = self.kernel.variance
        return s2 if self.blocks is None else float(self.blocks.target_prior(np.array(s2)))

    def prior_covariance(self, X: Array, X2: Array) -> Array:
        """Of the objective at X (n, d) with it at X2 (m, d): (n, m)."""
        k = self.kernel.k(X, X2)
        return k if self.blocks is None else self.blocks.target_prior(k)

    def prior_gradient_covariance(self, d: int) -> Array:
        """``H`` (d, d)."""
        H = np.diag(self.kernel.gradient_variance(d))
        return H if self.blocks is None else self.blocks.target_prior(H, 0.0)

    def mean_at(self, points: Array) -> Array:
        """The prior mean (p,) at points (p, d)."""
        m = self.mean_function
        return np.full(len(points), self.prior_mean) if m is None else m(points)

    @cached_property
    def residuals(self) -> Array:
        """Observations − prior mean (N,)."""
        data, m = conditioned(self)[0], self.mean_function
        if m is None:
            return data.targets(self.prior_mean)
        return np.concatenate([(data.g - m.gradient(data.G)).ravel(), data.y - m(data.X)])

    def cross(self, X: Array, G: Array | None = None) -> Array:
        """Covariance (N, m·d + p) of the observations with the objective's gradients G (m, d) and values X (p, d)."""
        data, G = conditioned(self)[0], X[:0] if G is None else G
        K = self.kernel.joint(data.X, data.G, X, G)
        return K if self.blocks is None else self.blocks.add_target(K, data.row_blocks, data.g.size, G.size)

    def cross_gradient(self, t: Array) -> Array:
        """``D``: covariance (N, d) of the observations with the objective's gradient at t (d,)."""
        return self.cross(t[None][:0], t[None])

    @cached_property
    def log_likelihood(self) -> float:
        """Log marginal likelihood of the data, ``−½·(residualsᵀ a + log det K + N·log 2π)``.

        Rasmussen and Williams 2006, eq. (2.30).

        With the log-prior of the factor b of a fitted mean, precision p: ``targetsᵀa = residualsᵀa + p·b²``.
        """
        data, factor = conditioned(self)
        fit = float((data.targets(0.0) if isinstance(self.mean, Fitted) else self.residuals) @ self.a)
        log_det = 2.0 * float(np.log(factor.L.diagonal()).sum())
        return -0.5 * (fit + log_det + len(self.a) * math.log(2.0 * math.pi))

    def log_likelihood_slopes(self) -> dict[str, Any]:
        """Derivatives of `log_likelihood` by the logarithms of all `hyperparameters`, by name.

        ``½ tr((a aᵀ − K⁻¹) ∂K)``, Rasmussen and Williams 2006, eq. (5.9). An estimated mean or factor maximises
        the likelihood, so it contributes nothing.
        """
        data, factor = conditioned(self)
        W = np.outer(self.a, self.a) - linalg.inverse(factor.L)
        by_value = data.noise_scale * W.diagonal()[data.g.size :]
        if self.blocks is not None:  # the noise of a value is linear in that of the model
            by_value = by_value * (self.blocks.noise(1.0, data.blocks) - self.blocks.noise(0.0, data.blocks))
        by_noise = self.noise * float(by_value.sum())
        of_blocks: dict[str, float] = {}
        if self.blocks is not None:
            K = self.kernel.joint(data.X, data.G, data.X, data.G)
            slopes = self.blocks.slopes(W, K, data)
            of_blocks = {name: 0.5 * slope for name, slope in slopes.items()}
            W = W * self.blocks.factors(data.row_blocks, data.row_blocks)
        by_ell, by_s2 = self.kernel.hyperparameter_gradient(W, data.X, data.G)
        own = {name: 0.5 * self.kernel.own_gradient(name, W, data.X, data.G) for name in self.kernel.priors}
        return {"lengthscale": 0.5 * by_ell, "variance": 0.5 * by_s2, "noise": 0.5 * by_noise, **own, **of_blocks}


def known(what: str, *arrays: Array) -> None:
    """Raise if a posterior is not finite, which happens if data or hyperparameters differ too much in size."""
    for array in arrays:
        if not np.isfinite(array).all():
            raise NumericalError(
                f"the {what} is not finite: data or hyperparameters differ too much in size; use other units"
            )


def conditioned(gp: GaussianProcess) -> tuple[Observations, Factor]:
    """The data and the factor; raises if the model has no data."""
    instance("gp", gp, GaussianProcess, "a GaussianProcess")
    if gp.observations is None or gp.factor is None:
        raise InputError("this Gaussian process has no data yet; call condition(X, y) first")
    return gp.observations, gp.factor


def schur_complement(H: Array, V: Array) -> Array:
    """``S = H − Vᵀ V`` with a diagonal that rounding cannot make negative."""
    S: Array = H - V.T @ V
    np.einsum("ii->i", S)[:] = np.maximum(S.diagonal(), 0.0)
    return S


def _chi_square_cdf(x: float, d: int) -> float:
    """P(χ²_d ≤ x) as a finite sum for whole d; scipy.special has it too, but loads slowly.

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
