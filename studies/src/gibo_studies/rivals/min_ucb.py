"""MinUCB: local search by steps to the optimum of a confidence bound (Fan et al. 2024, there the minimum of the upper).

One iteration at the iterate t:

    queries   M of them, chosen by Gradient Information at t, as in GIBO
    move      to the maximum of mean − β·sd, the lower confidence bound, in the box around t
"""

from __future__ import annotations

import numpy as np

from gibo._linalg import Array
from gibo.acquisition.climb import climb
from gibo.acquisition.confidence import LowerConfidenceBound
from gibo.acquisition.information import GradientInformation, plan
from gibo.optimizers.model import Model
from gibo_studies.rivals.local_model import LocalModelSearch

STARTS = 64
BETA = 1.0  # how many standard deviations below the mean the bound is


class MinUCB(LocalModelSearch):
    """Local search by steps to the maximum of the lower confidence bound. It maximises.

    Reference: Fan, Wang, Ng, Lee: Minimizing UCB: a better local search strategy in local Bayesian optimization,
    arXiv:2405.15285.
    """

    method = "min-ucb"

    def _queries(self, model: Model, lower: Array, upper: Array) -> Array:
        gi = GradientInformation(model.gp, at=self._iterate / self.scale)
        return plan(gi, lower, upper, self.settings.sizes[0], self._rng).X

    def _move(self, model: Model) -> Array:
        lower, upper = self._box()
        bound = LowerConfidenceBound(model.gp, BETA)
        anywhere = lower + (upper - lower) * self._rng.random((STARTS, self.d))
        known = np.array([np.clip(e.x / self.scale, lower, upper) for e in self._window()])
        here = np.clip(self._iterate / self.scale, lower, upper)[None]
        groups = [here, np.concatenate([known, anywhere])]
        return climb(bound, groups, lower, upper, scale=model.gp.kernel.ell(self.d))[0]
