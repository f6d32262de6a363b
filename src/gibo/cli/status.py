"""`gibo status` and `gibo best`: the state of runs of any kind, also of running ones."""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibo.cli import columns, say, trial_folders
from gibo.errors import InputError, printable
from gibo.outcome import ITERATE

if TYPE_CHECKING:
    from gibo.runs.journal import Journal
    from gibo.runs.manual import Overview

WORDS = """
probability of ascent  the model's probability that the objective rises along the last step (for a run that minimises:
(or of descent)        that it falls); 0.5 is a guess. It is optimistic, because the model treats its lengthscales and
                       noise as known.
certainty              the model's probability that the gradient is not zero. Near 1 the slope and its direction are
                       known. Low values in a row mean that the search has arrived, or that the noise hides the slope.
intervals              contain the value without noise with a probability of 90 % under the model.
"""
SHOWN = 12  # names of parameters
LAST = 10  # returns that are averaged


def add_commands(commands: Any) -> None:
    """Add these commands to the command line."""
    status = commands.add_parser(
        "status",
        help="show the state of a run, also of a running one",
        description="Show the state of a run, also of a running one, or of all trials in a folder of gibo train.",
        epilog=WORDS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    status.set_defaults(run=_status)
    best = commands.add_parser("best", help="show the recommended parameters")
    best.set_defaults(run=_best)
    for command in (status, best):
        command.add_argument("folder", type=Path, metavar="RUN")
        command.add_argument("--json", action="store_true", help="JSON with all digits, for programs")


def _status(arguments: argparse.Namespace) -> int:
    from gibo.runs.manual import status

    found = {folder: status(folder, _learns) for folder in trial_folders(arguments.folder)}
    if arguments.json:
        plain = [s.to_plain() for s in found.values()]
        alone = list(found) == [arguments.folder]
        trials = [{"folder": str(folder), **each} for folder, each in zip(found, plain, strict=True)]
        say(json.dumps(plain[0] if alone else {"trials": trials}, indent=1))
    elif len(found) == 1:
        _say_one(*found.values())
    else:
        head = ["trial", "state", "evaluations", "failed", "at first", f"last {LAST}", "best seen", "verdict"]
        columns([head, *(_row(folder, s) for folder, s in found.items())])
    return 0


def _say_one(s: Overview) -> None:
    from gibo.runs.verdict import estimate

    result, names = s.result, s.spec.naming.names
    goal = "minimising" if s.spec.sign < 0 else "maximising"
    say(f"{s.spec.optimizer}, {goal} over {len(names)} parameters: {printable(short(names))}")
    pending = f", {_count(len(s.pending), 'query', 'queries')} pending" if s.state != "ended" else ""
    told = _count(result.evaluations, "evaluation", "evaluations")
    say(f"{told} ({len(result.failures)} failed){pending}, iteration {result.iterations}")
    for text in (*result.notes, *(advice.text for advice in result.advice)):
        say(printable(text))
    if result.best is not None:
        value = estimate(result.best) or format(result.value, ".6g")
        say(f"value {value}{result.by_model} at the recommended point (gibo best)")
    if result.best_seen is not None:
        say(f"best value seen {result.best_seen.value:.6g}")
    returns = _returns(s)
    if returns is not None:
        what = "values" if s.spec.training is None else "returns of episodes"
        first, last, best = returns
        say(f"{what}: {first:.6g} at first, {last:.6g} on average of the last {LAST}, best {best:.6g}")
    ascent, certainty = s.last_step()
    if ascent is not None and "all_alike" not in _codes(s):
        slope = "descent" if s.spec.sign < 0 else "ascent"
        say(f"last step: probability of {slope} {ascent:.2f}, certainty {certainty:.2f} (see --help)")
    if s.aborted is not None:
        _say_aborted(s.aborted)
    if s.stopping is not None:
        say(s.stopping.text)
    if s.starts:
        start = s.starts[-1]
        when = datetime.fromtimestamp(start.started).isoformat(sep=" ", timespec="seconds")
        say(f"last start {when}, process {start.process} on {start.host}: {start.reason or s.state}")


def _row(folder: Path, s: Overview) -> list[Any]:
    known = [folder.name, s.state, s.result.evaluations, len(s.result.failures)]
    return [*known, *(_returns(s) or ("", "", "")), _codes(s)[0].replace("_", " ")]


def _returns(s: Overview) -> tuple[float, float, float] | None:
    """Values, or returns of a training: the first at an iterate, the mean of the last ones there, the best of all."""
    columns = s.result.columns()
    rows = zip(columns["kind"], columns["value"], columns.get("info.return", columns["value"]), strict=True)
    found = [(kind, value if given is None else given) for kind, value, given in rows if value is not None]
    if not found:
        return None
    every = [float(value) for _, value in found]
    at_iterates = [float(value) for kind, value in found if kind == ITERATE] or every
    return at_iterates[0], statistics.fmean(at_iterates[-LAST:]), (min if s.spec.sign < 0 else max)(every)


def _codes(s: Overview) -> list[str]:
    return [advice.code for advice in s.result.advice]


def _best(arguments: argparse.Namespace) -> int:
    from gibo.runs.manual import status

    s = status(arguments.folder, _learns)
    best, seen, naming = s.result.best, s.result.best_seen, s.spec.naming
    if best is None:
        raise InputError(f"{arguments.folder}: no evaluation has a value yet")
    if arguments.json:
        found = {"best": naming.best(best), "best_seen": naming.best(seen), "aborted": s.aborted}
        say(json.dumps(found, indent=1))
        return 0
    if s.aborted is not None:
        _say_aborted(s.aborted)
    say(f"value {best.value:.6g}{s.result.by_model} at")
    for name, number in naming(best.x).items():
        say(f"  {printable(name)} = {number!r}")
    if seen is not None:
        say(f"best value seen {seen.value:.6g}")
    return 0


def _say_aborted(point: dict[str, float]) -> None:
    values = ", ".join(f"{printable(name)} = {value!r}" for name, value in point.items())
    say(f"aborted: set {values} on the machine")


def _learns(journal: Journal) -> Any:
    """The state normaliser, for a run of gibo train."""
    if journal.spec().training is None:
        return None
    from gibo.training.training import normalizer_of

    return normalizer_of(journal)


def _count(n: int, one: str, several: str) -> str:
    return f"{n} {one if n == 1 else several}"


def short(names: Sequence[str]) -> str:
    """Names in a line; only the first ones and the last one if there are many."""
    if len(names) <= SHOWN:
        return ", ".join(names)
    return f"{', '.join(names[:4])}, … {names[-1]}"
