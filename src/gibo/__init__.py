"""Local policy search with Bayesian optimisation.

A short tour::

    result = gibo.maximize(objective, x0, budget=300, scale=0.1)      # or minimize
    result.x, result.value, result.reason, result.history, result.jacobian

    result = gibo.maximize(objective, x0, budget=300, scale=0.1, journal="runs/robot", workers=4)
    result = gibo.resume("runs/robot", objective)                     # after whatever ended it

    opt = gibo.GIBO(x0, scale=0.1)              # the same, in your own loop
    for query in opt.ask():                     # all of them may run at once
        opt.tell(query, objective(query.x))     # in any order

    gp = gibo.GaussianProcess(gibo.SquaredExponential(lengthscale=0.3), noise=0.01).condition(X, y)
    gp.predict(x), gp.jacobian(x)               # the objective and its gradient: mean and (co)variance
    gibo.GradientInformation(gp, at=t)(x)       # how much a value at x would tell about the gradient at t
"""

from gibo.acquisition.information import GradientInformation
from gibo.errors import (
    GiboError,
    InputError,
    JournalError,
    MissingExtraError,
    NumericalError,
    QueryError,
    RunError,
)
from gibo.gp import GaussianProcess, Jacobian, Prediction
from gibo.kernels import Kernel, Matern52, SquaredExponential
from gibo.map_fit import Fit, FitWarning, fit
from gibo.optimizers.ars import ARS
from gibo.optimizers.base import Best, Evaluation, Optimizer, Query
from gibo.optimizers.cma import CMAES
from gibo.optimizers.gibo import GIBO, Iteration
from gibo.optimizers.random_search import RandomSearch
from gibo.optimizers.settings import Settings, out_of_model, within_model
from gibo.optimizers.vanilla_bo import VanillaBO
from gibo.outcome import Outcome
from gibo.priors import Gamma, LogNormal, Normal, SharedLogNormal, Uniform
from gibo.runs.api import FailedEvaluationWarning, maximize, minimize, resume, run
from gibo.runs.journal import Journal
from gibo.runs.result import Failure, History, Result
from gibo.steps import Adam, Decay, GradientAscent, Piecewise

__version__ = "0.1.0"

__all__ = [
    "ARS",
    "CMAES",
    "GIBO",
    "Adam",
    "Best",
    "Decay",
    "Evaluation",
    "FailedEvaluationWarning",
    "Failure",
    "Fit",
    "FitWarning",
    "Gamma",
    "GaussianProcess",
    "GiboError",
    "GradientAscent",
    "GradientInformation",
    "History",
    "InputError",
    "Iteration",
    "Jacobian",
    "Journal",
    "JournalError",
    "Kernel",
    "LogNormal",
    "Matern52",
    "MissingExtraError",
    "Normal",
    "NumericalError",
    "Optimizer",
    "Outcome",
    "Piecewise",
    "Prediction",
    "Query",
    "QueryError",
    "RandomSearch",
    "Result",
    "RunError",
    "Settings",
    "SharedLogNormal",
    "SquaredExponential",
    "Uniform",
    "VanillaBO",
    "fit",
    "maximize",
    "minimize",
    "out_of_model",
    "resume",
    "run",
    "within_model",
]
