"""Policies, and Gymnasium environments as objectives.

::

    task = gibo.policies.Task("CartPole-v1", policy="affine")
    result = gibo.maximize(task, task.x0(), budget=100)
    task.bind(result.x).save("pole.json")

    policy = gibo.policies.load_policy("pole.json")      # needs neither Gymnasium nor an optimiser
    action = policy(observation)
"""

from gibo.policies.architecture import MLP, Affine, Architecture, Linear, architecture
from gibo.policies.environment import Episode, rollout
from gibo.policies.normalizer import Normalization, Reexpression, Statistics, reexpress
from gibo.policies.policy import ContinuousActions, DiscreteActions, Policy, load_policy
from gibo.policies.task import Task

__all__ = [
    "MLP",
    "Affine",
    "Architecture",
    "ContinuousActions",
    "DiscreteActions",
    "Episode",
    "Linear",
    "Normalization",
    "Policy",
    "Reexpression",
    "Statistics",
    "Task",
    "architecture",
    "load_policy",
    "reexpress",
    "rollout",
]
