"""Named parameters with ranges, log scales and whole numbers, and the vector of an optimiser.

::

    parameters = Parameters(gain=log(0.1, 100), delay=integer(1, 9), angle=linear(-1, 1, start=0.2))
    parameters.x0, parameters.scale, parameters.bounds      # for an optimiser
    parameters.to_values(x)                                 # {"gain": 3.2, "delay": 5, "angle": 0.2} for an objective
"""

from gibo.parameters.named import Box, Parameters
from gibo.parameters.parameter import SHARE, Parameter, free, integer, linear, log

__all__ = ["SHARE", "Box", "Parameter", "Parameters", "free", "integer", "linear", "log"]
