"""The command line: passes arguments to the library and prints its errors in one line.

All output is printed by the functions of this module, with control sequences escaped.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import io
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NoReturn

from gibo._plugins import load_module
from gibo.errors import GiboError, InputError, InUseError, MissingExtraError, printable

# The commands of each module. A module is loaded when one of its commands is called.
MODULES = {
    "train": ("train", "evaluate"),
    "play": ("play",),
    "plot": ("plot",),
    "manual": ("init", "ask", "tell", "undo", "import", "start", "abort", "export"),
    "status": ("status", "best"),
    "watch": ("watch", "report"),
    "serve": ("serve",),
    "noise": ("noise",),
    "completion": ("completion",),
}
SIGNAL_POLL = 0.1  # seconds between two checks whether a server should end


def entry() -> NoReturn:
    """The command `gibo`, with any state of its standard streams."""
    # Python uses None for a closed stream. Output then goes to a file that cannot be written, which is an error.
    sys.stdout = sys.stdout or os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    sys.stderr = sys.stderr or io.StringIO()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # characters that the terminal cannot show
    sys.exit(main())


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code.

    0: success, also if the reader of the output closes it early. 2: an error in the call, or a file that cannot be read
    or written. 3: the run is in use. 130: Ctrl-C.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        arguments = _arguments(words)
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except GiboError as error:
        complain(error)
        return 3 if isinstance(error, InUseError) else 2
    except OSError as error:
        if error.filename is None:  # it is about the output
            _discard_output()
        if isinstance(error, BrokenPipeError):  # the reader has closed the pipe
            return 0
        complain(f"{error.filename or 'the output'}: {error.strerror}")
        return 2
    except KeyboardInterrupt:
        complain("interrupted")
        return 130


def _arguments(words: list[str]) -> argparse.Namespace:
    """The parsed arguments, after the modules of ``--load MODULE`` before the command are imported."""
    first = 0
    while words[first : first + 1] == ["--load"] and len(words) > first + 1:
        look_here(":")
        load_module("--load", words[first + 1])
        first += 2
    try:
        arguments = parser_of("".join(words[first : first + 1])).parse_args(words)
    except SystemExit:  # after --help, say
        sys.stdout.flush()
        raise
    arguments.words = words
    return arguments


class _Parser(argparse.ArgumentParser):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._negative_number_matcher = re.compile(r"-(\.?\d|inf|nan)")  # argparse takes -1e-3 for an option

    def error(self, message: str) -> NoReturn:
        command = self.prog.removeprefix("gibo").strip()
        unknown = re.search(r"(?:unrecognized arguments: |invalid choice: ')([^\s'=]+)", message)
        commands = {} if self._subparsers is None else self._subparsers._group_actions[0].choices
        parsers: list[argparse.ArgumentParser] = [self, *dict(commands or {}).values()]
        known = [*(commands or ()), *(option for each in parsers for option in each._option_string_actions)]
        near = difflib.get_close_matches(unknown[1], known, 1) if unknown else []
        hint = f"did you mean {near[0]}?" if near else "see --help"
        raise InputError(f"{command}{': ' if command else ''}{message}; {hint}")

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is sys.stdout:
            file.write(message)  # argparse ignores errors of writing
        else:
            super()._print_message(message, file)


def parser_of(command: str = "") -> argparse.ArgumentParser:
    """The parser with the module of this command only, or with all modules if there is no such command."""
    parser = _Parser(prog="gibo", description="Local policy search with Bayesian optimisation.")
    parser.add_argument("--load", metavar="MODULE", action="append", help="import this module first")
    parser.add_argument("--version", action="version", version=f"gibo {sys.modules['gibo'].__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    own = [name for name, its in MODULES.items() if command in its]
    for module in own or MODULES:
        importlib.import_module(f"gibo.cli.{module}").add_commands(commands)
    if not own:
        _add_foreign_commands(commands)
    return parser


def _add_foreign_commands(commands: Any) -> None:
    """Add the commands of other distributions; if gibo-studies is missing, its commands say how to install it.

    An entry point of the group ``gibo.commands`` is a function that adds commands, as `add_commands` of a module here.
    """
    found = entry_points(group="gibo.commands")
    for entry in found:
        entry.load()(commands)
    if "reproduce" not in found.names:
        for name, text in (("reproduce", "run a study of the paper"), ("figures", "draw the figures of a study again")):
            command = commands.add_parser(name, help=f"{text} (needs gibo-studies)", prefix_chars=" ")
            command.add_argument("rest", nargs="*")
            command.set_defaults(run=_missing)


def _missing(arguments: argparse.Namespace) -> NoReturn:
    raise MissingExtraError(
        f"gibo {arguments.command} needs gibo-studies, which is not installed: pip install gibo-studies, "
        "or in a clone of gibo: pip install -e studies"
    )


def commands_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The commands of a parser."""
    return next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction)).choices


def look_here(*places: str) -> None:
    """Let Python find the module of ``module:Name`` also in the current folder, after all other folders."""
    here = os.getcwd()
    if ":" in "".join(places) and here not in sys.path:
        sys.path.append(here)


def number_of(name: str, text: str, hint: str = "") -> float:
    """The number in a word."""
    try:
        return float(text.replace("_", "no"))  # Python reads 1_5 as 15
    except ValueError:
        raise InputError(f"{name}: expected a number, got {text!r:.80}{hint}") from None


def numbers(name: str, text: str, d: int | None = None) -> list[float]:
    """Numbers separated by commas; with d, expects d numbers, or one that is used for all."""
    found = [number_of(name, part, "; separate several by commas") for part in text.split(",")]
    if d is not None and len(found) not in (1, d):
        raise InputError(f"{name}: expected a number, or {d} separated by commas, got {len(found)}")
    return found * d if d is not None and len(found) == 1 else found


def say(text: object, flush: bool = False) -> None:
    """Print one or several lines on standard output."""
    print(printable(str(text), lines=True), flush=flush)


def say_done(text: object) -> None:
    """Print what was done. A closed output is no error."""
    try:
        say(text, flush=True)
    except OSError:
        _discard_output()


def _discard_output() -> None:
    """Drop the rest of the output, so that Python does not write it again when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(text: object) -> None:
    """Print one line on standard error."""
    with suppress(OSError):  # nobody can read it
        print(f"gibo: {printable(str(text))}", file=sys.stderr, flush=True)


def columns(rows: Sequence[Sequence[object]]) -> None:
    """Print a table on standard output, with right-aligned columns."""
    texts = [[f"{item:.10g}" if isinstance(item, float) else printable(str(item)) for item in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for row in texts:
        say("  ".join(item.rjust(width) for item, width in zip(row, widths, strict=True)))


# -- what several commands share ---------------------------------------------------------------------------------------

# The option of commands that create the environment that a run's journal names.
ALLOW_MODULE: dict[str, Any] = {
    "action": "store_true",
    "help": "import the module of the run's environment (module:Env-v0); only if you trust the folder",
}


def trial_folders(folder: Path) -> list[Path]:
    """The trials in a folder of `gibo train`, or the folder itself if it is one."""
    from gibo.runs.journal import has_journal
    from gibo.runs.store import FILE

    if has_journal(folder):
        return [folder]
    found = sorted(path for path in folder.glob("trial-*") if has_journal(path))
    if not found:
        raise InputError(f"{folder}: there is no run; expected a folder with {FILE}, or one of gibo train")
    return found


@contextmanager
def like_ctrl_c(quietly: bool = False) -> Iterator[None]:
    """Let SIGTERM act like Ctrl-C; with `quietly`, both only end the block."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        if not quietly:
            raise
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def noted_signals() -> Iterator[Callable[[], None]]:
    """While the block runs, Ctrl-C and SIGTERM are noted; gives a function that waits for one of them.

    An exception that a handler raises is lost in a destructor, and can leave a lock of another thread in disorder.
    """
    came: list[int] = []
    before = {each: signal.signal(each, lambda n, _: came.append(n)) for each in (signal.SIGINT, signal.SIGTERM)}

    def wait() -> None:
        while not came:  # with a time-out: the system may give the signal to another thread
            time.sleep(SIGNAL_POLL)

    try:
        yield wait
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
