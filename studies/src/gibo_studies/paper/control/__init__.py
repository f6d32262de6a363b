"""Linear quadratic control: a problem whose exact costs are known, an environment of it, and a model-free baseline."""

from gibo_studies.paper.control.lqr import LQR, Trajectory
from gibo_studies.paper.control.lspi import LSPI

__all__ = ["LQR", "LSPI", "Trajectory"]
