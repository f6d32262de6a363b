"""What people do to a whole run: end it and set a safe point on the machine, let it go on, give it another start.

The journal has an action for each (`gibo.runs.records`), so all of it survives a kill. Who calls these functions holds
the journal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gibo._checks import as_vector, instance
from gibo.errors import InputError
from gibo.runs.journal import Journal
from gibo.runs.records import BY_HAND
from gibo.runs.session import Session


def abort(journal: Journal, point: Mapping[str, Any] | None = None, reason: str = "") -> dict[str, float]:
    """End a run; returns what to set on the machine: a point that is safe, the start if none is named."""
    done = abortion(journal, point, reason)
    journal.acted(done)
    journal.begin(journal.last_options())
    journal.end(aborted_because(reason))
    safe = journal.aborted_at()
    assert safe is not None
    return safe


def abortion(journal: Journal, point: Mapping[str, Any] | None, reason: str) -> tuple[str, dict[str, Any]]:
    """The action of `abort`."""
    starts, spec = journal.new_starts(), journal.spec()
    if point is None:  # the start, or the last one that a person gave
        with journal.explained():
            x = as_vector("x0", starts[-1].body["x"] if starts else spec.arguments["x0"])
    else:
        x = spec.naming.point(point)
    return "abort", {"reason": instance("reason", reason, str, "a text"), "x": x.tolist()}


def aborted_because(reason: str) -> str:
    """Why a run ended that was aborted."""
    return f"aborted: {reason}" if reason else "aborted"


def go_on(journal: Journal) -> None:
    """Let a run go on that was aborted."""
    if journal.aborted_at() is None:
        raise InputError(f"{journal.folder}: this run was not aborted")
    journal.acted(("continued", {}))
    if any(start.reason == BY_HAND for start in journal.starts()):  # it waits for somebody to tell again
        journal.begin(journal.last_options())
        journal.end(BY_HAND)


def start_at(journal: Journal, point: Mapping[str, Any]) -> dict[str, float]:
    """Let a run go on from another start, by the names of its parameters; returns it as it can be set.

    The queries that are pending are withdrawn. The new start is recommended until another point is surely better.
    """
    refuse_normalized(journal)
    session = Session.of(journal)
    session.start_at(session.naming.point(instance("point", point, Mapping, "numbers by name")))
    return session.naming(session.optimizer.start)


def refuse_normalized(journal: Journal) -> None:
    """Without the states' statistics, which come with the episodes, such a run would silently become another one."""
    training = journal.spec().training
    if training is not None and training.get("normalize_states"):
        raise InputError(
            f"{journal.folder}: a run of gibo train with normalised states cannot be driven by hand; continue it with "
            "the same command, gibo train ..."
        )
