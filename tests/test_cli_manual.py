"""A run that a person or another program drives: gibo init, ask, tell, status, best, export.

`tests/runs` has damaged journals, and `tests/runs/test_elsewhere.py` imports and CSV files.
"""

import csv
import json
import subprocess
import sys

import numpy as np
import pytest

import gibo
from gibo.cli import main
from gibo.runs.journal import Journal

PARAMETERS = """
minimize = true
seed = 3

[parameters.gain]
start = 1.0
scale = 0.2
lower = 0.0
upper = 5.0

[parameters.damping]
start = 0.1
scale = 0.05

[settings]
M = 3
"""


@pytest.fixture
def bench(tmp_path):
    """A run with two named parameters, minimised."""
    (tmp_path / "bench.toml").write_text(PARAMETERS)
    assert main(["init", str(tmp_path / "run"), "--parameters", str(tmp_path / "bench.toml")]) == 0
    return tmp_path / "run"


def text_of(capsys, *words):
    """What a command prints."""
    capsys.readouterr()
    assert main([str(word) for word in words]) == 0
    return capsys.readouterr().out


def printed(capsys, *words):
    return json.loads(text_of(capsys, *words, "--json"))


def asked(run, capsys):
    return printed(capsys, "ask", run)["queries"]


def refused(capsys, *words):
    """The one line that a command is refused with."""
    capsys.readouterr()
    assert main([str(word) for word in words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("gibo: ")
    return captured.err


def cost(parameters):
    return (parameters["gain"] - 2.0) ** 2 + 10.0 * (parameters["damping"] - 0.3) ** 2


def test_a_whole_run_by_separate_processes_is_that_of_one_loop(tmp_path, capsys):
    run = tmp_path / "run"
    assert main(["init", str(run), "--dim", "2", "--maximize", "--scale", "0.3", "--seed", "5"]) == 0
    expected = gibo.GIBO(np.zeros(2), scale=0.3, seed=5)
    for _ in range(2):
        command = [sys.executable, "-c", "from gibo.cli import entry; entry()", "ask", str(run), "--json"]
        queries = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["queries"]
        assert [(query["x"], query["seed"]) for query in queries] == [
            (query.x.tolist(), query.seed) for query in expected.ask()
        ]
        for query in reversed(expected.ask()):
            value = -float(((query.x - 1.0) ** 2).sum())
            assert main(["tell", str(run), str(query.id), repr(value)]) == 0
            expected.tell(query, value)
    best = printed(capsys, "best", run)["best"]
    assert (list(best["parameters"].values()), best["value"]) == (expected.best.x.tolist(), expected.best.value)


def test_values_are_told_repeated_corrected_and_fail(bench, capsys):
    first = asked(bench, capsys)
    assert len(first) == 4
    assert "3 queries pending" in text_of(capsys, "tell", bench, 1, 2.5)
    assert asked(bench, capsys) == [first[0], *first[2:]]
    before = text_of(capsys, "export", bench)
    assert "recorded before" in text_of(capsys, "tell", bench, 1, 2.5)
    assert text_of(capsys, "export", bench) == before
    assert "--correct REASON" in refused(capsys, "tell", bench, 1, 3.5)
    text_of(capsys, "tell", bench, 1, 3.5, "--correct", "a typing error")
    text_of(capsys, "tell", bench, 0, "--failed", "the belt slipped")
    for query in first[2:]:
        text_of(capsys, "tell", bench, query["id"], cost(query["parameters"]))
    status = printed(capsys, "status", bench)
    assert (status["minimize"], status["failures"], status["pending"]) == (True, 1, [])
    rows = list(csv.DictReader(text_of(capsys, "export", bench).splitlines()))
    assert (rows[0]["failure"], rows[0]["value"], rows[1]["value"]) == ("the belt slipped", "", "3.5")
    best = printed(capsys, "best", bench)["best_seen"]
    assert best["value"] == min(cost(query["parameters"]) for query in first[2:]) == cost(best["parameters"])
    assert min(query["id"] for query in asked(bench, capsys)) == 4
    for words in (["ask"], ["status"], ["best"]):
        shown = text_of(capsys, words[0], bench)
        assert "gain" in shown
        assert "damping" in shown


def test_python_continues_what_the_command_line_began_and_the_other_way_round(bench, capsys):
    def objective(x):
        return cost({"gain": x[0], "damping": x[1]})

    with pytest.raises(gibo.InputError, match=r"budget: .* has none yet"):
        gibo.resume(bench, objective)
    assert gibo.resume(bench, objective, budget=10).evaluations == 10
    assert asked(bench, capsys)[0]["id"] == 10
    text_of(capsys, "tell", bench, 10, 0.5)
    assert gibo.resume(bench, objective, budget=12).history.value[10] == 0.5


def test_options_of_init_are_those_of_the_run(tmp_path, capsys):
    run = tmp_path / "run"
    words = ["--scale", "0.1,0.2", "--x0=-0.5,0.5", "--lower=-1", "--upper", "1", "--method", "cma-es", "--seed", "3"]
    text_of(capsys, "init", run, "--dim", 2, "--minimize", *words)
    with Journal.read(run) as journal:
        spec = journal.spec()
    expected = gibo.CMAES([-0.5, 0.5], scale=[0.1, 0.2], bounds=([-1.0] * 2, [1.0] * 2), seed=3)
    assert (spec.optimizer, spec.sign, spec.arguments) == ("CMAES", -1, expected.arguments())


# -- log scales and whole numbers -------------------------------------------------------------------------------------

KINDS = """
[parameters.kp]
kind = "log"
lower = 0.5
upper = 8.0

[parameters.taps]
kind = "integer"
lower = 1
upper = 9
"""


@pytest.fixture
def machine(tmp_path, capsys):
    """A run whose cost is least at the upper bound of kp and at 7 taps."""
    (tmp_path / "machine.toml").write_text(KINDS)
    words = ["init", tmp_path / "run", "--parameters", tmp_path / "machine.toml"]
    assert "--minimize" in refused(capsys, *words)  # neither the file nor the command says which values are good
    assert "minimising" in text_of(capsys, *words, "--minimize", "--budget", "24", "--target", "-1")
    return tmp_path / "run"


def machine_cost(kp, taps):
    return (kp - 8.0) ** 2 / 10.0 + (taps - 7) ** 2


def test_everything_that_is_read_is_in_the_users_units_until_one_may_stop(machine, capsys):
    assert "probability of" not in text_of(capsys, "status", machine)  # nothing is known yet
    while printed(capsys, "status", machine)["may_stop"] is None:
        for query in asked(machine, capsys):
            kp, taps = query["x"]
            assert query["parameters"] == {"kp": kp, "taps": taps}
            assert 0.5 <= kp <= 8.0
            assert isinstance(taps, int)
            text_of(capsys, "tell", machine, query["id"], machine_cost(kp, taps))
    asked(machine, capsys)
    status = printed(capsys, "status", machine)
    assert status["evaluations"] >= 24
    assert status["best"]["parameters"]["kp"] == 8.0
    assert any("upper bound 8)" in advice["text"] for advice in status["advice"] if advice["code"] == "at_bound")
    assert [query["x"] for query in status["pending"]] == [list(q["parameters"].values()) for q in status["pending"]]
    assert "probability of descent" in text_of(capsys, "status", machine)
    for row in csv.DictReader(text_of(capsys, "export", machine).splitlines()):
        if row["value"]:
            assert float(row["value"]) == machine_cost(float(row["kp"]), int(row["taps"]))


def test_an_aborted_run_says_what_to_set(machine, capsys):
    start = printed(capsys, "status", machine)["iterate"]
    for query in asked(machine, capsys)[:2]:
        text_of(capsys, "tell", machine, query["id"], 1.0)
    assert f"kp = {start['kp']!r}" in text_of(capsys, "abort", machine, "--reason", "smoke")
    status = printed(capsys, "status", machine)
    assert (status["aborted"], status["state"], status["may_stop"]) == (start, "ended", None)
    assert "smoke" in status["reason"]
    assert "--revoke" in refused(capsys, "ask", machine)
    assert "recorded" in text_of(capsys, "tell", machine, 2, 1.0)  # a value is never refused
    text_of(capsys, "abort", machine, "--at", "kp=2.5,taps=3")
    assert printed(capsys, "best", machine)["aborted"] == {"kp": 2.5, "taps": 3}
    assert "taps" in refused(capsys, "abort", machine, "--at", "kp=2.5,taps=30")
    with Journal.read(machine) as journal:
        assert [each.kind for each in journal.actions()] == ["abort", "abort"]
    text_of(capsys, "abort", machine, "--revoke")
    assert printed(capsys, "status", machine)["state"] == "waiting"
    assert asked(machine, capsys)


# -- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["ak", "RUN"], "invalid choice: 'ak' (choose from"),
        (["tell", "RUN", "0", "1.5", "--noize=3"], "unrecognized arguments: --noize=3"),
        (["tell", "RUN", "99", "1.0"], "pending: 0, 1, 2"),
        (["tell", "RUN", "1", "abc"], "--failed REASON"),
        (["tell", "RUN", "1", "2.0", "--failed"], "--failed"),
        (["tell", "RUN", "one", "2.0"], "ID"),
        (["export", "RUN", "--out", "x.xlsx"], ".csv, .json, .parquet"),
        (["best", "RUN"], "no evaluation has a value yet"),
        (["init", "RUN", "--dim", "2", "--minimize"], "there is already a run"),
        (["ask", "nowhere"], "there is no run"),
    ],
)
def test_a_mistake_is_one_line_with_a_hint_and_changes_nothing(words, hint, bench, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked(bench, capsys)
    before = (bench / "journal.sqlite").read_bytes()
    assert hint in refused(capsys, *(bench if word == "RUN" else word for word in words))
    assert (bench / "journal.sqlite").read_bytes() == before
    assert not (tmp_path / "nowhere").exists()


FILES = {
    "": "[parameters.NAME]",
    "x = ": "TOML",
    "colour = 1\n[parameters.a]\nstart = 1": "'colour'",
    "[parameters.a]\nscale = 1": "start",
    "[parameters.a]\nstart = 1\nstep = 1": "'step'",
    "seed = 'x'\n[parameters.a]\nstart = 1": "seed",
    "[parameters.a]\nstart = 1\n[settings]\nMM = 1": "'MM'",
    "method = 'ars'\n[parameters.a]\nstart = 1\n[settings]\nM = 2": "settings",
}
WORDS = {
    "--maximize": "--dim N",
    "--dim 27648": "at most 5000 parameters, got 27648",
    "--dim 3 --scale 1,2": "--scale",
    "--dim 3 --x0 a": "--x0",
    "--dim 1 --method magic": "method",
    "--dim 1 --parameters p.toml": "--dim",
}


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [*((text, "--parameters p.toml", message) for text, message in FILES.items())]
    + [("", words, message) for words, message in WORDS.items()],
)
def test_wrong_arguments_and_files_of_init(text, words, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.toml").write_text(text)
    assert message in refused(capsys, "init", "run", "--maximize", *words.split())
    assert not (tmp_path / "run" / "journal.sqlite").exists()
