"""GIBO on a noisy function of 20 parameters: a progress bar, a table, and a figure in demo/run.png.

python studies/examples/synthetic.py
"""

import os
import time

import numpy as np

import gibo
from gibo.figures import run_figure
from gibo_studies.paper.problems import gp_function

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

rows = {
    "value at the start": f"{function(function.start):.3f}",
    "value found (without noise)": f"{function(result.x):.3f}",
    "value found, as the model believes": f"{result.value:.3f}",
    "true optimum": f"{function.f_best:.3f}",
    "evaluations": str(result.evaluations),
    "time": f"{seconds:.1f} s",
    "probability that the last step ascended": f"{result.history.probability_of_ascent[-1]:.2f}",
}
print("GIBO on a noisy function of 20 parameters")
for name, figure in rows.items():
    print(f"  {name:<40}{figure:>10}")

try:
    path = run_figure(result, "demo/run.png", truth=function, optimum=function.f_best, title="GIBO, 20 parameters")
    print(f"Figure: {path}")
except gibo.errors.MissingExtraError as error:
    print(f"No figure: {error}")
