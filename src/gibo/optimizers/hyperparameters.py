"""The hyperparameters of an optimiser's model, as they are kept from fit to fit and in a memo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from gibo._checks import as_vector, positive
from gibo._linalg import Array
from gibo.errors import InputError
from gibo.gp import GaussianProcess
from gibo.kernels import KERNELS
from gibo.optimizers.settings import Settings
from gibo.priors import Prior


class Hyperparameters(NamedTuple):
    """Lengthscales (d,), variance, noise variance, the kernel's own parameters and those of the block term, if there is
    one, in the units that the model sees.
    """

    lengthscale: Array
    variance: float
    noise: float
    own: dict[str, float]
    blocks: dict[str, float]

    @classmethod
    def initial(cls, settings: Settings, d: int, priors: Mapping[str, Prior]) -> Hyperparameters:
        """The initial hyperparameters: fixed values, or the prior's mean; `priors` are those of the block term."""
        ell, s2, noise = (
            np.asarray(h.mean if isinstance(h, Prior) else h, dtype=np.float64)
            for h in (settings.lengthscale, settings.variance, settings.noise)
        )
        blocks = {name: prior.mean for name, prior in priors.items()}
        return cls(np.broadcast_to(ell, (d,)).copy(), float(s2), float(noise), KERNELS[settings.kernel]().own, blocks)

    @classmethod
    def of(cls, gp: GaussianProcess, d: int) -> Hyperparameters:
        """The hyperparameters of a model."""
        blocks = {} if gp.blocks is None else gp.blocks.hyperparameters
        return cls(gp.kernel.ell(d).copy(), gp.kernel.variance, gp.noise, gp.kernel.own, blocks)

    def recall(self, memo: dict[str, Any]) -> Hyperparameters:
        """Those of a memo, checked."""
        given, variance, noise, *more = memo["hyperparameters"]
        ell = as_vector("memo: lengthscale", given, len(self.lengthscale))
        if not (ell > 0.0).all():
            raise InputError("memo: expected positive lengthscales")
        return Hyperparameters(
            ell,
            positive("memo: variance", variance),
            positive("memo: noise", noise, or_zero=True),
            {name: positive(f"memo: {name}", (more[0] if more else {}).get(name)) for name in self.own},
            {name: positive(f"memo: {name}", memo["blocks"].get(name)) for name in self.blocks},
        )
