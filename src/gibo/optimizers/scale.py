"""How a wrong `scale` is found out: lengthscales and their prior are rescaled until the values show a signal."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from gibo._checks import positive
from gibo._serialize import Serializable


@dataclass(frozen=True)
class Findings:
    """What an iteration says of the scale.

    Attributes:
        evidence: how many nats likelier the values are under the model than under noise alone.
        n, d: how many values the model sees, and the number of parameters.
        here, around: the values of the iteration's iterate and of its queries.
        shortened: by what the fit has divided the lengthscales with which the queries were planned.
    """

    evidence: float
    n: int
    d: int
    here: Sequence[float]
    around: Sequence[float]
    shortened: float


class ScaleRule(Serializable, ABC):
    """Base of such rules; one of your own derives from it and is a frozen dataclass."""

    @abstractmethod
    def factor(self, found: Findings) -> float | None:
        """By how much to rescale the lengthscales and their prior after an iteration; None: the scale is found."""


@dataclass(frozen=True)
class ScaleSearch(ScaleRule):
    """Shrink while the iterate is above all of its queries, widen while the values are no more than noise.

    Args:
        shrink: of the lengthscales with which queries were planned that all lie below the iterate, at most this share
            is left.
        signal: otherwise the scale is found once the model explains the values by this many nats per value.
        widen: otherwise the lengthscales are multiplied by this, from `patience`·d values on (fewer cannot tell a slope
            from noise), or at once if all values of the iteration are the same.
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
