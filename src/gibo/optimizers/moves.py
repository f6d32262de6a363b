"""Moves: from the iterate to the next one, given the model. Symbols: z parameters in units of `scale`, t the iterate.

A move is a pure pair of functions, so that a run can be saved between any two iterations: `init` gives the state before
the first move, `next` the next iterate and state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibo._checks import instance, one_of, positive
from gibo._linalg import Array
from gibo._serialize import Serializable, check_serializable
from gibo.acquisition.climb import climb
from gibo.acquisition.confidence import LowerConfidenceBound
from gibo.gp import GaussianProcess
from gibo.steps import GRADIENT_SCALINGS, GradientAscent, GradientScaling, State, StepRule, direction

# A start of the climb to the highest bound: this many lengthscales along the gradient.
AHEAD = 0.35


class Move(Serializable, ABC):
    """Base of moves; derive a frozen dataclass to write a move.

    If a move leaves the region in which limits hold, the maximum of mean − beta standard deviations within the region
    is taken instead.
    """

    beta: float = 0.0

    @abstractmethod
    def init(self, d: int) -> State:
        """The state before the first move: float64 arrays by name, or none."""

    @abstractmethod
    def next(self, gp: GaussianProcess, t: Array, lower: Array, upper: Array, state: State) -> tuple[Array, State]:
        """The next iterate (d,) and state, from the posterior, the iterate and the box around it, all in z."""


@dataclass(frozen=True)
class GradientStep(Move):
    """A step along the gradient's mean (Müller et al. 2021, algorithm 1, line 13).

    Args:
        step: `gibo.steps.GradientAscent`, or a `gibo.steps.StepRule` of your own.
        normalization: of the gradient, see `gibo.steps.direction`. ``"invariant"``: the step does not depend on the
            units of single parameters.
    """

    step: StepRule = GradientAscent(eta=0.35)
    normalization: GradientScaling = "invariant"

    def __post_init__(self) -> None:
        one_of("normalization", self.normalization, GRADIENT_SCALINGS)
        check_serializable("step", instance("step", self.step, StepRule, "GradientAscent(...) or another StepRule"))

    @classmethod
    def with_eta(cls, eta: Any) -> GradientStep:
        """Gradient ascent with this step size or schedule."""
        return cls(GradientAscent(eta=eta))

    def init(self, d: int) -> State:
        return self.step.init(d)

    def next(self, gp: GaussianProcess, t: Array, lower: Array, upper: Array, state: State) -> tuple[Array, State]:
        ascent = direction(gp.jacobian(t).mean, gp.kernel.ell(len(t)), self.normalization)
        step, state = self.step.update(ascent, state)
        return t + step, state


@dataclass(frozen=True)
class BoundStep(Move):
    """A step to the maximum of the lower confidence bound, mean − beta standard deviations, in the box.

    Reference: Fan et al.: Minimizing UCB: a better local search strategy in local Bayesian optimization, NeurIPS 2024.
    """

    beta: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", positive("beta", self.beta, or_zero=True))

    def init(self, d: int) -> State:
        return {}

    def next(self, gp: GaussianProcess, t: Array, lower: Array, upper: Array, state: State) -> tuple[Array, State]:
        ell, data = gp.kernel.ell(len(t)), gp.observations
        ahead = t + AHEAD * direction(gp.jacobian(t).mean, ell, "invariant")
        best = t if data is None or not gp.n else data.X[int(np.asarray(gp.predict(data.X).mean).argmax())]
        starts = [np.clip(start, lower, upper)[None] for start in (t, ahead, best)]
        return climb(LowerConfidenceBound(gp, self.beta), starts, lower, upper, scale=ell)[0], state
