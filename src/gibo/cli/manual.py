"""`gibo init`, `ask`, `tell`, `undo`, `import`, `start`, `abort` and `export`: a run by hand."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibo.cli import columns, complain, look_here, number_of, numbers, say, say_done
from gibo.errors import InputError, printable

if TYPE_CHECKING:
    from gibo.runs.journal import Journal

EXAMPLE = """
A file of parameters:

    minimize = true              # or false: large values are good
    budget = 60                  # optional, also: target, baseline, method, seed and [settings]
    careful = true               # optional: queries also keep to the limits

    [parameters.gain]
    start = 1.0
    scale = 0.2                  # the change that has a clear effect, roughly
    lower = 0.0                  # optional
    upper = 5.0

    [parameters.damping]
    start = 0.1
    scale = 0.05

    [sources]                    # optional: costs of an evaluation in a simulator and on the machine
    simulator = 1
    robot = 50

    [limits.torque]              # optional: a quantity that is measured with each value
    upper = 4.0                  # lower, upper, or both

With a kind, a parameter can have a log scale or be a whole number; start and scale are then optional:

    [parameters.gain]
    kind = "log"                 # or "linear", "integer"; "free" has start and scale instead
    lower = 0.1
    upper = 100
"""


def add_commands(commands: Any) -> None:
    """Add these commands to the command line."""
    _add_init(commands)

    def added(name: str, run: Callable[[argparse.Namespace], int], text: str, description: str = "") -> Any:
        command = commands.add_parser(name, help=text, description=description or text)
        command.set_defaults(run=run)
        command.add_argument("folder", type=Path, metavar="RUN")
        return command

    ask = added("ask", _ask, "print the pending queries; the next ones follow when all have a value")
    ask.add_argument("--json", action="store_true", help="JSON with all digits, for programs")

    tell = added("tell", _tell, "record the value of a query, or correct it")
    tell.add_argument("id", metavar="ID", help="the query's number; omit it with --at")
    tell.add_argument("value", nargs="?", metavar="VALUE", help="the value of its evaluation")
    tell.add_argument(
        "--at", metavar="NAME=X,...", help="a point of your own: gibo tell RUN --at gain=2.5,delay=3 VALUE"
    )
    tell.add_argument(
        "--correct", metavar="REASON", help="replace a wrong value; the journal keeps both values and the reason"
    )
    tell.add_argument(
        "--failed",
        nargs="?",
        const="failed",
        metavar="REASON",
        help="the evaluation gave no value; the search continues without it",
    )
    tell.add_argument("--repeats", type=int, metavar="N", help="VALUE is the mean of N evaluations")
    tell.add_argument("--noise", type=float, metavar="V", help="the variance of VALUE's noise, if known")
    tell.add_argument(
        "--block", metavar="NAME", help="a group of evaluations with a common shift, such as a day: a name or a number"
    )
    tell.add_argument("--source", metavar="NAME", help="where it was evaluated, to check that against the query")
    tell.add_argument(
        "--measured", metavar="NAME=X,...", help="quantities measured with VALUE; quantities with limits are required"
    )

    undo = added(
        "undo",
        _undo,
        "take back the last values",
        "Take back the last values. This works until the next queries are asked. The queries are then pending "
        "again, and points of your own are removed. The journal keeps the values that were taken back.",
    )
    undo.add_argument("count", nargs="?", type=int, default=1, metavar="N", help="number of values (default: 1)")
    undo.add_argument("--reason", metavar="TEXT", help="why, for the record")

    load = added(
        "import",
        _import,
        "add values of points of your own from a CSV file",
        "Add values of points that the run did not ask for. The first line of the file has the names of the "
        "parameters and value, as gibo export writes it; the columns noise, repeats and block are optional. Other "
        "columns, rows without a value and rows that the run already has are skipped. If the file is imported "
        "before the first gibo ask, the search starts at its best point.",
    )
    load.add_argument("file", type=Path, metavar="FILE")
    load.add_argument("--again", action="store_true", help="also import rows that the run already has")

    start = added(
        "start",
        _start,
        "continue the search from another start",
        "Continue the search from another start. Pending queries are withdrawn, and all values are kept. The new start "
        "is recommended until another point is surely better.",
    )
    start.add_argument("--at", metavar="NAME=X,...", required=True, help="the new start")

    abort = added(
        "abort",
        _abort,
        "end a run and print a safe point for the machine",
        "End a run by hand and print the safe point to set on the machine: the start, or the point of --at. "
        "The journal records it.",
    )
    abort.add_argument("--at", metavar="NAME=X,...", help="the safe point (default: the start)")
    abort.add_argument("--reason", metavar="TEXT", default="", help="why, for the record")
    abort.add_argument("--revoke", action="store_true", help="continue an aborted run")

    export = added("export", _export, "write all queries and values as a table")
    export.add_argument(
        "--format",
        choices=("csv", "json", "parquet"),
        help="(default: by the ending of the file, else csv); parquet needs polars, or pandas with pyarrow",
    )
    export.add_argument("--out", type=Path, metavar="FILE", help="write to this file (default: standard output)")


def _add_init(commands: Any) -> None:
    from gibo.optimizers import methods_text

    init = commands.add_parser(
        "init",
        help="begin a run that you evaluate",
        description="Begin a run that you or your program evaluate. Then use gibo ask and gibo tell.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    init.set_defaults(run=_init)
    init.add_argument("folder", type=Path, metavar="RUN", help="a new folder")
    init.add_argument("--parameters", type=Path, metavar="FILE", help="a TOML file with named parameters; see below")
    init.add_argument("--dim", type=int, metavar="N", help="without FILE: the number of parameters")
    init.add_argument("--x0", metavar="LIST", help="start values, such as --x0=-0.5,1,2 (default: all 0)")
    init.add_argument("--scale", metavar="LIST", help="the change of a parameter that has a clear effect (default: 1)")
    init.add_argument("--lower", metavar="LIST", help="lower bounds; a number, or one per parameter")
    init.add_argument("--upper", metavar="LIST", help="upper bounds")
    goal = init.add_mutually_exclusive_group()
    goal.add_argument("--minimize", action="store_true", default=None, help="small values are good")
    goal.add_argument("--maximize", dest="minimize", action="store_false", default=None, help="large values are good")
    init.add_argument(
        "--budget", type=int, metavar="N", help="number of evaluations after which gibo says that you may stop"
    )
    init.add_argument(
        "--target", type=float, metavar="VALUE", help="value of the model at which gibo says that you may stop"
    )
    init.add_argument("--baseline", type=int, metavar="N", help="evaluate the start again every N iterations")
    init.add_argument("--method", metavar="NAME", help=f"{methods_text()} (default: gibo)")
    init.add_argument("--seed", type=int, metavar="N", help="seed of all random choices (default: 0)")
    init.add_argument(
        "--prior-run", metavar="RUN", help="an earlier run, of a simulator: its values are the model's prior mean"
    )


def _init(arguments: argparse.Namespace) -> int:
    from gibo.optimizers import load_method
    from gibo.runs.description import Description, read_description
    from gibo.runs.manual import create

    look_here(arguments.method or "")
    options = {name: getattr(arguments, name) for name in ("minimize", "budget", "target", "baseline", "seed")}
    options |= {"prior_run": arguments.prior_run, "method": arguments.method and load_method(arguments.method)}
    options = {name: option for name, option in options.items() if option is not None}
    d = arguments.dim
    if arguments.parameters is not None:
        for name in ("dim", "x0", "scale", "lower", "upper"):
            if getattr(arguments, name) is not None:
                raise InputError(f"--{name}: with --parameters, state it in the file")
        description = read_description(arguments.parameters, **options)
    elif d is None or d < 1:
        raise InputError("init: give --dim N, the number of parameters, or --parameters FILE")
    elif arguments.minimize is None:
        raise InputError("init: give --minimize (small values are good) or --maximize (large values are good)")
    else:
        start, scale = numbers("--x0", arguments.x0 or "0", d), numbers("--scale", arguments.scale or "1", d)
        lower, upper = numbers("--lower", arguments.lower or "-inf", d), numbers("--upper", arguments.upper or "inf", d)
        description = Description([f"x{i}" for i in range(d)], start, scale, lower, upper, **options)
    create(arguments.folder, description)
    goal = "minimising" if description.minimize else "maximising"
    names = f"{len(description.names)} parameter{'' if len(description.names) == 1 else 's'}"
    say_done(f"{arguments.folder}: {goal} over {names}; next: gibo ask {arguments.folder}")
    return 0


def _ask(arguments: argparse.Namespace) -> int:
    from gibo.runs.manual import ask

    queries, naming, stopping = ask(arguments.folder, _say_waiting)
    over = None if stopping is None or stopping.code == "go_on" else stopping.text
    plain = [naming.query(query) for query in queries]
    if arguments.json:
        say(json.dumps({"queries": plain, "may_stop": over}, indent=1))
        return 0
    head = [name for name in ("id", "kind", "source", "block") if name in plain[0]]  # of a batch, all have the same
    rows: list[list[Any]] = [[*head, *naming.names]]
    for query in plain:
        rows.append([*map(query.get, head), *query["x"]])
    columns(rows)
    if over is not None:
        complain(over)
    return 0


def _tell(arguments: argparse.Namespace) -> int:
    from gibo.runs.manual import correct, tell

    if arguments.at is not None:
        return _tell_elsewhere(arguments)
    if not re.fullmatch(r"\d{1,15}", arguments.id):
        raise InputError(f"ID: expected a query's number, as gibo ask shows it, got {arguments.id.strip()!r}")
    value = (
        None if arguments.value is None else number_of("VALUE", arguments.value, "; if it failed, use --failed REASON")
    )
    number, failed = int(arguments.id), arguments.failed
    record = tell if arguments.correct is None else partial(correct, reason=arguments.correct)
    recorded = record(arguments.folder, number, value, failed=failed, waiting=_say_waiting, **_details(arguments))
    what = f"query {number}: {repr(value) if failed is None else failed}"
    n = len(recorded.pending)
    pending = (
        f"{n} quer{'y' if n == 1 else 'ies'} pending" if n else f"no queries pending; next: gibo ask {arguments.folder}"
    )
    say_done(f"{what}, {'recorded' if recorded.is_new else 'was recorded before'}; {pending}")
    return 0


def _details(arguments: argparse.Namespace) -> dict[str, Any]:
    """The details of a value, see `gibo.Outcome`."""
    from gibo.runs.table import block_of

    given: dict[str, Any] = {name: getattr(arguments, name) for name in ("noise", "repeats", "block", "source")}
    given["measured"] = None if arguments.measured is None else _point(arguments.measured, "--measured")
    given["block"] = None if arguments.block is None else block_of(arguments.block)
    return {name: part for name, part in given.items() if part is not None}


def _tell_elsewhere(arguments: argparse.Namespace) -> int:
    from gibo.outcome import Outcome
    from gibo.runs.manual import tell_elsewhere

    if any(each is not None for each in (arguments.value, arguments.failed, arguments.correct)):
        raise InputError("tell: with --at, give a value and nothing else: gibo tell RUN --at NAME=X,... VALUE")
    value = number_of("VALUE", arguments.id)
    told = Outcome(value, **_details(arguments))
    new = tell_elsewhere(arguments.folder, [(_point(arguments.at), told)], _say_waiting)
    say_done(f"{value!r} at {arguments.at}: {'recorded' if new else 'was recorded before'}")
    return 0


def _undo(arguments: argparse.Namespace) -> int:
    from gibo.runs.manual import undo

    taken = undo(arguments.folder, arguments.count, arguments.reason, _say_waiting)
    say_done(f"{arguments.folder}: taken back: {', '.join(f'query {each}' for each in taken)}")
    return 0


def _import(arguments: argparse.Namespace) -> int:
    from gibo.runs.manual import names_of, tell_elsewhere
    from gibo.runs.table import read_values

    data = read_values(arguments.file, names_of(arguments.folder))
    new = tell_elsewhere(arguments.folder, data, _say_waiting, arguments.again)
    say_done(f"{len(data)} rows: {new} new, {len(data) - new} already known")
    return 0


def _start(arguments: argparse.Namespace) -> int:
    from gibo.runs.manual import start_at

    point = _point(arguments.at)
    with _opened(arguments.folder) as journal:
        start = start_at(journal, point)
    values = ", ".join(f"{printable(name)} = {value!r}" for name, value in start.items())
    say_done(f"{arguments.folder}: the start is {values}; next: gibo ask {arguments.folder}")
    return 0


def _abort(arguments: argparse.Namespace) -> int:
    from gibo.runs.manual import abort, go_on

    point = None if arguments.at is None else _point(arguments.at)
    with _opened(arguments.folder) as journal:
        if arguments.revoke:
            go_on(journal)
            say_done(f"{arguments.folder}: continues; next: gibo ask {arguments.folder}")
            return 0
        safe = abort(journal, point, arguments.reason)
    say_done(f"{arguments.folder}: aborted; set on the machine:")
    for name, value in safe.items():
        say_done(f"  {printable(name)} = {value!r}")
    return 0


def _point(text: str, option: str = "--at") -> dict[str, float]:
    pairs = [part.partition("=") for part in text.split(",")]
    if any(not equals for _, equals, _ in pairs) or len({name for name, *_ in pairs}) < len(pairs):
        raise InputError(f"{option}: expected NAME=X, once for each name and separated by commas, got {text!r:.80}")
    return {name.strip(): number_of(f"{option} {name}", text) for name, _, text in pairs}


def _export(arguments: argparse.Namespace) -> int:
    from gibo.runs.journal import Journal
    from gibo.runs.table import encoded, format_of

    form = arguments.format or format_of(arguments.out)
    if form == "parquet" and arguments.out is None:
        raise InputError("--format parquet: cannot be printed; name a file with --out FILE")
    with Journal.read(arguments.folder) as journal:
        table = journal.columns()
    data = encoded(table, form)
    if arguments.out is None:
        sys.stdout.write(data.decode())
        return 0
    arguments.out.write_bytes(data)
    say_done(f"{len(table['id'])} rows: {arguments.out}")
    return 0


def _opened(folder: Path) -> Journal:
    from gibo.runs.journal import Journal
    from gibo.runs.lock import LOCK_PATIENCE

    return Journal.open(folder, LOCK_PATIENCE, _say_waiting)


def _say_waiting() -> None:
    complain("another process works on this run; waiting for it")
