"""`gibo --version`, `python -m gibo`, and what shells offer after the Tab key, asked of the shells themselves."""

import shutil
import subprocess
import sys

import pytest

import gibo
from gibo.cli import main

BASH = 'source "$1"; COMP_WORDS=(gibo {words} "$2"); COMP_CWORD={count}; _gibo; printf "%s\\n" "${{COMPREPLY[@]}}"'
FISH = 'source $argv[1]; complete -C "gibo {words} $argv[2]" | string replace -r "\\t.*" ""; true'
# Zsh tells only its line editor what it completes; with these stand-ins the function itself is asked.
ZSH = (
    'compdef() {{ }}; _files() {{ print -l run-1 }}; _describe() {{ print -l -- "${{(@)${{(@P)2}}%%:*}}" }}; '
    'source "$1"; words=(gibo {words} "$2"); CURRENT={after}; PREFIX="$2"; _gibo | grep -- "^$2"'
)


def offered(shell, folder, capsys, words, begun):
    """What a shell offers for a word that is begun, after some words."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    capsys.readouterr()
    assert main(["completion", shell]) == 0
    script = folder / f"gibo.{shell}"
    script.write_text(capsys.readouterr().out, encoding="utf-8")
    template = {"bash": BASH, "fish": FISH, "zsh": ZSH}[shell]
    program = template.format(words=" ".join(words), count=len(words) + 1, after=len(words) + 2)
    name = [] if shell == "fish" else ["shell"]
    command = [shell, *(["-f"] if shell == "zsh" else []), "-c", program, *name, str(script), begun]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return set(done.stdout.split())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_commands_options_and_choices_are_completed(shell, tmp_path, capsys):
    assert offered(shell, tmp_path, capsys, [], "tr") == {"train"}
    assert offered(shell, tmp_path, capsys, ["train"], "--dask") == {"--dask", "--dask-ca", "--dask-cert", "--dask-key"}
    assert offered(shell, tmp_path, capsys, ["completion"], "f") == {"fish"}
    assert offered(shell, tmp_path, capsys, ["reproduce"], "leader") == {"leaderboard"}


def test_an_unknown_shell_is_a_mistake(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["completion", "tcsh"])
    assert caught.value.code == 2
    assert "bash" in capsys.readouterr().err


def test_the_version_from_the_command_and_from_the_module(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"gibo {gibo.__version__}\n"
    command = [sys.executable, "-W", "error", "-m", "gibo", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"gibo {gibo.__version__}\n"
