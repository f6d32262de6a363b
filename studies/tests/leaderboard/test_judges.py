"""The judges: their lists follow their rules, their tasks are what they say, and each run of one is recorded."""

import csv
import itertools
import math
from importlib.util import find_spec

import numpy as np
import pytest

from gibo.cli import main
from gibo.outcome import Outcome
from gibo_studies.leaderboard.environments import policy_task
from gibo_studies.leaderboard.judges import coco, gains, judge, policies
from gibo_studies.leaderboard.judges.tables import _mean_ranks, summary
from gibo_studies.leaderboard.methods import DEFAULT
from gibo_studies.leaderboard.run import CANDIDATES, REPEATS, look_at_a_run
from gibo_studies.leaderboard.task import Problem, Task, prepared

COCO = pytest.mark.skipif(find_spec("cocoex") is None, reason="needs coco-experiment")


# -- COCO -------------------------------------------------------------------------------------------------------------


@COCO
def test_all_functions_of_a_suite_are_there():
    import cocoex

    for suite in ("bbob", "bbob-noisy"):
        ids = {(task.make.number, task.d) for task in coco.tasks(suite)}
        problems = cocoex.Suite(suite, "", "instances: 1 dimensions: 5,10,20").ids()
        assert {tuple(int(part[1:]) for part in name.split("_")[-3::2]) for name in problems} == ids
    assert coco.tasks("bbob")[0].marks == (25, 50, 150)


@COCO
@pytest.mark.parametrize("number", range(101, 131, 3))
def test_the_value_without_noise_is_that_of_the_noise_free_function(number):
    """Where `bbob` has the very same function; the others have another condition number or another factor there."""
    import cocoex

    problem = coco.Function("bbob-noisy", number, 5)(2)
    same = coco.SAME_SEED[coco._first(number)]
    function = cocoex.BareProblem("bbob", same, 5, 3)
    optimum = np.array(function.best_parameter())
    assert problem.truth(optimum) == pytest.approx(problem.reference, abs=1e-9)
    if same not in (10, 19):
        x = np.random.default_rng(number).uniform(-4.0, 4.0, 5)
        assert problem.truth(x) == pytest.approx(-function(x), rel=1e-12)


@COCO
@pytest.mark.parametrize(("number", "tolerance"), [(101, 1e-3), (107, 0.1), (108, 0.2)])
def test_the_mean_of_what_is_told_is_that_of_many_values(number, tolerance):
    problem = coco.Function("bbob-noisy", number, 5)(0)
    x = np.full(5, 1.5)
    values = [problem.evaluate(x, 0) for _ in range(20_000)]
    problem.finish()
    best = -problem.reference
    assert -np.mean(values) - best == pytest.approx(-problem.told_mean(x) - best, rel=tolerance)
    assert coco.Function("bbob-noisy", 103, 5)(0).told_mean(x) is None  # of Cauchy noise there is no mean


@COCO
def test_noise_is_repeated_with_the_run_and_differs_between_runs():
    def drawn(number, instance):
        problem = coco.Function("bbob-noisy", number, 5)(instance)
        values = [problem.evaluate(np.zeros(5), 0) for _ in range(5)]
        problem.finish()
        again = [problem.evaluate(np.zeros(5), 0) for _ in range(5)]  # a new evaluation has new noise
        problem.finish()
        assert not set(values) & set(again)
        return [(value - problem.reference) / (problem.truth(np.zeros(5)) - problem.reference) for value in values]

    assert drawn(107, 0) == drawn(107, 0)
    for one, other in itertools.combinations([drawn(107, 0), drawn(107, 1), drawn(110, 0)], 2):
        assert not np.allclose(one, other)


@COCO
def test_a_run_is_written_in_cocos_format(tmp_path):
    task, problem = prepared(coco.tasks("bbob-noisy")[0], 0)
    problem.observe(tmp_path / "CMA-ES" / "f101", "CMA-ES")
    for _ in range(7):
        problem.evaluate(task.start + 1.0, 0)
    problem.finish()
    problem.evaluate(task.start, 0)  # a judge's own
    problem.finish()
    (info,) = (tmp_path / "CMA-ES" / "f101").glob("*.info")
    assert ", 1:7|" in info.read_text()


# -- gains ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", gains.tasks(), ids=lambda task: task.name)
def test_a_plant_starts_badly_and_is_as_random_as_its_seed(task):
    one, problem = prepared(task, 3)
    assert 2 <= task.d <= 6
    assert problem.truth(one.start) <= gains.MARGIN * problem.reference
    assert problem.evaluate(one.start, 1) == task.make(4).evaluate(one.start, 1) != problem.evaluate(one.start, 2)
    assert (prepared(task, 4)[0].start != one.start).all()
    assert problem.truth(np.full(task.d, 5.0)) == problem.truth(np.ones(task.d))  # gains stay within their ranges


def test_the_best_gains_are_about_what_is_written_down():
    found = np.array([0.775, 0.673])
    assert gains.PLANTS["lag-pi"].truth(found) == pytest.approx(gains.PLANTS["lag-pi"].best, abs=1e-4)


def test_a_controller_without_gain_leaves_the_error():
    """The mean square of setpoints around 1, whose standard deviation is 0.2, with the load half of the time."""
    rng = np.random.default_rng(0)
    values = [gains.PLANTS["lag-pi"].value([0.0, 0.0], rng) for _ in range(200)]
    assert np.mean(values) == pytest.approx(-(1.04 + 0.5 * (0.5**2 + 2 * 0.04 - 1.0)), abs=0.15)


# -- policies ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*policies.GYMNASIUM])
def test_the_numbers_of_parameters_are_the_environments(name):
    made = policy_task(name, "linear", None).architecture
    assert (made.inputs, made.outputs) == policies.GYMNASIUM[name][:2]


def test_parameters_come_in_a_random_order():
    task = next(task for task in judge.JUDGES["policies"].tasks() if task.name == "CartPole-v1 linear")
    known = np.array([0.1, 0.5, 1.0, 1.0])
    values = {tuple(order): task.make(0).truth(known[list(order)]) for order in itertools.permutations(range(4))}
    plain = policy_task("CartPole-v1", "linear", None).evaluate(known, 20, seed=77)
    assert math.fsum(each.value for each in plain) / 20 in values.values()
    assert task.make(0).truth(known) != task.make(1).truth(known)


@pytest.mark.parametrize(("judged", "module"), [("simopt", "simopt"), ("control", "dm_control")])
def test_a_task_of_a_library_is_as_random_as_its_seed(judged, module):
    pytest.importorskip(module)
    task, problem = prepared(judge.JUDGES[judged].tasks()[2], 0)
    values = [problem.evaluate(task.start, seed) for seed in (1, 1, 2)]
    values = [value.value if isinstance(value, Outcome) else value for value in values]
    assert values[0] == values[1] != values[2]
    assert problem.truth(task.start) < problem.reference


# -- a run before a judge ---------------------------------------------------------------------------------------------


def test_the_best_of_the_luckiest_points_by_new_values_is_judged_too():
    """The value lies in the first number; the highest told is the worst of all."""
    truth = {0.0: 1.0, 1.0: 3.0, 2.0: 2.0}
    asked = []

    def evaluate(x, seed):
        asked.append(seed)
        told = truth[float(x[0])]
        return told + 10.0 if float(x[0]) == 0.0 and len(asked) <= 3 else told

    problem = Problem(evaluate, lambda x: truth[float(x[0])], 3.0)
    task = Task("t", np.zeros(1), 1.0, lambda number: problem, (3,))

    from test_leaderboard import Stubborn

    class Lucky(Stubborn):
        @property
        def best(self):
            return self.best_seen

        def _propose(self):
            return [(np.array([float(self._iteration)]), "query")]

    looked = look_at_a_run(task, problem, Lucky([0.0]), [3], reevaluate=True)
    assert [look.truth for look in looked.looks] == [1.0]
    assert [look.truth for look in looked.reevaluated] == [3.0]
    assert looked.reevaluated[-1].believed == 3.0
    assert len(asked) == 3 + REPEATS * min(3, CANDIDATES)


def test_a_run_is_recorded_and_other_methods_rows_stay(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(judge, "results_folder", lambda name, out: tmp_path / "results")
    words = ["reproduce", "judge", "--judge", "gains", "--dimensions", "2", "--trials", "2", "--workers", "1"]
    assert main([*words, "--methods", "Random search", "--out", str(tmp_path / "one")]) == 0
    assert main([*words, "--methods", "ARS", "--out", str(tmp_path / "two")]) == 0
    said = capsys.readouterr().out
    assert "paired difference to ARS" in said or "paired difference to Random search" in said
    with (tmp_path / "results" / "log.csv").open() as file:
        log = list(csv.DictReader(file))
    assert [(row["judge"], row["methods"], row["cells"]) for row in log] == [
        ("gains", "Random search", "2 of 2"),
        ("gains", "ARS", "2 of 2"),
    ]
    rows = judge.read_rows(tmp_path / "results" / "gains.csv")
    assert judge.merged(rows, [{**rows[3], "share": "9"}]) == [*rows[:3], {**rows[3], "share": "9"}, *rows[4:]]
    assert tuple(rows[0]) == judge.ROW
    found = {(row["task"], row["trial"], row["method"], row["look"]) for row in rows}
    assert found == {
        ("lag-pi", trial, method, look)
        for trial in "01"
        for method in ("ARS", "Random search")
        for look in ("10", "20", "40")
    }
    row = rows[0]
    start = prepared(gains.tasks()[0], 0)
    worth = start[1].truth(start[0].start)
    assert float(row["share"]) == pytest.approx((float(row["true"]) - worth) / (start[1].reference - worth), rel=1e-3)


def test_tasks_of_which_fewer_runs_are_made_have_tables_of_their_own():
    def rows(task, method, share):
        numbers = {"look": "10", "low": "", "mean": "", "at_start": "0"}
        return [{"task": task, "trial": str(i), "method": method, "share": str(share), **numbers} for i in range(4)]

    found = [
        *rows("f1 d5", "b", 0.5),
        *rows("f1 d5", DEFAULT, 1.0),
        *rows("f1 d20", "b", 0.25),
        *rows("f1 d20", "a", 0.5),
    ]
    first, second, tasks = summary("judge", "a rule", found, apart=" d20").split("\n## ")[1:]
    assert first.startswith("After 10 values\n")
    assert second.startswith("After 10 values, d20\n")
    assert [line.split(" | ")[0] for line in first.splitlines()[4:]] == [f"| {DEFAULT}", "| b"]
    assert "| b | 4 | 50.0 (50.0 to 50.0) | 50.0 | 2.00 | -50.0 (-50.0 to -50.0) | 0.0" in first
    assert [line.split(" | ")[0] for line in second.splitlines()[4:]] == ["| a", "| b"]
    assert "paired difference to a, %" in second
    assert tasks.splitlines()[2] == f"| task | {DEFAULT} | a | b |"


def test_methods_are_ranked_over_the_runs_that_all_of_them_had():
    """One that stopped half-way counts there; one with a single run is not ranked."""

    def row(method, trial, share):
        return {"task": "t", "trial": str(trial), "method": method, "share": str(share)}

    rows = [row("a", i, 0.5) for i in range(4)] + [row("b", 0, 0.9), row("b", 1, 0.1), row("c", 0, 1.0)]
    assert _mean_ranks(rows, ["a", "b", "c"]) == {"a": 1.5, "b": 1.5}
