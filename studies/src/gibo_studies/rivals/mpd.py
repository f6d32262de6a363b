"""MPD: local search along the direction that ascends most probably (Nguyen et al. 2022, there of descent).

One iteration at the iterate t:

    queries   M of them, each the one that is expected to make the ascent surest, given those before
    move      small steps along S⁻¹μ on one model, while Φ(√(μᵀS⁻¹μ)) stays high

See `gibo_studies.rivals.ascent` for the formulas.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gibo._checks import positive, positive_int, shown
from gibo._linalg import Array
from gibo.acquisition.climb import climb
from gibo.errors import InputError
from gibo.optimizers.model import Model
from gibo_studies.rivals.ascent import ExpectedAscent, most_probable_ascent
from gibo_studies.rivals.local_model import LocalModelSearch

STARTS = 64


class MPD(LocalModelSearch):
    """Local search along the most probable ascent. It maximises.

    Args:
        x0, scale, bounds, seed, settings: see `gibo_studies.rivals.local_model.LocalModelSearch`.
        step: length of one small step, in lengthscales.
        most_steps: on one model.
        least_probability: no further step where the ascent is less sure than this.

    Reference: Nguyen, Wu, Gardner, Garnett: Local Bayesian optimization via maximizing probability of descent,
    NeurIPS 2022; its step of 0.001 of the unit cube is here a share of a lengthscale.
    """

    method = "mpd"

    def __init__(
        self,
        x0: npt.ArrayLike,
        *,
        step: float = 0.05,
        most_steps: int = 20,
        least_probability: float = 0.65,
        **search: Any,
    ) -> None:
        super().__init__(x0, **search)
        self.step = positive("step", step)
        self.most_steps = positive_int("most_steps", most_steps)
        self.least_probability = positive("least_probability", least_probability)
        if not 0.5 <= self.least_probability < 1.0:
            raise InputError(f"least_probability: expected at least 0.5 and below 1, got {shown(least_probability)}")

    def _queries(self, model: Model, lower: Array, upper: Array) -> Array:
        gp, t = model.gp, self._iterate / self.scale
        ell, Z = gp.kernel.ell(self.d), []
        for _ in range(self.settings.sizes[0]):
            acquisition = ExpectedAscent(gp, t)
            starts = lower + (upper - lower) * self._rng.random((STARTS, self.d))
            z, _ = climb(acquisition, [starts], lower, upper, scale=ell, maximum_steps=20)
            Z.append(z)
            gp = gp.extend(z, gp.predict(z).mean)  # μ stays, S shrinks
        return np.array(Z)

    def _move(self, model: Model) -> Array:
        z, ell = self._iterate / self.scale, model.gp.kernel.ell(self.d)
        for _ in range(self.most_steps):
            direction, probability = most_probable_ascent(model.gp.jacobian(z))
            length = float(np.linalg.norm(direction / ell))
            if probability < self.least_probability or not length > 0.0:
                break
            z = self._inside(z + self.step * direction / length)
        return z
