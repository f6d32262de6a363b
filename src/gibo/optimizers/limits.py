"""Limits on measured quantities, the models of these quantities, and of failures.

A quantity c_j is measured with each value. Its own Gaussian process, with the objective's kernel and its own
hyperparameters, models ``(c_j − shift)/spread`` over the same window. The shift is the mean of the measurements, the
spread their standard deviation. Because few measurements give a poor estimate, the distance of the first one from the
limit counts as `SLACK_COUNTS` further deviations.

Failures are one more quantity, the latent process of `gibo.optimizers.failures`, with the lengthscales of the objective
and the upper limit 0. The objective's own model does not see failures, so they do not distort its hyperparameters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from gibo._checks import as_flag, as_list, as_number, finite, instance, shown
from gibo._linalg import Array
from gibo._serialize import Serializable
from gibo.errors import InputError
from gibo.kernels import KERNELS
from gibo.optimizers.failures import VARIANCE, failing
from gibo.optimizers.model import Surrogate
from gibo.optimizers.region import Region, Side
from gibo.optimizers.settings import Settings
from gibo.outcome import Evaluation, Outcome, as_name

# For the spread, the distance of the first measurement from the limit counts as so many deviations.
SLACK_COUNTS = 2.0
# A factor on standard deviations, because models fitted to few values are overconfident. Chosen on the quadratics of
# the study of limits (machines).
CAUTION = 1.5
# Before its first fit a quantity is taken to have this lengthscale in units of `scale`, and its measurements this noise
# variance: then the first careful queries go less than a scale. With these, and noise in s(z), careful searches on ten
# functions of COCO's second instances (5 and 10 parameters) violated in 6 % of evaluations, before in 15 %.
FIRST_LENGTHSCALE, FIRST_NOISE = 1.0, 0.05
# Half-width of the box of a careful search in units of `scale`. Most violations lay farther than that from all data. On
# controllers and quadrotors with seeds from 100 it takes regret of the quadrotors from 25 to 12 %.
CAREFUL_WIDTH = 2.0
# The name of the model of failures; no measured quantity can have this name.
FAILURES = ""
# How probable it must be that at a point fewer than half of the evaluations fail, besides those that do at random. This
# is less than at a place without data, 0.88. With more the search hardly moves if half of all fail at random.
NOT_FAILING = 0.85


@dataclass(frozen=True)
class Limits(Serializable):
    """Limits of measured quantities.

    Args:
        quantities: (lower, upper) by name, None for a missing limit: ``{"torque": (None, 4.0)}``.
        confidence: the required probability of the models that all limits hold, for moves and the recommended point.
        careful: queries also keep to the limits. The start must then satisfy them.

    Example:
        >>> Limits({"torque": (None, 4.0), "height": (0.2, 0.8)}).levels("height")
        {1.0: 0.2, -1.0: 0.8}
    """

    quantities: Any
    confidence: float = 0.95
    careful: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "quantities", _checked(self.quantities))
        object.__setattr__(self, "careful", as_flag("careful", self.careful))
        object.__setattr__(self, "confidence", as_number("confidence", self.confidence))
        if not 0.5 <= self.confidence < 1.0:
            raise InputError(f"confidence: expected a probability from 0.5 to below 1, got {self.confidence:g}")

    @property
    def names(self) -> list[str]:
        return [name for name, *_ in self.quantities]

    def levels(self, name: str) -> dict[float, float]:
        """The limits of a quantity: key 1 for the lower one, key −1 for the upper one."""
        lower, upper = next(each[1:] for each in self.quantities if each[0] == name)
        return {sign: level for sign, level in ((1.0, lower), (-1.0, upper)) if level is not None}

    @property
    def beta(self) -> float:
        """Standard deviations that each of m sides must keep: `CAUTION` times Phi⁻¹(1 − (1 − confidence)/m). By the
        union bound all sides together then hold with at least this confidence."""
        m = sum(len(self.levels(name)) for name in self.names)
        return CAUTION * NormalDist().inv_cdf(1.0 - (1.0 - self.confidence) / m)

    def check_measured(self, outcome: Outcome) -> None:
        """Check that an outcome with a value has all limited quantities."""
        missing = [name for name in self.names if name not in outcome.measured]
        if outcome.value is not None and missing:
            others = f" (only of {', '.join(map(shown, outcome.measured))})" if outcome.measured else ""
            raise InputError(
                f"measured: {shown(missing[0])} has a limit, and this evaluation has no measurement of it{others}; "
                f'return gibo.Outcome(value, measured={{"{missing[0]}": ...}})'
            )

    def violations(self, measured: Mapping[str, float]) -> list[str]:
        """The limits that measured quantities violate, in words."""
        return [
            f"{name} is {measured[name]:g}, {'below its lower' if sign > 0 else 'above its upper'} limit {level:g}"
            for name in self.names
            for sign, level in self.levels(name).items()
            if name in measured and sign * (measured[name] - level) < 0.0
        ]


def with_care(limits: Any, careful: bool) -> Limits | None:
    """Limits from a user's argument, with `careful`."""
    if limits is None:
        if as_flag("careful", careful):
            raise InputError("careful: expected limits; give limits=")
        return None
    given = limits if isinstance(limits, Limits) else Limits(limits)
    return replace(given, careful=given.careful or as_flag("careful", careful))


def _checked(quantities: Any) -> tuple[tuple[str, float | None, float | None], ...]:
    """(name, lower, upper) of each limit; saved limits already have this form, as lists."""
    if isinstance(quantities, Mapping):
        entries = [
            (name, *as_list(f"limits: {shown(name)}", pair, "(lower, upper)")) for name, pair in quantities.items()
        ]
    else:
        instance("limits", quantities, (list, tuple), '(lower, upper) by name, such as {"torque": (None, 4.0)}')
        entries = [instance("limits", entry, (list, tuple), "(name, lower, upper), or a dict") for entry in quantities]
    if not entries:
        raise InputError('limits: expected (lower, upper) by name, such as {"torque": (None, 4.0)}; got none')
    checked = []
    for entry in entries:
        if len(entry) != 3 or not isinstance(entry[0], str):
            raise InputError(f"limits: expected (lower, upper) by name, got {shown(entry)}")
        name, *sides = entry
        as_name("limits", name, "a name")
        lower, upper = (None if side is None else finite(f"limits: {shown(name)}", side) for side in sides)
        if lower is None and upper is None:
            raise InputError(f"limits: {shown(name)} has neither a lower nor an upper limit")
        if lower is not None and upper is not None and not lower < upper:
            raise InputError(f"limits: {shown(name)}: expected lower below upper, got {lower:g} and {upper:g}")
        checked.append((name, lower, upper))
    if len({name for name, *_ in checked}) < len(checked):
        raise InputError("limits: expected different names, got one twice")
    return tuple(checked)


@dataclass(frozen=True, eq=False)
class LimitModels:
    """A model of each limited quantity with its present hyperparameters, and of failures, which needs none of its own.

    Attributes:
        limits: or None.
        surrogates: of the limited quantities, by name.
        kernel: the name of the objective's.
        scale: (d,) of the parameters.
    """

    limits: Limits | None
    surrogates: Mapping[str, Surrogate]
    kernel: str
    scale: Array

    @classmethod
    def initial(cls, limits: Limits, settings: Settings, scale: Array) -> LimitModels:
        """The models before any data; the settings are the resolved ones of the objective's model."""
        plain = replace(
            settings, warp=False, standardize=False, mean="estimated", scale_rule=None, blocks=None, drift=False
        )
        plain = replace(plain, variance=Settings.variance, noise=Settings.noise)
        initial = Surrogate.initial(plain, scale)
        first = initial.hyperparameters._replace(lengthscale=np.full(len(scale), FIRST_LENGTHSCALE), noise=FIRST_NOISE)
        surrogates = {name: replace(initial, hyperparameters=first) for name in limits.names}
        return cls(limits, surrogates, settings.kernel, scale)

    def rescaled(self, factor: float) -> LimitModels:
        """The models with lengthscales multiplied by a factor, like those of the objective."""
        return replace(self, surrogates={name: each.rescaled(factor) for name, each in self.surrogates.items()})

    def fit(self, evaluations: Sequence[Evaluation]) -> LimitModels:
        """MAP hyperparameters, given evaluations."""
        fitted = {}
        for name, surrogate in self.surrogates.items():
            data, _ = self._data(name, evaluations)
            fitted[name] = surrogate.fit(data) if len(data) >= surrogate.settings.sizes.fit_from else surrogate
        return replace(self, surrogates=fitted)

    def region(self, evaluations: Sequence[Evaluation], ell: Array, limited: bool = True) -> Region | None:
        """The region without failures and, if `limited`, within the limits; None if the data exclude no point.

        Args:
            evaluations: failures included.
            ell: (d,) the objective's lengthscales.
        """
        sides: dict[str, list[Side]] = {}
        for name, surrogate in self.surrogates.items() if limited else ():
            data, (shift, spread) = self._data(name, evaluations)
            if data and self.limits is not None:
                gp, beta = surrogate.given(data).gp, self.limits.beta
                levels = self.limits.levels(name)
                sides[name] = [Side(gp, (level - shift) / spread, sign, beta) for sign, level in levels.items()]
        failed = np.array([e.value is None for e in evaluations])
        if failed.any() and not failed.all():  # where all did, nothing says which way to go
            Z = np.array([e.x for e in evaluations]) / self.scale
            gp, _ = failing(Z, failed, KERNELS[self.kernel](ell, VARIANCE))
            sides[FAILURES] = [Side(gp, 0.0, -1.0, NormalDist().inv_cdf(NOT_FAILING))]
        return Region(sides) if sides else None

    def memo(self) -> dict[str, Any]:
        """Hyperparameters, for a log."""
        return {"limits": [each.memo() for each in self.surrogates.values()]}

    def recall(self, memo: dict[str, Any]) -> LimitModels:
        """With those of a memo."""
        pairs = zip(self.surrogates.items(), memo["limits"], strict=True)
        return replace(self, surrogates={name: surrogate.recall(each) for (name, surrogate), each in pairs})

    def _data(self, name: str, evaluations: Sequence[Evaluation]) -> tuple[list[Evaluation], tuple[float, float]]:
        """The measurements of a quantity as values, with their shift and spread."""
        assert self.limits is not None
        measured = [e for e in evaluations if name in e.measured]
        if not measured:
            return [], (0.0, 1.0)
        c = np.array([e.measured[name] for e in measured])
        levels = self.limits.levels(name).values()
        slack = min(abs(float(c[0]) - level) for level in levels)
        shift = float(c.mean())
        total = float(((c - shift) ** 2).sum()) + SLACK_COUNTS * slack**2
        spread = math.sqrt(total / (len(c) + SLACK_COUNTS)) or max(abs(shift), 1.0)
        return [_valued(e, float(u)) for e, u in zip(measured, (c - shift) / spread, strict=True)], (shift, spread)


def _valued(e: Evaluation, value: float) -> Evaluation:
    return Evaluation(e.query, Outcome(value))
