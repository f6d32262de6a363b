"""Blocks in runs: said with each query, told or taken from it, kept by the journal, and read from files."""

import json

import numpy as np
import pytest

import gibo
from gibo import InputError, Journal, Outcome, Settings
from gibo.cli import main

FILE = """
minimize = false

[parameters.gain]
start = 0.0
scale = 0.3

[parameters.damping]
start = 0.0
scale = 0.3

[settings]
blocks = "given"
"""


def machine(x, block=None):
    return Outcome(-float(((x - 1.0) ** 2).sum()), block=block)


def blocks_in(folder):
    with Journal.read(folder) as journal:
        return [e.block for e, _ in journal.evaluations()]


def planned(capsys, run):
    capsys.readouterr()
    assert main(["ask", str(run), "--json"]) == 0
    return [query.get("block") for query in json.loads(capsys.readouterr().out)["queries"]]


def test_by_hand_a_query_says_its_block_and_its_value_gets_it(bench, capsys):
    assert planned(capsys, bench) == [None] * 3
    for number, day in enumerate(("monday", "3", "monday")):
        assert main(["tell", str(bench), str(number), "1.2", "--repeats", "5", "--block", day]) == 0
    assert main(["tell", str(bench), "2", "1.2", "--repeats", "5", "--block", "friday"]) == 2
    with Journal.read(bench) as journal:
        assert journal.evaluations()[2][0].outcome.details() == {"repeats": 5, "block": "monday"}
    assert planned(capsys, bench) == ["monday"] * 3
    main(["ask", str(bench)])
    head, row = capsys.readouterr().out.splitlines()[:2]
    assert (head.split()[2], row.split()[2]) == ("block", "monday")
    assert main(["tell", str(bench), "3", "1.1"]) == 0
    assert main(["tell", str(bench), "--at", "gain=0.1,damping=0.1", "1.0", "--block", "friday"]) == 0
    assert blocks_in(bench) == ["monday", 3.0, "monday", "monday", "friday"]
    export = bench.with_name("rows.csv")
    assert main(["export", str(bench), "--out", str(export)]) == 0
    cells = [line.split(",") for line in export.read_text().splitlines()]
    column = [row[cells[0].index("block")] for row in cells]
    assert column == ["block", "monday", "3.0", "monday", "monday", "monday", "monday", "friday"]


def test_the_start_of_a_drift_in_given_times_and_clear_errors(tmp_path):
    times = Settings(drift=True, blocks="given")
    result = gibo.maximize(lambda x: machine(x, 2.0), [0.0, 0.0], budget=9, scale=0.3, settings=times)
    assert np.isfinite(result.value)
    with pytest.raises(InputError, match="each value needs a number as its block, its time; that of query 0 has None"):
        gibo.maximize(machine, [0.0, 0.0], budget=9, settings=times)
    with pytest.raises(InputError, match="each value needs a number as its block"):
        gibo.maximize(machine, [0.0, 0.0], budget=9, settings=times, data=[([0.0, 0.0], 1.0)])
    with pytest.raises(InputError, match="that of query 0 has 'monday'"):
        gibo.maximize(lambda x: machine(x, "monday"), [0.0, 0.0], budget=9, settings=times)


def test_a_failure_with_a_penalty_has_the_time_of_its_query(tmp_path):
    count = iter(range(100))

    def objective(x):
        time = next(count)
        if time % 4 == 3:
            raise RuntimeError("it broke")
        return machine(x, 10.0 * time)

    with pytest.warns(gibo.FailedEvaluationWarning):
        result = gibo.maximize(
            objective,
            [0.0, 0.0],
            budget=20,
            penalty=-9.0,
            journal=tmp_path,
            settings=Settings(drift=True, blocks="given"),
        )
    assert np.isfinite(result.value)
