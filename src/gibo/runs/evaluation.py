"""One evaluation of an objective, wherever it runs: nothing gets out of it by raising."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, NamedTuple

from gibo._checks import describe_error
from gibo.errors import InputError
from gibo.outcome import Outcome, Query, checked

Objective = Callable[..., Any]


class Underway(NamedTuple):
    """An evaluation that is being made: of which query, on which worker (None: it has no name), since when."""

    query: int
    worker: str | None
    since: float


def evaluate(
    objective: Objective,
    query: Query,
    options: dict[str, Any],
    interruptible: AbstractContextManager[None] | None = None,
) -> Outcome:
    """Call the objective and turn whatever happens into an `Outcome`; only KeyboardInterrupt gets out.

    An objective with a parameter named ``seed`` gets the query's, and one with a parameter named ``kind`` its kind.
    The call, and nothing else, is made in the context that is given.
    """
    options = {**options, **_asked_for(objective, {"seed": query.seed, "kind": query.kind})}
    call = partial(objective, **options) if options else objective
    returned: list[Any] = []
    started = time.perf_counter()
    try:
        with interruptible or nullcontext():
            # What the objective returns is kept in the same breath: no Ctrl-C comes between the two.
            returned.extend(map(call, (query.x.copy(),)))
    except KeyboardInterrupt:
        if not returned:
            raise
    except BaseException as error:  # whatever else an objective raises must not end the run
        return Outcome.failed(error, time.perf_counter() - started)
    seconds = time.perf_counter() - started
    try:
        return checked(returned[0], len(query.x), "the objective's value", seconds)
    except InputError as error:
        return Outcome.failed(str(error), seconds)
    except Exception as error:  # what an Outcome holds is a stranger's
        return Outcome.failed(f"the objective's outcome: {describe_error(error)}", seconds)


def _asked_for(objective: Objective, offered: dict[str, Any]) -> dict[str, Any]:
    """Of what is offered, that for which the objective has a parameter of that name."""
    try:
        parameters = inspect.signature(objective).parameters
    except (TypeError, ValueError):  # builtins may have no signature
        return {}
    by_name = {name for name, each in parameters.items() if each.kind is not inspect.Parameter.POSITIONAL_ONLY}
    return {name: value for name, value in offered.items() if name in by_name}
