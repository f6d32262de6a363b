"""A sample of cells of each study of the paper, at full precision.

`python studies/tests/reference_cells.py` writes them to data/reference_cells.json. The ones that are kept were computed
by commit 9c8dfdf; a change of the paper's settings, or of what they compute, shows here.
"""

import json
import platform
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

from gibo.outcome import Outcome
from gibo_studies.paper import gradients, gym, lqr, synthetic
from gibo_studies.study import iterates

FILE = Path(__file__).resolve().parent / "data" / "reference_cells.json"

# Our own defaults are not the paper's: they change with the method.
SYNTHETIC = [
    ("within-model", 4, 45),
    ("within-model", 12, 40),
    ("out-of-model", 4, 30),
    ("ablation-normalisation", 4, 20),
    ("ablation-sampling", 4, 20),
    ("stopping", 4, 20),
]
GYM = [("cartpole", 24), ("hopper", 36)]
GRADIENTS = [
    ("lqr", 3, "noise 1", 16),
    ("lqr", 3, "likelihood ratio", 16),
    ("synthetic", 5, "noise 0.5", 30),
    ("synthetic", 20, "none", 30),
]


def environment():
    """What the last digits depend on besides the code."""
    blas = sorted({pool.get("architecture", "") for pool in threadpool_info() if pool["user_api"] == "blas"})
    packages = {name: version(name) for name in ("numpy", "scipy", "cma", "gymnasium", "mujoco")}
    return {"machine": platform.machine(), "blas": blas, **packages}


def cells():
    """Each cell's name, and a function of no arguments that computes its numbers."""
    for study, d, budget in SYNTHETIC:
        for method in synthetic.STUDIES[study]:
            if "our defaults" not in method:
                yield f"{study}, d = {d}, {method}", lambda s=study, m=method, d=d, n=budget: _synthetic(s, m, d, n)
    for method in lqr.METHODS:
        yield f"lqr, {method}", lambda m=method: lqr.cost_curve(lqr.METHODS[m], 0, 25)[-1]
    for study, budget in GYM:
        for environment, comparison in gym.STUDIES[study].items():
            for method in comparison.methods:
                name = f"{study}, {environment}, {method}"
                yield name, lambda s=study, e=environment, m=method, n=budget: _gym(s, e, m, n)
    for problem, M, told, budget in GRADIENTS:
        yield f"gradients, {problem}, M = {M}, {told}", lambda p=problem, M=M, g=told, n=budget: _gradients(p, M, g, n)


def _synthetic(study, method, d, budget):
    """The last iterate."""
    function = synthetic.function_of(d, 0)
    rng = np.random.default_rng((d, 0, 1))
    found = iterates(
        synthetic.STUDIES[study][method](function), lambda query, _: Outcome(function.observe(query.x, rng)), budget
    )
    spent, x = list(found)[-1]
    return [spent, *x[:4].tolist()]


def _gym(study, environment, method, budget):
    """The last point of the learning curve."""
    with tempfile.TemporaryDirectory() as folder:
        made = gym.GymStudy(Path(folder), name=study, trials=1, budget=budget, methods=(method,))
        (cell,) = [cell for cell in made.cells() if cell["environment"] == environment]
        return list(made.run_cell(cell)["curve"][-1])


def _gradients(problem, M, told, budget):
    """The last point of the curve."""
    if problem == "lqr":
        return list(gradients.lqr_curve(M, told, 0, budget)[-1])
    return list(gradients.regret_curve(M, told, synthetic.function_of(gradients.D, 0), budget)[-1])


if __name__ == "__main__":
    found = {name: compute() for name, compute in cells()}
    text = json.dumps({"environment": environment(), "cells": found}, indent=1)
    FILE.write_text(text + "\n")
