"""Bayesian optimisation over a box with expected improvement: the global method that GIBO is compared with.

One iteration:

    ask    [fit the hyperparameters]  →  the point of the box with the highest expected improvement     `_propose`
    tell   its value; the model grows by it                                                             `_update`

The model is conditioned on what was known at the last fit and then extended, evaluation by evaluation in the order of
their ids, each in O(n²). That sequence depends on plain data only, so a loaded optimiser repeats it and continues bit
for bit. Between two fits the model in memory is kept and extended; it is a cache and nothing else.

Inside, the parameters are divided by `scale` (z = x/scale); the values are shifted and scaled (u = (y − shift)/spread)
so that those of the last fit have mean 0 and standard deviation 1, if that was asked for.
"""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from gibo._checks import positive_int
from gibo._linalg import Array, single_thread
from gibo._serialize import from_plain
from gibo.acquisition.expected_improvement import LogExpectedImprovement, maximise, means_at_data
from gibo.errors import InputError
from gibo.gp import GaussianProcess, Jacobian
from gibo.map_fit import fit
from gibo.optimizers.base import Best, Evaluation, Optimizer
from gibo.optimizers.settings import PLAIN_TYPES, Hyperparameter, Hyperparameters, Settings, Standardisation
from gibo.priors import LogNormal, Prior

# The part of `Settings` that describes the model.
MODEL_SETTINGS = ("kernel", "lengthscale", "variance", "noise", "mean", "standardize", "fit_from")


class VanillaBO(Optimizer):
    """Global Bayesian optimisation with (the logarithm of) expected improvement, one query at a time. It maximises.

    The first query is x0. Every later one maximises ``E[max(J(x) − best, 0)]`` over the box, where best is the highest
    posterior mean at the points evaluated so far.

    A failed query is passed over by fits and as a guess; so that it is not asked again, the model takes its own mean
    there for the missing value. Points from elsewhere are used like queries; gradients are not used.

    Args:
        x0: (d,) the first query.
        bounds: (lower, upper), finite: the box that is searched.
        scale: positive; by how much a parameter must change to matter, roughly: a number, or one per parameter.
        seed: of all random choices.
        kernel, lengthscale, variance, noise, mean: the model, in the same units and with the same defaults as in
            `gibo.Settings`; a number is fixed, a prior is fitted. The model sees all values; there is no window.
        standardize: values are shifted and scaled before the model sees them, see `gibo.Settings`. By default they are,
            unless variance or noise is a number, which then is one in the objective's own units.
        fit_from: hyperparameters with a prior stay at its mean until this many values are there; by default
            ``max(4, d//2)``.
        fit_every: how many new values there are between two fits; in the beginning fewer, after each doubling.

    Example:
        >>> from gibo import VanillaBO
        >>> opt = VanillaBO([0.5, 0.5], bounds=(0.0, 1.0), scale=0.3, seed=1)
        >>> for _ in range(25):
        ...     for query in opt.ask():
        ...         opt.tell(query, -float(((query.x - 0.2) ** 2).sum()))
        >>> bool(abs(opt.best.x - 0.2).max() < 0.1)
        True

    Reference: Jones, Schonlau, Welch: Efficient global optimization of expensive black-box functions, Journal of Global
    Optimization 1998; Ament et al. 2023 for the logarithm.
    """

    def __init__(
        self,
        x0: npt.ArrayLike,
        *,
        bounds: npt.ArrayLike,
        scale: npt.ArrayLike = 1.0,
        seed: int = 0,
        kernel: str = "squared_exponential",
        lengthscale: Hyperparameter = None,
        variance: Prior | float = LogNormal(1.0, 0.7),
        noise: Prior | float = LogNormal(0.01, 1.5),
        mean: float | Literal["estimated"] = 0.0,
        standardize: bool | None = None,
        fit_from: int | None = None,
        fit_every: int = 10,
    ) -> None:
        super().__init__(x0, scale=scale, bounds=bounds, seed=seed)
        if self.bounds is None or not np.isfinite(self.bounds).all():
            raise InputError("bounds: this method searches a whole box; give finite bounds, (lower, upper)")
        if standardize is None:
            standardize = isinstance(variance, Prior) and isinstance(noise, Prior)
        self.settings = Settings(
            kernel=kernel,
            lengthscale=lengthscale,
            variance=variance,
            noise=noise,
            mean=mean,
            standardize=standardize,
            fit_from=fit_from,
        ).resolve(self.d)
        self.fit_every = positive_int("fit_every", fit_every)
        self._hyperparameters = self.settings.initial(self.d)
        # The last fit: it saw the evaluations with ids below the first number, of which the second had a value.
        self._fit_below, self._fit_size = 0, 0
        self._gp: GaussianProcess | None = None
        self._rows: list[int] = []

    # -- what it knows ------------------------------------------------------------------------------------------------

    @property
    def iterate(self) -> Array:
        """The evaluated point with the highest posterior mean; x0 before the first value."""
        best = self.best
        return self.x0.copy() if best is None else best.x

    @property
    def best(self) -> Best | None:
        """The evaluated point within the bounds that has the highest mean under the model."""
        with single_thread():
            gp = self._model()
            mean = means_at_data(gp)
        if not self._rows:
            return None
        rows = [self._evaluations[i] for i in self._rows]
        X = np.array([e.x for e in rows])
        eligible = np.array([e.value is not None for e in rows]) & (self.clip(X) == X).all(axis=1)
        if not eligible.any():
            return None
        i = int(np.where(eligible, mean, -np.inf).argmax())
        shift, spread = self._units()
        return Best(X[i], float(shift + spread * mean[i]))

    def jacobian(self) -> Jacobian:
        """Posterior of the objective's gradient at the iterate."""
        with single_thread():
            internal = self._model().jacobian(self.iterate / self.scale)
        slope = self._units()[1] / self.scale
        return Jacobian(internal.mean * slope, internal.covariance * np.outer(slope, slope))

    # -- the search ---------------------------------------------------------------------------------------------------

    def _propose(self) -> list[tuple[Array, str]]:
        if self._iteration == 0:
            return [(self.x0, "query")]
        assert self.bounds is not None
        lower, upper = self.bounds
        if not self._values(self._next_id):
            return [(lower + (upper - lower) * self._rng.random(self.d), "query")]
        self._fit()
        gp = self._model()
        evaluated = [self._evaluations[i].value is not None for i in self._rows]
        log_ei = LogExpectedImprovement(gp, float(means_at_data(gp)[evaluated].max()))
        z, _ = maximise(log_ei, lower / self.scale, upper / self.scale, self._rng)
        return [(z * self.scale, "query")]

    def _update(self, batch: list[Evaluation]) -> None:
        self._iteration += 1

    def _fit(self) -> None:
        """Now and then: standardise anew, MAP hyperparameters from the present ones on, and start the model afresh."""
        n = len(self._values(self._next_id))
        due = self._fit_size + min(self.fit_every, max(self._fit_size, 1))
        priors = self.settings.priors
        if n < due or not (priors or self.settings.standardize):
            return
        self._fit_below, self._fit_size, self._gp = self._next_id, n, None
        assert self.settings.fit_from is not None  # resolved
        if priors and n >= self.settings.fit_from:
            self._hyperparameters = Hyperparameters.of(fit(self._conditioned(), priors).gp, self.d)

    # -- the model ----------------------------------------------------------------------------------------------------

    def _model(self) -> GaussianProcess:
        """The Gaussian process given all that was told, in z and u; its rows are the evaluations `_rows`."""
        seen = [e for e in self.evaluations if e.id < self._fit_below]
        # First what the fit saw, its failures after its values, then the others as they came.
        order = [e.id for e in seen if e.value is not None]
        conditioned = len(order)
        order += [e.id for e in seen if e.value is None]
        order += [e.id for e in self.evaluations if e.id >= self._fit_below]
        if self._gp is None or order[: len(self._rows)] != self._rows:
            self._gp, self._rows = self._conditioned(), order[:conditioned]
        units = self._units()
        for i in order[len(self._rows) :]:
            e = self._evaluations[i]
            z = e.x / self.scale
            u = self._gp.predict(z).mean if e.value is None else units.apply(np.array(e.value))
            self._gp = self._gp.extend(z, u)
            self._rows.append(i)
        return self._gp

    def _conditioned(self) -> GaussianProcess:
        """The model given the values that the last fit saw."""
        gp = self.settings.model(self._hyperparameters)
        seen = self._values(self._fit_below)
        if not seen:
            return gp
        y = np.array([e.value for e in seen], dtype=np.float64)
        return gp.condition(np.array([e.x for e in seen]) / self.scale, self._units().apply(y))

    def _values(self, below: int) -> list[Evaluation]:
        """The evaluations with ids below a number that have a value."""
        return [e for e in self.evaluations if e.value is not None and e.id < below]

    def _units(self) -> Standardisation:
        """That of the values that the last fit saw."""
        seen = self._values(self._fit_below)
        return self.settings.standardisation(np.array([e.value for e in seen], dtype=np.float64))

    # -- state --------------------------------------------------------------------------------------------------------

    def _arguments(self) -> dict[str, Any]:
        model = {name: getattr(self.settings, name) for name in MODEL_SETTINGS}
        return {**super()._arguments(), **model, "fit_every": self.fit_every}

    @classmethod
    def _from_arguments(cls, arguments: dict[str, Any]) -> Self:
        return cls(**from_plain(arguments, PLAIN_TYPES))

    def _own_thought(self) -> dict[str, Any]:
        return self._own_state()

    def _recall(self, thought: dict[str, Any]) -> None:
        self._load_own_state({name: thought[name] for name in self._own_state()})
        self._gp = None  # to be made from all values when it is needed next

    def _own_state(self) -> dict[str, Any]:
        return {
            "hyperparameters": self._hyperparameters,
            "fit_below": self._fit_below,
            "fit_size": self._fit_size,
        }

    def _load_own_state(self, own: dict[str, Any]) -> None:
        self._hyperparameters = Hyperparameters.from_plain(own["hyperparameters"])
        self._fit_below, self._fit_size = int(own["fit_below"]), int(own["fit_size"])
