"""GIBO on a noisy function of 20 parameters: a progress bar, a table, and a figure in demo/run.png.

python examples/synthetic.py
"""

import os
import time

import numpy as np
from rich.console import Console
from rich.table import Table

import gibo
from gibo.figures import run_figure
from gibo.studies.problems import gp_function

budget = 60 if os.environ.get("GIBO_EXAMPLE_QUICK") else 300
# Drawn from a Gaussian process; its optimum is known. On some other seeds the search ends in a local maximum.
function = gp_function(d=20, seed=5)
rng = np.random.default_rng(0)
started = time.perf_counter()
result = gibo.maximize(
    lambda x: function.observe(x, rng),  # a value with noise of standard deviation 0.1
    function.start,
    budget=budget,
    scale=0.1,
    bounds=(0.0, 1.0),
    progress=True,
)
seconds = time.perf_counter() - started

table = Table(title="GIBO on a noisy function of 20 parameters")
table.add_column("")
table.add_column("", justify="right")
table.add_row("value at the start", f"{function(function.start):.3f}")
table.add_row("value found (without noise)", f"{function(result.x):.3f}")
table.add_row("value found, as the model believes", f"{result.value:.3f}")
table.add_row("true optimum", f"{function.f_best:.3f}")
table.add_row("evaluations", str(result.evaluations))
table.add_row("time", f"{seconds:.1f} s")
table.add_row("probability that the last step ascended", f"{result.history.probability_of_ascent[-1]:.2f}")
Console().print(table)

path = run_figure(result, "demo/run.png", truth=function, optimum=function.f_best, title="GIBO, 20 parameters")
print(f"Figure: {path}")
