"""Limits in runs: as options, in a file of parameters, told by hand and by programs."""

import numpy as np
import pytest

import gibo
from gibo import InputError, Journal, Outcome
from gibo.cli import main
from gibo.web.snapshot import snapshot

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


def test_points_from_elsewhere_that_violate_a_limit_are_no_start():
    known = [([x], machine(np.array([x]))) for x in (0.1, 0.3, 0.9)]
    result = gibo.maximize(machine, [0.0], budget=1, data=known, limits={"load": (None, 0.5)})
    assert result.iterate.tolist() == [0.3]


def by_hand(tmp_path):
    (tmp_path / "parameters.toml").write_text(FILE)
    run = str(tmp_path / "run")
    assert main(["init", run, "--parameters", str(tmp_path / "parameters.toml")]) == 0
    return run


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


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (Outcome(1.0, noise=-1.0), "the objective's noise: expected a non-negative finite number, got -1.0; later in"),
        (Outcome(1.0, measured={"lode": 1.0}), "the objective's measured: 'load' has a limit"),
    ],
)
def test_a_mistake_of_the_objective_is_said_before_anything_is_spent(outcome, text, tmp_path):
    with pytest.raises(InputError, match=text):
        gibo.maximize(lambda x: outcome, [0.0], budget=5, limits={"load": (None, 0.5)}, journal=tmp_path)
    with Journal.read(tmp_path) as journal:
        assert journal.evaluations() == []


def test_later_in_a_run_it_is_a_failed_evaluation():
    def sometimes(x, seed):
        value = -float(((x - 1.0) ** 2).sum())
        if x.any() and seed % 3 == 0:
            return value  # its measurement is missing
        return Outcome(value, measured={"load": np.nan if x.any() and seed % 3 == 1 else 0.1})

    with pytest.warns(gibo.FailedEvaluationWarning):
        result = gibo.maximize(sometimes, [0.0, 0.0], budget=20, limits={"load": (None, 0.5)})
    assert result.evaluations == 20
    reasons = {e.failure.partition(";")[0] for e in result.failures}
    assert reasons == {
        "the objective's measured: 'load' has a limit, and this evaluation has no measurement of it",
        "the objective's measured: 'load': expected a finite number, got nan",
    }


def test_a_start_that_violates_is_said_at_once_and_until_a_better_point_is_recommended(tmp_path, capfd):
    def violating(x):
        return Outcome(-float(((x - 1.0) ** 2).sum()), measured={"load": 1.0 - 0.5 * float(x[0])})

    def run(budget, limit=0.5, **options):
        return gibo.maximize(violating, [0.0, 0.0], budget=budget, scale=0.3, limits={"load": (None, limit)}, **options)

    first = run(4, -50.0, journal=tmp_path)
    said = "The start violates a limit: load is 1, above its upper limit -50. The search looks for a point"
    assert said in capfd.readouterr().err
    assert said in first.advice[1].text
    assert [each["code"] for each in snapshot(tmp_path)["advice"]] == ["start_violates"]
    whole = run(60)
    assert whole.limits["load"] > 0.95
    assert "start_violates" not in [advice.code for advice in whole.advice]
