"""Linear quadratic control: a problem whose exact costs are known, an environment of it, and a model-free baseline.

::

    lqr = gibo_studies.paper.control.LQR.paper()
    lqr.cost(K), lqr.cost_gradient(K), lqr.optimal_gain      # exact
    lqr.episode_return(K, seed=0)                            # what a learner sees

    lspi = gibo_studies.paper.control.LSPI(lqr.n, lqr.p, lqr.Q, lqr.R)
    lspi.add(states, inputs)
    lspi.gain()

    gymnasium.make("gibo_studies.paper.control.lqr_env:gibo/LQR-v0")
"""

from gibo_studies.paper.control.lqr import LQR, Trajectory
from gibo_studies.paper.control.lspi import LSPI

__all__ = ["LQR", "LSPI", "Trajectory"]
