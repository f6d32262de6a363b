"""A simulation model (FMU, FMI 2 or 3) as the objective. Needs: pip install 'gibo[fmi]'

python fmu.py MODEL.fmu
"""

import sys

import fmpy
import numpy as np

import gibo
from gibo.parameters import Parameters, log

MODEL = sys.argv[1]
DESCRIPTION, FOLDER = fmpy.read_model_description(MODEL), fmpy.extract(MODEL)  # once, not for each evaluation


def cost(stiffness, damping):
    """How long and how far a mass swings after it is released at 1 m."""
    result = fmpy.simulate_fmu(
        FOLDER,
        model_description=DESCRIPTION,
        start_values={"stiffness": stiffness, "damping": damping},
        output=["position"],
        stop_time=5.0,
        output_interval=0.01,
    )
    return float(np.abs(result["position"]).mean())


parameters = Parameters(stiffness=log(0.1, 100, start=1), damping=log(0.01, 10, start=0.1))
result = gibo.minimize(cost, parameters=parameters, budget=40, journal="runs/fmu")
print(result)
