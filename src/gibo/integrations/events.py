"""The events of a run for experiment trackers: ``callback=events(receive)``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from gibo.runs.result import Result


@dataclass(frozen=True)
class Event:
    """An evaluation, or an iteration.

    Attributes:
        kind: "evaluation" or "iteration".
        step: number of evaluations so far, including this one.
        numbers: finite numbers by name. An evaluation has ``value`` and the numbers of its info, such as ``return`` in
            a run of gibo train; the last one of a batch also has ``believed``, the model's value of the recommended
            point. An iteration has ``uncertainty`` (trace of the gradient's covariance), ``probability_of_ascent`` and
            ``certainty``.
    """

    kind: Literal["evaluation", "iteration"]
    step: int
    numbers: dict[str, float]


class events:  # used like a function
    """A callback that passes every evaluation and iteration to a function, once.

    It is called after each iteration. Call it with the result of the run to include an incomplete last iteration.

    Example:
        >>> import gibo
        >>> seen = []
        >>> tracker = events(seen.append)
        >>> tracker(gibo.maximize(lambda x: -float(x @ x), [1.0, 1.0], budget=10, callback=tracker))
        >>> [event.step for event in seen if event.kind == "evaluation"]
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    """

    def __init__(self, receive: Callable[[Event], object]) -> None:
        self._receive = receive
        self._evaluations = self._iterations = 0

    def __call__(self, result: Result) -> None:
        for event in self._new(result):
            self._receive(event)

    def _new(self, result: Result) -> Iterator[Event]:
        columns, first = result.columns(self._evaluations), self._evaluations
        infos = {name.removeprefix("info."): column for name, column in columns.items() if name.startswith("info.")}
        count = len(columns["id"])
        for i in range(count):
            numbers = {"value": columns["value"][i]} | {name: column[i] for name, column in infos.items()}
            numbers |= {"believed": float(result.value)} if i == count - 1 else {}
            yield Event("evaluation", first + i + 1, _finite(numbers))
        self._evaluations = first + count
        history, names = result.history, ("uncertainty", "probability_of_ascent", "certainty")
        last = len(history.evaluations)
        for i in range(self._iterations, last):
            numbers = {name: float(getattr(history, name)[i]) for name in names}
            yield Event("iteration", int(history.evaluations[i]), _finite(numbers))
        self._iterations = last


def _finite(numbers: dict[str, float | None]) -> dict[str, float]:
    return {name: number for name, number in numbers.items() if number is not None and math.isfinite(number)}
