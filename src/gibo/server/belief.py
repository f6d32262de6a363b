"""What GIBO's model believes, from a window of a journal's rows and the hyperparameters recorded with them.

The run's optimiser is not replayed: a model of the last N_m values takes milliseconds however long the run is. How many
threads BLAS uses is left alone here, because that holds for a whole process, and a run may be going on in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gibo._linalg import Array
from gibo.errors import GiboError
from gibo.optimizers.settings import Settings
from gibo.optimizers.surrogate import Hyperparameters, Model, Surrogate, Units
from gibo.outcome import Evaluation
from gibo.runs.spec import RunSpec

# Of old iterations so many beliefs are worked out at most, fewer with a large model: about this many operations.
BELIEFS, OPERATIONS = 40, 3e9


class Believed(NamedTuple):
    """The recommended point with its value, and the gradient at the iterate, as plain data in the user's units."""

    recommended: dict[str, Any]
    gradient: dict[str, Any]


@dataclass(frozen=True)
class Belief:
    """How a run's model is made from its data; evaluations come in the optimiser's sign, beliefs are in the user's.

    Attributes:
        surrogate: the model, before any fit.
        sign: −1 where the objective is minimised.
        bounds: (lower, upper) or None.
    """

    surrogate: Surrogate
    sign: float
    bounds: tuple[Array, Array] | None

    @classmethod
    def of(cls, spec: RunSpec) -> Belief | None:
        """None for an optimiser without a model, and where what was told moves with what is learnt of the states."""
        if spec.optimizer != "GIBO" or (spec.training or {}).get("normalize_states"):
            return None
        optimizer, settings = spec.fresh_optimizer(), Settings.from_plain(spec.arguments["settings"])
        surrogate = Surrogate.initial(settings.resolve(optimizer.d), optimizer.scale)
        return cls(surrogate, spec.sign, optimizer.bounds)

    @property
    def window(self) -> int:
        """How many values the model sees."""
        return self.surrogate.settings.sizes[1]

    def thinned(self, n: int) -> list[int]:
        """Which of n iterations a belief is worked out for; the last one always."""
        most = int(np.clip(OPERATIONS / self.window**3, 1, BELIEFS))
        return sorted({*np.linspace(0, n - 1, min(n, most)).astype(int).tolist(), n - 1})

    def lengthscale(self, memo: dict[str, Any]) -> list[float]:
        """(d,) in the user's units."""
        surrogate = self.surrogate.recall(memo)
        ell: list[float] = (surrogate.hyperparameters.lengthscale * surrogate.scale).tolist()
        return ell

    def now(
        self, window: Sequence[Evaluation], iterate: Array, memo: dict[str, Any], failed: bool = False
    ) -> Believed | None:
        """What is believed with the hyperparameters of the last batch; None before any value.

        Where evaluations have failed since the window's first, the iterate is not recommended, as in `GIBO.best`.
        """
        if not window:
            return None
        points = [e.x for e in window if self.bounds is None or _within(e.x, *self.bounds)]
        if not points or not failed:
            points.append(iterate)
        try:
            model = self._model(self.surrogate.recall(memo), window)
            best = points[int(model.lower_bound(np.array(points), self.surrogate.settings.caution).argmax())]
            jacobian = model.jacobian(iterate)
        except GiboError:
            return None
        value, sd = self._pair(model, best)
        deviation = np.sqrt(np.maximum(np.diagonal(jacobian.covariance), 0.0))
        gradient = {"mean": _plain(self.sign * jacobian.mean), "sd": _plain(deviation)}
        return Believed({"x": best.tolist(), "value": value, "sd": sd}, gradient)

    def at(
        self, window: Sequence[Evaluation], x: Array, hyperparameters: tuple[Any, ...]
    ) -> tuple[float, float] | None:
        """Mean and standard deviation of the objective at x, with hyperparameters in the user's units."""
        if not window or any(item is None for item in hyperparameters):
            return None
        units = Units.of(np.array([e.value for e in window], dtype=np.float64), self.surrogate.settings.standardize)
        ell, variance, noise = hyperparameters
        square = units.spread**2
        try:
            C = self.surrogate.hyperparameters.correlation  # if given; of one that is learnt there is no record
            own = Hyperparameters(np.array(ell) / self.surrogate.scale, variance / square, noise / square, C)
            return self._pair(self._model(replace(self.surrogate, hyperparameters=own), window), x)
        except (GiboError, ZeroDivisionError):
            return None

    def _model(self, surrogate: Surrogate, window: Sequence[Evaluation]) -> Model:
        return surrogate.given(window, surrogate.settings.sizes[2])

    def _pair(self, model: Model, x: Array) -> tuple[float, float]:
        variance = float(model.gp.predict(x / model.scale).variance)
        return self.sign * float(model.mean(x[None])[0]), float(model.units.spread * np.sqrt(max(variance, 0.0)))


def _within(x: Array, lower: Array, upper: Array) -> bool:
    return bool(((lower <= x) & (x <= upper)).all())


def _plain(x: Array) -> list[float | None]:
    return [float(item) if np.isfinite(item) else None for item in x]
