"""Bayesian optimisation over a box with expected improvement: the global baseline.

One iteration:

    ask    [fit the hyperparameters]  →  the point of the box with the highest expected improvement     `_propose`
    tell   its value; the model is extended by it                                                       `_update`

The model is conditioned on the data of the last fit and then extended by each later evaluation, in the order of ids, in
O(n²). This sequence depends only on plain data, so that a loaded optimiser repeats it and continues bit for bit. The
model in memory between two fits is only a cache.

Inside, the parameters are divided by `scale` (z = x/scale); the values are shifted and scaled (u = (y − shift)/spread)
so that those of the last fit have mean 0 and standard deviation 1, if `standardize` is True.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from gibo._checks import positive_int, shown
from gibo._linalg import Array, single_thread
from gibo.acquisition.expected_improvement import Improvement, LogExpectedImprovement, maximize, means_at_data
from gibo.errors import InputError
from gibo.gp import GaussianProcess, Jacobian
from gibo.optimizers.base import Optimizer
from gibo.optimizers.model import Model, Surrogate
from gibo.optimizers.settings import Hyperparameter, Settings
from gibo.outcome import QUERY, Best, Evaluation
from gibo.priors import LogNormal, Prior


class _Grown(NamedTuple):
    """A model and the evaluations of its rows."""

    model: Model
    rows: list[Evaluation]


class VanillaBO(Optimizer):
    """Global Bayesian optimisation with (the logarithm of) expected improvement, one query at a time. It maximises.

    The first query is x0. Every later one maximises ``E[max(J(x) − best, 0)]`` over the box, where best is the highest
    posterior mean at the points evaluated so far.

    Fits and guesses skip a failed query; so that it is not asked again, the model uses its own mean there as the value.
    Points that it did not ask for are used like queries; gradients are not used.

    Args:
        x0: (d,) the first query.
        bounds: (lower, upper), finite: the search box.
        scale: positive; the change of a parameter that has a clear effect, roughly: one number or one per parameter.
        seed: of all random choices.
        kernel, lengthscale, variance, noise, mean: the model, in the same units and with the same defaults as in
            `gibo.Settings`; a number is fixed, a prior is fitted. The model sees all values; there is no window.
        standardize: shift and scale values, see `gibo.Settings`. By default True, unless variance or noise is a number,
            which is then in the objective's units.
        fit_from: number of values before which hyperparameters stay at their prior's mean; by default ``max(4, d//2)``.
        fit_every: number of new values between two fits; at the beginning, a fit follows each doubling.

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

    method = "vanilla-bo"
    title = "Vanilla BO"

    def __init__(
        self,
        x0: npt.ArrayLike,
        *,
        bounds: npt.ArrayLike,
        scale: npt.ArrayLike = 1.0,
        seed: int = 0,
        kernel: str = "squared_exponential",
        lengthscale: Hyperparameter | None = None,
        variance: Prior | float = LogNormal(1.0, 0.7),
        noise: Prior | float = LogNormal(0.01, 1.5),
        mean: float | Literal["estimated"] = 0.0,
        standardize: bool | None = None,
        fit_from: int | None = None,
        fit_every: int = 10,
    ) -> None:
        super().__init__(x0, scale=scale, bounds=bounds, seed=seed)
        if self.bounds is None or not np.isfinite(self.bounds).all():
            raise InputError("bounds: this method searches a box; give finite bounds, (lower, upper)")
        if standardize is None:
            standardize = isinstance(variance, Prior) and isinstance(noise, Prior)
        options: dict[str, Any] = {"lengthscale": lengthscale, "fit_from": fit_from}
        self.settings = Settings.paper(
            kernel=kernel,
            variance=variance,
            noise=noise,
            mean=mean,
            standardize=standardize,
            **{name: option for name, option in options.items() if option is not None},
        ).resolve(self.d)
        own = self.settings  # the arguments, with the defaults
        self.kernel, self.lengthscale, self.variance, self.noise = own.kernel, own.lengthscale, own.variance, own.noise
        self.mean, self.standardize, self.fit_from = own.mean, own.standardize, own.fit_from
        self.fit_every = positive_int("fit_every", fit_every)
        self._surrogate = Surrogate.initial(self.settings, self.scale)
        # The last fit: it saw the evaluations with ids below the first number, of which the second had a value.
        self._fit_below, self._fit_size = 0, 0
        self._grown: _Grown | None = None

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
            model, rows = self._model()
            mean = means_at_data(model.gp)
        if not rows:
            return None
        X = np.array([e.x for e in rows])
        eligible = np.array([e.value is not None for e in rows]) & (self.clip(X) == X).all(axis=1)
        if not eligible.any():
            return None
        i = int(np.where(eligible, mean, -np.inf).argmax())
        value = float(model.units.shift + model.units.spread * mean[i])
        return Best(X[i], value, model.interval(X[i]))

    def at_start(self) -> Best | None:
        with single_thread():
            model, rows = self._model()  # all values; there is no window
            return model.at(self.x0) if rows else None

    def jacobian(self) -> Jacobian:
        """Posterior of the objective's gradient at the iterate."""
        with single_thread():
            return self._model().model.jacobian(self.iterate)

    def model(self) -> Model | None:
        with single_thread():
            model, rows = self._model()
            return model if rows else None

    # -- the search ---------------------------------------------------------------------------------------------------

    def _propose(self) -> list[tuple[Array, str]]:
        if self._iteration == 0:
            return [(self.x0, QUERY)]
        assert self.bounds is not None
        lower, upper = self.bounds
        if not self.log.valued:
            return [(lower + (upper - lower) * self._rng.random(self.d), QUERY)]
        self._fit()
        model, rows = self._model()
        improvement = self._improvement(model.gp, np.array([e.value is not None for e in rows]))
        z, _ = maximize(improvement, lower / self.scale, upper / self.scale, self._rng)
        return [(z * self.scale, QUERY)]

    def _improvement(self, gp: GaussianProcess, evaluated: npt.NDArray[np.bool_]) -> Improvement:
        """The acquisition function, in z; `evaluated` (n,) says which rows of the model have a value of their own."""
        return LogExpectedImprovement(gp, float(means_at_data(gp)[evaluated].max()))

    def _update(self, batch: list[Evaluation]) -> None:
        self._iteration += 1

    def _fit(self) -> None:
        """From time to time: standardise again, fit MAP hyperparameters, and rebuild the model."""
        n = len(self.log.valued)
        due = self._fit_size + min(self.fit_every, max(self._fit_size, 1))
        priors = self.settings.priors
        if n < due or not (priors or self.settings.standardize):
            return
        self._fit_below, self._fit_size, self._grown = self.log.next_id, n, None
        if priors and n >= self.settings.sizes.fit_from:
            self._surrogate = self._surrogate.fit(self.log.valued)

    def _model(self) -> _Grown:
        """The model given all evaluations: those of the last fit, then the later ones, one by one.

        It is cached and extended between two fits, which only saves time.
        """
        told = self.evaluations
        seen = [e for e in told if e.id < self._fit_below]
        conditioned = [e for e in seen if e.value is not None]
        # Failures after the values of the fit.
        order = [*conditioned, *(e for e in seen if e.value is None), *(e for e in told if e.id >= self._fit_below)]
        grown = self._grown
        if grown is None or any(a is not b for a, b in zip(grown.rows, order, strict=False)):
            grown = _Grown(self._surrogate.given(conditioned), conditioned)
        model = grown.model
        for e in order[len(grown.rows) :]:
            model = model.extend(e)
        self._grown = _Grown(model, order)
        return self._grown

    # -- memo ---------------------------------------------------------------------------------------------------------

    def _memo(self) -> dict[str, Any]:
        return {**self._surrogate.memo(), "fit_below": self._fit_below, "fit_size": self._fit_size}

    def _recall(self, memo: dict[str, Any]) -> None:
        self._surrogate = self._surrogate.recall(memo)
        below, size = memo["fit_below"], memo["fit_size"]
        if not (type(below) is type(size) is int and 0 <= size <= below <= self.log.next_id):
            raise InputError(f"memo: a fit of {shown(size)} values with ids below {shown(below)} was not made")
        self._fit_below, self._fit_size = below, size
        self._grown = None  # rebuilt from all values at the next use
