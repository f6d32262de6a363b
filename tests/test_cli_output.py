"""What commands print of a run from elsewhere: a terminal shows it and does not obey it."""

import pytest

import gibo
from gibo.cli import main
from gibo.runs import manual

HOSTILE = "gain\x1b]0;owned\x07\x1b[2J\x9b\u202e\r"


@pytest.fixture
def run(tmp_path):
    """A run whose parameters and failures have hostile names."""
    folder = tmp_path / "run"
    manual.create(folder, manual.Description([HOSTILE, "b"], [0.0] * 2, [1.0] * 2, [-9.0] * 2, [9.0] * 2))
    first, second, *_ = manual.ask(folder).queries
    manual.tell(folder, first.id, 1.0)
    manual.tell(folder, second.id, failed=HOSTILE)
    return folder


def is_harmless(text):
    return all(c.isprintable() or c == "\n" for c in text)


@pytest.mark.parametrize(
    "words", [["ask"], ["ask", "--json"], ["status"], ["status", "--json"], ["best"], ["best", "--json"], ["export"]]
)
def test_names_and_failures_are_shown_escaped(run, words, capsys):
    assert main([words[0], str(run), *words[1:]]) == 0
    shown = capsys.readouterr().out
    assert is_harmless(shown)
    assert ("\\u001b]0;owned" if "--json" in words else "\\x1b]0;owned\\x07") in shown


def test_so_is_a_failure_in_an_exported_file(run, tmp_path, capsys):
    assert main(["export", str(run), "--out", str(tmp_path / "x.csv")]) == 0
    assert is_harmless((tmp_path / "x.csv").read_text())


def test_so_is_why_a_run_ended(run, capsys):
    def broken(x):
        raise RuntimeError(HOSTILE)

    with pytest.warns(gibo.FailedEvaluationWarning):
        gibo.resume(run, broken, budget=20, max_failures=2)
    assert main(["status", str(run)]) == 0
    shown = capsys.readouterr().out
    assert is_harmless(shown)
    assert "owned" in shown.splitlines()[-1]


def test_so_is_what_a_mistake_repeats(tmp_path, capsys):
    assert main(["status", str(tmp_path / HOSTILE)]) == 2
    shown = capsys.readouterr().err
    assert is_harmless(shown)
    assert len(shown.splitlines()) == 1
