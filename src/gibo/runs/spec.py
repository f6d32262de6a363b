"""What a run is: it stands in the journal first, and cannot change once the run has begun."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gibo._checks import as_number, as_vector, finite, shown
from gibo._serialize import to_plain
from gibo.errors import InputError
from gibo.optimizers.base import Optimizer
from gibo.optimizers.settings import Settings


@dataclass(frozen=True)
class RunSpec:
    """What a run is; it cannot change once the run has begun.

    Attributes:
        optimizer: the name of its class.
        arguments: of its constructor, as plain data.
        sign: 1 where the objective is maximised, −1 where it is minimised.
        names: of the parameters; None if they have none.
        penalty: what a failed evaluation counts as; None if it is passed over.
        quorum: the share of an iteration's queries after which the next one may start.
        training: what is trained, where that is known, as plain data.
    """

    optimizer: str
    arguments: dict[str, Any]
    sign: float = 1.0
    names: list[str] | None = None
    penalty: float | None = None
    quorum: float = 1.0
    training: dict[str, Any] | None = None

    @classmethod
    def of(cls, optimizer: Optimizer, **others: Any) -> RunSpec:
        """That of a run of this optimiser."""
        return cls(type(optimizer).__name__, optimizer.arguments(), **others)

    def __post_init__(self) -> None:
        # What is in a file may be anything.
        if finite("sign", self.sign) not in (1.0, -1.0) or not isinstance(self.arguments, dict):
            raise InputError("the run's sign is 1 or -1, and its arguments have names")
        if self.training is not None and not isinstance(self.training, dict):
            raise InputError("what is trained has names")
        d = len(as_vector("x0", self.arguments.get("x0", ())))
        if self.names is not None and not (
            isinstance(self.names, list) and len(self.names) == d and all(isinstance(name, str) for name in self.names)
        ):
            raise InputError(f"expected {d} names of parameters")
        if self.penalty is not None:
            finite("penalty", self.penalty)
        if not 0.0 < as_number("quorum", self.quorum) <= 1.0:
            raise InputError("the quorum is a share")

    @property
    def parameter_names(self) -> list[str]:
        """x0, x1, … if they have none."""
        return self.names or parameter_names(len(self.arguments["x0"]))

    def fresh_optimizer(self) -> Optimizer:
        """The optimiser before anything was asked."""
        return Optimizer.from_arguments(self.optimizer, self.arguments)

    def differences(self, saved: RunSpec) -> str:
        """What differs from that of a journal, for a person to read; empty if nothing does. Names do not matter."""
        ours, theirs = self._flat(), saved._flat()
        names = [name for name in ours | theirs if ours.get(name) != theirs.get(name)]
        parts = [_difference(name, theirs.get(name), ours.get(name)) for name in names[:3]]
        return "; ".join(parts) + (f"; and {len(names) - 3} more" if len(names) > 3 else "")

    def _flat(self) -> dict[str, Any]:
        """Everything by its name, what is known of the training first."""
        flat: dict[str, Any] = {**_filled(self.training or {})}
        flat |= {"optimizer": self.optimizer, "sign": self.sign, "penalty": self.penalty, "quorum": self.quorum}
        flat |= _filled(self.arguments)
        settings = flat.pop("settings", None)
        return flat | (settings if isinstance(settings, dict) else {})


def parameter_names(d: int) -> list[str]:
    """Those of parameters that have none of their own."""
    return [f"x{i}" for i in range(d)]


def _filled(data: dict[str, Any]) -> dict[str, Any]:
    """With settings that are younger than the data at their default, which is what the data meant."""
    filled = {name: _filled(part) if isinstance(part, dict) else part for name, part in data.items()}
    return {**to_plain(Settings()), **filled} if data.get("type") == Settings.__name__ else filled


def _difference(name: str, was: Any, now: Any) -> str:
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now) > 1:
        i = next(i for i in range(len(was)) if was[i] != now[i])
        return _difference(f"{name}[{i}]", was[i], now[i])
    return f"{name} was {shown(was)}, now {shown(now)}"
