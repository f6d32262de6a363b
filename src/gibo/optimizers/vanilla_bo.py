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
    """A model and the evaluations that are its rows."""

    model: Model
    rows: list[Evaluation]


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
            raise InputError("bounds: this method searches a whole box; give finite bounds, (lower, upper)")
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
        own = self.settings  # what was given, with the defaults filled in
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
            model, rows = self._model()  # of all values: nothing is left behind
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
        """Now and then: standardise anew, MAP hyperparameters from the present ones on, and start the model afresh."""
        n = len(self.log.valued)
        due = self._fit_size + min(self.fit_every, max(self._fit_size, 1))
        priors = self.settings.priors
        if n < due or not (priors or self.settings.standardize):
            return
        self._fit_below, self._fit_size, self._grown = self.log.next_id, n, None
        if priors and n >= self.settings.sizes[4]:
            self._surrogate = self._surrogate.fit(self.log.valued)

    def _model(self) -> _Grown:
        """The model given all that was told: what the last fit saw, then the others, one by one as they came.

        It is kept between two fits and extended; that changes nothing but the time it takes.
        """
        told = self.evaluations
        seen = [e for e in told if e.id < self._fit_below]
        conditioned = [e for e in seen if e.value is not None]
        # Failures after the values that the fit saw.
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
        self._grown = None  # to be made from all values when it is needed next
