"""What local searches with a model have in common: a window of data, a model fitted to it, a box around the iterate.

One iteration of such a search at its iterate t:

    ask    t itself  →  fit the hyperparameters  →  queries in the box around t        `_queries`, the search's own
    tell   …values, in any order…
           the last one:  the model given the window  →  the next iterate              `_move`, the search's own
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gibo._checks import shown
from gibo._linalg import Array, single_thread
from gibo.errors import InputError
from gibo.gp import Jacobian
from gibo.optimizers.base import Optimizer
from gibo.optimizers.settings import Settings
from gibo.optimizers.start import belief_at_start
from gibo.optimizers.surrogate import Model, Surrogate
from gibo.outcome import ITERATE, QUERY, Best, Evaluation
from gibo.priors import LogNormal, SharedLogNormal


def standard_model(d: int, N_m: int | None = None) -> Settings:
    """How a search models an objective of which it knows only the scale; every choice is written down here.

    Values are standardised, parameters are in units of the scale. What is not about the model is left at its default
    and has no meaning here.
    """
    return Settings(
        kernel="squared_exponential",
        lengthscale=SharedLogNormal(1.5 * math.sqrt(d), shared_log_sd=0.7, log_sd=0.3),
        variance=LogNormal(1.0, 0.7),
        noise=LogNormal(0.1, 1.5),
        mean="estimated",
        standardize=True,
        M=max(1, d // 2),
        N_m=max(20, min(5 * d, 2000)) if N_m is None else N_m,
        delta=1.0,
        delta_unit="lengthscales",
        fit="each",
        fit_from=max(4, d // 2),
    ).resolve(d)


class LocalModelSearch(Optimizer):
    """Base of `MPD`, `MinUCB` and `LocalEntropySearch`; see the module's text.

    Used of `settings`: the model (kernel, lengthscale, variance, noise, mean, standardize), M, N_m, delta, delta_unit
    and fit_from. Gradients are not used. A failed evaluation is passed over.

    Args:
        x0, scale, bounds, seed: see `Optimizer`.
        settings: by default `standard_model`.
    """

    default_window: int | None = None  # N_m, if it is not `standard_model`'s

    def __init__(
        self,
        x0: npt.ArrayLike,
        *,
        scale: npt.ArrayLike = 1.0,
        bounds: npt.ArrayLike | None = None,
        seed: int = 0,
        settings: Settings | None = None,
    ) -> None:
        super().__init__(x0, scale=scale, bounds=bounds, seed=seed)
        if settings is not None and not isinstance(settings, Settings):
            raise InputError(f"settings: expected gibo.Settings(...), got {shown(settings)}")
        self.settings = standard_model(self.d, self.default_window) if settings is None else settings.resolve(self.d)
        if self.settings.correlation is not None:
            raise InputError("settings: correlation: only gibo.GIBO uses one; leave it at None")
        self._M, self._N_m, _, self._fit_from = self.settings.sizes
        self._surrogate = Surrogate.initial(self.settings, self.scale)

    # -- what it knows ------------------------------------------------------------------------------------------------

    @property
    def best(self) -> Best | None:
        """The point with the highest mean under the model: one of the window's within the bounds, or the iterate."""
        window = self._window()
        if not window:
            return None
        X = np.array([*(e.x for e in window if np.array_equal(self.clip(e.x), e.x)), self.evaluated(self._iterate)])
        with single_thread():
            mean = self._model().mean(X)
        i = int(mean.argmax())
        return Best(X[i].copy(), float(mean[i]))

    def at_start(self) -> Best | None:
        with single_thread():
            return belief_at_start(self._model(), self._surrogate, self.log, self.x0)

    def jacobian(self) -> Jacobian:
        """Posterior of the objective's gradient at the iterate, from the window's data."""
        with single_thread():
            return self._model().jacobian(self._iterate)

    # -- the search ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def _queries(self, model: Model, lower: Array, upper: Array) -> Array:
        """(M, d) the queries in the box, in z; the model knows that a value at the iterate comes."""

    @abstractmethod
    def _move(self, model: Model) -> Array:
        """The next iterate (d,), in z."""

    def _propose(self) -> list[tuple[Array, str]]:
        self._fit_if_due()
        model, z = self._model(), self._iterate / self.scale
        # The value at the iterate comes with the others; until then the model takes its own mean for it.
        expecting = Model(model.gp.extend(z, model.gp.predict(z).mean), model.units, model.coordinates)
        Z = self._queries(expecting, *self._box())
        return [(self._iterate, ITERATE), *((z * self.scale, QUERY) for z in Z)]

    def _fit_if_due(self) -> None:
        if len(self._window()) >= self._fit_from:
            self._surrogate = self._surrogate.fit(self._window())

    def _update(self, batch: list[Evaluation]) -> None:
        if any(e.value is not None for e in batch):  # otherwise nothing is known here that was not known before
            self._iterate = self.clip(self._move(self._model()) * self.scale)
        self._iteration += 1

    def _box(self) -> tuple[Array, Array]:
        """The box around the iterate, within the bounds; in z."""
        ell = self._surrogate.hyperparameters.lengthscale
        in_lengthscales = self.settings.delta_unit == "lengthscales"
        half = self.settings.delta * (ell if in_lengthscales else 1.0 / self.scale)
        z = self._iterate / self.scale
        return self._within_bounds(z - half), self._within_bounds(z + half)

    def _within_bounds(self, z: Array) -> Array:
        """The nearest point within the bounds, in z."""
        return z if self.bounds is None else np.clip(z, self.bounds[0] / self.scale, self.bounds[1] / self.scale)

    # -- its data -----------------------------------------------------------------------------------------------------

    def _window(self) -> list[Evaluation]:
        """The last evaluations that have a value, by id."""
        return self.log.valued[-self._N_m :]

    def _model(self) -> Model:
        """The posterior given the window."""
        return self._surrogate.given(self._window())

    def _used_again(self) -> Sequence[Evaluation]:
        return self._window()

    def _memo(self) -> dict[str, Any]:
        return self._surrogate.memo()

    def _recall(self, memo: dict[str, Any]) -> None:
        self._surrogate = self._surrogate.recall(memo)
