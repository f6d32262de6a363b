"""What local searches with a model have in common: a window of data, a model fitted to it, a box around the iterate.

One iteration of such a search at its iterate t:

    ask    t itself  →  fit the hyperparameters  →  queries in the box around t        `_queries`, the search's own
    tell   …values, in any order…
           the last one:  the model given the window  →  the next iterate              `_move`, the search's own
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from gibo._linalg import Array
from gibo.optimizers.model import Model, Surrogate
from gibo.optimizers.model_based import ModelBased
from gibo.optimizers.settings import PowerLaw, Settings
from gibo.outcome import ITERATE, QUERY, Evaluation

# How a search models an objective of which it knows only the scale: the paper's model, with values standardised.
STANDARD = Settings.paper(N_m=PowerLaw(5.0, least=20.0, most=2000.0))


class LocalModelSearch(ModelBased):
    """Base of `MPD`, `MinUCB` and `LocalEntropySearch`; see the module's text.

    Used of `settings`: the model, M, N_m, delta, delta_unit and fit_from. Gradients are not used. A failed evaluation
    is passed over.

    Args:
        x0, scale, bounds, seed: see `gibo.optimizers.base.Optimizer`.
        settings: by default `STANDARD`.
    """

    default_settings = STANDARD

    def _model(self, evaluations: Sequence[Evaluation] | None = None, surrogate: Surrogate | None = None) -> Model:
        return (surrogate or self._surrogate).given(self._window() if evaluations is None else evaluations)

    def _inside(self, z: Array) -> Array:
        """The nearest point within the bounds, in z."""
        return z if self.bounds is None else np.clip(z, self.bounds[0] / self.scale, self.bounds[1] / self.scale)

    @abstractmethod
    def _queries(self, model: Model, lower: Array, upper: Array) -> Array:
        """(M, d) the queries in the box, in z; the model knows that a value at the iterate comes."""

    @abstractmethod
    def _move(self, model: Model) -> Array:
        """The next iterate (d,), in z."""

    def _propose(self) -> list[tuple[Array, str]]:
        self._surrogate = self._fitted()
        model, z = self._model(), self._iterate / self.scale
        # The value at the iterate comes with the others; until then the model takes its own mean for it.
        expecting = Model(model.gp.extend(z, model.gp.predict(z).mean), model.units, self.scale)
        Z = self._queries(expecting, *self._box())
        return [(self._iterate, ITERATE), *((z * self.scale, QUERY) for z in Z)]

    def _update(self, batch: list[Evaluation]) -> None:
        if any(e.value is not None for e in batch):  # otherwise nothing is known here that was not known before
            self._iterate = self.clip(self._move(self._model()) * self.scale)
        self._iteration += 1
