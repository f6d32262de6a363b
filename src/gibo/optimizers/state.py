"""An optimiser as plain JSON data, its constructor's arguments and its log of events, and back by a replay of the log.

    load      takes in an event without computing anything
    recall    takes in a batch and its memo with the results of slow computations
    repeat    repeats the event with all its computations

A replay loads the events up to the last memo, recalls that, and repeats those after it.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any, TypeVar

import numpy as np

from gibo._checks import Box, as_vector, instance, natural, positive_int, shown
from gibo._linalg import single_thread
from gibo._serialize import check_plain, from_plain, to_plain
from gibo.errors import GiboError, InputError
from gibo.optimizers.log import Asked, Event, Iteration, Proceeded, Reparametrized, Started, Stepped, Told, last_memo
from gibo.outcome import EXTERNAL, Outcome, Query, as_block, as_name, checked, read_only

STATE_FORMAT = 2
OTHER_QUERIES = "the replay asks other queries than recorded: another version of gibo or cma?"
Optimizer = Any  # one of `gibo.optimizers.base`, which imports this module

T = TypeVar("T")


@contextmanager
def understood(otherwise: str) -> Iterator[None]:
    """Report invalid data in this block as an error that begins with this text; the data may come from anywhere."""
    try:
        yield
    except GiboError:
        raise
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError) as error:
        raise InputError(f"{otherwise}: {error!r:.120}") from error


def arguments_of(optimizer: object) -> dict[str, Any]:
    """The arguments for `make`: each option from the attribute of the same name."""
    kind = type(optimizer).__name__
    plain: dict[str, Any] = {}
    for name in option_names(type(optimizer)):
        if not hasattr(optimizer, name):
            raise InputError(f"{kind}: keep the option {name!r} in an attribute of that name, so that it can be saved")
        option = getattr(optimizer, name)
        if name == "bounds" and option is not None:
            option = {"lb": option[0], "ub": option[1]}
        try:
            plain[name] = to_plain(option)
        except TypeError as error:
            raise InputError(f"{kind}: the option {name!r} cannot be saved: {error}") from None
    return plain


def make(kind: type[T], arguments: dict[str, Any]) -> T:
    """A new optimiser from the result of `arguments_of`; the data may come from anywhere."""
    given: dict[str, Any] = from_plain(instance("arguments", arguments, dict, "a dictionary"))
    with understood(f"state: the arguments of {kind.__name__}"):
        if given.get("bounds") is not None:
            given["bounds"] = Box(**given["bounds"])
        return kind(**given)


def option_names(kind: type[Any]) -> list[str]:
    """The parameters of a constructor; if it has ``**others``, also those of its base class."""
    names: list[str] = []
    for cls in kind.__mro__:
        if "__init__" not in vars(cls):
            continue
        parameters = list(inspect.signature(vars(cls)["__init__"]).parameters.values())[1:]
        names += [p.name for p in parameters if p.kind is not p.VAR_KEYWORD and p.name not in names]
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            break
    return names


def state_of(optimizer: Optimizer) -> dict[str, Any]:
    """The optimiser as plain JSON data."""
    own = {} if optimizer.baseline is None else {"baseline": optimizer.baseline}
    plain = {"optimizer": type(optimizer).__name__, "format": STATE_FORMAT, "arguments": optimizer.arguments()}
    return {**plain, "events": events_to_plain(optimizer.log.events), **own}


def from_state(kind: type[T], state: dict[str, Any] | str) -> T:
    """The optimiser of this class, or of one derived from it, of a `state_of`, or of its JSON text."""
    with understood("state: not what state() gives"):
        data = json.loads(state) if isinstance(state, str) else state
        check_plain("state", data)
        if data["format"] != STATE_FORMAT:
            raise InputError(f"state: format {shown(data['format'])} is not known to this version of gibo")
        optimizer: Any = kind.from_arguments(data["optimizer"], data["arguments"])  # type: ignore[attr-defined]
        if "baseline" in data:
            optimizer.baseline = positive_int("baseline", data["baseline"])
        optimizer.replay(events_from_plain(data["events"], optimizer.d))
    return optimizer  # type: ignore[no-any-return]


# -- events -----------------------------------------------------------------------------------------------------------


def events_to_plain(events: Sequence[Event]) -> list[list[Any]]:
    """For JSON: what a replay needs. Only the last memo is kept; durations and infos of evaluations are omitted."""
    last = last_memo(events)
    kept = [replace(e, memo=None) if isinstance(e, Asked) and i < last else e for i, e in enumerate(events)]
    return [_event_to_plain(event) for event in kept]


def events_from_plain(data: Any, d: int) -> list[Event]:
    """The inverse of `events_to_plain` for an optimiser of d parameters; everything is checked."""
    with understood("state: expected the events of state()"):
        return [_event_from_plain(name, content, d) for name, content in data]


def _event_to_plain(event: Event) -> list[Any]:
    if isinstance(event, Asked):
        return [
            "asked",
            {"queries": [to_plain(asdict(query)) for query in event.queries], "memo": to_plain(event.memo)},
        ]
    if isinstance(event, Told):
        names = ("value", "gradient", "gradient_noise", "failure")
        outcome = {name: part for name in names if (part := getattr(event.outcome, name)) is not None}
        outcome |= event.outcome.details()
        return ["told", {"query": to_plain(asdict(event.query)), "outcome": to_plain(outcome)}]
    if isinstance(event, Stepped):
        return ["stepped", to_plain(vars(event.record))]
    if isinstance(event, Reparametrized):
        return ["reparametrized", {"transform": to_plain(event.transform), "moves_iterate": event.moves_iterate}]
    if isinstance(event, Started):
        return ["started", to_plain(vars(event))]
    return ["proceeded", {}]


def _event_from_plain(name: str, content: dict[str, Any], d: int) -> Event:
    if name == "asked":
        return asked_from_plain(content, d)
    if name == "told":
        return Told(query_from_plain(content["query"], d), outcome_from_plain(content["outcome"], d))
    if name == "stepped":
        return Stepped(iteration_from_plain(content, d))
    if name == "reparametrized":
        transform = from_plain(content["transform"])
        if not all(callable(getattr(transform, name, None)) for name in ("parameters", "gradients")):
            raise InputError(f"state: expected a transform of parameters, got {type(transform).__name__}")
        return Reparametrized(transform, bool(content["moves_iterate"]))
    if name == "started":
        return started_from_plain(content, d)
    if name == "proceeded":
        return Proceeded()
    raise InputError(f"state: {shown(name)} is no event that this version of gibo knows")


def asked_from_plain(data: dict[str, Any], d: int) -> Asked:
    """A batch and its memo, checked; the optimiser that recalls the memo checks its content."""
    queries, memo = tuple(query_from_plain(query, d) for query in data["queries"]), data["memo"]
    if len({query.iteration for query in queries}) != 1 or any(query.kind == EXTERNAL for query in queries):
        raise InputError("state: expected a batch of one or more queries of one iteration")
    if memo is not None and not isinstance(memo, dict):
        raise InputError(f"state: expected a memo or none, got {type(memo).__name__}")
    return Asked(queries, memo)


def started_from_plain(data: dict[str, Any], d: int) -> Started:
    """A new start, checked."""
    return Started(read_only(as_vector("x", data["x"], d)), natural("iteration", data["iteration"]))


def query_from_plain(data: dict[str, Any], d: int) -> Query:
    """A query, checked."""
    x = read_only(as_vector("x", data["x"], d))
    numbers = [data[name] for name in ("id", "seed", "iteration")]
    if not all(type(n) is int and 0 <= n < 1 << 63 for n in numbers) or not isinstance(data["kind"], str):
        raise InputError("state: expected whole numbers as a query's id, seed and iteration, and a word as its kind")
    block = None if data.get("block") is None else as_block("block", data["block"])
    source = None if data.get("source") is None else as_name("source", data["source"], "a name")
    return Query(data["id"], x, data["seed"], data["kind"][:40], data["iteration"], block, source)


def outcome_from_plain(data: dict[str, Any], d: int) -> Outcome:
    """An outcome, checked; a failure keeps its penalty and its traceback."""
    outcome = Outcome(**{"value": None, **data})
    seconds = outcome.seconds if isinstance(outcome.seconds, (int, float)) else 0.0
    if outcome.value is None:
        failed = checked(replace(outcome, failure=outcome.failure or "failed"), d, seconds=seconds)
        return replace(failed, info=outcome.info or {}, traceback=outcome.traceback)
    return replace(checked(outcome, d, seconds=seconds), traceback=outcome.traceback)


def iteration_from_plain(data: dict[str, Any], d: int) -> Iteration:
    """The record of a step, checked; numbers that are not finite are texts or None in plain data."""
    fields = dict(data)
    for name in ("x", "gradient", "step", "lengthscale"):
        fields[name] = np.array(fields[name], dtype=np.float64)
        if fields[name].shape != (d,):
            raise InputError(f"iteration: {name} has {fields[name].size} numbers, expected {d}")
    for name in ("uncertainty", "probability_of_ascent", "certainty", "variance", "noise", "jitter"):
        fields[name] = np.nan if fields[name] is None else float(fields[name])
    for name in ("number", "evaluations"):
        fields[name] = int(fields[name])
    return Iteration(**fields)


# -- replay ------------------------------------------------------------------------------------------------------------


def replay(optimizer: Optimizer, events: Iterable[Event]) -> None:
    """Replay events; see the module's docstring."""
    events = list(events)
    last = last_memo(events)
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
