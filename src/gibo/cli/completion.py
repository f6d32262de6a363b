"""`gibo completion`: completion scripts for shells, made by shtab from the parser."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from gibo.cli import commands_of, parser_of, say
from gibo.errors import missing_extra

SHELLS = ("bash", "zsh", "fish")

EPILOG = """
To load it in every new shell:

    bash   echo 'eval "$(gibo completion bash)"' >> ~/.bashrc
    zsh    echo 'eval "$(gibo completion zsh)"' >> ~/.zshrc        (after compinit)
    fish   gibo completion fish > ~/.config/fish/completions/gibo.fish
"""


def add_commands(commands: Any) -> None:
    """Add this command to the command line."""
    completion = commands.add_parser(
        "completion",
        help="print a script that completes gibo's commands and options in bash, zsh or fish",
        description="Print the script for a shell. Needs shtab (the extra 'completion').",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    completion.add_argument("shell", metavar="SHELL", choices=SHELLS, help="one of %(choices)s")
    completion.set_defaults(run=_completion)


def _completion(arguments: argparse.Namespace) -> int:
    try:
        import shtab
    except ImportError:
        raise missing_extra("gibo completion needs shtab", "completion") from None
    parser = parser_of()
    for command in commands_of(parser).values():
        for action in command._actions:
            if action.type is Path:
                action.complete = shtab.FILE  # type: ignore[attr-defined]  # shtab reads it
    say(shtab.complete(parser, arguments.shell))
    return 0
