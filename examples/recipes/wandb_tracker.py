"""A run's curves in Weights & Biases, offline: nothing leaves this machine until `wandb sync` is called.

pip install wandb; python examples/recipes/wandb_tracker.py
"""

import os

import wandb

import gibo
from gibo.integrations.events import events

run = wandb.init(project="gibo", mode="offline", dir=os.getcwd())
tracker = events(lambda event: run.log({"evaluations": event.step, **event.numbers}))
result = gibo.maximize(lambda x: -float(x @ x), [1.0, 1.0], budget=30, scale=0.3, callback=tracker)
run.summary["value"] = result.value
run.finish()
print(result)
