"""GIBO as an external generation node of Ax: Ax keeps the experiment, gibo says what to try next.

pip install ax-platform; python examples/recipes/ax_node.py
"""

import os

import numpy as np
from ax.api.client import Client
from ax.api.configs import RangeParameterConfig
from ax.core.base_trial import TrialStatus
from ax.generation_strategy.external_generation_node import ExternalGenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy

import gibo


class GIBONode(ExternalGenerationNode):
    """Asks and tells a `gibo.GIBO`; trials of Ax are found again by their parameters. The first metric is maximised."""

    def __init__(self, names, start, scale, bounds, seed=0):
        super().__init__(name="GIBO", should_deduplicate=False)
        self.names = names
        self.opt = gibo.GIBO(start, scale=scale, bounds=bounds, seed=seed)
        self.rng = np.random.default_rng(seed)
        self.given = {}  # what Ax has of us, by its parameters

    def update_generator_state(self, experiment, data):
        values = {} if data.df.empty else dict(zip(data.df["trial_index"], data.df["mean"], strict=True))
        for index, trial in experiment.trials.items():
            key = tuple(trial.arm.parameters[name] for name in self.names)
            if key not in self.given:
                continue
            if trial.status == TrialStatus.COMPLETED and index in values:
                self.opt.tell(self.given.pop(key), float(values[index]))
            elif trial.status in (TrialStatus.FAILED, TrialStatus.ABANDONED):
                self.opt.tell(self.given.pop(key), failed=trial.status.name)

    def get_next_candidate(self, pending_parameters):
        taken = {query.id for query in self.given.values() if isinstance(query, gibo.Query)}
        free = [query for query in self.opt.ask() if query.id not in taken]
        if free:
            x, told_as = free[0].x, free[0]
        else:  # all queries of the iteration are running: one more value near the iterate does no harm
            x = self.opt.iterate + self.opt.scale * self.rng.uniform(-1, 1, self.opt.d)
            x = told_as = np.clip(x, *self.opt.bounds)
        parameters = dict(zip(self.names, x.tolist(), strict=True))
        self.given[tuple(parameters.values())] = told_as
        return parameters


rng = np.random.default_rng(0)


def objective(parameters):
    x = np.array([parameters[name] for name in names])
    return 1.0 - float(((x - 0.3) ** 2).sum()) + 0.02 * rng.standard_normal()


names = [f"gain{i}" for i in range(6)]
client = Client()
client.configure_experiment(
    parameters=[RangeParameterConfig(name=name, parameter_type="float", bounds=(-1.0, 1.0)) for name in names]
)
client.configure_optimization(objective="value")
node = GIBONode(names, start=[0.0] * 6, scale=0.1, bounds=(-1.0, 1.0))
client.set_generation_strategy(GenerationStrategy(name="GIBO", nodes=[node]))

for _ in range(3 if os.environ.get("GIBO_EXAMPLE_QUICK") else 15):
    for index, parameters in client.get_next_trials(max_trials=4).items():
        client.complete_trial(trial_index=index, raw_data={"value": objective(parameters)})

print(node.opt.best.x.round(2), round(node.opt.best.value, 3), len(node.opt.evaluations))
