"""The model of the objective that an optimiser carries: data in the user's units go in, beliefs in them come out.

Inside, the parameters are divided by `scale` (see `gibo.optimizers.coordinates`) and the values are shifted and scaled
(u = (y − shift)/spread) so that those given have mean 0 and standard deviation 1, if the settings say so.

    surrogate = surrogate.fit(window)      hyperparameters, from the present ones on
    model = surrogate.given(window)        the posterior given these evaluations
    model.mean(X), model.jacobian(x)       what it says, in the user's units

Both are values: nothing is carried along but the hyperparameters, so an optimiser's state is plain data.

Returns of episodes are skewed: a policy that falls early is hundreds below the others, and how much it is below says
little. If the settings say so, values are also warped by a monotone map T, ``u = (T(y) − shift)/spread``:

    none         T(y) = y
    low(w)       y above centre − w; below, ``centre − w − w·log(1 + (centre − w − y)/w)``
    asinh(w)     ``centre + w·asinh((y − centre)/w)``

Of these the likeliest is chosen: the highest ``log p(u) + Σ log T'(y_i) − n·log spread``, a density of the values as
they are, so that warps can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from gibo._checks import as_vector, finite, positive
from gibo._linalg import Array, solve_lower
from gibo.errors import InputError
from gibo.gp import GaussianProcess, Jacobian, conditioned
from gibo.kernels import KERNELS
from gibo.map_fit import fit
from gibo.means import Mean
from gibo.optimizers.coordinates import Coordinates, InUnits
from gibo.optimizers.log import Belief
from gibo.optimizers.settings import Settings
from gibo.outcome import Best, Evaluation
from gibo.priors import Prior

WarpKind = Literal["none", "low", "asinh"]

# Widths that are tried, in root mean squares of what is above the median (low) or median absolute deviations (asinh).
LOW, ASINH = (4.0, 2.0, 1.0, 0.5), (3.0, 1.0)
# From this many values on a warp is looked for.
LEAST_VALUES = 4
# Beyond this a warped value stands for one that no run has ever seen.
STEEPEST = 50.0
# In standard deviations of the values: where half of them are the same.
LEAST_WIDTH = 1e-3
# An entry of a gradient whose noise variance is this many times its prior variance says nothing. A gradient without any
# other entries is left out of the model.
SAYS_NOTHING = 1e6
# Standard deviations either way that hold 90 % of a normal distribution.
Z90 = 1.6448536269514722
# What a recommended point is truly worth lies below the model's mean, because it was chosen for that, and farther from
# it than the model's standard deviation says, because the model was fitted. In these units, chosen on the leaderboard's
# first half, where 90 % of the intervals hold with them and 54 % without.
OPTIMISM, OVERCONFIDENCE = 0.5, 2.0
# A factor of ten either way: what leads farther is more often a rough objective than a wrong scale. Chosen on six
# trials on Hopper-v5, of which two ended below 450 after 600 episodes with a hundred and none below 2300 with ten; with
# other seeds four of ten end below 450 with ten. Older memos went farther.
LARGEST_LOG_FACTOR, LARGEST_IN_MEMOS = math.log(10.0), 4.6


class Units(NamedTuple):
    """The model sees ``u = (T(y) − shift)/spread``; see the module's text."""

    shift: float
    spread: float
    warp: WarpKind = "none"
    centre: float = 0.0
    width: float = 1.0

    @classmethod
    def of(cls, y: Array, standardize: bool) -> Units:
        """Mean and standard deviation of y, without a warp; shift 0 and spread 1 if values are not changed."""
        if not standardize or not len(y):
            return cls(0.0, 1.0)
        largest = float(np.abs(y).max())
        if largest == 0.0:
            return cls(0.0, 1.0)
        shift, spread = largest * float((y / largest).mean()), largest * float((y / largest).std())
        return cls(shift, spread if spread > 0.0 else largest)

    @classmethod
    def candidates(cls, y: Array) -> Iterator[Units]:
        """All warps of y with their shift and spread; none first."""
        yield cls.of(y, standardize=True)
        centre = float(np.median(y))
        least = LEAST_WIDTH * float(y.std())
        top = max(math.sqrt(float(((y[y >= centre] - centre) ** 2).mean())), least)
        middle = max(float(np.median(np.abs(y - centre))), least)
        widths: list[tuple[WarpKind, float]] = [("low", c * top) for c in LOW]
        widths += [("asinh", c * middle) for c in ASINH]
        for warp, width in widths:
            v = cls(0.0, 1.0, warp, centre, width).warped(y)
            spread = float(v.std())
            if spread > 0.0:
                yield cls(float(v.mean()), spread, warp, centre, width)

    def warped(self, y: Array) -> Array:
        """T(y)."""
        if self.warp == "low":
            below = np.maximum(self.centre - self.width - y, 0.0)
            knee = self.centre - self.width
            low: Array = np.where(below > 0.0, knee - self.width * np.log1p(below / self.width), y)
            return low
        if self.warp == "asinh":
            return self.centre + self.width * np.arcsinh((y - self.centre) / self.width)
        return y

    def apply(self, y: Array) -> Array:
        """u of y."""
        u: Array = (self.warped(y) - self.shift) / self.spread
        return u

    def log_slope(self, y: Array) -> Array:
        """log T'(y)."""
        if self.warp == "low":
            return -np.log1p(np.maximum(self.centre - self.width - y, 0.0) / self.width)
        if self.warp == "asinh":
            return -0.5 * np.log1p(((y - self.centre) / self.width) ** 2)
        return np.zeros_like(y)

    def invert(self, u: Array) -> Array:
        """y of u; what lies far beyond all values is held at the border of sense."""
        v: Array = self.shift + self.spread * u
        if self.warp == "low":
            knee = self.centre - self.width
            below = np.clip((knee - v) / self.width, 0.0, STEEPEST)
            inverse: Array = np.where(below > 0.0, knee - self.width * np.expm1(below), v)
            return inverse
        if self.warp == "asinh":
            return self.centre + self.width * np.sinh(np.clip((v - self.centre) / self.width, -STEEPEST, STEEPEST))
        return v

    def inverse_slope(self, u: float) -> float:
        """dy/du at u; the spread where there is no warp."""
        if self.warp == "none":
            return self.spread
        y = self.invert(np.array(u))
        return self.spread * math.exp(-float(self.log_slope(y)))


class Hyperparameters(NamedTuple):
    """Lengthscales (d,), variance, noise variance and the kernel's own parameters, in the units that the model sees."""

    lengthscale: Array
    variance: float
    noise: float
    own: dict[str, float]

    @classmethod
    def initial(cls, settings: Settings, d: int) -> Hyperparameters:
        """Where they start: at their fixed values, or at their prior's mean."""
        ell, s2, noise = (
            np.asarray(h.mean if isinstance(h, Prior) else h, dtype=np.float64)
            for h in (settings.lengthscale, settings.variance, settings.noise)
        )
        return cls(np.broadcast_to(ell, (d,)).copy(), float(s2), float(noise), KERNELS[settings.kernel]().own)

    @classmethod
    def of(cls, gp: GaussianProcess, d: int) -> Hyperparameters:
        """Those of a model."""
        return cls(gp.kernel.ell(d).copy(), gp.kernel.variance, gp.noise, gp.kernel.own)


@dataclass(frozen=True, eq=False)
class Model:
    """A posterior of u as a function of z, and the way back to y and x."""

    gp: GaussianProcess
    units: Units
    coordinates: Coordinates

    def mean(self, X: Array) -> Array:
        """What the objective is believed to be at X (p, d)."""
        return self.units.invert(np.asarray(self.gp.predict(self.coordinates.to(X)).mean))

    def interval(self, x: Array) -> tuple[float, float]:
        """Within which the objective without noise is believed to lie at x (d,), with 90 % probability.

        For a point that was chosen because it looks high: see `OPTIMISM` and `OVERCONFIDENCE`.
        """
        mean, variance = self.gp.predict(self.coordinates.to(x))
        sds = -OPTIMISM + OVERCONFIDENCE * np.array([-Z90, Z90])
        at, low, high = self.units.invert(
            np.asarray(mean) + np.array([0.0, *sds]) * math.sqrt(float(variance))
        ).tolist()
        if self.gp.observations is not None:  # a warp's way back would reach farther than all values together
            y = self.units.invert(self.gp.observations.y)
            room = float(y.max() - y.min())
            low, high = min(at, max(low, float(y.min()) - room)), max(at, min(high, float(y.max()) + room))
        return low, high

    def at(self, x: Array) -> Best:
        """A point (d,) with what is believed of it."""
        return Best(x.copy(), float(self.mean(x[None])[0]), self.interval(x))

    def belief(self, best: Best, iterate: Array) -> Belief:
        """What a journal records of this model, with the recommended point and the iterate."""
        mean, variance = (float(moment) for moment in self.gp.predict(self.coordinates.to(best.x)))
        jacobian = self.jacobian(iterate)
        return Belief(
            x=best.x,
            value=best.value,
            deviation=self.units.inverse_slope(mean) * math.sqrt(variance),
            interval=best.interval or self.interval(best.x),
            iterate=iterate,
            gradient=jacobian.mean,
            gradient_deviation=np.sqrt(np.maximum(np.diagonal(jacobian.covariance), 0.0)),
            lengthscale=self.gp.kernel.ell(len(iterate)) * self.coordinates.scale,
            noise=self.gp.noise * self.units.spread**2,
            units=self.units._asdict(),
        )

    def lower_bound(self, X: Array, beta: float) -> Array:
        """What it is at least, within beta standard deviations, at X (p, d)."""
        mean, variance = self.gp.predict(self.coordinates.to(X))
        return self.units.invert(np.asarray(mean - beta * np.sqrt(variance)))

    def jacobian(self, x: Array) -> Jacobian:
        """The posterior of the objective's gradient at x (d,)."""
        return self.in_users_units(self.gp.jacobian(self.coordinates.to(x)), x)

    def in_users_units(self, internal: Jacobian, x: Array) -> Jacobian:
        """dy/dx at x from du/dz."""
        spread = self.units.spread
        if self.units.warp != "none":
            spread = self.units.inverse_slope(float(self.gp.predict(self.coordinates.to(x)).mean))
        return self.coordinates.gradient_back(internal, spread)

    def extend(self, e: Evaluation) -> Model:
        """With one more evaluation; where it failed, the model takes its own mean for the missing value."""
        z = self.coordinates.to(e.x)
        u = self.gp.predict(z).mean if e.value is None else self.units.apply(np.array(e.value))
        return replace(self, gp=self.gp.extend(z, u))


@dataclass(frozen=True, eq=False)
class Surrogate:
    """How the objective is modelled, with the present hyperparameters.

    Attributes:
        settings: resolved, see `Settings.resolve`.
        coordinates: in which the model sees the parameters.
        hyperparameters: in the units that the model sees.
        warning: why the last fit kept the old hyperparameters, or None.
        log_factor: by how much the lengthscales, and their prior, were rescaled; see `rescaled`.
    """

    settings: Settings
    coordinates: Coordinates
    hyperparameters: Hyperparameters
    warning: str | None = None
    log_factor: float = 0.0

    @classmethod
    def initial(cls, settings: Settings, scale: Array) -> Surrogate:
        return cls(settings, Coordinates.of(scale, settings.correlation), Hyperparameters.initial(settings, len(scale)))

    @property
    def prior(self) -> GaussianProcess:
        """The model before any data."""
        return self._prior(Units(0.0, 1.0))

    def _prior(self, units: Units) -> GaussianProcess:
        ell, variance, noise, own = self.hyperparameters
        mean = 0.0 if self.settings.mean == "published" else self.settings.mean
        if isinstance(mean, Mean):
            mean = InUnits(mean, self.coordinates, units.shift, units.spread)
        return GaussianProcess(KERNELS[self.settings.kernel](ell, variance, **own), noise, mean)

    def given(self, evaluations: Sequence[Evaluation], N_g: int = 0) -> Model:
        """The posterior given evaluations that have values, with the last N_g gradients among them."""
        y = _values(evaluations)
        units = Units.of(y, self.settings.standardize)
        gp = self._prior(units)
        if not evaluations:
            return Model(gp, units, self.coordinates)
        X, u = self.coordinates.to(np.array([e.x for e in evaluations])), units.apply(y)
        if N_g == 0 or not any(e.gradient is not None for e in evaluations):  # they would need warping, too
            return self._likeliest(Model(gp.condition(X, u), units, self.coordinates), y)
        known = [(e.x, e.gradient, e.gradient_noise) for e in evaluations if e.gradient is not None]
        G, g, g_noise = (part[-N_g:] for part in self._gradients(units, known))
        return Model(gp.condition(X, u, G, g, g_noise), units, self.coordinates)

    def fit(self, evaluations: Sequence[Evaluation]) -> Surrogate:
        """MAP hyperparameters, from the present ones on; to the values alone.

        Exact gradients of a gentle slope beside a cliff would outweigh the values, and the lengthscales that they want,
        and with them the steps, would be far too long.
        """
        if self.settings.standardize and len({e.value for e in evaluations}) == 1:
            return self  # all the same, such as the highest score: any long lengthscale explains it, and says nothing
        gp = self.given(evaluations).gp
        if self.settings.mean == "published":
            gp = replace(gp, mean="estimated")
        fitted = fit(gp, self._priors())
        warning = None if fitted.warning is None else fitted.warning.message
        return replace(
            self, hyperparameters=Hyperparameters.of(fitted.gp, len(self.coordinates.scale)), warning=warning
        )

    def expecting_gradient(
        self, evaluations: Sequence[Evaluation], recent: Sequence[Evaluation], x: Array, noise: Array, N_g: int
    ) -> GaussianProcess | None:
        """The model given these evaluations and a value and a gradient at x, whatever they will be.

        What a query would tell about the gradient does not depend on them. None if a gradient with that noise says
        nothing. If there are no evaluations, the units are those of the recent ones.
        """
        model = self.given(evaluations, N_g)
        units = model.units if model.gp.n else Units.of(_values(recent), self.settings.standardize)
        _, g, g_noise = self._gradients(units, [(x, np.zeros(len(x)), noise)])
        z = self.coordinates.to(x)
        return model.gp.extend(z, 0.0, z[None], g, g_noise) if len(g) else None

    @property
    def can_be_rescaled(self) -> bool:
        """Whether the lengthscales have a prior that can move."""
        return hasattr(self.settings.lengthscale, "median")

    def rescaled(self, factor: float) -> Surrogate:
        """With lengthscales, and their prior, that are so many times as long."""
        log_factor = float(np.clip(self.log_factor + math.log(factor), -LARGEST_LOG_FACTOR, LARGEST_LOG_FACTOR))
        ell = self.hyperparameters.lengthscale * math.exp(log_factor - self.log_factor)
        return replace(self, hyperparameters=self.hyperparameters._replace(lengthscale=ell), log_factor=log_factor)

    def _priors(self) -> dict[str, Prior]:
        priors = {**self.settings.priors, **KERNELS[self.settings.kernel].priors}
        ell: Any = priors.get("lengthscale")
        if not self.log_factor or ell is None:
            return priors
        return {**priors, "lengthscale": replace(ell, median=ell.median * math.exp(self.log_factor))}

    def memo(self) -> dict[str, Any]:
        """Hyperparameters and warning, for a log."""
        given = list(self.hyperparameters) if self.hyperparameters.own else list(self.hyperparameters[:3])
        found: dict[str, Any] = {"hyperparameters": given, "warning": self.warning}
        return found | ({"log_factor": self.log_factor} if self.log_factor else {})

    def recall(self, memo: dict[str, Any]) -> Surrogate:
        """With those of a memo."""
        given, variance, noise, *more = memo["hyperparameters"]
        ell, warning = as_vector("memo: lengthscale", given, len(self.coordinates.scale)), memo.get("warning")
        if not (ell > 0.0).all() or not (warning is None or isinstance(warning, str)):
            raise InputError("memo: expected positive lengthscales, and a text or None as the warning")
        hyperparameters = Hyperparameters(
            ell,
            positive("memo: variance", variance),
            positive("memo: noise", noise, or_zero=True),
            {name: positive(f"memo: {name}", (more[0] if more else {}).get(name)) for name in self.hyperparameters.own},
        )
        log_factor = finite("memo: log_factor", memo.get("log_factor", 0.0))
        if abs(log_factor) > LARGEST_IN_MEMOS or (log_factor and not self.can_be_rescaled):
            raise InputError("memo: its log_factor is none that these settings lead to")
        return replace(self, hyperparameters=hyperparameters, warning=warning, log_factor=log_factor)

    def _likeliest(self, model: Model, y: Array) -> Model:
        """With its values y shown in the likeliest way, if they may be warped; one factorisation serves all warps."""
        if self.settings.warp == "none" or len(y) < LEAST_VALUES or not y.std() > 0.0:
            return model
        data, factor = conditioned(model.gp)
        candidates = list(Units.candidates(y))
        U = np.array([units.apply(y) for units in candidates])
        W = solve_lower(factor.L, np.vstack([np.ones(len(y)), U]).T).T
        e, W = W[0], W[1:]  # L⁻¹ 1 and L⁻¹ u
        m = (W @ e / (e @ e))[:, None] if model.gp.mean == "estimated" else model.gp.mean
        slopes = [float(units.log_slope(y).sum()) - len(y) * math.log(units.spread) for units in candidates]
        scores = slopes - 0.5 * ((W - m * e) ** 2).sum(axis=1)
        best = int((scores >= scores.max() - 1e-9 * len(y)).argmax())  # the first: of those that change no value, none
        gp = replace(model.gp, observations=replace(data, y=U[best]))
        return Model(gp, candidates[best], model.coordinates)

    def _gradients(self, units: Units, given: list[Any]) -> tuple[Array, Array, Array]:
        """Of gradients (x, gradient, noise) those that say something, in z and u: where, what and their noise (m, d).

        An entry g with noise v far above its prior variance H says g/v. So does (c/v)·g with the noise c < v, if c is
        still far above H; and K, whose digits are relative to its largest entry, stays well conditioned.
        """
        d = len(self.coordinates.scale)
        x, g, v = np.array(given, dtype=np.float64).reshape(-1, 3, d).swapaxes(0, 1)
        g = self.coordinates.gradient_to(g, units.spread)
        v = self.coordinates.gradient_variance_to(v, units.spread)
        c = np.minimum(v, SAYS_NOTHING * self.prior.kernel.gradient_variance(d))
        mean = self._prior(units).mean
        x = self.coordinates.to(x)
        expected = mean.gradient(x) if isinstance(mean, Mean) else 0.0
        with np.errstate(invalid="ignore"):  # 0/0 where a gradient is exact
            g = expected + np.where(c < v, c / v, 1.0) * (g - expected)
        speaks = (c == v).any(axis=1) & np.isfinite(g).all(axis=1)
        return x[speaks], g[speaks], c[speaks]


def _values(evaluations: Sequence[Evaluation]) -> Array:
    return np.array([e.value for e in evaluations], dtype=np.float64)
