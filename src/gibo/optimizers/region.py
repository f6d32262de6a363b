"""The region in which limits hold, according to the models of the limited quantities.

Symbols
-------
z            parameters in units of `scale`
m(z), s(z)   mean and standard deviation of a measurement of a quantity. Its noise counts, because the model takes for
             noise what it fails to follow of the quantity
level        its limit; sign: 1 for a lower limit, −1 for an upper one
beta         required distance of the quantity from its limit, in standard deviations

A side of a limit holds at z with probability ``Phi(r(z))``, ``r = sign·(m − level)/s``. It counts as kept if its slack
``sign·(m − level) − beta·s`` is not negative, which means ``Phi(r) >= Phi(beta)``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from gibo._linalg import Array
from gibo.acquisition.climb import Acquisition, climb
from gibo.acquisition.confidence import PosteriorAtPoint
from gibo.gp import GaussianProcess

NORMAL = NormalDist()
# Points on a ray from the iterate to a query that are tried if the query is outside.
RAY = np.linspace(0.0, 1.0, 65)
# The climb within the region: rounds, first weight of a violation, and its growth from round to round.
ROUNDS, WEIGHT, GROWTH = 6, 10.0, 3.0
# A violation that the way back from the end of the climb can remove.
TOLERANCE = 1e-3


class Side:
    """One side of a limit; see the module's docstring."""

    def __init__(self, gp: GaussianProcess, level: float, sign: float, beta: float) -> None:
        self.gp, self.level, self.sign, self.beta = gp, level, sign, beta
        self._posterior = PosteriorAtPoint(gp)

    def slack(self, Z: Array) -> Array:
        """At points (p, d)."""
        room, s = self._room(Z)
        return room - self.beta * s

    def slack_and_gradient(self, z: Array) -> tuple[float, Array]:
        """At one point (d,); ``∇s = ∇s²/(2·s)``."""
        mean, variance, by_mean, by_variance = self._posterior(z)
        s = math.sqrt(variance + self._noise)
        slack = self.sign * (mean - self.level) - self.beta * s
        return slack, self.sign * by_mean - (0.5 * self.beta / s) * by_variance

    def ratio(self, Z: Array) -> Array:
        """r at points (p, d)."""
        room, s = self._room(Z)
        return room / s

    def ratio_and_gradient(self, z: Array) -> tuple[float, Array]:
        """At one point (d,); ``∇r = sign·∇m/s − r·∇s²/(2·s²)``."""
        mean, variance, by_mean, by_variance = self._posterior(z)
        variance += self._noise
        s = math.sqrt(variance)
        r = self.sign * (mean - self.level) / s
        return r, self.sign * by_mean / s - (0.5 * r / variance) * by_variance

    def _room(self, Z: Array) -> tuple[Array, Array]:
        """``sign·(m − level)`` and s at points (p, d)."""
        mean, variance = (np.asarray(moment) for moment in self.gp.predict(Z))
        return self.sign * (mean - self.level), np.sqrt(variance + self._noise)

    @property
    def _noise(self) -> float:
        return self.gp.noise + 1e-12 * self.gp.kernel.variance


@dataclass(frozen=True, eq=False)
class Region:
    """The region in which all sides of all limits hold; sides by the name of their quantity."""

    sides: Mapping[str, Sequence[Side]]

    @property
    def _all(self) -> list[Side]:
        return [side for sides in self.sides.values() for side in sides]

    def slack(self, Z: Array) -> Array:
        """The least slack at points (p, d)."""
        least: Array = np.min([side.slack(Z) for side in self._all], axis=0)
        return least

    def probabilities(self, z: Array) -> dict[str, float]:
        """The probability of each limit at z (d,); ``Phi(r_lower) + Phi(r_upper) − 1`` for a limit with both sides."""
        return {
            name: max(0.0, sum(NORMAL.cdf(float(side.ratio(z[None])[0])) for side in sides) - (len(sides) - 1.0))
            for name, sides in self.sides.items()
        }

    def likely(self, z: Array) -> bool:
        """Whether each limit holds at z (d,) with a probability of at least one half."""
        return min(self.probabilities(z).values()) >= 0.5

    def back(self, z: Array, t: Array) -> Array:
        """The last point on the ray from t to z within the region; if t is outside, the point with the most slack."""
        ray = t + RAY[:, None] * (z - t)
        slack = self.slack(ray)
        if slack[0] < 0.0:
            return np.asarray(ray[int(slack.argmax())])
        outside = np.flatnonzero(slack < 0.0)
        return np.asarray(ray[outside[0] - 1] if len(outside) else z)

    def replaced(
        self, information: Acquisition, z: Array, t: Array, lower: Array, upper: Array, ell: Array, mirrors: bool
    ) -> Array:
        """z if it is within the region; else, if `mirrors`, its mirror image at t if that is; else the point of the
        region with most information, climbed to from the ray to z.

        The mirror image is nearer to the data than the most informative point, so that it violates limits less often.
        """
        points = np.array([z, np.clip(2.0 * t - z, lower, upper)] if mirrors else [z])
        inside = points[self.slack(points) >= 0.0]
        if len(inside):
            return np.asarray(inside[0])
        starts = np.array([self.back(z, t), t])
        return self.highest(_Share(information, z), starts[0], starts, lower, upper, ell)

    def highest(self, bound: Acquisition, z: Array, candidates: Array, lower: Array, upper: Array, ell: Array) -> Array:
        """The maximum of the bound in the part of the box within the region, as far as it is found.

        By augmented Lagrangians: in each round ``bound − Σ_j max(0, λ_j − ρ·slack_j)²/(2ρ)`` is climbed, and then
        ``λ_j := max(0, λ_j − ρ·slack_j)`` (Nocedal, Wright: Numerical Optimization, 2006, section 17.3). Where the box
        has no point inside: the point at which the limits most probably hold.

        Args:
            bound: the function to maximise.
            z: (d,) the start of the climb, in the box.
            candidates: (p, d) other points of the box, p ≥ 1. If one is inside, the result is at least as high.
            lower, upper, ell: (d,) the box and the lengthscales.
        """
        sides, anchors = self._all, candidates[self.slack(candidates) >= 0.0]
        anchor = anchors[int(np.asarray(bound(anchors)).argmax())] if len(anchors) else None
        lagrangian = _Lagrangian(bound, sides, np.zeros(len(sides)), WEIGHT)
        groups = [start[None] for start in ([z, *candidates[:1]] if anchor is None else [z, anchor])]
        for _ in range(ROUNDS):
            z, _ = climb(lagrangian, groups, lower, upper, scale=ell)
            slack = np.array([side.slack(z[None])[0] for side in sides])
            if (slack >= -TOLERANCE).all() and lagrangian.multipliers.any():
                break
            multipliers = np.maximum(0.0, lagrangian.multipliers - lagrangian.weight * slack)
            if not multipliers.any():
                break  # the maximum over the box is inside
            lagrangian = _Lagrangian(bound, sides, multipliers, GROWTH * lagrangian.weight)
            groups = [z[None]]
        if anchor is not None:
            z = self.back(z, anchor)
            return z if bound(z[None])[0] >= bound(anchor[None])[0] else np.asarray(anchor)
        if self.slack(z[None])[0] >= 0.0:
            return z
        return climb(_Probability(sides), [candidates, z[None]], lower, upper, scale=ell)[0]


class _Share:
    """A function to climb, as a share of its value at a point z (d,)."""

    def __init__(self, function: Acquisition, z: Array) -> None:
        self.function, self.whole = function, max(function.value_and_gradient(z)[0], 1e-300)

    def __call__(self, Z: Array) -> Array:
        return np.asarray(self.function(Z)) / self.whole

    def value_and_gradient(self, z: Array) -> tuple[float, Array]:
        value, gradient = self.function.value_and_gradient(z)
        return value / self.whole, gradient / self.whole


@dataclass(frozen=True, eq=False)
class _Lagrangian:
    """``bound − Σ_j max(0, λ_j − ρ·slack_j)²/(2ρ)``."""

    bound: Acquisition
    sides: Sequence[Side]
    multipliers: Array
    weight: float

    def __call__(self, Z: Array) -> Array:
        slack = np.array([side.slack(Z) for side in self.sides])
        excess = np.maximum(0.0, self.multipliers[:, None] - self.weight * slack)
        return np.asarray(self.bound(Z) - (excess**2).sum(axis=0) / (2.0 * self.weight))

    def value_and_gradient(self, z: Array) -> tuple[float, Array]:
        value, gradient = self.bound.value_and_gradient(z)
        for side, multiplier in zip(self.sides, self.multipliers, strict=True):
            slack, by_z = side.slack_and_gradient(z)
            excess = max(0.0, multiplier - self.weight * slack)
            value, gradient = value - excess**2 / (2.0 * self.weight), gradient + excess * by_z
        return value, gradient


@dataclass(frozen=True, eq=False)
class _Probability:
    """The logarithm of the probability that all sides hold, if they were independent: ``Σ_j log Phi(r_j)``."""

    sides: Sequence[Side]

    def __call__(self, Z: Array) -> Array:
        from scipy.special import log_ndtr  # imported here, because rarely needed

        return np.asarray(np.sum([log_ndtr(side.ratio(Z)) for side in self.sides], axis=0))

    def value_and_gradient(self, z: Array) -> tuple[float, Array]:
        from scipy.special import log_ndtr

        value, gradient = 0.0, np.zeros(len(z))
        for side in self.sides:
            r, by_z = side.ratio_and_gradient(z)
            log_phi = -0.5 * r * r - 0.5 * math.log(2.0 * math.pi)
            value += float(log_ndtr(r))
            gradient = gradient + math.exp(log_phi - float(log_ndtr(r))) * by_z
        return value, gradient
