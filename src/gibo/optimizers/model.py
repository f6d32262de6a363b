"""An optimiser's model of the objective: takes data and gives predictions in the user's units.

Inside, the parameters are divided by `scale` (z = x/scale) and values are transformed by `gibo.optimizers.units`.

    surrogate = surrogate.fit(window)      hyperparameters, from the present ones on
    model = surrogate.given(window)        the posterior given these evaluations
    model.mean(X), model.jacobian(x)       predictions in the user's units

Both are immutable. Only the hyperparameters are kept, so that an optimiser's state is plain data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from gibo._checks import as_flag, finite
from gibo._linalg import Array, solve_lower
from gibo.errors import InputError
from gibo.gap import MACHINE, SIMULATOR, GapTerm
from gibo.gp import GaussianProcess, Jacobian, conditioned
from gibo.kernels import KERNELS
from gibo.map_fit import fit
from gibo.means import Fitted, Mean
from gibo.observations import Observations
from gibo.optimizers.hyperparameters import Hyperparameters
from gibo.optimizers.log import Belief
from gibo.optimizers.rows import Groups, groups_of, noise_of
from gibo.optimizers.settings import Settings
from gibo.optimizers.sources import Sources, aligned
from gibo.optimizers.units import InUnits, Units
from gibo.outcome import Best, Evaluation
from gibo.priors import Prior

LARGEST_LOG_FACTOR = math.log(10.0)  # the scale is corrected by at most a factor of ten in either direction
# Number of values from which on warps are tried.
LEAST_VALUES = 4
# An entry of a gradient is ignored if its noise variance is this many times its prior variance. A gradient without any
# other entries is left out of the model.
SAYS_NOTHING = 1e6
# By how many nats a fitted mean must make the values likelier to be used. With 20 unrelated simulators of hills in 6
# dimensions, 2 changed no median regret, and 0 raised that after 12 values by a third. With 20 good ones, 4 raised that
# after 12 values from 0.06 to 0.5 (of 1.8 at the start). See the study of simulators (machines).
MEAN_GAINS = 2.0
# Half-width of the 90 % interval of a normal distribution, in standard deviations.
Z90 = 1.6448536269514722
# The value of a recommended point lies below the model's mean, because the point was chosen for a high mean, and its
# uncertainty is larger than the model's, because the model was fitted. In standard deviations, and as a factor on them.
OPTIMISM, OVERCONFIDENCE = 0.5, 2.0


@dataclass(frozen=True, eq=False)
class Model:
    """A posterior of u as a function of z, and the way back to y and x."""

    gp: GaussianProcess
    units: Units
    scale: Array

    def mean(self, X: Array) -> Array:
        """The predicted mean of the objective's values at X (p, d)."""
        mean, variance = (np.asarray(moment) for moment in self.gp.predict(X / self.scale))
        return self.units.mean(mean, variance + self.gp.noise, self.seen)

    def interval(self, x: Array) -> tuple[float, float]:
        """The 90 % interval of the mean of the values at x (d,), chosen for a high prediction: see `OPTIMISM`."""
        mean, variance = (float(moment) for moment in self.gp.predict(x / self.scale))
        deviations = np.array([0.0, *(-OPTIMISM + OVERCONFIDENCE * np.array([-Z90, Z90]))])
        lowest, highest = self.seen
        room = highest - lowest if math.isfinite(lowest) else math.inf
        within = (lowest - room, highest + room)  # the inverse of a warp would reach far beyond all values
        u = mean + math.sqrt(variance) * deviations
        at, low, high = np.clip(self.units.mean(u, self.gp.noise, within), *within).tolist()
        return min(at, low), max(at, high)

    @property
    def seen(self) -> tuple[float, float]:
        """The lowest and the highest value in the model."""
        if self.gp.observations is None or not self.gp.n:
            return -math.inf, math.inf
        data, two = self.gp.observations, isinstance(self.gp.blocks, GapTerm)
        y = self.units.invert(data.y[data.blocks == MACHINE] if two else data.y)
        return float(y.min()), float(y.max())

    def at(self, x: Array) -> Best:
        """A point (d,) with its predicted value and 90 % interval. A single value gives none: its noise is unknown."""
        value = float(self.mean(x[None])[0])
        if self.gp.n == 1:
            return Best(x.copy(), value)
        low, high = self.interval(x)
        return Best(x.copy(), value, (min(low, value), max(high, value)))

    def belief(self, best: Best, iterate: Array) -> Belief:
        """The journal's record of this model, with the recommended point and the iterate."""
        mean, variance = (float(moment) for moment in self.gp.predict(best.x / self.scale))
        jacobian = self.jacobian(iterate)
        return Belief(
            x=best.x,
            value=best.value,
            deviation=self.units.mean_slope(mean, self.gp.noise) * math.sqrt(variance),
            interval=best.interval or self.interval(best.x),
            iterate=iterate,
            gradient=jacobian.mean,
            gradient_deviation=np.sqrt(np.maximum(np.diagonal(jacobian.covariance), 0.0)),
            lengthscale=self.gp.kernel.ell(len(self.scale)) * self.scale,
            noise=self.gp.noise * self.units.spread**2,
            units=self.units._asdict(),
        )

    def lower_bound(self, X: Array, caution: float) -> Array:
        """Mean minus `caution` standard deviations at X (p, d), in the model's units: for comparisons."""
        mean, variance = self.gp.predict(X / self.scale)
        return np.asarray(mean - caution * np.sqrt(variance))

    def probability_above(self, x: Array, y: Array) -> float:
        """Probability that the objective is higher at x than at y, (d,) both; ½ if they are the same point."""
        Z, gp = np.array([x, y]) / self.scale, self.gp
        W = solve_lower(conditioned(gp)[1].L, gp.cross(Z))
        higher, lower = np.asarray(gp.predict(Z).mean)
        variance = float(np.array([1.0, -1.0]) @ (gp.prior_covariance(Z, Z) - W.T @ W) @ np.array([1.0, -1.0]))
        if higher == lower or variance <= 0.0:
            return 0.5 + 0.5 * float(np.sign(higher - lower))
        return 0.5 * math.erfc((lower - higher) / math.sqrt(2.0 * variance))

    @property
    def evidence(self) -> float:
        """Log-likelihood of the values under the model minus that under the likeliest pure noise, in nats.

        For a model of values without gradients.
        """
        data, _ = conditioned(self.gp)
        n, variance = len(data.y), max(float(data.y.var()), 1e-300)
        return self.gp.log_likelihood + 0.5 * n * (math.log(2.0 * math.pi * variance) + 1.0)

    @property
    def evidence_of_machine(self) -> float:
        """The same for the machine's values given the simulator's; `evidence` of a model of one source."""
        if not isinstance(self.gp.blocks, GapTerm):
            return self.evidence
        alone, simulated = self.of_source(MACHINE), self.of_source(SIMULATOR)
        both = self.gp.log_likelihood - simulated.gp.log_likelihood
        return alone.evidence + both - alone.gp.log_likelihood

    def of_source(self, source: float) -> Model:
        """The model of the values of one source alone, with the same hyperparameters and the same mean."""
        data, _ = conditioned(self.gp)
        return replace(self, gp=replace(self.gp, mean=self.gp.prior_mean).given(data.select(data.blocks == source)))

    def trend(self, times: Array) -> float:
        """The slope of the values in time, in its standard errors, for a model given values alone at these times (n,).

        By generalised least squares with the covariance K of the model and a constant: ``tᵀK⁻¹r/√(tᵀK⁻¹t)``, where t
        and the residuals r are orthogonal to 1 in K⁻¹. Approximately standard normal without a drift.
        """
        data, factor = conditioned(self.gp)
        residuals = data.y - self.gp.mean_at(data.X)
        one, t, r = solve_lower(factor.L, np.column_stack([np.ones(len(times)), times, residuals])).T
        t, r = (v - (v @ one) / (one @ one) * one for v in (t, r))
        square = float(t @ t)
        return float(t @ r) / math.sqrt(square) if square > 0.0 else 0.0

    def jacobian(self, x: Array) -> Jacobian:
        """The posterior of the objective's gradient at x (d,)."""
        return self.in_users_units(self.gp.jacobian(x / self.scale), x)

    def in_users_units(self, internal: Jacobian, x: Array) -> Jacobian:
        """dy/dx at x from du/dz."""
        spread = self.units.spread
        if self.units.warp != "none":
            spread = self.units.mean_slope(float(self.gp.predict(x / self.scale).mean), self.gp.noise)
        slope = spread / self.scale
        return Jacobian(internal.mean * slope, internal.covariance * np.outer(slope, slope))

    def extend(self, e: Evaluation) -> Model:
        """The model with one more evaluation; a failed evaluation gets the model's mean as its value."""
        z = e.x / self.scale
        u = self.gp.predict(z).mean if e.value is None else self.units.apply(np.array(e.value))
        return replace(self, gp=self.gp.extend(z, u, **noise_of([e], float(self.units.inverse_slope(np.array(u))))))


@dataclass(frozen=True, eq=False)
class Surrogate:
    """The model's settings with the present hyperparameters.

    Attributes:
        settings: resolved, see `Settings.resolve`.
        scale: (d,) of the parameters.
        hyperparameters: in the model's units.
        warning: the reason why the last fit kept the old hyperparameters, or None.
        log_factor: logarithm of the factor by which the lengthscales and their prior were rescaled.
        uses_mean: whether the settings' fitted mean made the values of the last fit likelier; see `MEAN_GAINS`. If
            nothing is fitted it is used from the start.
        groups: those of the model's block term: blocks, times of a drift, or sources; None: no such term.
        sources: a simulator beside the machine; None: there is one source. Its values are used while they make those of
            the machine likelier; the sources are then the groups.
    """

    settings: Settings
    scale: Array
    hyperparameters: Hyperparameters
    warning: str | None = None
    log_factor: float = 0.0
    uses_mean: bool = False
    groups: Groups | None = None
    sources: Sources | None = None

    @classmethod
    def initial(cls, settings: Settings, scale: Array, sources: Sources | None = None) -> Surrogate:
        never_fitted, groups = settings.fit == "never" or not settings.priors, sources or groups_of(settings)
        initial = Hyperparameters.initial(settings, len(scale), {} if groups is None else groups.priors)
        return cls(settings, scale, initial, uses_mean=never_fitted, groups=groups, sources=sources)

    @property
    def uses_simulator(self) -> bool:
        """Whether the simulator's values are used."""
        return self.sources is not None and self.groups is not None

    @property
    def prior(self) -> GaussianProcess:
        """The model before any data."""
        return self._prior(Units(0.0, 1.0))

    def _prior(self, units: Units, numbers: Array | None = None) -> GaussianProcess:
        ell, variance, noise, own, blocks = self.hyperparameters
        mean = self._mean(self.uses_mean)
        if isinstance(mean, Mean):
            mean = InUnits(mean, self.scale, units.shift, units.spread)
        kernel = KERNELS[self.settings.kernel](ell, variance, **own)
        numbers = np.empty(0) if numbers is None else numbers
        term = None if self.groups is None else self.groups.term(blocks, numbers)
        return GaussianProcess(kernel, noise, mean, blocks=term)

    def _mean(self, uses_mean: bool) -> float | Literal["estimated"] | Mean | Fitted:
        """Where gradients are inferred; a fitted one in the model's units, if it is used."""
        mean = self.settings.mean
        if isinstance(mean, Fitted):
            return Fitted(InUnits(mean.mean, self.scale)) if uses_mean else "estimated"
        return 0.0 if mean == "published" else mean

    def given(self, evaluations: Sequence[Evaluation], N_g: int = 0) -> Model:
        """The posterior given evaluations with values, and the last N_g gradients among them."""
        if self.sources is not None and not self.uses_simulator:
            evaluations = self.sources.of_machine(evaluations)
        y = np.array([e.value for e in evaluations], dtype=np.float64)
        blocks = None if self.groups is None else self.groups.numbers(evaluations)
        if blocks is not None and self.sources is not None:
            y = aligned(y, blocks, np.array([e.x for e in evaluations]))
        units = Units.of(y, self.settings.standardize)
        gp = self._prior(units, blocks)
        if not evaluations:
            return Model(gp, units, self.scale)
        X, u = np.array([e.x for e in evaluations]) / self.scale, units.apply(y)
        data = Observations.of_values(X, u, **noise_of(evaluations, units.spread), blocks=blocks)
        known = [(e.x, e.gradient, e.gradient_noise) for e in evaluations if e.gradient is not None]
        if N_g == 0 or self.sources is not None or not known:  # gradients would need warping, too
            model = Model(gp.given(data), units, self.scale)
            return model if any(e.noise is not None for e in evaluations) else self._likeliest(model, y)
        *gradients, speaks = self._gradients(units, known)
        G, g, g_noise = (part[-N_g:] for part in gradients)
        of_gradients = data.blocks[[e.gradient is not None for e in evaluations]][speaks][-N_g:]
        data = replace(data, G=G, g=g, g_noise=g_noise, gradient_blocks=of_gradients)
        return Model(gp.given(data), units, self.scale)

    def fit(self, evaluations: Sequence[Evaluation]) -> Surrogate:
        """Fit MAP hyperparameters to the values only, starting at the present ones.

        Exact gradients of a gentle slope beside a cliff would outweigh the values, and lengthscales and steps would be
        far too long.
        """
        if self.settings.standardize and len({e.value for e in evaluations}) == 1:
            return self  # all equal, such as the highest score: any long lengthscale explains it
        gp = self.given(evaluations).gp
        if self.settings.mean == "published":
            gp = replace(gp, mean="estimated")
        fitted, uses_mean = fit(gp, self.priors()), self.uses_mean
        if isinstance(self.settings.mean, Fitted):
            other = fit(replace(gp, mean=self._mean(not self.uses_mean)), self.priors())
            if fitted.warning is None and other.warning is None:
                plain, with_mean = (other, fitted) if self.uses_mean else (fitted, other)
                gain = with_mean.log_posterior - with_mean.gp.regression.log_occam_factor - plain.log_posterior
                uses_mean = gain > MEAN_GAINS
                fitted = with_mean if uses_mean else plain
        warning = None if fitted.warning is None else fitted.warning.message
        hyperparameters = Hyperparameters.of(fitted.gp, len(self.scale))
        if self.sources is not None and not self.uses_simulator:
            hyperparameters = hyperparameters._replace(blocks=self.hyperparameters.blocks)
        return replace(self, hyperparameters=hyperparameters, warning=warning, uses_mean=uses_mean)

    def expecting_gradient(
        self,
        evaluations: Sequence[Evaluation],
        recent: Sequence[Evaluation],
        x: Array,
        noise: Array,
        N_g: int,
        block: float | None = None,
    ) -> GaussianProcess | None:
        """The model given these evaluations and a future value and gradient at x.

        The information of a query does not depend on their numbers. None if a gradient with that noise is ignored.
        Without evaluations, the units are those of the recent ones. `block` is the block of the value.
        """
        model = self.given(evaluations, N_g)
        units = model.units
        if not model.gp.n:
            units = Units.of(np.array([e.value for e in recent], dtype=np.float64), self.settings.standardize)
        _, g, g_noise, _ = self._gradients(units, [(x, np.zeros(len(x)), noise)])
        z, term = x / self.scale, model.gp.blocks
        here = None if term is None else np.array([block if term.now is None else term.now])
        return model.gp.extend(z, 0.0, z[None], g, g_noise, blocks=here, gradient_blocks=here) if len(g) else None

    @property
    def can_be_rescaled(self) -> bool:
        """Whether the lengthscales have a prior that can be rescaled."""
        return hasattr(self.settings.lengthscale, "median")

    def rescaled(self, factor: float) -> Surrogate:
        """The lengthscales and their prior multiplied by a factor, within `LARGEST_LOG_FACTOR`."""
        log_factor = float(np.clip(self.log_factor + math.log(factor), -LARGEST_LOG_FACTOR, LARGEST_LOG_FACTOR))
        ell = self.hyperparameters.lengthscale * math.exp(log_factor - self.log_factor)
        return replace(self, hyperparameters=self.hyperparameters._replace(lengthscale=ell), log_factor=log_factor)

    def priors(self) -> dict[str, Prior]:
        """Of the hyperparameters that are fitted, by name."""
        of_blocks = {} if self.groups is None else self.groups.priors
        priors = {**self.settings.priors, **KERNELS[self.settings.kernel].priors, **of_blocks}
        ell: Any = priors.get("lengthscale")
        if not self.log_factor or ell is None:
            return priors
        return {**priors, "lengthscale": replace(ell, median=ell.median * math.exp(self.log_factor))}

    def memo(self) -> dict[str, Any]:
        """Hyperparameters and warning, for a log."""
        ell, variance, noise, own, blocks = self.hyperparameters
        given = [ell, variance, noise, own] if own else [ell, variance, noise]
        found: dict[str, Any] = {"hyperparameters": given} | ({"blocks": blocks} if blocks else {})
        found["warning"] = self.warning
        found |= {} if self.sources is None else {"uses_simulator": self.uses_simulator}
        found |= {"uses_mean": self.uses_mean} if isinstance(self.settings.mean, Fitted) else {}
        return found | ({"log_factor": self.log_factor} if self.log_factor else {})

    def recall(self, memo: dict[str, Any]) -> Surrogate:
        """With the hyperparameters of a memo."""
        hyperparameters, warning = self.hyperparameters.recall(memo), memo.get("warning")
        if not (warning is None or isinstance(warning, str)):
            raise InputError("memo: expected a text or None as the warning")
        log_factor = finite("memo: log_factor", memo.get("log_factor", 0.0))
        if abs(log_factor) > 2.0 * LARGEST_LOG_FACTOR or (log_factor and not self.can_be_rescaled):
            raise InputError("memo: its log_factor does not fit the settings")
        uses_mean = as_flag("memo: uses_mean", memo.get("uses_mean", self.uses_mean))
        simulator = as_flag("memo: uses_simulator", memo.get("uses_simulator", self.uses_simulator))
        groups = self.groups if self.sources is None else self.sources if simulator else None
        found = replace(self, hyperparameters=hyperparameters, warning=warning, log_factor=log_factor)
        return replace(found, uses_mean=uses_mean, groups=groups)

    def _likeliest(self, model: Model, y: Array) -> Model:
        """The model with the likeliest warp of its values y, if allowed; one factorisation serves all warps."""
        if not self.settings.warp or len(y) < LEAST_VALUES or not y.std() > 0.0:
            return model
        data, factor = conditioned(model.gp)
        candidates = list(Units.candidates(y))
        U = np.array([units.apply(y) for units in candidates])
        W = solve_lower(factor.L, np.vstack([np.ones(len(y)), U]).T).T
        e, W = W[0], W[1:]  # L⁻¹ 1 and L⁻¹ u
        if isinstance(model.gp.mean, Fitted):
            squares = model.gp.regression.squares(W.T)
        else:
            m = (W @ e / (e @ e))[:, None] if model.gp.mean == "estimated" else model.gp.mean
            squares = ((W - m * e) ** 2).sum(axis=1)
        scores = np.array([units.log_density(y) for units in candidates]) - 0.5 * squares
        best = int((scores >= scores.max() - 1e-9 * len(y)).argmax())  # the first of equal ones has no warp
        gp = replace(model.gp, observations=replace(data, y=U[best]))
        return Model(gp, candidates[best], model.scale)

    def _gradients(self, units: Units, given: list[Any]) -> tuple[Array, Array, Array, Array]:
        """The informative gradients of (x, gradient, noise), in z and u: points, gradients and noise (m, d), and their
        indices.

        An entry g with noise v far above its prior variance H carries the information g/v. The entry (c/v)·g with the
        noise c < v carries the same if c is still far above H, and K stays well conditioned.
        """
        d = len(self.scale)
        x, g, v = np.array(given, dtype=np.float64).reshape(-1, 3, d).swapaxes(0, 1)
        slope = self.scale / units.spread  # du/dz = dy/dx · scale/spread
        v = v * slope**2
        c = np.minimum(v, SAYS_NOTHING * self.prior.kernel.gradient_variance(d))
        mean = self._prior(units).mean
        expected = mean.gradient(x / self.scale) if isinstance(mean, Mean) else 0.0
        with np.errstate(invalid="ignore"):  # 0/0 if a gradient is exact
            g = expected + np.where(c < v, c / v, 1.0) * (g * slope - expected)
        speaks = (c == v).any(axis=1) & np.isfinite(g).all(axis=1)
        return x[speaks] / self.scale, g[speaks], c[speaks], speaks
