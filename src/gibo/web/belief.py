"""What GIBO's model believes, given the values that it sees and the hyperparameters recorded with them.

The run's optimiser is not replayed: a model of the last N_m values takes milliseconds however long the run is. How many
threads BLAS uses is left alone here, because that holds for a whole process, and a run may be going on in it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gibo._linalg import Array
from gibo.errors import GiboError
from gibo.optimizers.base import Optimizer
from gibo.optimizers.recommended import recommended
from gibo.optimizers.settings import Settings
from gibo.optimizers.surrogate import Hyperparameters, Model, Surrogate, Units
from gibo.outcome import Evaluation
from gibo.runs.spec import RunSpec

# Of old iterations so many beliefs are worked out at most, fewer with a large model: about this many operations.
BELIEFS, OPERATIONS = 40, 3e9


class Believed(NamedTuple):
    """The recommended point with its value, the gradient at the iterate, and lengthscales (d,), as plain data.

    All in the user's units.
    """

    recommended: dict[str, Any]
    gradient: dict[str, Any]
    lengthscale: list[float]


class Recorded(NamedTuple):
    """Of an iteration's record: where it was, and what its model said there; in the optimiser's sign."""

    x: Array
    gradient: Array
    lengthscale: Array
    variance: float
    noise: float


@dataclass(frozen=True)
class Belief:
    """How a run's model is made from its data; evaluations come in the optimiser's sign, beliefs are in the user's.

    Attributes:
        surrogate: the model, before any fit.
        sign: −1 where the objective is minimised.
        optimizer: a fresh one, for its bounds and for what it rounds.
    """

    surrogate: Surrogate
    sign: float
    optimizer: Optimizer

    @classmethod
    def of(cls, spec: RunSpec) -> Belief | None:
        """None for an optimiser without a model."""
        if spec.optimizer != "GIBO":
            return None
        optimizer, settings = spec.fresh_optimizer(), Settings.from_plain(spec.arguments["settings"])
        return cls(Surrogate.initial(settings.resolve(optimizer.d), optimizer.scale), spec.sign, optimizer)

    @property
    def window(self) -> int:
        """How many values the model sees, besides those that are kept."""
        return self.surrogate.settings.sizes[1]

    def thinned(self, n: int) -> list[int]:
        """Which of n iterations a belief is worked out for; the last one always."""
        most = int(np.clip(OPERATIONS / self.window**3, 1, BELIEFS))
        return sorted({*np.linspace(0, n - 1, min(n, most)).astype(int).tolist(), n - 1})

    def now(
        self,
        surrogate: Surrogate,
        window: Sequence[Evaluation],
        first: Sequence[Evaluation],
        iterate: Array,
        failed: bool,
    ) -> Believed | None:
        """What is believed with these hyperparameters, given the window; None before any value.

        See `gibo.optimizers.recommended.recommended` for the others.
        """
        if not window:
            return None
        try:
            model = self.model(surrogate, window)
            best = recommended(self.optimizer, surrogate, model, window, first, iterate, failed)
            jacobian, ends = model.jacobian(iterate), sorted(self.sign * end for end in model.interval(best))
        except GiboError:
            return None
        value, sd = self._pair(model, best)
        deviation = np.sqrt(np.maximum(np.diagonal(jacobian.covariance), 0.0))
        gradient = {"mean": _plain(self.sign * jacobian.mean), "sd": _plain(deviation)}
        point = {"x": best.tolist(), "value": value, "sd": sd, "low": ends[0], "high": ends[1]}
        ell: list[float] = (surrogate.hyperparameters.lengthscale * surrogate.coordinates.scale).tolist()
        return Believed(point, gradient, ell)

    def at(self, surrogate: Surrogate, window: Sequence[Evaluation], x: Array) -> tuple[float, float] | None:
        """Mean and standard deviation of the objective at x; None before any value."""
        try:
            return self._pair(self.model(surrogate, window), x) if window else None
        except GiboError:
            return None

    def as_recorded(self, before: Surrogate, window: Sequence[Evaluation], step: Recorded) -> Surrogate:
        """The surrogate whose hyperparameters an iteration recorded, in the user's units, from the window it saw then.

        In which units the model saw the values is not in the record. They are among those that it chooses with what
        they make of the hyperparameters; of several, the ones that give the recorded gradient.
        """
        y = np.array([e.value for e in window], dtype=np.float64)
        warped = self.surrogate.settings.warp != "none" and y.std() > 0.0
        plain = Units.of(y, self.surrogate.settings.standardize)
        found, least = self._read(before, step, plain), math.inf
        for units in (plain, *list(Units.candidates(y))[1:]) if warped else ():
            surrogate = self._read(before, step, units)
            with suppress(GiboError):  # a reading that is not the run's may be none to compute with
                model = self.model(surrogate, window)
                off = float(np.linalg.norm(model.jacobian(step.x).mean - step.gradient))
                if model.units == units and off < least:
                    found, least = surrogate, off
        return found

    def _read(self, before: Surrogate, step: Recorded, units: Units) -> Surrogate:
        own = Hyperparameters(
            step.lengthscale / self.surrogate.coordinates.scale,
            step.variance / units.spread**2,
            step.noise / units.spread**2,
        )
        return replace(self.surrogate, hyperparameters=own)

    def model(self, surrogate: Surrogate, window: Sequence[Evaluation]) -> Model:
        """The posterior given the window, as the run has it."""
        return surrogate.given(window, surrogate.settings.sizes[2])

    def _pair(self, model: Model, x: Array) -> tuple[float, float]:
        mean, variance = (float(moment) for moment in model.gp.predict(model.coordinates.to(x)))
        value = float(model.mean(x[None])[0])
        return self.sign * value, model.units.inverse_slope(mean) * math.sqrt(max(variance, 0.0))


def _plain(x: Array) -> list[float | None]:
    return [float(item) if np.isfinite(item) else None for item in x]
