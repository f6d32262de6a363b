"""The command line as a whole: which commands there are, and what comes from elsewhere."""

import subprocess
import sys
from importlib.metadata import EntryPoints

import pytest

from gibo import __version__, cli
from gibo.cli import main

OWN = {command for commands in cli.MODULES.values() for command in commands}


def choices(parser):
    return {name for action in parser._actions if action.dest == "command" for name in action.choices}


def test_every_command_is_listed_and_is_where_the_table_says():
    assert choices(cli.parser_of()) == choices(cli.parser_of("--help")) == OWN | {"reproduce", "figures"}
    for commands in cli.MODULES.values():
        for command in commands:
            assert choices(cli.parser_of(command)) == set(commands)


def test_a_command_loads_no_other_commands():
    code = "import sys; from gibo import cli; cli.parser_of('ask'); print(*(n for n in sys.modules if n > 'gibo.cli.'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [name for name in done.stdout.split() if name.startswith("gibo.cli.")] == ["gibo.cli.manual"]
    assert "gibo_studies" not in done.stdout


@pytest.mark.parametrize(
    ("words", "hint"),
    [("trian CartPole-v1", "train"), ("train CartPole-v1 --budgt=5", "--budget"), ("tell run 1 --fialed", "--failed")],
)
def test_a_mistyped_word_gets_a_suggestion(words, hint, capsys):
    assert main(words.split()) == 2
    assert capsys.readouterr().err.endswith(f"; did you mean {hint}?\n")


@pytest.mark.parametrize("words", [["reproduce", "within-model", "--quick"], ["figures", "results/lqr"]])
def test_without_the_studies_a_command_says_what_installs_them(monkeypatch, capsys, words):
    monkeypatch.setattr("gibo.cli.entry_points", lambda group: EntryPoints())
    assert main(words) == 2
    assert f"gibo {words[0]} needs gibo-studies, which is not installed: pip install " in capsys.readouterr().err


# -- what a user's own module brings ----------------------------------------------------------------------------------

OWN_MODULE = """
import gibo
from gibo.kernels import Kernel
import numpy as np

class Nearby(gibo.RandomSearch):
    pass

class Flat(Kernel):
    name = "flat"
    def profile(self, q, order=0):
        psi = np.exp(-0.5 * q)
        return [psi, -0.5 * psi, 0.25 * psi, -0.125 * psi][: order + 1]

THREE = 3
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A folder with a user's own module, in which commands are called."""
    (tmp_path / "nearby.py").write_text(OWN_MODULE)
    return tmp_path


def gibo(folder, *words):
    command = [sys.executable, "-c", "from gibo.cli import entry; entry()", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_an_optimizer_and_a_kernel_of_ones_own_by_their_places(module):
    assert gibo(module, "init", "run", "--dim", "2", "--maximize", "--method", "nearby:Nearby").returncode == 0
    unknown = gibo(module, "ask", "run")
    assert unknown.returncode == 2
    assert "import the module that has it" in unknown.stderr
    asked = gibo(module, "--load", "nearby", "ask", "run")
    assert asked.returncode == 0, asked.stderr
    words = ["train", "CartPole-v1", "--budget", "8", "--set", "kernel=nearby:Flat", "--out", "pole"]
    trained = gibo(module, "--load", "nearby", *words)
    assert trained.returncode == 0, trained.stderr


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("nowhere:Nearby", "nowhere cannot be imported"),
        ("nearby:Far", "the module nearby has no Far"),
        ("nearby:THREE", "expected the place of a subclass of gibo.Optimizer"),
        (None, "a file must not choose what is imported"),
    ],
)
def test_what_is_no_optimizer_and_what_a_file_names_is_refused(module, place, message, monkeypatch, capsys):
    monkeypatch.chdir(module)
    monkeypatch.setattr(sys, "path", [str(module), *sys.path])
    (module / "bench.toml").write_text('[settings]\nkernel = "nearby:Flat"\n[parameters.gain]\nstart = 1.0\n')
    words = ["--parameters", "bench.toml"] if place is None else ["--dim", "2", "--method", place]
    try:
        assert main(["init", "run", "--maximize", *words]) == 2
    finally:
        sys.modules.pop("nearby", None)
    assert message in capsys.readouterr().err
    assert not (module / "run").exists()


def test_the_version_from_the_command_and_from_the_module(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    command = [sys.executable, "-W", "error", "-m", "gibo", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == capsys.readouterr().out == f"gibo {__version__}\n"


# -- completion -------------------------------------------------------------------------------------------------------

BASH = 'source "$1"; COMP_WORDS=(gibo "${@:2}"); COMP_CWORD=$(($# - 1)); _shtab_gibo; printf "%s\\n" "${COMPREPLY[@]}"'


def test_bash_completes_commands_options_files_and_choices(tmp_path, capsys):
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


def test_other_shells_and_a_missing_extra(capsys, monkeypatch):
    for shell in ("zsh", "fish"):
        assert main(["completion", shell]) == 0
        assert "normalize-states" in capsys.readouterr().out
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 2
    assert "shtab" in capsys.readouterr().err
