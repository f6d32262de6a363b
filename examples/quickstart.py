"""The shortest run: maximise a noisy function of six parameters.

python examples/quickstart.py
"""

import numpy as np

import gibo

rng = np.random.default_rng(0)


def objective(x):
    return 1.0 - np.sum((x - 0.3) ** 2) + 0.05 * rng.standard_normal()


result = gibo.maximize(objective, x0=np.zeros(6), budget=100, scale=0.1, seed=0)
print(result.x.round(2), round(result.value, 2), result.reason)
