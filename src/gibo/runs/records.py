"""Who worked on a run, and what people did to it: rows of a journal, checked as all that comes from a file.

A `Start` is a process that worked on the run. An `Action` is something a person did to it, with its time:

    paused, continued, stop   of the whole run
    failed                    {"id", "reason"}: an evaluation that has no value, because somebody said so
    told                      {"id", "value"}: a value that somebody told
    remark                    {"text"}
    correction                {"id", "value", "reason", "was", …}: what was told is something else now
    undo                      {"id", "value", …}: an outcome that does not count any more
"""

from __future__ import annotations

import json
import platform
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

from gibo._checks import describe, finite
from gibo.errors import InputError

# A run that was made by `gibo init` has no process of its own; it waits for somebody to tell.
BY_HAND = "made for evaluations by hand"
# In a batch's memo: how many evaluations there were by then. Without it, a late value counts as told before the batch.
AFTER = "after"
OLD_EXTERNAL = "told"  # the first version's word for a point from elsewhere
LATEST = 1e11  # seconds after 1970; calendars end somewhat later
LARGEST_BODY = 1 << 16  # characters of an action's body as JSON
LONGEST_TEXT = 2000  # characters of a text in it

# Each kind of action, and what its body must have; it may have more.
BODIES: dict[str, dict[str, type]] = {
    "paused": {},
    "continued": {},
    "stop": {},
    "failed": {"id": int, "reason": str},
    "told": {"id": int, "value": float},
    "remark": {"text": str},
    "correction": {"id": int, "reason": str},
    "undo": {"id": int},
}


class Start(NamedTuple):
    """A process that worked on the run."""

    process: int
    host: str
    started: float
    options: dict[str, Any]
    versions: dict[str, str]
    ended: float | None
    reason: str | None


class Action(NamedTuple):
    """What a person did to a run: when, after how many evaluations, and what; made by `action`."""

    time: float
    after: int
    kind: str
    body: dict[str, Any]


def checked_start(start: Start) -> Start:
    """The same, or an error."""
    for at in (start.started, start.ended):
        if at is not None:
            _check_time(at)
    known = isinstance(start.options, dict) and isinstance(start.versions, dict) and isinstance(start.host, str)
    if start.started is None or not known or not isinstance(start.reason, str | None):
        raise ValueError("not what is known of a process")
    return start


def action(at: Any, after: Any, kind: Any, body: Any) -> Action:
    """An action from what somebody says it is, or an error that says what is wrong with it."""
    if kind not in BODIES:
        raise InputError(f"action: expected one of {', '.join(BODIES)}, got {describe(kind)}")
    if not isinstance(body, dict):
        raise InputError(f"{kind}: expected an object, got {describe(body)}")
    for name, wanted in BODIES[kind].items():
        found = body.get(name)
        if isinstance(found, bool) or not isinstance(found, (int, float) if wanted is float else wanted):
            what = {int: "a whole number", float: "a number", str: "a text"}[wanted]
            raise InputError(f"{kind}.{name}: expected {what}, got {describe(found)}")
        if isinstance(found, str) and len(found) > LONGEST_TEXT:
            raise InputError(f"{kind}.{name}: expected at most {LONGEST_TEXT} characters, got {len(found)}")
        if wanted is float:
            finite(f"{kind}.{name}", found)
    try:
        size = len(json.dumps(body, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{kind}: expected plain data, got {str(error)[:80]}") from None
    if size > LARGEST_BODY:
        raise InputError(f"{kind}: expected at most {LARGEST_BODY} characters as JSON, got {size}")
    if isinstance(after, bool) or not isinstance(after, int) or after < 0:
        raise InputError(f"{kind}: expected a number of evaluations, got {describe(after)}")
    return Action(_check_time(at), after, kind, body)


def _check_time(at: Any) -> float:
    if not 0.0 <= finite("a time", at) < LATEST:
        raise ValueError("no time at which anybody could have done something")
    return float(at)


@cache
def versions() -> dict[str, str]:
    """What computes here, for the record; looked up once, because it is slow."""
    from importlib.metadata import PackageNotFoundError, version  # here, because it is slow to load

    found = {"python": platform.python_version(), "platform": platform.platform()}
    for name in ("gibo", "numpy", "scipy", "cma", "gymnasium", "mujoco"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
