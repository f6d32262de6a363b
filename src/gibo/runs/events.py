"""The log of a run's optimiser from the rows of its journal: who came first, a batch or a value."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gibo.optimizers.log import Asked, Event, Proceeded, Stepped, Told
from gibo.outcome import EXTERNAL, Query
from gibo.runs.spec import AFTER, BLOCK


def events_of(
    asked: Mapping[int, Query],
    batches: Sequence[tuple[Any, ...]],
    told: Sequence[Told],
    moves: Sequence[tuple[Any, ...]],
    steps: Sequence[Stepped],
) -> Iterator[Event]:
    """All that happened, in its order.

    Args:
        asked: the queries by id, and the points from elsewhere.
        batches, moves: rows of these tables.
        told: in the order of arrival.
        steps: in their order.
    """
    moved = {after for after, _ in moves}
    waiting, made = deque(batches), deque(steps)
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

    for number, event in enumerate(told):
        query = event.query
        while known < query.id + (query.kind != EXTERNAL) or (moved and asked_by(number)):
            yield from next_batch()
        known += query.kind == EXTERNAL
        yield event
        if number in moved:
            yield Proceeded()
        yield from steps_before(0, number + 1)
    while waiting:
        yield from next_batch()
