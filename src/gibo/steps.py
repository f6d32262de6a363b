"""Steps along the gradient: their direction and their length.

The **direction** comes from the gradient's posterior mean g and the lengthscales, in one of four normalisations. The
**step rule** turns a sequence of directions into steps, by a step size that may follow a **schedule**.

To write a rule or a schedule, derive a frozen dataclass from `StepRule` or `Schedule`::

    @dataclass(frozen=True)
    class Cosine(Schedule):
        updates: int

        def __call__(self, t):
            return 0.5 * (1.0 + math.cos(math.pi * min(t / self.updates, 1.0)))
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from gibo._checks import (
    as_number,
    as_vector,
    describe,
    finite,
    moderate,
    natural,
    one_of,
    positive,
    positive_int,
    shown,
)
from gibo._linalg import Array
from gibo._serialize import Serializable, check_serializable
from gibo.errors import InputError

GradientScaling = Literal["paper", "published", "invariant", "off"]
GRADIENT_SCALINGS: tuple[str, ...] = get_args(GradientScaling)
State: TypeAlias = dict[str, Array]


def direction(g: npt.ArrayLike, ell: npt.ArrayLike, normalization: GradientScaling) -> Array:
    """The direction of ascent; all but ``"off"`` have Mahalanobis length 1, ``√(Σ_j Δ_j²/ell_j²) = 1``.

    ===============  ==================  ==============================================================================
    ``"paper"``      ``g/√(gᵀ L g)``     L = diag(1/ell²); Müller et al. 2021, appendix A.4
    ``"published"``  ``ell∘g/‖g‖``       the authors' published code
    ``"invariant"``  ``ell²∘g/‖ell∘g‖``  steepest ascent in lengthscale units, independent of a parameter's unit
    ``"off"``        ``g``
    ===============  ==================  ==============================================================================

    They agree (except "off") if all lengthscales are equal. A zero gradient gives a zero direction.

    >>> direction(np.array([3.0, 4.0]), np.array([0.5, 0.5]), "paper")
    array([0.3, 0.4])
    """
    one_of("normalization", normalization, GRADIENT_SCALINGS)
    g = as_vector("g", g)
    ell = moderate("ell", as_vector("ell", ell, len(g)))
    if not (ell > 0.0).all():
        raise InputError(f"ell: expected positive lengthscales, got {ell.min()}")
    if normalization == "off":
        return g
    largest = float(np.abs(g).max(initial=0.0))
    if largest == 0.0:
        return np.zeros_like(g)
    g = g / largest  # so that squares neither overflow nor vanish
    if normalization == "paper":
        return g / np.linalg.norm(g / ell)
    if normalization == "published":
        return ell * g / np.linalg.norm(g)
    return ell**2 * g / np.linalg.norm(ell * g)


class Schedule(Serializable, ABC):
    """A step size that depends on the number t of updates so far."""

    @abstractmethod
    def __call__(self, t: int) -> float:
        """The step size of update t = 0, 1, …; positive."""


@dataclass(frozen=True)
class Piecewise(Schedule):
    """A step size that changes at given updates: ``Piecewise(((0, 0.8), (3, 0.3)))`` is 0.8, from update 3 on 0.3.

    >>> schedule = Piecewise(((0, 0.8), (3, 0.3)))
    >>> schedule(2), schedule(3)
    (0.8, 0.3)
    """

    pieces: tuple[tuple[int, float], ...]

    def __post_init__(self) -> None:
        given = self.pieces
        if not isinstance(given, (list, tuple)) or not all(isinstance(p, (list, tuple)) and len(p) == 2 for p in given):
            raise InputError(f"Piecewise: expected pairs of update number and step size, got {shown(given)}")
        starts = [natural("Piecewise: an update number", t) for t, _ in given]
        if not starts or starts[0] != 0 or starts != sorted(set(starts)):
            raise InputError(f"Piecewise: expected rising whole update numbers that begin with 0, got {starts}")
        etas = [positive("Piecewise: a step size", eta) for _, eta in given]
        object.__setattr__(self, "pieces", tuple(zip(starts, etas, strict=True)))

    def __call__(self, t: int) -> float:
        t = natural("t", t)
        return next(eta for start, eta in reversed(self.pieces) if start <= t)


@dataclass(frozen=True)
class Decay(Schedule):
    """A falling step size: ``initial/(1 + t/halving)**power``, t the number of updates so far.

    >>> Decay(0.5, halving=10)(10)
    0.25
    """

    initial: float
    halving: float
    power: float = 1.0

    def __post_init__(self) -> None:
        for name in ("initial", "halving", "power"):
            object.__setattr__(self, name, positive(f"Decay.{name}", getattr(self, name)))

    def __call__(self, t: int) -> float:
        with np.errstate(over="ignore"):  # then the step is zero
            return float(self.initial / np.float64(1.0 + finite("t", natural("t", t)) / self.halving) ** self.power)


class StepRule(Serializable, ABC):
    """Turns directions into steps by a pair of pure functions, so that a run can be saved between any two steps."""

    @abstractmethod
    def init(self, d: int) -> State:
        """The state before the first step: float64 arrays by name, or none. Names and shapes do not change."""

    @abstractmethod
    def update(self, direction: Array, state: State) -> tuple[Array, State]:
        """The step (d,) along a direction (d,), in the units of the direction, and the next state; changes neither."""


@dataclass(frozen=True)
class GradientAscent(StepRule):
    """``step = eta·v``, with ``v ← momentum·v + direction``; without momentum plain gradient ascent.

    Args:
        eta: step size, or a schedule. With a normalised direction it is a length in lengthscales.
        momentum: in [0, 1).

    Example:
        >>> rule = GradientAscent(eta=0.5)
        >>> rule.update(np.array([1.0]), rule.init(1))[0]
        array([0.5])
    """

    eta: float | Schedule = 0.25
    momentum: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.eta, Schedule):
            check_serializable("eta", self.eta)
        else:
            object.__setattr__(self, "eta", positive("eta", self.eta))
        momentum = as_number("momentum", self.momentum)
        if not 0.0 <= momentum < 1.0:
            raise InputError(f"momentum: expected a number in [0, 1), got {momentum}")
        object.__setattr__(self, "momentum", momentum)

    def init(self, d: int) -> State:
        return {"t": np.zeros(()), "v": np.zeros(positive_int("d", d))}

    def update(self, direction: Array, state: State) -> tuple[Array, State]:
        direction = as_vector("direction", direction)
        if not isinstance(state, dict) or state.keys() != {"t", "v"}:
            raise InputError(f"state: expected what init or update gave, got {describe(state)}")
        t = np.array(positive("state: t", state["t"], or_zero=True))
        v = self.momentum * as_vector("state: v", state["v"], len(direction)) + direction
        eta = self.eta(int(t)) if isinstance(self.eta, Schedule) else self.eta
        return eta * v, {"t": t + 1, "v": v}
