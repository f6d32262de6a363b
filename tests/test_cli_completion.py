"""`gibo --version`, `python -m gibo`, and what bash offers after the Tab key, asked of bash itself."""

import subprocess
import sys

import pytest

import gibo
from gibo.cli import main

BASH = 'source "$1"; COMP_WORDS=(gibo "${@:2}"); COMP_CWORD=$(($# - 1)); _shtab_gibo; printf "%s\\n" "${COMPREPLY[@]}"'


def test_commands_options_files_and_choices_are_completed(tmp_path, capsys):
    def offered(*words):
        command = ["bash", "-c", BASH, "bash", str(script), *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return set(done.stdout.split())

    assert main(["completion", "bash"]) == 0
    script = tmp_path / "script"
    script.write_text(capsys.readouterr().out, encoding="utf-8")
    (tmp_path / "run-1").mkdir()
    assert offered("tr") == {"train"}
    assert offered("train", "--dask") == {"--dask", "--dask-ca", "--dask-cert", "--dask-key"}
    assert offered("completion", "f") == {"fish"}
    assert offered("status", "run") == {"run-1"}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_a_script(shell, capsys):
    assert main(["completion", shell]) == 0
    assert "normalize-states" in capsys.readouterr().out


def test_an_unknown_shell_and_a_missing_extra_are_mistakes(capsys, monkeypatch):
    with pytest.raises(SystemExit) as caught:
        main(["completion", "tcsh"])
    assert caught.value.code == 2
    assert "bash" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 2
    assert "shtab" in capsys.readouterr().err


def test_the_version_from_the_command_and_from_the_module(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"gibo {gibo.__version__}\n"
    command = [sys.executable, "-W", "error", "-m", "gibo", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"gibo {gibo.__version__}\n"
