"""How the iterate moves: which direction, and how far.

The **direction** comes from the gradient's posterior mean g and the lengthscales, in one of four normalisations. The
**step rule** turns a sequence of directions into steps. A rule is a pure pair: ``init(d)`` gives its state, and
``update(direction, state)`` gives the step and the next state; states are plain dictionaries of arrays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, get_args

import numpy as np

from gibo import _linalg as linalg
from gibo._checks import as_number, positive
from gibo._linalg import Array
from gibo.errors import InputError

Normalization = Literal["paper", "published", "invariant", "off"]
NORMALIZATIONS: tuple[str, ...] = get_args(Normalization)
State: TypeAlias = dict[str, Array]


def direction(g: Array, ell: Array, normalization: Normalization) -> Array:
    """The direction of ascent; all but ``"off"`` have Mahalanobis length 1, ``√(Σ_j Δ_j²/ell_j²) = 1``.

    ===============  ==================  ==============================================================================
    ``"paper"``      ``g/√(gᵀ L g)``     L = diag(1/ell²); Müller et al. 2021, appendix A.4
    ``"published"``  ``ell∘g/‖g‖``       what the authors' published code does
    ``"invariant"``  ``ell²∘g/‖ell∘g‖``  steepest ascent in lengthscale units: does not depend on a parameter's unit
    ``"off"``        ``g``
    ===============  ==================  ==============================================================================

    They agree (but for "off") when all lengthscales are equal. A gradient of zero gives a direction of zero.

    >>> direction(np.array([3.0, 4.0]), np.array([0.5, 0.5]), "paper")
    array([0.3, 0.4])
    """
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


@dataclass(frozen=True)
class Piecewise:
    """A step size that changes at given updates: ``Piecewise(((0, 0.8), (3, 0.3)))`` is 0.8, from update 3 on 0.3.

    >>> schedule = Piecewise(((0, 0.8), (3, 0.3)))
    >>> schedule(2), schedule(3)
    (0.8, 0.3)
    """

    pieces: tuple[tuple[int, float], ...]

    def __post_init__(self) -> None:
        try:
            pairs = [(int(t) if isinstance(t, np.integer) else t, eta) for t, eta in self.pieces]
        except (TypeError, ValueError):
            raise InputError(f"Piecewise: expected pairs of update number and step size, got {self.pieces!r}") from None
        starts = [t for t, _ in pairs]
        whole = all(isinstance(t, int) for t in starts)
        if not whole or not starts or starts[0] != 0 or starts != sorted(set(starts)):
            raise InputError(f"Piecewise: expected rising whole update numbers that begin with 0, got {starts}")
        pieces = tuple((t, positive("Piecewise: a step size", eta)) for t, eta in pairs)
        object.__setattr__(self, "pieces", pieces)

    def __call__(self, t: int) -> float:
        return next(eta for start, eta in reversed(self.pieces) if start <= t)


@dataclass(frozen=True)
class Decay:
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
        return float(self.initial / (1.0 + t / self.halving) ** self.power)


Schedule: TypeAlias = float | Piecewise | Decay


class StepRule(Protocol):
    """Turns directions into steps; see the module's text."""

    def init(self, d: int) -> State: ...

    def update(self, direction: Array, state: State) -> tuple[Array, State]: ...


@dataclass(frozen=True)
class GradientAscent:
    """``step = eta·v``, with ``v ← momentum·v + direction``; without momentum plain gradient ascent.

    Args:
        eta: step size, or a schedule. With a normalised direction it is a length in lengthscales.
        momentum: in [0, 1).

    Example:
        >>> rule = GradientAscent(eta=0.5)
        >>> rule.update(np.array([1.0]), rule.init(1))[0]
        array([0.5])
    """

    eta: Schedule = 0.25
    momentum: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "eta", _as_eta(self.eta))
        object.__setattr__(self, "momentum", _below_one("momentum", self.momentum))

    def init(self, d: int) -> State:
        return {"t": np.zeros(()), "v": np.zeros(d)}

    def update(self, direction: Array, state: State) -> tuple[Array, State]:
        v = self.momentum * state["v"] + direction
        return _at(self.eta, state) * v, {"t": state["t"] + 1, "v": v}


@dataclass(frozen=True)
class Adam:
    """Adam on the directions (Kingma and Ba 2015, algorithm 1, with the sign of ascent).

    Example:
        >>> rule = Adam(eta=0.1)
        >>> rule.update(np.array([5.0, -2.0]), rule.init(2))[0].round(6)
        array([ 0.1, -0.1])
    """

    eta: Schedule = 0.1
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        object.__setattr__(self, "eta", _as_eta(self.eta))
        object.__setattr__(self, "beta1", _below_one("beta1", self.beta1))
        object.__setattr__(self, "beta2", _below_one("beta2", self.beta2))
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))

    def init(self, d: int) -> State:
        return {"t": np.zeros(()), "m": np.zeros(d), "v": np.zeros(d)}

    def update(self, direction: Array, state: State) -> tuple[Array, State]:
        t = state["t"] + 1
        m = self.beta1 * state["m"] + (1.0 - self.beta1) * direction
        v = self.beta2 * state["v"] + (1.0 - self.beta2) * direction**2
        m_hat, v_hat = m / (1.0 - self.beta1**t), v / (1.0 - self.beta2**t)
        return _at(self.eta, state) * m_hat / (np.sqrt(v_hat) + self.epsilon), {"t": t, "m": m, "v": v}


def _at(eta: Schedule, state: State) -> float:
    return eta(int(state["t"])) if callable(eta) else eta


def _as_eta(eta: Any) -> Schedule:
    return eta if isinstance(eta, (Piecewise, Decay)) else positive("eta", eta)


def _below_one(name: str, value: Any) -> float:
    number = as_number(name, value)
    if not 0.0 <= number < 1.0:
        raise InputError(f"{name}: expected a number in [0, 1), got {number}")
    return number


def certainty(mean: Array, covariance: Array) -> float:
    """How sure the model is that the gradient is not zero: the mass of its posterior nearer to the mean than zero is.

    ``P(χ²_d ≤ μᵀ S⁻¹ μ)``, the credible level of the ellipsoid around μ whose border runs through zero. Near 1 the
    gradient is known; where it is lost in its uncertainty this is as likely to be low as high, in any dimension. (A
    step along μ itself seems to ascend ever more surely, the more dimensions there are.)

    >>> round(certainty(np.array([3.0, 0.0]), np.eye(2)), 3), certainty(np.zeros(2), np.eye(2))
    (0.989, 0.0)
    """
    largest = float(np.abs(mean).max(initial=0.0))
    if largest == 0.0:
        return 0.0
    if 1e-150 < largest < 1e150:
        relative = covariance / largest**2
    else:  # the square is beyond the range of floats
        with np.errstate(over="ignore"):
            relative = covariance / largest / largest
    if not np.isfinite(relative).all():
        return 0.0
    if not float(relative.trace()) > 0.0:
        return 1.0
    z = linalg.solve_lower(linalg.cholesky(relative).L, mean / largest)
    with np.errstate(over="ignore"):
        square = float(z @ z)
    return _chi_square_cdf(square, len(mean)) if square < math.inf else 1.0


def _chi_square_cdf(x: float, d: int) -> float:
    """P(χ²_d ≤ x), by its finite sum for whole d; scipy.special has it too, but is slow to load.

    ``P(χ²_{d+2} ≤ x) = P(χ²_d ≤ x) − h^(d/2)·e^(−h)/Γ(d/2 + 1)`` with h = x/2, from ``erf(√h)`` (d = 1) or
    ``1 − e^(−h)`` (d = 2) on.
    """
    h = 0.5 * x
    if h <= 0.0:
        return 0.0
    start = 1 if d % 2 else 2
    p = math.erf(math.sqrt(h)) if start == 1 else -math.expm1(-h)
    terms = (math.exp(0.5 * k * math.log(h) - h - math.lgamma(0.5 * k + 1.0)) for k in range(start, d, 2))
    return max(0.0, p - math.fsum(terms))


def probability_of_ascent(step: Array, mean: Array, covariance: Array) -> float:
    """Probability that the objective rises along `step`, ``Φ(stepᵀ μ/√(stepᵀ S step))``; ½ for a step of zero.

    It is the model's own belief, and an optimistic one: the hyperparameters are taken for known, and the step was
    chosen to look good.

    >>> probability_of_ascent(np.array([1.0]), np.array([0.0]), np.eye(1))
    0.5
    """
    slope, variance = float(step @ mean), float(step @ covariance @ step)
    if slope == 0.0:
        return 0.5
    if variance <= 0.0:
        return 1.0 if slope > 0 else 0.0
    return 0.5 * math.erfc(-slope / math.sqrt(2.0 * variance))
