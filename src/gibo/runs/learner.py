"""What is learnt about an objective between the iterations of a run, besides its values.

An example is how a policy normalises the states it sees: it stays as it is during an iteration, and changes when all
of its episodes are over. When it does, the same behaviour has other parameters, and the optimiser's data move with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from gibo.optimizers.base import Optimizer, Transform


class Change(Protocol):
    """How parameters change that stand for the same behaviour, and whether the iterate moves with them."""

    @property
    def transform(self) -> Transform: ...

    @property
    def moves_iterate(self) -> bool: ...


class Learner(Protocol):
    """Something that learns from the `info` of a run's evaluations, in between its iterations."""

    def options(self) -> dict[str, Any]:
        """Keyword arguments for the objective in this iteration; they must survive being sent to another process."""

    def learn(self, infos: Sequence[Mapping[str, Any]]) -> Change | None:
        """Take in what the evaluations of an iteration had as their info, by id; returns what that changes."""


def learn(learner: Learner, optimizer: Optimizer, infos: Sequence[Mapping[str, Any]]) -> None:
    """Let the learner learn from an iteration, and the optimiser follow."""
    change = learner.learn(infos)
    if change is not None:
        optimizer.reexpress(change.transform, change.moves_iterate)
