"""Corrects a wrong `scale`: rescales the lengthscales and their prior until the values show a signal."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from gibo._checks import positive
from gibo._serialize import Serializable


@dataclass(frozen=True)
class Findings:
    """The evidence of an iteration about the scale.

    Attributes:
        evidence: log-likelihood of the values under the model minus that under noise alone, in nats.
        n, d: number of values in the model, and of parameters.
        here, around: the values of the iteration's iterate and of its queries.
        shortened: the factor by which the fit has shortened the lengthscales of the plan.
    """

    evidence: float
    n: int
    d: int
    here: Sequence[float]
    around: Sequence[float]
    shortened: float


class ScaleRule(Serializable, ABC):
    """Base of the rules; derive a frozen dataclass to write one."""

    @abstractmethod
    def factor(self, found: Findings) -> float | None:
        """The factor on the lengthscales and their prior after an iteration; None: the scale is found."""


@dataclass(frozen=True)
class ScaleSearch(ScaleRule):
    """Shrink while the iterate is above all of its queries, widen while the values look like noise.

    Args:
        shrink: if all queries are below the iterate, the largest share of the planned lengthscales that remains.
        signal: otherwise the scale is found if the model explains the values by this many nats per value.
        widen: otherwise the lengthscales are multiplied by this factor, from `patience`·d values on (fewer do not
            distinguish a slope from noise), or at once if all values of the iteration are equal.
        patience: see widen.
    """

    shrink: float = 0.5
    signal: float = 0.25
    widen: float = 2.0
    patience: float = 2.0

    def __post_init__(self) -> None:
        for name in ("shrink", "signal", "widen", "patience"):
            object.__setattr__(self, name, positive(f"ScaleSearch.{name}", getattr(self, name)))

    def factor(self, found: Findings) -> float | None:
        left = self.shrink * found.shortened
        if found.here and found.around and max(found.around) < min(found.here) and left < 1.0:
            return left
        if found.evidence >= self.signal * found.n:
            return None
        alike = len({*found.here, *found.around}) == 1
        return self.widen if alike or found.n >= self.patience * found.d else 1.0
