"""The linear quadratic regulator as an environment of Gymnasium, ``gibo/LQR-v0``.

Gymnasium knows it once this module is imported, and imports it itself where the id says so::

    gymnasium.make("gibo_studies.paper.control.lqr_env:gibo/LQR-v0")
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gibo._linalg import Array
from gibo.errors import missing_extra
from gibo_studies.paper.control.lqr import LQR, limited

try:
    import gymnasium
    from gymnasium import spaces
except ImportError as error:
    raise missing_extra("an environment needs gymnasium", "gym") from error


class LQREnv(gymnasium.Env[Array, Array]):
    """Observations are the states, actions the inputs, and the reward of a step is ``−log(1 + xᵀQx + uᵀRu)``.

    An episode starts at x = 0. ``gymnasium.make`` ends it after 300 steps. The linear policy u = K x has the return
    ``LQR.episode_return(K, seed=seed)`` after ``reset(seed=seed)``, but for rounding errors.

    Args:
        matrices: A, B, Q, R, W, as in `LQR`; those not given are the paper's.

    Example:
        >>> environment = gymnasium.make("gibo/LQR-v0")
        >>> environment.reset(seed=0)[0]
        array([0., 0., 0.])
        >>> bool(environment.step(np.ones(3))[1] == -np.log(1 + 3.0))
        True
    """

    metadata = {"render_modes": []}  # noqa: RUF012 - Gymnasium's own declaration

    def __init__(self, **matrices: npt.ArrayLike) -> None:
        paper = LQR.paper()
        self.lqr = LQR(**{name: np.asarray(matrices.get(name, getattr(paper, name))) for name in "ABQRW"})
        self.observation_space = spaces.Box(-np.inf, np.inf, (self.lqr.n,), np.float64)
        self.action_space = spaces.Box(-np.inf, np.inf, (self.lqr.p,), np.float64)
        self._x = np.zeros(self.lqr.n)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        self._x = np.zeros(self.lqr.n)
        return self._x.copy(), {}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        u = limited(np.asarray(action, dtype=np.float64))
        cost = float(self.lqr.step_costs(self._x, u))
        self._x = self.lqr.step(self._x, u, self.lqr.disturbance(self.np_random))
        return self._x.copy(), -float(np.log1p(cost)), False, False, {"cost": cost}


gymnasium.register(id="gibo/LQR-v0", entry_point="gibo_studies.paper.control.lqr_env:LQREnv", max_episode_steps=300)
