"""Local policy search with Bayesian optimisation.

A run::

    result = gibo.maximize(objective, x0, budget=300, scale=0.1)      # or minimize
    result.x, result.value, result.status, result.reason, result.history, result.jacobian

    result = gibo.maximize(objective, x0, budget=300, scale=0.1, journal="runs/robot", workers=4)
    result = gibo.resume("runs/robot", objective)                     # continue after any stop

In your own loop; every optimiser has this interface (GIBO, ARS, CMAES, VanillaBO, RandomSearch)::

    opt = gibo.GIBO(x0, scale=0.1, settings=gibo.Settings(M=8))
    for query in opt.ask():                     # all of them may run in parallel
        opt.tell(query, objective(query.x))     # in any order
    opt.best, opt.iterate, opt.jacobian()

The model and the acquisition function alone::

    gp = gibo.GaussianProcess(gibo.SquaredExponential(lengthscale=0.3), noise=0.01).condition(X, y)
    gp.predict(x), gp.jacobian(x)               # the objective and its gradient: mean and (co)variance
    gibo.GradientInformation(gp, at=t)(x)       # information of a value at x about the gradient at t

Subpackages, loaded on first use::

    gibo.priors, gibo.steps, gibo.kernels       densities of hyperparameters, step rules, covariance functions
    gibo.policies                               Gymnasium tasks and policies
    gibo.training, gibo.figures                 policy search with a journal; runs as figures
"""

import importlib
from typing import Any

from gibo.acquisition.information import GradientInformation
from gibo.errors import GiboError, InputError, JournalError, MissingExtraError, NumericalError, QueryError, RunError
from gibo.gp import GaussianProcess, Jacobian, Prediction
from gibo.kernels import Kernel, Matern52, SquaredExponential
from gibo.map_fit import fit
from gibo.optimizers.ars import ARS
from gibo.optimizers.base import Optimizer
from gibo.optimizers.cma import CMAES
from gibo.optimizers.gibo import GIBO
from gibo.optimizers.limits import Limits
from gibo.optimizers.paper import out_of_model, within_model
from gibo.optimizers.random_search import RandomSearch
from gibo.optimizers.settings import Settings
from gibo.optimizers.vanilla_bo import VanillaBO
from gibo.outcome import Evaluation, Outcome, Query
from gibo.runs.api import maximize, minimize, resume, run
from gibo.runs.journal import Journal
from gibo.runs.loop import FailedEvaluationWarning
from gibo.runs.result import Result, Status

__version__ = "1.0.0rc1"

__all__ = [
    "ARS",
    "CMAES",
    "GIBO",
    "Evaluation",
    "FailedEvaluationWarning",
    "GaussianProcess",
    "GiboError",
    "GradientInformation",
    "InputError",
    "Jacobian",
    "Journal",
    "JournalError",
    "Kernel",
    "Limits",
    "Matern52",
    "MissingExtraError",
    "NumericalError",
    "Optimizer",
    "Outcome",
    "Prediction",
    "Query",
    "QueryError",
    "RandomSearch",
    "Result",
    "RunError",
    "Settings",
    "SquaredExponential",
    "Status",
    "VanillaBO",
    "fit",
    "maximize",
    "minimize",
    "out_of_model",
    "resume",
    "run",
    "within_model",
]

# Loaded on first use: `gibo.policies.Task` works after `import gibo`.
_SUBPACKAGES = ("figures", "integrations", "policies", "training")


def __getattr__(name: str) -> Any:
    if name in _SUBPACKAGES:
        return importlib.import_module(f"gibo.{name}")
    raise AttributeError(f"module 'gibo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_SUBPACKAGES])
