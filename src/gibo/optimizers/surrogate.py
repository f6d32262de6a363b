"""The model of the objective that an optimiser carries: data in the user's units go in, beliefs in them come out.

Inside, the parameters are divided by `scale` (z = x/scale) and the values are shifted and scaled
(u = (y − shift)/spread) so that those given have mean 0 and standard deviation 1, if the settings say so.

    surrogate = surrogate.fit(window)      hyperparameters, from the present ones on
    model = surrogate.given(window)        the posterior given these evaluations
    model.mean(X), model.jacobian(x)       what it says, in the user's units

Both are values: nothing is carried along but the hyperparameters, so an optimiser's state is plain data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gibo._checks import as_vector, positive
from gibo._linalg import Array
from gibo.errors import InputError
from gibo.gp import GaussianProcess
from gibo.jacobian import Jacobian
from gibo.kernels import KERNELS
from gibo.map_fit import fit
from gibo.optimizers.events import Evaluation
from gibo.optimizers.settings import Settings
from gibo.priors import Prior

# An entry of a gradient whose noise variance is this many times its prior variance says nothing. A gradient without any
# other entries is left out of the model.
SAYS_NOTHING = 1e6


class Hyperparameters(NamedTuple):
    """Lengthscales (d,), variance and noise variance, in the units that the model sees."""

    lengthscale: Array
    variance: float
    noise: float

    @classmethod
    def initial(cls, settings: Settings, d: int) -> Hyperparameters:
        """Where they start: at their fixed values, or at their prior's mean."""
        ell, s2, noise = (
            np.asarray(h.mean if isinstance(h, Prior) else h, dtype=np.float64)
            for h in (settings.lengthscale, settings.variance, settings.noise)
        )
        return cls(np.broadcast_to(ell, (d,)).copy(), float(s2), float(noise))

    @classmethod
    def of(cls, gp: GaussianProcess, d: int) -> Hyperparameters:
        """Those of a model."""
        return cls(gp.kernel.ell(d).copy(), gp.kernel.variance, gp.noise)


class Units(NamedTuple):
    """The model sees ``u = (y − shift)/spread``."""

    shift: float
    spread: float

    @classmethod
    def of(cls, y: Array, standardize: bool) -> Units:
        """Mean and standard deviation of y; shift 0 and spread 1 if values are not changed."""
        if not standardize or not len(y):
            return cls(0.0, 1.0)
        largest = float(np.abs(y).max())
        if largest == 0.0:
            return cls(0.0, 1.0)
        shift, spread = largest * float((y / largest).mean()), largest * float((y / largest).std())
        return cls(shift, spread if spread > 0.0 else largest)

    def apply(self, y: Array) -> Array:
        u: Array = (y - self.shift) / self.spread
        return u


@dataclass(frozen=True, eq=False)
class Model:
    """A posterior of u as a function of z, and the way back to y and x."""

    gp: GaussianProcess
    units: Units
    scale: Array

    def mean(self, X: Array) -> Array:
        """What the objective is believed to be at X (p, d)."""
        return self.units.shift + self.units.spread * np.asarray(self.gp.predict(X / self.scale).mean)

    def jacobian(self, x: Array) -> Jacobian:
        """The posterior of the objective's gradient at x (d,)."""
        return self.in_users_units(self.gp.jacobian(x / self.scale))

    def in_users_units(self, internal: Jacobian) -> Jacobian:
        """dy/dx from du/dz."""
        slope = self.units.spread / self.scale
        return Jacobian(internal.mean * slope, internal.covariance * np.outer(slope, slope))

    def extend(self, e: Evaluation) -> Model:
        """With one more evaluation; where it failed, the model takes its own mean for the missing value."""
        z = e.x / self.scale
        u = self.gp.predict(z).mean if e.value is None else self.units.apply(np.array(e.value))
        return replace(self, gp=self.gp.extend(z, u))


@dataclass(frozen=True, eq=False)
class Surrogate:
    """How the objective is modelled, with the present hyperparameters.

    Attributes:
        settings: resolved, see `Settings.resolve`.
        scale: (d,) of the parameters.
        hyperparameters: in the units that the model sees.
        warning: why the last fit kept the old hyperparameters, or None.
    """

    settings: Settings
    scale: Array
    hyperparameters: Hyperparameters
    warning: str | None = None

    @classmethod
    def initial(cls, settings: Settings, scale: Array) -> Surrogate:
        return cls(settings, scale, Hyperparameters.initial(settings, len(scale)))

    @property
    def prior(self) -> GaussianProcess:
        """The model before any data."""
        ell, variance, noise = self.hyperparameters
        return GaussianProcess(KERNELS[self.settings.kernel](ell, variance), noise, self.settings.mean)

    def given(self, evaluations: Sequence[Evaluation], N_g: int = 0) -> Model:
        """The posterior given evaluations that have values, with the last N_g gradients among them."""
        units = self._units(evaluations)
        gp = self.prior
        if not evaluations:
            return Model(gp, units, self.scale)
        X = np.array([e.x for e in evaluations]) / self.scale
        u = units.apply(_values(evaluations))
        known = [e for e in evaluations if e.gradient is not None and e.gradient_noise is not None] if N_g else []
        G, g, g_noise = self._gradients(units, [(e.x, e.gradient, e.gradient_noise) for e in known])
        last = slice(max(0, len(G) - N_g), None)
        if not len(G[last]):
            return Model(gp.condition(X, u), units, self.scale)
        return Model(gp.condition(X, u, G[last], g[last], g_noise[last]), units, self.scale)

    def fit(self, evaluations: Sequence[Evaluation]) -> Surrogate:
        """MAP hyperparameters, from the present ones on; to the values alone.

        Exact gradients of a gentle slope beside a cliff would outweigh the values, and the lengthscales that they want,
        and with them the steps, would be far too long.
        """
        if self.settings.standardize and len({e.value for e in evaluations}) == 1:
            return self  # all the same, such as the highest score: any long lengthscale explains it, and says nothing
        fitted = fit(self.given(evaluations).gp, self.settings.priors)
        warning = None if fitted.warning is None else fitted.warning.message
        return replace(self, hyperparameters=Hyperparameters.of(fitted.gp, len(self.scale)), warning=warning)

    def expecting_gradient(
        self, evaluations: Sequence[Evaluation], recent: Sequence[Evaluation], x: Array, noise: Array, N_g: int
    ) -> GaussianProcess | None:
        """The model given these evaluations and a value and a gradient at x, whatever they will be.

        What a query would tell about the gradient does not depend on them. None if a gradient with that noise says
        nothing. If there are no evaluations, the units are those of the recent ones.
        """
        model = self.given(evaluations, N_g)
        units = model.units if model.gp.n else self._units(recent)
        _, g, g_noise = self._gradients(units, [(x, np.zeros(len(x)), noise)])
        z = x / self.scale
        return model.gp.extend(z, 0.0, z[None], g, g_noise) if len(g) else None

    def memo(self) -> dict[str, Any]:
        """Hyperparameters and warning, for a log."""
        return {"hyperparameters": self.hyperparameters, "warning": self.warning}

    def recall(self, memo: dict[str, Any]) -> Surrogate:
        """With those of a memo."""
        given, variance, noise = memo["hyperparameters"]
        ell, warning = as_vector("memo: lengthscale", given, len(self.scale)), memo.get("warning")
        if not (ell > 0.0).all() or not (warning is None or isinstance(warning, str)):
            raise InputError("memo: expected positive lengthscales, and a text or None as the warning")
        hyperparameters = Hyperparameters(
            ell, positive("memo: variance", variance), positive("memo: noise", noise, or_zero=True)
        )
        return replace(self, hyperparameters=hyperparameters, warning=warning)

    def _units(self, evaluations: Sequence[Evaluation]) -> Units:
        return Units.of(_values(evaluations), self.settings.standardize)

    def _gradients(self, units: Units, given: list[Any]) -> tuple[Array, Array, Array]:
        """Of gradients (x, gradient, noise) those that say something, in z and u: where, what and their noise (m, d).

        An entry g with noise v far above its prior variance H says g/v. So does (c/v)·g with the noise c < v, if c is
        still far above H; and K, whose digits are relative to its largest entry, stays well conditioned.
        """
        d = len(self.scale)
        x, g, v = np.array(given, dtype=np.float64).reshape(-1, 3, d).swapaxes(0, 1)
        slope = self.scale / units.spread  # du/dz = dy/dx · scale/spread
        v = v * slope**2
        c = np.minimum(v, SAYS_NOTHING * self.prior.kernel.gradient_variance(d))
        with np.errstate(invalid="ignore"):  # 0/0 where a gradient is exact
            g = np.where(c < v, c / v, 1.0) * (g * slope)
        speaks = (c == v).any(axis=1) & np.isfinite(g).all(axis=1)
        return x[speaks] / self.scale, g[speaks], c[speaks]


def _values(evaluations: Sequence[Evaluation]) -> Array:
    return np.array([e.value for e in evaluations], dtype=np.float64)
