"""A run that a person or another program drives: gibo init, ask, tell, status, best, export."""

import csv
import json
import random
import shutil
import subprocess
import sys

import numpy as np
import pytest

import gibo
from gibo.cli import main
from gibo.optimizers import methods

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
    words = [sys.executable, "-c", "from gibo.cli import entry; entry()"]
    subprocess.run(
        [*words, "init", run, "--dim", "2", "--scale", "0.3", "--seed", "5"], check=True, capture_output=True
    )
    expected = gibo.GIBO(np.zeros(2), scale=0.3, seed=5)
    for _ in range(2):
        queries = answer("ask", run, "--json")["queries"]
        assert [query["x"] for query in queries] == [query.x.tolist() for query in expected.ask()]
        assert [query["seed"] for query in queries] == [query.seed for query in expected.ask()]
        for query in reversed(expected.ask()):
            value = -float(((query.x - 1.0) ** 2).sum())
            subprocess.run([*words, "tell", run, str(query.id), repr(value)], check=True)
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
    for words in (["ask"], ["status"], ["best"], ["status", "--json"], ["best", "--json"], ["export", "--csv"]):
        capsys.readouterr()
        assert main([words[0], str(bench), *words[1:]]) == 0
        out = capsys.readouterr().out
        assert "gain" in out
        assert "damping" in out


def test_minimising_finds_the_minimum_and_shows_the_objectives_own_values(bench, capsys):
    for _ in range(15):
        for query in asked(bench, capsys):
            main(["tell", str(bench), str(query["id"]), str(cost(query["parameters"]))])
    assert main(["best", str(bench), "--json"]) == 0
    best = json.loads(capsys.readouterr().out)
    assert best["best_seen"]["value"] == pytest.approx(cost(best["best_seen"]["parameters"]))
    assert 0.0 <= best["best_seen"]["value"] < 0.05
    assert cost(best["best"]["parameters"]) < 0.1
    assert main(["status", str(bench), "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["evaluations"], status["minimize"], status["iteration"]) == (61, True, 15)


def test_bounds_are_kept(bench, capsys):
    for _ in range(6):
        for query in asked(bench, capsys):
            assert 0.0 <= query["parameters"]["gain"] <= 5.0
            main(["tell", str(bench), str(query["id"]), str(query["parameters"]["gain"])])


def test_a_failure_is_passed_over(bench, capsys):
    queries = asked(bench, capsys)
    for query in queries[1:]:
        main(["tell", str(bench), str(query["id"]), "1"])
    assert main(["tell", str(bench), str(queries[0]["id"]), "--failed", "the belt slipped"]) == 0
    assert main(["status", str(bench), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["failures"] == 1
    assert main(["export", str(bench)]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert rows[0]["failure"] == "the belt slipped"
    assert rows[0]["value"] == ""
    assert [row["value"] for row in rows[1:4]] == ["1.0"] * 3
    assert min(query["id"] for query in asked(bench, capsys)) == 4


def test_a_table_in_a_file(bench, capsys, tmp_path):
    queries = asked(bench, capsys)
    main(["tell", str(bench), "0", "-1e-3"])
    assert main(["export", str(bench), "--csv", "--out", str(tmp_path / "out.csv")]) == 0
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    assert [float(row["gain"]) for row in rows] == [query["parameters"]["gain"] for query in queries]
    assert [row["value"] for row in rows] == ["-0.001", "", "", ""]


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


@pytest.mark.parametrize("method", methods())
def test_every_method(method, tmp_path, capsys):
    run = tmp_path / "run"
    words = ["--dim", "2", "--scale", "0.1,0.2", "--x0=-0.5,0.5", "--lower=-1", "--upper", "1", "--minimize"]
    assert main(["init", str(run), *words, "--method", method]) == 0
    for _ in range(3):
        for query in asked(run, capsys):
            assert main(["tell", str(run), str(query["id"]), str(sum(x * x for x in query["x"]))]) == 0
    assert main(["best", str(run)]) == 0
    assert "x0 = " in capsys.readouterr().out


# -- mistakes ---------------------------------------------------------------------------------------------------------


def test_wrong_tells_are_one_line_and_change_nothing(bench, capsys):
    asked(bench, capsys)
    assert main(["tell", str(bench), "0", "1.0"]) == 0
    before = (bench / "journal.sqlite").read_bytes()
    assert "query 0 was told before" in refused(capsys, "tell", bench, 0, 1.0)
    assert "query 99 is unknown; those that are pending: 1, 2, 3" in refused(capsys, "tell", bench, 99, 1.0)
    assert "expected a number, got 'abc'" in refused(capsys, "tell", bench, 1, "abc")
    for value in ("nan", "inf", "-inf"):
        assert f"expected a finite number, got {value}" in refused(capsys, "tell", bench, 1, value)
    assert "give a value, or say that the evaluation failed" in refused(capsys, "tell", bench, 1)
    assert "give a value, or say" in refused(capsys, "tell", bench, 1, 2.0, "--failed")
    assert (bench / "journal.sqlite").read_bytes() == before


def test_folders_without_a_run(tmp_path, capsys):
    for command in ("ask", "status", "best", "export"):
        assert "there is no run" in refused(capsys, command, tmp_path / "nowhere")
    assert "there is no run" in refused(capsys, "tell", tmp_path, 0, 1.0)
    assert not (tmp_path / "nowhere").exists()


def test_a_second_init_is_refused(bench, capsys):
    assert "there is a run already" in refused(capsys, "init", bench, "--dim", 2)


def test_best_before_any_value(bench, capsys):
    assert "no evaluation has a value yet" in refused(capsys, "best", bench)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give --dim N, or --parameters FILE"),
        (["--dim", "0"], "--dim: expected at least 1"),
        (["--dim", "3", "--scale", "1,2"], "--scale: expected a number, or 3 separated by commas, got 2"),
        (["--dim", "3", "--x0", "a"], "--x0: expected a number"),
        (["--dim", "1", "--scale", "0"], "scale: expected positive"),
        (["--dim", "1", "--lower", "2", "--upper", "1"], "lower must be below upper"),
        (["--dim", "1", "--method", "magic"], "method: expected one of 'ars', 'cma-es', 'gibo'"),
        (["--dim", "1", "--method", "vanilla-bo"], "give finite bounds"),
        (["--dim", "1", "--seed=-1"], "seed: expected"),
        (["--dim", "1", "--parameters", "x.toml"], "give --dim N, or --parameters FILE"),
        (["--parameters", "nothing.toml"], "there is no such file"),
    ],
)
def test_wrong_arguments_of_init(words, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in refused(capsys, "init", "run", *words)
    assert not (tmp_path / "run" / "journal.sqlite").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"expected a table [parameters.NAME]"),
        ("x = ", "not readable as TOML"),
        ("colour = 1\n[parameters.a]\nstart = 1", "'colour' is unknown"),
        ("[parameters]\na = 3", "parameters.a: expected start"),
        ("[parameters.a]\nscale = 1", "parameters.a: start is missing"),
        ("[parameters.a]\nstart = 1\nstep = 1", "parameters.a: 'step' is unknown"),
        ("[parameters.a]\nstart = '1'", "parameters.a.start: expected a number"),
        ("[parameters.a]\nstart = 9\nupper = 1", "x0: must lie within the bounds"),
        ("seed = 'x'\n[parameters.a]\nstart = 1", "seed: got str"),
        ("[parameters.a]\nstart = 1\n[settings]\nMM = 1", "'MM' is unknown"),
        ("[parameters.a]\nstart = 1\n[settings]\nM = 0", "M: expected a whole number"),
        ("method = 'ars'\n[parameters.a]\nstart = 1\n[settings]\nM = 2", "they are for the method gibo"),
    ],
)
def test_wrong_files_of_parameters(text, message, tmp_path, capsys):
    (tmp_path / "p.toml").write_text(text)
    assert message in refused(capsys, "init", tmp_path / "run", "--parameters", tmp_path / "p.toml")


def test_damaged_journals_are_one_line_and_stay_as_they_are(bench, capsys, tmp_path):
    """A few of many; `tests/runs` has the rest."""
    for query in asked(bench, capsys):
        main(["tell", str(bench), str(query["id"]), "1.5"])
    whole = (bench / "journal.sqlite").read_bytes()
    rng = random.Random(0)
    refusals = 0
    for i in range(60):
        broken = bytearray(whole)
        if i % 2:
            del broken[rng.randrange(len(whole)) :]
        else:
            start = rng.randrange(len(whole))
            broken[start : start + 64] = rng.randbytes(len(broken[start : start + 64]))
        folder = tmp_path / f"copy{i}"
        shutil.copytree(bench, folder)
        (folder / "journal.sqlite").write_bytes(broken)
        capsys.readouterr()
        code = main(["status", str(folder)])
        captured = capsys.readouterr()
        assert code in (0, 2)
        if code == 2:
            refusals += 1
            assert captured.err.startswith("gibo: ")
            assert captured.err.count("\n") == 1
        assert (folder / "journal.sqlite").read_bytes() == bytes(broken)
    assert refusals > 30
