"""Whatever the standard streams are and whatever a file holds: one line and an exit code, never a traceback.

A terminal shows what a run from elsewhere holds, and does not obey it.
"""

import json
import os
import subprocess
import sys

import pytest

import gibo
from gibo.cli import main
from gibo.runs import manual

NAMES = ["größe", "δ"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run whose parameters have names that are not ASCII."""
    folder = tmp_path_factory.mktemp("streams") / "läufe"
    manual.create(folder, manual.Description(NAMES, [0.0] * 2, [1.0] * 2, [-9.0] * 2, [9.0] * 2))
    first, *_ = manual.ask(folder).queries
    manual.tell(folder, first.id, 1.0)
    return folder


def shell(words, **environment):
    """A command in a shell: its exit code, what it said and what it complained of."""
    command = " ".join(words).replace("gibo ", f"{sys.executable} -m gibo ")
    path = os.path.dirname(os.path.dirname(gibo.__file__))
    settings = {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1", **environment}
    done = subprocess.run(["bash", "-c", command], capture_output=True, env=settings, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_a_terminal_without_their_letters_gets_escapes(run):
    environment = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    code, said, complained = shell([f"gibo ask '{run}'; gibo status '{run.parent / 'möglich'}'"], **environment)
    assert code == 2
    assert "gr\\xf6\\xdfe" in said
    assert "\\u03b4" in said
    assert complained.count("\n") == 1
    assert "glich: there is no run" in complained
    assert complained.isascii()


def test_a_reader_that_has_seen_enough_is_no_error(run):
    assert shell([f"gibo export '{run}' | head -1; exit ${{PIPESTATUS[0]}}"])[::2] == (0, "")


@pytest.mark.parametrize(
    ("to", "words"), [(">&-", "output: Bad file descriptor"), ("> /dev/full", "output: No space left on device")]
)
def test_output_that_goes_nowhere_is_one_line(to, words, run):
    code, said, complained = shell([f"gibo status '{run}' {to}"])
    assert (code, said) == (2, "")
    assert words in complained
    assert complained.count("\n") == 1
    assert shell([f"gibo status '{run}' {to} 2{to}"]) == (2, "", "")


def test_what_was_done_is_no_error_where_it_cannot_be_shown(run):
    first, second, *_ = manual.ask(run).queries
    assert shell([f"gibo tell '{run}' {first.id} 2.0 >&- <&-"]) == (0, "", "")
    assert shell([f"gibo tell '{run}' {second.id} 2.0 > /dev/full"]) == (0, "", "")
    assert manual.status(run).result.evaluations == 3


# -- files ------------------------------------------------------------------------------------------------------------

CONTENTS = {"missing": None, "binary": bytes(range(256)) * 40, "json": json.dumps({"format": "gibo policy"}).encode()}
COMMANDS = ["status", "best", "ask", "export", "report", "evaluate", "play", "plot", "figures"]
FILES = ["journal.sqlite", "trial-00/journal.sqlite", "policy.json", "data.json", "data.jsonl", "options.json"]


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS.keys())
@pytest.mark.parametrize("command", COMMANDS)
def test_broken_files_are_one_line(command, content, tmp_path, capsys):
    folder = tmp_path / "folder"  # in which every file that a command looks for holds this
    (folder / "trial-00").mkdir(parents=True)
    for path in [tmp_path / "file", *(folder / name for name in FILES)]:
        if content is not None:
            path.write_bytes(content)
    for path in (folder, tmp_path / "file"):
        assert main([command, str(path)]) == 2
        captured = capsys.readouterr()
        assert captured.err.startswith("gibo: ")
        assert captured.err.count("\n") == 1
        assert captured.out == ""


# -- names and messages from elsewhere --------------------------------------------------------------------------------

HOSTILE = "gain\x1b]0;owned\x07\x1b[2J\x9b\u202e\r"


def is_harmless(text):
    return all(c.isprintable() or c == "\n" for c in text)


def test_names_and_failures_are_shown_escaped(tmp_path, capsys):
    folder, file = tmp_path / "run", tmp_path / "x.csv"
    manual.create(folder, manual.Description([HOSTILE, "b"], [0.0] * 2, [1.0] * 2, [-9.0] * 2, [9.0] * 2))
    first, second, *_ = manual.ask(folder).queries
    manual.tell(folder, first.id, 1.0)
    manual.tell(folder, second.id, failed=HOSTILE)
    for words in (
        ["ask"],
        ["ask", "--json"],
        ["status"],
        ["status", "--json"],
        ["best"],
        ["best", "--json"],
        ["export"],
    ):
        assert main([words[0], str(folder), *words[1:]]) == 0
        shown = capsys.readouterr().out
        assert is_harmless(shown)
        assert ("\\u001b]0;owned" if "--json" in words else "\\x1b]0;owned\\x07") in shown
    assert main(["export", str(folder), "--out", str(file)]) == 0
    assert is_harmless(file.read_text())
