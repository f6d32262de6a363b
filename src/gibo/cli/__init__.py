"""The command line: passes arguments to the library and prints its errors in one line.

All output is printed by the functions of this module, with control sequences escaped.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import io
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from gibo._plugins import load_module
from gibo.errors import GiboError, InputError, InUseError, printable

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
    try:
        first = _load_modules(words)
        command = "".join(words[first : first + 1])
        given = _numbers_are_no_options(words) if command == "tell" else words
        parser = parser_of(command)
        options, commands = list(parser._option_string_actions), commands_of(parser)
        if command not in commands and not any(each.startswith(command.partition("=")[0]) for each in options):
            _refuse_unknown("unknown command", command, [*commands, *options])
        arguments, unknown = parser.parse_known_args(given)
        if unknown:
            word = next((word for word in unknown if word.startswith("-")), unknown[0])
            known = commands[arguments.command]._option_string_actions if word.startswith("-") else ()
            _refuse_unknown(f"{arguments.command}: unknown {'option' if known else 'argument'}", word, known)
    except SystemExit:  # after --help, say
        sys.stdout.flush()
        raise
    arguments.words = words
    return arguments


class _Parser(argparse.ArgumentParser):
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
    for module in own or (*MODULES, "others"):
        importlib.import_module(f"gibo.cli.{module}").add_commands(commands)
    return parser


def commands_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The commands of a parser."""
    return next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction)).choices


def _refuse_unknown(what: str, word: str, known: Iterable[str]) -> None:
    """Raise, with the nearest of the known words."""
    word = word.partition("=")[0]
    close = difflib.get_close_matches(word, known, n=1)
    raise InputError(f"{what} {word}; {f'did you mean {close[0]}?' if close else 'see --help'}")


def _load_modules(words: list[str]) -> int:
    """Import the modules of ``--load MODULE`` before the command; returns the position of the command."""
    at = 0
    while words[at : at + 1] == ["--load"] and len(words) > at + 1:
        look_here(":")
        load_module("--load", words[at + 1])
        at += 2
    return at


def look_here(*places: str) -> None:
    """Let Python find the module of ``module:Name`` also in the current folder, after all other folders."""
    here = os.getcwd()
    if any(":" in place for place in places) and here not in sys.path:
        sys.path.append(here)


def _numbers_are_no_options(words: list[str]) -> list[str]:
    """For `gibo tell RUN ID -1e-3`: a space before the number keeps argparse from reading it as an option."""
    return [f" {word}" if word.startswith("-") and _is_number(word) else word for word in words]


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def number_of(name: str, text: str, hint: str = "") -> float:
    """The number in a word."""
    if not _is_number(text) or "_" in text:  # Python reads 1_5 as 15
        raise InputError(f"{name}: expected a number, got {text!r:.80}{hint}")
    return float(text)


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


def add_allow_module(command: argparse.ArgumentParser) -> None:
    """Add the option of commands that create the environment that a run's journal names."""
    text = "import the module of the run's environment (module:Env-v0); only if you trust the folder"
    command.add_argument("--allow-module", action="store_true", help=text)


def trial_folders(folder: Path) -> list[Path]:
    """The trials in a folder of `gibo train`, or the folder itself if it is one."""
    from gibo.runs.database import FILE
    from gibo.runs.journal import has_journal

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
