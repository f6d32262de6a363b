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


def answer(*words):
    """What a command prints as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", "from gibo.cli import entry; entry()", *map(str, words)],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def asked(run, capsys):
    capsys.readouterr()
    assert main(["ask", str(run), "--json"]) == 0
    return json.loads(capsys.readouterr().out)["queries"]


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


def test_a_whole_run_by_separate_processes_is_that_of_one_loop(tmp_path):
    run = tmp_path / "run"
    assert main(["init", str(run), "--dim", "2", "--maximize", "--scale", "0.3", "--seed", "5"]) == 0
    expected = gibo.GIBO(np.zeros(2), scale=0.3, seed=5)
    for _ in range(2):
        queries = answer("ask", run, "--json")["queries"]
        assert [query["x"] for query in queries] == [query.x.tolist() for query in expected.ask()]
        assert [query["seed"] for query in queries] == [query.seed for query in expected.ask()]
        for query in reversed(expected.ask()):
            value = -float(((query.x - 1.0) ** 2).sum())
            assert main(["tell", str(run), str(query.id), repr(value)]) == 0
            expected.tell(query, value)
    best = answer("best", run, "--json")["best"]
    assert list(best["parameters"].values()) == expected.best.x.tolist()
    assert best["value"] == expected.best.value


def test_ask_gives_the_same_queries_until_they_are_told(bench, capsys):
    first = asked(bench, capsys)
    assert len(first) == 4
    assert asked(bench, capsys) == first
    assert main(["tell", str(bench), str(first[1]["id"]), "2.5"]) == 0
    assert asked(bench, capsys) == [first[0], *first[2:]]


def test_named_parameters_appear_by_name_everywhere(bench, capsys):
    for query in asked(bench, capsys):
        assert list(query["parameters"]) == ["gain", "damping"]
        assert main(["tell", str(bench), str(query["id"]), str(cost(query["parameters"]))]) == 0
    for words in (["ask"], ["status"], ["best"], ["status", "--json"], ["best", "--json"], ["export"]):
        capsys.readouterr()
        assert main([words[0], str(bench), *words[1:]]) == 0
        out = capsys.readouterr().out
        assert "gain" in out
        assert "damping" in out


def test_minimising_finds_the_minimum_and_shows_the_objectives_own_values(bench, capsys):
    for _ in range(15):
        for query in asked(bench, capsys):
            main(["tell", str(bench), str(query["id"]), str(cost(query["parameters"]))])
    best = printed(capsys, "best", bench, "--json")
    assert best["best_seen"]["value"] == pytest.approx(cost(best["best_seen"]["parameters"]))
    assert 0.0 <= best["best_seen"]["value"] < 0.05
    assert cost(best["best"]["parameters"]) < 0.1
    status = printed(capsys, "status", bench, "--json")
    assert (status["minimize"], status["iteration"]) == (True, 15)


def test_a_failure_is_passed_over(bench, capsys):
    queries = asked(bench, capsys)
    for query in queries[1:]:
        main(["tell", str(bench), str(query["id"]), "1"])
    assert main(["tell", str(bench), str(queries[0]["id"]), "--failed", "the belt slipped"]) == 0
    assert printed(capsys, "status", bench, "--json")["failures"] == 1
    rows = list(csv.DictReader(text_of(capsys, "export", bench).splitlines()))
    assert rows[0]["failure"] == "the belt slipped"
    assert rows[0]["value"] == ""
    assert [row["value"] for row in rows[1:4]] == ["1.0"] * 3
    assert min(query["id"] for query in asked(bench, capsys)) == 4


def test_python_continues_what_the_command_line_began_and_the_other_way_round(bench, capsys):
    def objective(x):
        return cost({"gain": x[0], "damping": x[1]})

    with pytest.raises(gibo.InputError, match=r"budget: .* has none yet"):
        gibo.resume(bench, objective)
    result = gibo.resume(bench, objective, budget=10)
    assert result.evaluations == 10
    assert asked(bench, capsys)[0]["id"] == 10
    main(["tell", str(bench), "10", "0.5"])
    assert gibo.resume(bench, objective, budget=12).history.value[10] == 0.5


# Other packages in this process may have added methods of theirs.
METHODS = ["gibo", "ars", "cma-es", "vanilla-bo", "random-search"]


@pytest.mark.parametrize("method", METHODS)
def test_every_method(method, tmp_path, capsys):
    run = tmp_path / "run"
    words = ["--dim", "2", "--scale", "0.1,0.2", "--x0=-0.5,0.5", "--lower=-1", "--upper", "1", "--minimize"]
    assert main(["init", str(run), *words, "--method", method]) == 0
    for _ in range(3):
        for query in asked(run, capsys):
            assert main(["tell", str(run), str(query["id"]), str(sum(x * x for x in query["x"]))]) == 0
    assert main(["best", str(run)]) == 0
    assert "x0 = " in capsys.readouterr().out


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
    words = ["--minimize", "--budget", "24", "--target", "-1"]
    assert main(["init", str(tmp_path / "run"), "--parameters", str(tmp_path / "machine.toml"), *words]) == 0
    return tmp_path / "run"


def machine_cost(kp, taps):
    return (kp - 8.0) ** 2 / 10.0 + (taps - 7) ** 2


def test_everything_that_is_read_is_in_the_users_units(machine, capsys):
    while printed(capsys, "status", machine, "--json")["evaluations"] < 25:
        for query in asked(machine, capsys):
            kp, taps = query["x"]
            assert query["parameters"] == {"kp": kp, "taps": taps}
            assert 0.5 <= kp <= 8.0
            assert isinstance(taps, int)
            assert main(["tell", str(machine), str(query["id"]), str(machine_cost(kp, taps))]) == 0
    status = printed(capsys, "status", machine, "--json")
    assert status["best"]["parameters"]["kp"] == 8.0
    assert any("upper bound 8)" in advice["text"] for advice in status["advice"] if advice["code"] == "at_bound")
    assert [query["x"] for query in status["pending"]] == [list(q["parameters"].values()) for q in status["pending"]]
    for row in csv.DictReader(text_of(capsys, "export", machine).splitlines()):
        if row["value"]:
            assert float(row["value"]) == machine_cost(float(row["kp"]), int(row["taps"]))


def printed(capsys, *words):
    return json.loads(text_of(capsys, *words))


def text_of(capsys, *words):
    capsys.readouterr()
    assert main([str(word) for word in words]) == 0
    return capsys.readouterr().out


def test_when_one_may_stop(machine, capsys):
    assert "budget of 24 evaluations is spent (0 so far)" in text_of(capsys, "status", machine)
    assert "probability of" not in text_of(capsys, "status", machine)
    while printed(capsys, "status", machine, "--json")["may_stop"] is None:
        for query in asked(machine, capsys):
            main(["tell", str(machine), str(query["id"]), str(machine_cost(*query["x"]))])
    assert printed(capsys, "status", machine, "--json")["evaluations"] >= 24
    assert "budget" in printed(capsys, "ask", machine, "--json")["may_stop"]
    assert "probability of descent" in text_of(capsys, "status", machine)
    assert "Give a budget" not in text_of(capsys, "status", machine)
    result = gibo.resume(machine, machine_cost, budget=40)
    assert result.evaluations == 40
    assert "pending" not in text_of(capsys, "status", machine)


def test_a_budget_of_init_is_that_of_python_and_a_target_ends_it(tmp_path):
    run = tmp_path / "run"
    assert (
        main(["init", str(run), "--dim", "1", "--minimize", "--scale", "0.3", "--budget", "30", "--target", "9"]) == 0
    )
    result = gibo.resume(run, lambda x: float(((x - 1.0) ** 2).sum()))
    assert result.status is gibo.Status.TARGET_REACHED


# -- answers ----------------------------------------------------------------------------------------------------------


def test_init_says_and_asks_which_values_are_good(tmp_path, capsys):
    for words, goal in ((["--minimize"], "minimising"), (["--maximize"], "maximising")):
        assert goal in text_of(capsys, "init", tmp_path / goal, "--dim", 2, *words)
        assert goal in text_of(capsys, "status", tmp_path / goal)
    assert "--minimize" in refused(capsys, "init", tmp_path / "run", "--dim", 2)
    (tmp_path / "p.toml").write_text("[parameters.a]\nstart = 1\n")
    assert "--minimize" in refused(capsys, "init", tmp_path / "run", "--parameters", tmp_path / "p.toml")
    assert "minimising" in text_of(capsys, "init", tmp_path / "run", "--parameters", tmp_path / "p.toml", "--minimize")


def test_tell_says_what_was_recorded_and_what_is_pending(bench, capsys):
    n = len(asked(bench, capsys))
    for i in range(n):
        said = text_of(capsys, "tell", bench, i, 1.5)
        assert "1.5" in said
        assert (f"{n - 1 - i} quer" if i < n - 1 else "gibo ask") in said
    before = text_of(capsys, "export", bench)
    assert "recorded before" in text_of(capsys, "tell", bench, 0, 1.5)
    assert text_of(capsys, "export", bench) == before
    assert "--correct REASON" in refused(capsys, "tell", bench, 0, 2.5)
    assert "2.5" in text_of(capsys, "tell", bench, 0, 2.5, "--correct", "a typing error")
    assert "slipped" in text_of(capsys, "tell", bench, 1, "--failed", "slipped", "--correct", "it had failed")
    assert "recorded before" in text_of(capsys, "tell", bench, 1, "--failed", "slipped")


def test_points_from_elsewhere_are_answered_too(bench, capsys):
    words = ("tell", bench, "--at", "gain=1.5,damping=0.2", "3")
    assert text_of(capsys, *words).strip().endswith("recorded")
    assert text_of(capsys, *words).strip().endswith("recorded before")


def test_an_aborted_run_says_what_to_set(machine, capsys):
    start = printed(capsys, "status", machine, "--json")["iterate"]
    for query in asked(machine, capsys)[:2]:
        main(["tell", str(machine), str(query["id"]), "1.0"])
    assert f"kp = {start['kp']!r}" in text_of(capsys, "abort", machine, "--reason", "smoke")
    status = printed(capsys, "status", machine, "--json")
    assert (status["aborted"], status["state"], status["may_stop"]) == (start, "ended", None)
    assert "smoke" in status["reason"]
    assert "--revoke" in refused(capsys, "ask", machine)
    assert "recorded" in text_of(capsys, "tell", machine, 2, 1.0)  # a value is never refused
    text_of(capsys, "abort", machine, "--at", "kp=2.5,taps=3")
    assert printed(capsys, "best", machine, "--json")["aborted"] == {"kp": 2.5, "taps": 3}
    assert "taps" in refused(capsys, "abort", machine, "--at", "kp=2.5,taps=30")
    with Journal.read(machine) as journal:
        assert [each.kind for each in journal.actions()] == ["abort", "abort"]
    text_of(capsys, "abort", machine, "--revoke")
    assert printed(capsys, "status", machine, "--json")["state"] == "waiting"
    assert "spent (3 so far)" in text_of(capsys, "status", machine)
    assert asked(machine, capsys)


# -- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["ak", "RUN"], "unknown command ak; did you mean ask?"),
        (["xyz"], "unknown command xyz; see --help"),
        (["--lode", "x", "ask", "RUN"], "unknown command --lode; did you mean --load?"),
        (["tell", "RUN", "0", "1.5", "--noize=3"], "tell: unknown option --noize; did you mean --noise?"),
        (["tell", "RUN", "0", "1.5", "--zzz"], "tell: unknown option --zzz; see --help"),
        (["ask", "RUN", "more"], "ask: unknown argument more"),
        (["tell", "RUN", "99", "1.0"], "pending: 0, 1, 2"),
        (["tell", "RUN", "1", "abc"], "--failed REASON"),
        (["tell", "RUN", "1"], "--failed REASON"),
        (["tell", "RUN", "1", "nan"], "finite"),
        (["tell", "RUN", "1", "2.0", "--failed"], "--failed"),
        (["tell", "RUN", "one", "2.0"], "ID"),
        (["export", "RUN", "--out", "x.xlsx"], ".csv, .json, .parquet"),
        (["best", "RUN"], "no evaluation has a value yet"),
        (["init", "RUN", "--dim", "2", "--minimize"], "there is already a run"),
        (["ask", "nowhere"], "there is no run"),
        (["export", "nowhere"], "there is no run"),
    ],
)
def test_a_mistake_is_one_line_with_a_hint_and_changes_nothing(words, hint, bench, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked(bench, capsys)
    before = (bench / "journal.sqlite").read_bytes()
    assert hint in refused(capsys, *(bench if word == "RUN" else word for word in words))
    assert (bench / "journal.sqlite").read_bytes() == before
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--dim N"),
        (["--dim", "0"], "--dim"),
        (["--dim", "3", "--scale", "1,2"], "--scale"),
        (["--dim", "3", "--x0", "a"], "--x0"),
        (["--dim", "1", "--scale", "0"], "scale"),
        (["--dim", "1", "--lower", "2", "--upper", "1"], "lower must be below upper"),
        (["--dim", "1", "--method", "magic"], "method"),
        (["--dim", "1", "--method", "vanilla-bo"], "finite bounds"),
        (["--dim", "1", "--seed=-1"], "seed"),
        (["--dim", "1", "--budget", "0"], "budget"),
        (["--dim", "1", "--target", "nan"], "target"),
        (["--dim", "1", "--parameters", "x.toml"], "--dim"),
        (["--parameters", "nothing.toml"], "nothing.toml"),
    ],
)
def test_wrong_arguments_of_init(words, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in refused(capsys, "init", "run", "--maximize", *words)
    assert not (tmp_path / "run" / "journal.sqlite").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "[parameters.NAME]"),
        ("x = ", "TOML"),
        ("colour = 1\n[parameters.a]\nstart = 1", "'colour'"),
        ("minimize = true\n[parameters.a]\nstart = 1", "minimize"),
        ("[parameters]\na = 3", "parameters.a"),
        ("[parameters.a]\nscale = 1", "start"),
        ("[parameters.a]\nstart = 1\nstep = 1", "'step'"),
        ("[parameters.a]\nstart = '1'", "parameters.a.start"),
        ("[parameters.a]\nstart = 9\nupper = 1", "bounds"),
        ("seed = 'x'\n[parameters.a]\nstart = 1", "seed"),
        ("[parameters.a]\nstart = 1\n[settings]\nMM = 1", "'MM'"),
        ("[parameters.a]\nstart = 1\n[settings]\nM = 0", "M: expected"),
        ("method = 'ars'\n[parameters.a]\nstart = 1\n[settings]\nM = 2", "settings"),
    ],
)
def test_wrong_files_of_parameters(text, message, tmp_path, capsys):
    (tmp_path / "p.toml").write_text(text)
    assert message in refused(capsys, "init", tmp_path / "run", "--maximize", "--parameters", tmp_path / "p.toml")
