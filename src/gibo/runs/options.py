"""The options of a run: they stand here once, check themselves, and are what a journal remembers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gibo._checks import LARGEST, as_number, describe, finite, positive, positive_int, whole
from gibo.errors import InputError

if TYPE_CHECKING:
    from gibo.runs.result import Result

# What the journal remembers for the next start.
REMEMBERED = ("budget", "target", "least_certainty", "time_limit", "retries", "max_failures")


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How long a run goes on and what it does about failures; `gibo.run` explains each.

    Example:
        >>> RunOptions(budget=100).max_failures
        10
    """

    budget: int
    target: float | None = None
    least_certainty: float | None = None
    callback: Callable[[Result], bool | None] | None = None
    workers: int | None = None
    time_limit: float | None = None
    retries: int = 0
    penalty: float | None = None
    quorum: float = 1.0
    max_failures: int = 10

    def __post_init__(self) -> None:
        positive_int("budget", self.budget)
        positive_int("max_failures", self.max_failures)
        if self.workers is not None:
            positive_int("workers", self.workers)
        whole("retries", self.retries)
        if self.callback is not None and not callable(self.callback):
            raise InputError(f"callback: expected a function of a Result, got {describe(self.callback)}")
        self._set("target", finite)
        self._set("penalty", finite)
        self._set("time_limit", positive)
        self._set("least_certainty", as_number)
        self._set("quorum", as_number)
        if self.penalty is not None and abs(self.penalty) > LARGEST:
            raise InputError(f"penalty: expected a number of at most {LARGEST:g} in size, got {self.penalty:g}")
        if self.least_certainty is not None and not 0.0 < self.least_certainty < 1.0:
            raise InputError(f"least_certainty: expected a probability between 0 and 1, got {self.least_certainty}")
        if not 0.0 < self.quorum <= 1.0:
            raise InputError(f"quorum: expected a number above 0 and at most 1, got {self.quorum}")

    def remembered(self) -> dict[str, Any]:
        """What the journal keeps of a start."""
        return {name: getattr(self, name) for name in (*REMEMBERED, "workers")}

    def _set(self, name: str, check: Callable[[str, Any], float]) -> None:
        value = getattr(self, name)
        object.__setattr__(self, name, None if value is None else check(name, value))
