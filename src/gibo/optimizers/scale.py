"""How a wrong `scale` is found out: lengthscales and their prior are rescaled until the values show a signal."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from gibo._checks import positive
from gibo._serialize import Serializable


class ScaleRule(Serializable, ABC):
    """Base of such rules; one of your own derives from it and is a frozen dataclass."""

    @abstractmethod
    def factor(self, evidence: float, n: int, d: int, here: Sequence[float], around: Sequence[float]) -> float | None:
        """By how much to rescale after an iteration; None: the scale is found.

        Args:
            evidence: how many nats likelier the values are under the model than under noise alone.
            n: how many values the model sees.
            d: number of parameters.
            here, around: the values of the iteration's iterate and of its queries.
        """


@dataclass(frozen=True)
class ScaleSearch(ScaleRule):
    """Widen while the model explains the values no better than noise, shrink while the iterate is above its queries.

    Args:
        signal: the scale is found once the model explains the values by this many nats per value.
        widen: factor while there is no signal, from `patience`·d values on: fewer cannot tell a slope from noise.
        shrink: factor while the iterate's value is above all of its queries'.
        patience: see widen.
    """

    signal: float = 0.25
    widen: float = 2.0
    shrink: float = 0.5
    patience: float = 2.0

    def __post_init__(self) -> None:
        for name in ("signal", "widen", "shrink", "patience"):
            object.__setattr__(self, name, positive(f"ScaleSearch.{name}", getattr(self, name)))

    def factor(self, evidence: float, n: int, d: int, here: Sequence[float], around: Sequence[float]) -> float | None:
        if evidence >= self.signal * n:
            return None
        if here and around and max(around) < min(here):
            return self.shrink
        return self.widen if n >= self.patience * d else 1.0
