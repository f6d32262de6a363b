"""`gibo init`, `ask`, `tell`, `status`, `best` and `export`: a run driven by a person or another program."""

from __future__ import annotations

import argparse
import csv
import json
import math
import re
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibo._checks import printable
from gibo.cli import complain, say
from gibo.errors import InputError

if TYPE_CHECKING:
    from gibo._linalg import Array
    from gibo.outcome import Best, Query
    from gibo.runs.journal import Journal

EXAMPLE = """
A file of parameters:

    minimize = true              # optional; so are method, seed and [settings]

    [parameters.gain]
    start = 1.0
    scale = 0.2                  # by how much it must change to matter, roughly
    lower = 0.0                  # optional
    upper = 5.0

    [parameters.damping]
    start = 0.1
    scale = 0.05
"""


def add_commands(commands: Any) -> None:
    """Add these commands to the command line."""
    init = commands.add_parser(
        "init",
        help="begin a run whose evaluations you make yourself",
        description="Begin a run whose evaluations you, or your program, make: then gibo ask, gibo tell, and so on.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    init.set_defaults(run=_init)
    init.add_argument("folder", type=Path, metavar="RUN", help="a new folder")
    init.add_argument("--parameters", type=Path, metavar="FILE", help="a TOML file with named parameters; see below")
    init.add_argument("--dim", type=int, metavar="N", help="or: the number of parameters")
    init.add_argument("--x0", metavar="LIST", help="where they start, such as --x0=-0.5,1,2 (default: all 0)")
    init.add_argument("--scale", metavar="LIST", help="by how much they must change to matter (default: 1)")
    init.add_argument("--lower", metavar="LIST", help="lower bounds; a number, or one per parameter")
    init.add_argument("--upper", metavar="LIST", help="upper bounds")
    init.add_argument("--minimize", action="store_true", help="small values are good (default: large ones)")
    init.add_argument("--method", default=None, help="gibo (default), ars, cma-es, vanilla-bo or random-search")
    init.add_argument("--seed", type=int, metavar="N", default=None, help="of all random choices (default: 0)")

    ask = commands.add_parser("ask", help="print the queries to evaluate next; the same ones until they are told")
    ask.set_defaults(run=_ask)
    tell = commands.add_parser("tell", help="report the value of a query")
    tell.set_defaults(run=_tell)
    status = commands.add_parser("status", help="how a run stands, also while it is running")
    status.set_defaults(run=_status)
    best = commands.add_parser("best", help="the parameters that the optimiser recommends")
    best.set_defaults(run=_best)
    export = commands.add_parser("export", help="every query and value as a table")
    export.set_defaults(run=_export)
    for command in (ask, tell, status, best, export):
        command.add_argument("folder", type=Path, metavar="RUN")
    for command in (ask, status, best):
        command.add_argument("--json", action="store_true", help="for programs: all digits")
    tell.add_argument("id", metavar="ID", help="the query's number")
    tell.add_argument("value", nargs="?", metavar="VALUE", help="what its evaluation gave")
    tell.add_argument(
        "--failed", nargs="?", const="failed", metavar="REASON", help="there is no value; the search goes on without it"
    )
    export.add_argument("--csv", action="store_true", help="comma-separated values (the default)")
    export.add_argument("--out", type=Path, metavar="FILE", help="write to this file (default: standard output)")


def _init(arguments: argparse.Namespace) -> int:
    from gibo.runs.manual import Description, create, read_description

    if (arguments.parameters is None) == (arguments.dim is None):
        raise InputError("init: give --dim N, or --parameters FILE")
    if arguments.parameters is not None:
        given = ("x0", "scale", "lower", "upper", "minimize", "method", "seed")
        for name in given:
            if getattr(arguments, name) not in (None, False):
                raise InputError(f"--{name}: with --parameters, say it in the file")
        description = read_description(arguments.parameters)
    else:
        d = arguments.dim
        if d < 1:
            raise InputError(f"--dim: expected at least 1, got {d}")
        description = Description(
            names=[f"x{i}" for i in range(d)],
            start=_numbers("--x0", arguments.x0, d, 0.0),
            scale=_numbers("--scale", arguments.scale, d, 1.0),
            lower=_numbers("--lower", arguments.lower, d, -math.inf),
            upper=_numbers("--upper", arguments.upper, d, math.inf),
            method=arguments.method or "gibo",
            minimize=arguments.minimize,
            seed=0 if arguments.seed is None else arguments.seed,
        )
    create(arguments.folder, description)
    say(f"{arguments.folder}: {len(description.names)} parameters; next: gibo ask {arguments.folder}")
    return 0


def _ask(arguments: argparse.Namespace) -> int:
    from gibo.runs.manual import ask

    queries, names = ask(arguments.folder, _say_waiting)
    if arguments.json:
        say(json.dumps({"queries": [_plain_query(query, names) for query in queries]}, indent=1))
    else:
        _print_table([["id", "kind", *names], *([query.id, query.kind, *query.x.tolist()] for query in queries)])
    return 0


def _tell(arguments: argparse.Namespace) -> int:
    from gibo.runs.manual import tell

    if not re.fullmatch(r"\d{1,15}", arguments.id):
        raise InputError(f"ID: expected a query's number, as gibo ask shows it, got {arguments.id.strip()!r}")
    value = None
    if arguments.value is not None:
        if "_" in arguments.value:  # Python would take 1_5 for 15
            raise InputError(f"VALUE: expected a number, got {arguments.value!r}; or --failed")
        try:
            value = float(arguments.value)
        except ValueError:
            raise InputError(f"VALUE: expected a number, got {arguments.value!r}; or --failed") from None
    tell(arguments.folder, int(arguments.id), value, arguments.failed, _say_waiting)
    return 0


def _status(arguments: argparse.Namespace) -> int:
    from gibo.runs.manual import status

    s = status(arguments.folder, _learns)
    last = s.starts[-1] if s.starts else None
    if arguments.json:
        plain = {
            "optimizer": s.optimizer,
            "minimize": s.minimize,
            "evaluations": s.evaluations,
            "failures": s.failures,
            "iteration": s.iteration,
            "pending": [_plain_query(query, s.names) for query in s.pending],
            "best": _plain_best(s.best, s.names),
            "best_seen": _plain_best(s.best_seen, s.names),
            "iterate": _named(s.iterate, s.names),
            "probability_of_ascent": s.probability_of_ascent,
            "reason": None if last is None else last.reason,
        }
        say(json.dumps(plain, indent=1))
        return 0
    goal = "minimising" if s.minimize else "maximising"
    say(f"{s.optimizer}, {goal} over {len(s.names)} parameters: {printable(', '.join(s.names))}")
    say(f"{s.evaluations} evaluations ({s.failures} failed), {len(s.pending)} queries pending, iteration {s.iteration}")
    if s.best is not None:
        say(f"value {s.best.value:.6g} by the model at the recommended point (gibo best)")
    if s.best_seen is not None:
        say(f"best value seen {s.best_seen.value:.6g}")
    if s.probability_of_ascent is not None:
        say(f"last step: the model's probability of ascent was {s.probability_of_ascent:.2f}")
    if last is not None:
        when = datetime.fromtimestamp(last.started).isoformat(sep=" ", timespec="seconds")
        say(f"last start {when}, process {last.process} on {last.host}: {last.reason or 'running, or it was killed'}")
    return 0


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


def _export(arguments: argparse.Namespace) -> int:
    from gibo.runs.manual import table

    rows = table(arguments.folder)
    if arguments.out is None:
        csv.writer(sys.stdout, lineterminator="\n").writerows([_shown(row) for row in rows])
        return 0
    with arguments.out.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([_shown(row) for row in rows])
    say(f"{len(rows) - 1} rows: {arguments.out}")
    return 0


def _shown(row: list[Any]) -> list[Any]:
    return [printable(cell, lines=True) if isinstance(cell, str) else cell for cell in row]


def _learns(journal: Journal) -> Any:
    """What learnt between the iterations, if it is a run of gibo train."""
    if journal.spec().training is None:
        return None
    from gibo.training.training import normalizer_of

    return normalizer_of(journal)


def _say_waiting() -> None:
    complain("another process works on this run; waiting for it")


def _numbers(name: str, text: str | None, d: int, default: float) -> list[float]:
    """d numbers from a comma-separated option; a single one stands for all."""
    if text is None:
        return [default] * d
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{name}: expected a number, or {d} separated by commas, got {text!r}") from None
    if len(numbers) not in (1, d):
        raise InputError(f"{name}: expected a number, or {d} separated by commas, got {len(numbers)}")
    return numbers * d if len(numbers) == 1 else numbers


def _named(x: Array, names: list[str]) -> dict[str, float]:
    return dict(zip(names, x.tolist(), strict=True))


def _plain_query(query: Query, names: list[str]) -> dict[str, Any]:
    head = {"id": query.id, "kind": query.kind, "iteration": query.iteration, "seed": query.seed}
    return {**head, "x": query.x.tolist(), "parameters": _named(query.x, names)}


def _plain_best(best: Best | None, names: list[str]) -> dict[str, Any] | None:
    return None if best is None else {"value": best.value, "parameters": _named(best.x, names)}


def _print_table(rows: list[list[Any]]) -> None:
    texts = [[f"{item:.10g}" if isinstance(item, float) else printable(str(item)) for item in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for row in texts:
        say("  ".join(item.rjust(width) for item, width in zip(row, widths, strict=True)))
