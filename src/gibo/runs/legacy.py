"""Converts journals of earlier versions of gibo; the only module that knows them.

    version 1   facts called "share" and "task"; points from elsewhere called "told"; a query could be recorded before
                its batch; memos had neither the iterate nor the number of evaluations
    version 2   the facts of version 1
    settings    before gibo 1.0 they had other names, and so had the ends of a parameter's range

Rows of versions 1 and 2 are read as rows of the present version. The first write to such a journal converts it, in one
transaction. If a run cannot continue exactly, it continues from its recorded values and its iterate, and says so.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from gibo._checks import as_vector
from gibo._serialize import from_plain, to_plain
from gibo.errors import GiboError, InputError
from gibo.optimizers.base import Optimizer
from gibo.optimizers.log import Asked, Event, last_memo
from gibo.optimizers.settings import Settings
from gibo.optimizers.state import load, repeat
from gibo.outcome import EXTERNAL
from gibo.runs.spec import AFTER, start_again

Rows = list[tuple[Any, ...]]

OLD_FACTS = {"share": "quorum", "task": "training"}
OLD_EXTERNAL = "told"
OLD_ENDS = {"low": "lower", "high": "upper"}  # of a parameter's range
# Settings whose name or meaning has changed, and those that have no counterpart.
OLD_NAMES = {
    "sampling",
    "least_share",
    "least_gain",
    "plan_steps",
    "basis",
    "fit_after_iterate",
    "normalization",
    "step",
}
OLD_NAMES |= {"move", "beta", "warp", "fit_at", "scale_search", "patience", "remember", "M_first"}
SURELY_OLD = {"sampling", "normalization", "scale_search"}
ROUGHLY = (
    "this version of gibo cannot use the optimiser's memo: the run continues from its recorded values and its "
    "iterate, and may ask other queries than it would have"
)


def upgraded(tables: dict[str, Rows]) -> dict[str, Rows]:
    """All rows of a journal of version 1 or 2 as rows of the present version."""
    batches = [_batch(row, tables["evaluations"]) for row in tables["batches"]]
    asked = {first + i for _, _, first, size, *_ in batches for i in range(size)}
    queries = [(n, m, EXTERNAL if kind == OLD_EXTERNAL else kind, *rest) for n, m, kind, *rest in tables["queries"]]
    return {
        **tables,
        "facts": [(OLD_FACTS.get(name, name), content) for name, content in tables["facts"]],
        "batches": batches,
        "queries": [row for row in queries if row[0] in asked or row[2] == EXTERNAL],
    }


def _batch(row: tuple[Any, ...], evaluations: Rows) -> tuple[Any, ...]:
    *head, first, size, at, iterate, thought = row
    told = max((number + 1 for number, query, *_ in evaluations if query < first), default=0)
    memo = {AFTER: told, **json.loads(thought)}
    if memo.keys() != {AFTER}:
        memo = {"iterate": json.loads(iterate), **memo}
    return (*head, first, size, at, iterate, json.dumps(memo))


# -- facts ------------------------------------------------------------------------------------------------------------


def current_facts(facts: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Facts with the present names of parameters' fields and of settings, and settings without a counterpart."""
    lost: list[str] = []
    plain = _current(facts, lost)
    if isinstance(tables := plain.get("parameters"), dict):
        named = {name: table for name, table in tables.items() if isinstance(table, dict)}
        tables |= {name: {OLD_ENDS.get(key, key): x for key, x in each.items()} for name, each in named.items()}
    return plain, lost


def _current(data: Any, lost: list[str]) -> Any:
    """Plain data with the present names of all settings; the names of settings without a counterpart go to `lost`."""
    if not isinstance(data, dict):
        return data
    plain = {}
    for name, part in data.items():
        plain[name] = _current(part, lost)
    if plain.get("type") != Settings.__name__:
        return plain
    plain.setdefault("survey", 0)  # earlier versions had none
    if SURELY_OLD & plain.keys():
        plain, gone = _renamed(plain)
        lost += gone
    present: dict[str, Any] = to_plain(Settings())
    lost += sorted(plain.keys() - present.keys())
    for name in present.keys() & plain.keys():
        present[name] = plain[name]
    return present


def _renamed(old: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Settings before gibo 1.0 under their present names, and the names of those that have no effect any more.

    Later settings get the behaviour of that time: a gradient step, and a fit before the queries.
    """
    new = {name: part for name, part in old.items() if name not in OLD_NAMES and part is not None}
    rule = {"step": old.get("step"), "normalization": old.get("normalization")}
    ends = {name: old.get(name) for name in ("least_share", "least_gain", "plan_steps")}
    if old.get("move") == "bound":
        new["move"] = {"type": "BoundStep", "beta": old.get("beta", 0.5)}
    else:
        new["move"] = {"type": "GradientStep"} | {name: part for name, part in rule.items() if part is not None}
    if old.get("sampling") == "random":
        new["queries"] = {"type": "RandomQueries"}
    else:
        basis = old.get("basis") or "axes"
        ends = {"plan_steps": 60} | {name: part for name, part in ends.items() if part is not None}
        new["queries"] = {"type": "Informative", "basis": basis, **ends}
    new["fit_at"] = "iterate" if old.get("fit_after_iterate") else "step" if old.get("fit_at") == "step" else "queries"
    new["warp"] = old.get("warp") == "chosen"
    new["only_evaluated"] = bool(old.get("remember"))
    new["M_first"] = old.get("M_first") or 1
    if not old.get("scale_search"):
        new["scale_rule"] = None
    new.setdefault("delta", 1.0)
    new.setdefault("caution", 0.0)
    gone = [name for name in ("patience", "correlation") if old.get(name)]
    new.pop("correlation", None)
    return to_plain(from_plain(new)), gone


# -- a run that cannot go on exactly ----------------------------------------------------------------------------------


def replay(optimizer: Optimizer, events: Sequence[Event]) -> list[str]:
    """Bring a new optimiser to the end of events, exactly or, if that is impossible, approximately; returns a note."""
    try:
        optimizer.replay(events)
    except InputError:
        start_again(optimizer, optimizer.arguments())
        replay_roughly(optimizer, events)
        return [ROUGHLY]
    return []


def replay_roughly(optimizer: Optimizer, events: Sequence[Event]) -> None:
    """Bring a new optimiser to the end of events, with the iterate of the last memo and its usable parts.

    An optimiser without memos takes the recorded queries as its own.
    """
    last = last_memo(events)
    for i, event in enumerate(events):
        if i < last:
            load(optimizer, event)
        elif not isinstance(event, Asked):
            repeat(optimizer, event)
        else:
            if event.memo is not None and "iterate" in event.memo:
                optimizer._iterate = as_vector("iterate", event.memo["iterate"], optimizer.d)
            else:
                optimizer.settle()
                optimizer._propose()
            optimizer._iteration = event.queries[0].iteration
            optimizer.log.ask(event)
            with suppress(GiboError, LookupError, TypeError, ValueError):  # hyperparameters in the present form
                optimizer._recall({name: part for name, part in (event.memo or {}).items() if name != "step"})
