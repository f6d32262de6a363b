"""`gibo completion`: what a shell offers after the Tab key, made from the commands themselves."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, NamedTuple

from gibo.cli import parser_of, say

SHELLS = ("bash", "zsh", "fish")

EPILOG = """
To have it in every new shell:

    bash   echo 'eval "$(gibo completion bash)"' >> ~/.bashrc
    zsh    echo 'eval "$(gibo completion zsh)"' >> ~/.zshrc        (after compinit)
    fish   gibo completion fish > ~/.config/fish/completions/gibo.fish
"""


def add_commands(commands: Any) -> None:
    """Add this command to the command line."""
    completion = commands.add_parser(
        "completion",
        help="a script that makes bash, zsh or fish complete gibo's commands and options",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    completion.add_argument("shell", metavar="SHELL", choices=SHELLS, help="one of %(choices)s")
    completion.set_defaults(run=_completion)


def _completion(arguments: argparse.Namespace) -> int:
    found = list(_commands(parser_of()))
    say({"bash": _bash, "zsh": _zsh, "fish": _fish}[arguments.shell](found))
    return 0


class _Command(NamedTuple):
    """A command: its help, its options with theirs, and the words that may stand in its place for an argument."""

    name: str
    help: str
    options: dict[str, str]
    words: list[str]


def _commands(whole: argparse.ArgumentParser) -> Iterator[_Command]:
    """What the parsers know; arguments without choices are files, runs or numbers, and shells offer files."""
    (commands,) = (action for action in whole._actions if isinstance(action, argparse._SubParsersAction))
    helps = {action.dest: _line(action.help) for action in commands._choices_actions}
    for name, parser in commands.choices.items():
        options = {
            option: _line(action.help)
            for action in parser._actions
            for option in action.option_strings
            if option.startswith("--")
        }
        words = [str(w) for a in parser._actions if not a.option_strings and a.choices is not None for w in a.choices]
        yield _Command(name, helps.get(name, ""), options, words)


def _line(text: str | None) -> str:
    """Fit to stand between single quotes in any shell."""
    return " ".join((text or "").split()).replace("'", "’").replace("%", " ").replace("\\", "/")[:80]


def _bash(commands: list[_Command]) -> str:
    cases = "\n".join(f"        {c.name}) words='{' '.join([*c.options, *c.words])}' ;;" for c in commands)
    return f"""\
_gibo() {{
    local words='--help --version {" ".join(c.name for c in commands)}'
    if [ "$COMP_CWORD" -gt 1 ]; then
        case "${{COMP_WORDS[1]}}" in
{cases}
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _gibo gibo"""


def _zsh(commands: list[_Command]) -> str:
    def described(texts: dict[str, str]) -> str:
        return " ".join("'" + name.replace(":", "\\:") + ":" + text + "'" for name, text in texts.items())

    cases = "\n".join(
        f"            {c.name}) offered=({described(c.options | dict.fromkeys(c.words, ''))}) ;;" for c in commands
    )
    return f"""\
#compdef gibo
_gibo() {{
    local -a offered
    if (( CURRENT == 2 )); then
        offered=({described({c.name: c.help for c in commands})})
    else
        case "${{words[2]}}" in
{cases}
        esac
        [[ "$PREFIX" == -* ]] || _files
    fi
    _describe 'gibo' offered
}}
compdef _gibo gibo"""


def _fish(commands: list[_Command]) -> str:
    lines = ["complete -c gibo -n __fish_use_subcommand -l version -d 'the version'"]
    for c in commands:
        lines.append(f"complete -c gibo -f -n __fish_use_subcommand -a {c.name} -d '{c.help}'")
        here = f"complete -c gibo -n '__fish_seen_subcommand_from {c.name}'"
        lines += [f"{here} -l {option[2:]} -d '{text}'" for option, text in c.options.items()]
        lines += [f"{here} -f -a '{' '.join(c.words)}'"] if c.words else []
    return "\n".join(lines)
