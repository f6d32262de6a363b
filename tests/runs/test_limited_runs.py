"""Limits in runs: as options, in a file of parameters, told by hand and by programs."""

import json

import numpy as np
import pytest

import gibo
from gibo import InputError, Journal, Outcome
from gibo.cli import main
from gibo.web.bench import ManualBench

FILE = """
minimize = false
careful = true
largest_step = 2.0

[parameters.gain]
start = 0.0
scale = 0.3

[limits.load]
upper = 0.5
"""


def machine(x):
    return Outcome(-float(((x - 1.0) ** 2).sum()), measured={"load": float(x.mean())})


@pytest.mark.parametrize("search", [gibo.maximize, gibo.minimize])
def test_a_run_says_the_probability_of_each_limit(search):
    sign = 1.0 if search is gibo.maximize else -1.0
    result = search(
        lambda x: machine(x).signed(sign),
        [0.0, 0.0],
        budget=50,
        scale=0.3,
        limits={"load": (None, 0.5)},
        careful=True,
        largest_step=1.0,
    )
    assert 0.95 <= result.limits["load"] <= 1.0
    assert 0.35 < result.x.mean() <= 0.5
    assert "limit of load: holds there with probability" in str(result)


def test_a_run_with_limits_is_continued_with_them(tmp_path):
    options = {"scale": 0.3, "limits": {"load": (None, 0.5)}, "careful": True}
    gibo.maximize(machine, [0.0, 0.0], budget=9, journal=tmp_path, **options)
    continued = gibo.resume(tmp_path, machine, budget=20)
    whole = gibo.maximize(machine, [0.0, 0.0], budget=20, **options)
    np.testing.assert_array_equal(continued.history.x, whole.history.x)
    assert continued.limits == whole.limits
    with pytest.raises(InputError, match="limits was"):
        gibo.maximize(machine, [0.0, 0.0], budget=20, journal=tmp_path, scale=0.3, limits={"load": (None, 0.6)})


def test_mistakes_are_said_at_once():
    with pytest.raises(InputError, match="'load' has a limit"):
        gibo.maximize(lambda x: 1.0, [0.0], budget=5, limits={"load": (None, 0.5)})
    with pytest.raises(InputError, match="above its upper limit -1"):
        gibo.maximize(machine, [0.0], budget=5, limits={"load": (None, -1.0)}, careful=True)
    with pytest.raises(InputError, match="careful: expected limits"):
        gibo.maximize(machine, [0.0], budget=5, careful=True)


def test_points_from_elsewhere_that_violate_a_limit_are_no_start():
    known = [([x], machine(np.array([x]))) for x in (0.1, 0.3, 0.9)]
    result = gibo.maximize(machine, [0.0], budget=1, data=known, limits={"load": (None, 0.5)})
    assert result.iterate.tolist() == [0.3]


def by_hand(tmp_path):
    (tmp_path / "parameters.toml").write_text(FILE)
    run = str(tmp_path / "run")
    assert main(["init", run, "--parameters", str(tmp_path / "parameters.toml")]) == 0
    return run


def test_a_file_of_parameters_has_limits(tmp_path):
    with Journal.read(by_hand(tmp_path)) as journal:
        arguments = journal.spec().fresh_optimizer()
    assert arguments.limits == gibo.Limits({"load": (None, 0.5)}, careful=True)
    assert arguments.largest_step == 2.0


def test_measured_quantities_are_told_by_hand(tmp_path, capsys):
    run = by_hand(tmp_path)
    assert main(["ask", run]) == 0
    assert main(["tell", run, "0", "1.5"]) == 2
    assert "'load' has a limit" in capsys.readouterr().err
    assert main(["tell", run, "0", "1.5", "--measured", "load=nan"]) == 2
    assert main(["tell", run, "0", "1.5", "--measured", "load=0.2"]) == 0
    with Journal.read(run) as journal:
        assert [e.measured for e, _ in journal.evaluations()] == [{"load": 0.2}]
    assert main(["tell", run, "0", "1.5", "--measured", "load=0.2"]) == 0  # the same again
    assert main(["tell", run, "0", "1.5", "--measured", "load=0.3"]) == 2


def test_measured_quantities_are_told_by_programs(tmp_path):
    with ManualBench(by_hand(tmp_path)) as bench:
        (query,) = bench.ask()["queries"]
        with pytest.raises(InputError, match="'load' has a limit"):
            bench.tell({"id": query["id"], "value": 1.0})
        bench.tell(json.loads(json.dumps({"id": query["id"], "value": 1.0, "measured": {"load": 0.1}})))
        assert bench.ask()["queries"][0]["kind"] == "query"
