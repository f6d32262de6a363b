"""The command line: arguments to the library, and its errors to one line."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from gibo.cli import manual, play, plot, reproduce, train
from gibo.errors import GiboError


def entry() -> NoReturn:
    """The command `gibo`."""
    code = main()
    if sys.argv[1:2] and sys.argv[1] in manual.COMMANDS:
        # All is written and closed, and Python would take a tenth of a second to take SciPy apart.
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code: 0, 2 for a mistake in the call, 130 after Ctrl-C."""
    words = list(sys.argv[1:] if argv is None else argv)
    arguments = _parser().parse_args(_negative_value_last(words))
    arguments.words = words
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except GiboError as error:
        print(f"gibo: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"gibo: {error.filename or 'the output'}: {error.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("gibo: interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gibo", description="Local policy search with Bayesian optimisation.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    train.add_commands(commands)
    play.add_commands(commands)
    plot.add_commands(commands)
    manual.add_commands(commands)
    reproduce.add_commands(commands)
    return parser


def _negative_value_last(words: list[str]) -> list[str]:
    """For `gibo tell RUN ID -1e-3`: the value where it cannot be taken for an option."""
    if words[:1] != ["tell"] or "--" in words:
        return words
    values = [word for word in words if word.startswith("-") and _is_number(word)]
    return [*(word for word in words if word not in values), "--", *values] if values else words


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
