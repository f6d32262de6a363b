"""Commands of other distributions, from entry points of the group ``gibo.commands``.

An entry point's object is a function that adds commands to the command line, as `add_commands` of a module of
`gibo.cli` does. The distribution gibo-studies adds ``gibo reproduce`` and ``gibo figures`` in this way.
"""

from __future__ import annotations

import argparse
from importlib.metadata import entry_points
from typing import Any, NoReturn

from gibo.errors import MissingExtraError

GROUP = "gibo.commands"


def add_commands(commands: Any) -> None:
    """Add these commands to the command line; if gibo-studies is missing, its commands say how to install it."""
    found = entry_points(group=GROUP)
    for entry in found:
        entry.load()(commands)
    if "reproduce" not in found.names:
        for name, text in (("reproduce", "run a study of the paper"), ("figures", "draw the figures of a study again")):
            command = commands.add_parser(name, help=f"{text} (needs gibo-studies)", prefix_chars=" ")
            command.add_argument("words", nargs="*")
            command.set_defaults(run=_missing)


def _missing(arguments: argparse.Namespace) -> NoReturn:
    raise MissingExtraError(
        f"gibo {arguments.command} needs gibo-studies, which is not installed: pip install gibo-studies, "
        "or in a clone of gibo: pip install -e studies"
    )
