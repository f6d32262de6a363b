"""Two sources in runs: what the objective gets, the budget, the journal, kills, and runs by hand."""

import numpy as np
import pytest

import gibo
from gibo import InputError, Journal
from gibo.cli import main
from gibo.runs.manual import ask, status
from gibo.web.snapshot import Since, snapshot

COSTS = {"simulator": 1, "robot": 20}
OPTIONS = {"scale": 0.3, "sources": COSTS}
FILE = """
minimize = false
budget = 10

[parameters.gain]
start = 0.0
scale = 0.3

[parameters.damping]
start = 0.0
scale = 0.3

[sources]
simulator = 1
robot = 20
"""


def objective(x, source, seed):
    noise = 0.01 * (seed % 100) / 100
    return -float(((x - 1.0) ** 2).sum()) + noise + (5.0 if source == "simulator" else 0.0)


def points(folder):
    with Journal.read(folder) as journal:
        return [(e.id, e.source, e.kind, e.x.tolist(), e.value) for e, _ in journal.evaluations()]


def test_the_budget_and_all_values_are_the_machines(tmp_path):
    result = gibo.maximize(objective, [0.0] * 3, budget=9, journal=tmp_path, **OPTIONS)
    assert result.evaluations == 9
    assert result.reason == "the budget of 9 evaluations is spent"
    assert 0 < result.simulated <= 9 * 20
    assert f"9 evaluations, {result.simulated} of the simulator" in str(result)
    assert result.best_seen.value < 1.0  # the simulator's level is 5 above
    assert np.isfinite(result.history.value).all()
    assert result.history.value.max() == result.best_seen.value
    assert 2 < result.history.evaluations[-1] <= 9
    assert {row[1] for row in points(tmp_path)} == {"simulator", "robot"}
    assert status(tmp_path).result.evaluations == 9
    page = snapshot(tmp_path, Since())
    assert page["best_seen"]["value"] == result.best_seen.value
    assert page["verdict"]["text"] == result.advice[0].text
    columns = result.columns()
    assert {(kind == "simulated", source) for kind, source in zip(columns["kind"], columns["source"], strict=True)} == {
        (True, "simulator"),
        (False, "robot"),
    }


@pytest.mark.parametrize("at", [2, 15])
def test_a_run_that_was_stopped_is_continued_as_if_nothing_had_been(tmp_path, at):
    def stopping(x, source, seed):
        calls.append(x)
        if len(calls) == at:
            raise KeyboardInterrupt
        return objective(x, source, seed)

    calls = []
    gibo.maximize(objective, [0.0] * 3, budget=9, journal=tmp_path / "whole", **OPTIONS)
    gibo.maximize(stopping, [0.0] * 3, budget=9, journal=tmp_path / "parts", **OPTIONS)
    assert len(points(tmp_path / "parts")) == at - 1
    gibo.resume(tmp_path / "parts", objective)
    assert points(tmp_path / "parts") == points(tmp_path / "whole")


def test_by_hand_each_query_says_its_source(bench, capsys):
    capsys.readouterr()
    assert main(["ask", str(bench)]) == 0
    head, row = capsys.readouterr().out.splitlines()[:2]
    assert (head.split()[:3], row.split()[:3]) == (["id", "kind", "source"], ["0", "iterate", "robot"])
    assert main(["tell", str(bench), "0", "-2.0", "--source", "simulator"]) == 2
    assert "source: expected 'robot' for query 0, got 'simulator'" in capsys.readouterr().err
    assert main(["tell", str(bench), "0", "-2.0", "--source", "robot"]) == 0
    queries = ask(bench).queries
    assert {(query.kind, query.source) for query in queries} == {("simulated", "simulator")}
    for query in queries:
        assert main(["tell", str(bench), str(query.id), "3.0"]) == 0
    assert (status(bench).result.best_seen.value, status(bench).result.evaluations) == (-2.0, 1)
    assert snapshot(bench)["pending"] == []


def test_bad_input():
    with pytest.raises(InputError, match="objective: with sources it needs a parameter source"):
        gibo.maximize(lambda x: 1.0, [0.0], budget=3, **OPTIONS)
    for option in ({"baseline": 2}, {"penalty": -1.0}):
        with pytest.raises(InputError, match="cannot be combined with sources"):
            gibo.maximize(objective, [0.0], budget=3, **OPTIONS, **option)
    with pytest.raises(InputError, match="expected two sources"):
        gibo.maximize(objective, [0.0], budget=3, sources={"robot": 1})


def test_an_objective_of_named_parameters_gets_the_source():
    seen = set()

    def named(gain, source):
        seen.add(source)
        return -((gain - 1.0) ** 2)

    parameters = gibo.parameters.Parameters(gain=gibo.parameters.linear(-2.0, 2.0, start=0.0))
    gibo.maximize(named, parameters=parameters, budget=3, sources=COSTS)
    assert seen == {"simulator", "robot"}


def test_without_sources_a_parameter_source_is_the_objectives_own():
    def own(x, source="a file"):
        assert source == "a file"
        return -float(x @ x)

    assert gibo.maximize(own, [1.0], budget=3).evaluations == 3
