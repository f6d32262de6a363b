"""A run's curves in MLflow, in a file of this folder: `mlflow ui --backend-store-uri sqlite:///mlflow.db` shows them.

pip install mlflow; python examples/recipes/mlflow_tracker.py
"""

import mlflow

import gibo
from gibo.integrations.events import events

mlflow.set_tracking_uri("sqlite:///mlflow.db")
with mlflow.start_run():
    mlflow.log_params({"scale": 0.3, "budget": 30})
    tracker = events(lambda event: mlflow.log_metrics(event.numbers, step=event.step))
    result = gibo.maximize(lambda x: -float(x @ x), [1.0, 1.0], budget=30, scale=0.3, callback=tracker)
    mlflow.log_metric("value", result.value)
print(result)
