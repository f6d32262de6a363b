"""The log of a run's optimiser from the rows of its journal: who came first, a batch, a value or another start."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gibo.optimizers.log import Asked, Event, Iteration, Proceeded, Started, Stepped, Told
from gibo.optimizers.state import iteration_from_plain, outcome_from_plain, started_from_plain
from gibo.outcome import EXTERNAL, Outcome, Query
from gibo.runs.records import Action
from gibo.runs.spec import AFTER, BLOCK
from gibo.runs.store import COLUMNS


def outcome_of(row: tuple[Any, ...], details: Mapping[int, dict[str, Any]], d: int) -> Outcome:
    """The outcome in a row of the evaluations, with the details of all of them by number."""
    number, _, _, seconds, value, gradient, gradient_noise, info, failure, traceback = row
    g, v, kept = (None if text is None else json.loads(text) for text in (gradient, gradient_noise, info))
    data = {"value": value, "gradient": g, "gradient_noise": v, "info": kept or {}, "failure": failure}
    return outcome_from_plain({**data, "traceback": traceback, "seconds": seconds, **details.get(number, {})}, d)


def iteration_of(row: tuple[Any, ...]) -> Iteration:
    """The record of a step in a row of the iterations."""
    data = dict(zip(COLUMNS["iterations"], row, strict=True))
    for name in ("iterate", "gradient", "step", "lengthscale"):
        data[name] = json.loads(data[name])
    data["x"] = data.pop("iterate")
    return iteration_from_plain(data, len(data["x"]))


class NewStart(NamedTuple):
    """The search went on from another start after so many evaluations, when so many batches were asked."""

    after: int
    batches: int
    event: Started

    @classmethod
    def of(cls, done: Action, d: int) -> NewStart:
        """From the action that recorded it."""
        return cls(done.after, done.body["batches"], started_from_plain(done.body, d))


def events_of(
    asked: Mapping[int, Query],
    batches: Sequence[tuple[Any, ...]],
    told: Sequence[Told],
    moves: Sequence[tuple[Any, ...]],
    steps: Sequence[Stepped],
    starts: Sequence[NewStart],
) -> Iterator[Event]:
    """All that happened, in its order.

    Args:
        asked: the queries by id, and the points from elsewhere.
        batches, moves: rows of these tables.
        told: in the order of arrival.
        steps, starts: in their order.
    """
    moved = {after for after, _ in moves}
    waiting, made, begun = deque(batches), deque(steps), deque(starts)
    if any(not 0 <= after < len(told) for after in moved):
        raise ValueError("an iteration went on after an evaluation that is not there")
    last = len(batches) - 1  # of the memos only the last one is of use
    known = 0  # queries so far

    def steps_before(iteration: int, evaluations: int) -> Iterator[Event]:
        while made and (made[0].record.number < iteration or made[0].record.evaluations <= evaluations):
            yield made.popleft()

    def next_batch() -> Iterator[Event]:
        nonlocal known
        number, iteration, first, size, _, _, thought = waiting.popleft()
        yield from steps_before(iteration, 0)
        memo = json.loads(thought) if number == last else {}
        memo = {name: part for name, part in memo.items() if name not in (AFTER, BLOCK)}
        yield Asked(tuple(asked[first + i] for i in range(size)), memo or None)
        known = first + size

    def asked_by(number: int) -> bool:
        return bool(waiting) and json.loads(waiting[0][-1]).get(AFTER, len(told)) <= number

    def starts_before(number: int) -> Iterator[Event]:
        while begun and begun[0].after <= number:
            start = begun.popleft()
            while len(batches) - len(waiting) < start.batches:
                yield from next_batch()
            yield start.event

    for number, event in enumerate(told):
        yield from starts_before(number)
        query = event.query
        while known < query.id + (query.kind != EXTERNAL) or (moved and asked_by(number)):
            yield from next_batch()
        known += query.kind == EXTERNAL
        yield event
        if number in moved:
            yield Proceeded()
        yield from steps_before(0, number + 1)
    yield from starts_before(len(told))
    while waiting:
        yield from next_batch()
