"""Brings a new optimiser to the end of a log of events.

    load      takes in an event without computing anything
    recall    takes in a batch and its memo with the results of slow computations
    repeat    repeats the event with all its computations

A replay loads the events up to the last memo, recalls that, and repeats those after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gibo._checks import as_vector
from gibo._linalg import single_thread
from gibo.errors import InputError
from gibo.optimizers.log import Asked, Event, Proceeded, Reparametrized, Started, Stepped, Told, last_whole
from gibo.optimizers.state import understood
from gibo.outcome import Query

Optimizer = Any  # one of `gibo.optimizers.base`, which imports this module
OTHER_QUERIES = "the replay asks other queries than recorded: another version of gibo or cma?"


def replay(optimizer: Optimizer, events: Iterable[Event]) -> None:
    """Replay events; see the module's docstring."""
    events = list(events)
    last = last_whole(events)
    for i, event in enumerate(events):
        if i < last:
            load(optimizer, event)
        elif i == last and isinstance(event, Asked):
            recall(optimizer, event)
        else:
            repeat(optimizer, event)


def load(optimizer: Optimizer, event: Event) -> None:
    """Take in an event without computing anything."""
    log = optimizer.log
    if isinstance(event, Asked):
        log.ask(event)
        optimizer._iteration = event.queries[0].iteration
    elif isinstance(event, Told):
        log.tell(event)
    elif isinstance(event, Proceeded):
        optimizer._check_proceeding()
        log.proceed()
    elif isinstance(event, Stepped):
        log.step(event.record)
    elif isinstance(event, Started):
        optimizer._begin(event)
    else:
        log.reparametrize(event, optimizer._used_again())


def recall(optimizer: Optimizer, asked: Asked) -> None:
    """Restore the state after the proposal of this batch from its memo."""
    memo = asked.memo or {}
    optimizer.log.ask(asked)
    optimizer._iteration = asked.queries[0].iteration
    with understood(f"memo: not what {type(optimizer).__name__} leaves"):
        optimizer._rng.bit_generator.state = memo["generator"]
        if "iterate" in memo:
            optimizer._iterate = as_vector("iterate", memo["iterate"], optimizer.d)
        optimizer._recall(memo)


def repeat(optimizer: Optimizer, event: Event) -> None:
    """Repeat an event."""
    if isinstance(event, Told):
        optimizer.receive(event.query, event.outcome)
    elif isinstance(event, Proceeded):
        optimizer.proceed()
    elif isinstance(event, Reparametrized):
        optimizer.reparametrize(event.transform, event.moves_iterate)
    elif isinstance(event, Started):
        optimizer.settle()
        optimizer._begin(event)
    elif isinstance(event, Asked):
        optimizer.settle()
        if event.memo is not None and optimizer._memo() is not None:
            recall(optimizer, event)
            return
        optimizer.log.check_next(event.queries)
        with single_thread():
            would_ask = _would_ask(optimizer, event.queries)
        if not would_ask:
            raise InputError(f"{type(optimizer).__name__} {OTHER_QUERIES}")
        optimizer.log.ask(replace(event, memo=optimizer._whole_memo()))


def _would_ask(optimizer: Optimizer, queries: Sequence[Query]) -> bool:
    """Whether these are the next queries, up to rounding, which may differ between machines."""
    proposed = optimizer._next_batch()
    return len(proposed) == len(queries) and all(
        kind == query.kind
        and query.iteration == optimizer.iteration
        and np.allclose(optimizer.evaluated(x), query.x, rtol=1e-6, atol=1e-6 * float(np.abs(query.x).max()))
        for (x, kind), query in zip(proposed, queries, strict=True)
    )
