"""`gibo status` and `gibo best`: how runs stand, of any kind, also while they are running."""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibo._checks import printable
from gibo.cli import columns, say
from gibo.cli.train import trial_folders
from gibo.errors import InputError

if TYPE_CHECKING:
    from gibo._linalg import Array
    from gibo.outcome import Best, Query
    from gibo.runs.journal import Journal
    from gibo.runs.manual import Status

WORDS = """
probability of ascent  the model's own probability that the objective rises along the step that it made; 0.5 is a guess.
                       It takes its lengthscales and noise for known, so it is optimistic.
certainty              how sure the model is that the gradient is not zero: near 1 there is a slope and its direction is
                       known; low values in a row mean that the search has arrived, or that the noise hides the slope.
intervals              hold the value without noise with a probability of 90 %, by the model.
"""
SHOWN = 12  # names of parameters
LAST = 10  # returns that are averaged


def add_commands(commands: Any) -> None:
    """Add these commands to the command line."""
    status = commands.add_parser(
        "status",
        help="how a run stands, also while it is running",
        description="How a run stands, also while it is running; of a folder of gibo train, all of its trials.",
        epilog=WORDS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    status.set_defaults(run=_status)
    best = commands.add_parser("best", help="the parameters that the optimiser recommends")
    best.set_defaults(run=_best)
    for command in (status, best):
        command.add_argument("folder", type=Path, metavar="RUN")
        command.add_argument("--json", action="store_true", help="for programs: all digits")


def _status(arguments: argparse.Namespace) -> int:
    from gibo.runs.manual import status

    found = {folder: status(folder, _learns) for folder in trial_folders(arguments.folder)}
    if arguments.json:
        plain = [_plain(s) for s in found.values()]
        alone = list(found) == [arguments.folder]
        trials = [{"folder": str(folder), **each} for folder, each in zip(found, plain, strict=True)]
        say(json.dumps(plain[0] if alone else {"trials": trials}, indent=1))
    elif len(found) == 1:
        _say_one(*found.values())
    else:
        head = ["trial", "state", "evaluations", "failed", "at first", f"last {LAST}", "best seen", "verdict"]
        columns([head, *(_row(folder, s) for folder, s in found.items())])
    return 0


def _say_one(s: Status) -> None:
    from gibo.runs.advice import estimate

    goal = "minimising" if s.minimize else "maximising"
    say(f"{s.optimizer}, {goal} over {len(s.names)} parameters: {printable(short(s.names))}")
    say(f"{s.evaluations} evaluations ({s.failures} failed), {len(s.pending)} queries pending, iteration {s.iteration}")
    for advice in s.advice:
        say(printable(advice.text))
    if s.best is not None:
        say(
            f"value {estimate(s.best) or format(s.best.value, '.6g')} by the model at the recommended point (gibo best)"
        )
    if s.best_seen is not None:
        say(f"best value seen {s.best_seen.value:.6g}")
    if s.returns[1]:
        first, last, best = _returns(s)
        say(f"{s.what}: {first:.6g} at first, {last:.6g} on average of the last {LAST}, best {best:.6g}")
    if s.probability_of_ascent is not None and s.certainty is not None and "all_alike" not in _codes(s):
        say(f"last step: probability of ascent {s.probability_of_ascent:.2f}, certainty {s.certainty:.2f} (see --help)")
    if s.starts:
        start = s.starts[-1]
        when = datetime.fromtimestamp(start.started).isoformat(sep=" ", timespec="seconds")
        say(f"last start {when}, process {start.process} on {start.host}: {start.reason or s.state}")


def _row(folder: Path, s: Status) -> list[Any]:
    first, last, best = _returns(s) if s.returns[1] else ("", "", "")
    return [folder.name, s.state, s.evaluations, s.failures, first, last, best, _codes(s)[0].replace("_", " ")]


def _returns(s: Status) -> tuple[float, float, float]:
    """The first one at an iterate, the mean of the last ones there, and the best of all."""
    at_iterates = s.returns[0] or s.returns[1]
    return at_iterates[0], statistics.fmean(at_iterates[-LAST:]), (min if s.minimize else max)(s.returns[1])


def _codes(s: Status) -> list[str]:
    return [advice.code for advice in s.advice]


def _plain(s: Status) -> dict[str, Any]:
    return {
        "optimizer": s.optimizer,
        "minimize": s.minimize,
        "state": s.state,
        "evaluations": s.evaluations,
        "failures": s.failures,
        "iteration": s.iteration,
        "pending": [plain_query(query, s.names) for query in s.pending],
        "best": _plain_best(s.best, s.names),
        "interval": None if s.best is None else s.best.interval,
        "best_seen": _plain_best(s.best_seen, s.names),
        "iterate": named(s.iterate, s.names),
        "probability_of_ascent": s.probability_of_ascent,
        "certainty": s.certainty,
        "advice": [{"code": advice.code, "text": advice.text} for advice in s.advice],
        "reason": s.starts[-1].reason if s.starts else None,
    }


def _best(arguments: argparse.Namespace) -> int:
    from gibo.runs.manual import status

    s = status(arguments.folder, _learns)
    if s.best is None:
        raise InputError(f"{arguments.folder}: no evaluation has a value yet")
    if arguments.json:
        best = {"best": _plain_best(s.best, s.names), "best_seen": _plain_best(s.best_seen, s.names)}
        say(json.dumps(best, indent=1))
        return 0
    say(f"value {s.best.value:.6g} by the model at")
    for name, number in zip(s.names, s.best.x.tolist(), strict=True):
        say(f"  {printable(name)} = {number!r}")
    if s.best_seen is not None:
        say(f"best value seen {s.best_seen.value:.6g}")
    return 0


def _learns(journal: Journal) -> Any:
    """What learnt between the iterations, if it is a run of gibo train."""
    if journal.spec().training is None:
        return None
    from gibo.training.training import normalizer_of

    return normalizer_of(journal)


def short(names: Sequence[str]) -> str:
    """Names in a line; of many, the first ones and the last."""
    if len(names) <= SHOWN:
        return ", ".join(names)
    return f"{', '.join(names[:4])}, … {names[-1]}"


def named(x: Array, names: list[str]) -> dict[str, float]:
    """Numbers by name."""
    return dict(zip(names, x.tolist(), strict=True))


def plain_query(query: Query, names: list[str]) -> dict[str, Any]:
    """A query as data for JSON."""
    head = {"id": query.id, "kind": query.kind, "iteration": query.iteration, "seed": query.seed}
    return {**head, "x": query.x.tolist(), "parameters": named(query.x, names)}


def _plain_best(best: Best | None, names: list[str]) -> dict[str, Any] | None:
    return None if best is None else {"value": best.value, "parameters": named(best.x, names)}
