"""Local policy search with Bayesian optimisation."""

from gibo.acquisition.gradient_information import GradientInformation
from gibo.gp import GaussianProcess, Jacobian, Prediction
from gibo.kernels import Matern52, SquaredExponential

__all__ = ["GaussianProcess", "GradientInformation", "Jacobian", "Matern52", "Prediction", "SquaredExponential"]
