"""The leaderboard as a whole: what is judged, how runs are ranked, that it is run, continued, reported and drawn."""

import csv
import json
import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from gibo import InputError, RandomSearch
from gibo.cli import main
from gibo.figures.style import pyplot
from gibo.optimizers.base import Optimizer
from gibo.outcome import QUERY, Best
from gibo.training.training import usual_reexpression
from gibo_studies.engine import run_study
from gibo_studies.leaderboard import methods as methods_module
from gibo_studies.leaderboard import tasks as tasks_module
from gibo_studies.leaderboard.figures import _legend
from gibo_studies.leaderboard.functions import Shifted, sphere
from gibo_studies.leaderboard.methods import METHODS, Method, box
from gibo_studies.leaderboard.run import look_at_a_run
from gibo_studies.leaderboard.statistics import (
    Run,
    average_ranks,
    evaluations_to_reach,
    mean_ranks,
    task_ranks,
)
from gibo_studies.leaderboard.study import Leaderboard, improvement
from gibo_studies.leaderboard.task import Task
from gibo_studies.leaderboard.tasks import TASKS, missing

TINY = {
    name: Task(name, np.zeros(2), 1.0, 24, Shifted(name, sphere, 2, "small"), "small", (12, 24))
    for name in ("tiny", "small")
}


@pytest.fixture
def tiny(monkeypatch):
    """Two small tasks instead of all."""
    monkeypatch.setattr(tasks_module, "TASKS", TINY)
    for module in ("study", "tables"):
        monkeypatch.setattr(f"gibo_studies.leaderboard.{module}.TASKS", TINY)
    return TINY


# -- what is judged ---------------------------------------------------------------------------------------------------


class Stubborn(Optimizer):
    """It recommends the point that it asked for k evaluations ago."""

    @property
    def best(self):
        told = self.evaluations
        return Best(told[-1].x, told[-1].value) if told else None

    def _propose(self):
        return [(np.array([float(self._iteration), 0.0]), QUERY)]

    def _update(self, batch):
        self._iteration += 1


def test_judged_is_the_recommended_point_after_exactly_so_many_evaluations():
    task = TINY["tiny"]
    problem = task.make(0)
    looked = look_at_a_run(task, problem, Stubborn([0.0, 0.0]), [0, 3, 7, 10])
    first, *others = looked.looks
    assert (first.spent, first.truth, first.believed, first.at_start) == (0, problem.truth(task.start), None, True)
    expected = [(n, problem.truth(np.array([n - 1.0, 0.0])), False) for n in (3, 7, 10)]
    assert [(look.spent, look.truth, look.at_start) for look in others] == expected
    assert others[0].believed != expected[0][1]  # what it was told is noisy


def test_looking_takes_no_part_in_the_run():
    task = TINY["tiny"]
    often = look_at_a_run(task, task.make(0), RandomSearch(task.start, seed=1), list(range(25)))
    once = look_at_a_run(task, task.make(0), RandomSearch(task.start, seed=1), [0, 24])
    assert often.looks[-1] == once.looks[-1]


@pytest.mark.parametrize(("method", "keeps"), [("ARS", False), ("GIBO", True)])
def test_states_are_normalised_for_every_method_as_in_training(method, keeps):
    name = "MountainCarContinuous-v0"
    if missing(TASKS[name].needs):
        pytest.skip("needs Gymnasium")
    problem = TASKS[name].make(0)
    optimizer = METHODS[method].make(TASKS[name], 1.0, 0)
    normalizer = problem.normalizer(usual_reexpression(optimizer.method))
    before = normalizer.options()["normalization"]
    outcome = problem.evaluate(np.array([1.0, 5.0]), seed=1, normalization=before)
    normalizer.learn([outcome.info])
    after = normalizer.options()["normalization"]
    assert after.mean.all()
    normalizer.learn([problem.evaluate(np.array([1.0, -5.0]), seed=1, normalization=after).info])
    assert np.array_equal(normalizer.options()["normalization"].mean, after.mean) == keeps
    x = np.array([3.0, 2.0])
    assert problem.truth(x, normalization=before) != problem.truth(x, normalization=after)
    asked = []

    def noting(reexpressed):
        asked.append(reexpressed)
        return problem.normalizer(reexpressed)

    looked = look_at_a_run(TASKS[name], replace(problem, normalizer=noting), optimizer, [0, 6])
    assert asked == ["exact" if keeps else "data"]
    assert np.isfinite(looked.looks[-1].truth)


def test_a_run_that_ends_early_is_no_result():
    task = TINY["tiny"]

    def broken(x, seed):
        raise ValueError("no light")

    problem = task.make(0)
    dark = type(problem)(broken, problem.truth, problem.reference)
    with (
        pytest.raises(InputError, match="the run ended early: stopped: 10 evaluations in a row failed"),
        pytest.warns(),
    ):
        look_at_a_run(task, dark, RandomSearch(task.start), [0, 20])


# -- methods ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_every_method_runs_a_small_task(method):
    chosen = TINY["tiny"]
    if missing(METHODS[method].needs):
        pytest.skip(f"needs {missing(METHODS[method].needs)}")
    if not METHODS[method].applies(chosen):
        pytest.skip("not for this task")
    optimizer = METHODS[method].make(chosen, chosen.scale, 3)
    assert optimizer.x0.tolist() == chosen.start.tolist()
    assert optimizer.seed == 3
    looked = look_at_a_run(chosen, chosen.make(0), optimizer, [0, 8])
    assert np.isfinite([look.truth for look in looked.looks]).all()
    again = look_at_a_run(chosen, chosen.make(0), METHODS[method].make(chosen, chosen.scale, 3), [0, 8])
    assert looked.looks == again.looks


def told(optimizer, values):
    for value in values:
        (query,) = optimizer.ask()
        optimizer.tell(query, value, failed=value is None)
    return optimizer


@pytest.mark.parametrize("method", [name for name, each in METHODS.items() if each.extra])
def test_an_extra_passes_over_a_failure_and_continues_from_its_state(method):
    if missing(METHODS[method].needs):
        pytest.skip(f"needs {missing(METHODS[method].needs)}")
    optimizer = told(METHODS[method].make(TINY["tiny"], 1.0, 3), [0.1, 0.3, None, 0.2, 0.5, 0.4, 0.6])
    asked = [query.x.tolist() for query in optimizer.ask()]
    again = Optimizer.from_state(json.loads(json.dumps(optimizer.state())))
    assert [query.x.tolist() for query in again.ask()] == asked
    assert again.best.x.tolist() == optimizer.best.x.tolist()


def test_the_papers_settings_are_where_they_apply():
    applies = {name for name, task in TASKS.items() if METHODS["GIBO (paper)"].applies(task)}
    assert applies == {"gp8", "gp20", "gp36", "lqr", "CartPole-v1", "Swimmer-v5"}
    settings = METHODS["GIBO (paper)"].make(TASKS["CartPole-v1"], 0.1, 0).settings
    assert settings.noise == pytest.approx(0.5 * 500**2)  # returns are not divided by 500 here
    assert settings.variance.centre == pytest.approx(2.0 * 500**2)


def test_those_that_search_a_box_get_one():
    lower, upper = box(TASKS["sphere20"], 3.0)
    assert lower.tolist() == [-3.0 * methods_module.REACH] * 20
    assert upper.tolist() == [3.0 * methods_module.REACH] * 20
    assert box(TASKS["hyper5"], 3.0)[1].tolist() == [1.0] * 5


def test_the_scale_reaches_every_method():
    for name, method in METHODS.items():
        if not missing(method.needs) and method.applies(TASKS["gp8"]):
            scales = [method.make(TASKS["gp8"], factor * 0.1, 0).scale for factor in (1.0, 3.0)]
            # In a box of its own, best practice measures by the box.
            expected = 1.0 if name == "Vanilla BO (best practice)" else 3.0
            assert (scales[1] / scales[0]).tolist() == pytest.approx([expected] * 8), name


# -- statistics -------------------------------------------------------------------------------------------------------


def made_run(method, share, task="tiny", trial=0):
    spent = np.arange(len(share), dtype=float) * 10
    return Run(task, 1.0, method, trial, spent, np.array(share, dtype=float), 1.0)


def test_an_improvement_is_the_share_of_the_way_from_the_start_to_the_best_known_value():
    record = {"curve": [[0, -10.0], [10, -4.0], [20, 2.0]], "reference": 2.0}
    assert improvement(record) == [(0, 0.0), (10, 0.5), (20, 1.0)]


def test_ranks_share_what_is_equal():
    assert average_ranks([0.5, 0.9, 0.5, 0.1]).tolist() == [2.5, 1.0, 2.5, 4.0]
    assert average_ranks([1.0, 1.0 + 1e-9]).tolist() == [1.5, 1.5]


def test_ranks_are_of_the_last_look_over_the_trials_that_all_methods_ran():
    """Half-way the order is the reverse one; trials 1 and the other task have no run of b."""
    runs = [
        *(made_run("a", [0, 0.1, 0.9], trial=i) for i in range(4)),
        *(made_run("b", [0, 0.6, 0.5], trial=i) for i in (0, 2)),
        made_run("b", [0, 0.0, 0.95], trial=3),
        made_run("a", [0, 0.2, 0.3], task="small"),
    ]
    found = {task: ranks.tolist() for task, ranks in task_ranks(runs, ["a", "b"]).items()}
    assert found == {"tiny": [pytest.approx(4 / 3), pytest.approx(5 / 3)]}


@pytest.mark.parametrize("tasks", [50, 200])
def test_the_interval_of_a_mean_rank_is_that_of_95_percent(tasks):
    """Ranks 1 and 2 on half of the tasks each: the mean's standard error is 0.5/√n, and 95 % are within 1.96 of it."""
    ranks = {str(i): np.array([1.0, 2.0] if i % 2 else [2.0, 1.0]) for i in range(tasks)}
    for mean, low, high in mean_ranks(ranks, ["a", "b"]).values():
        assert mean == 1.5
        assert [mean - low, high - mean] == pytest.approx([1.96 * 0.5 / math.sqrt(tasks)] * 2, rel=0.1)
    assert mean_ranks({}, ["a"]) == {}


def test_evaluations_needed_are_those_of_the_mean_curve():
    rival = [made_run("r", [0, 0.2, 0.4]), made_run("r", [0, 0.2, 0.6], trial=1)]
    assert evaluations_to_reach([made_run("a", [0, 0.5, 0.4, 0.7])], rival) == 10.0  # when it first is there
    assert evaluations_to_reach([made_run("a", [0, 0.4, 0.4])], rival) == math.inf
    assert evaluations_to_reach(rival, rival) == 20.0


@pytest.mark.parametrize("width", [2.6, 4.2, 7.4, 13.0])
def test_a_legend_stays_within_its_figure(width):
    with pyplot() as plt:
        figure, _ = plt.subplots(figsize=(width, 6.0), layout="constrained")
        _legend(figure, list(METHODS)[:9])
        figure.canvas.draw()
        box = figure.legends[0].get_window_extent()
        assert box.x0 >= 0.0
        assert box.x1 <= figure.bbox.x1
        plt.close(figure)


# -- the study --------------------------------------------------------------------------------------------------------

SOME = ("GIBO", "CMA-ES", "Random search")


def test_it_is_run_continued_with_more_reported_and_drawn(tiny, tmp_path, capsys, monkeypatch):
    out = tmp_path / "board"
    words = ["reproduce", "leaderboard", "--methods", "GIBO;Random search", "--workers", "1", "--out", str(out)]
    monkeypatch.setattr("gibo_studies.command.run_study", run_here)
    assert main([*words, "--trials", "1"]) == 0
    assert "4 cells" in capsys.readouterr().out
    first = (out / "cells.jsonl").read_text()
    words[3] = "GIBO;CMA-ES;Random search"
    assert main([*words, "--trials", "2"]) == 0
    said = capsys.readouterr().out
    assert (out / "cells.jsonl").read_text().startswith(first)
    assert len((out / "cells.jsonl").read_text().splitlines()) == 12
    for part in ("**tiny** (d = 2, noise small)", "**Mean rank**", "**Evaluations until", "**Seconds of the"):
        assert part in said
    for name in ("improvement.csv", "curves.csv", "ranks.csv", "needed.csv", "times.csv", "summary.md"):
        assert (out / name).stat().st_size > 0
    for name in ("learning", "ranks", "times"):
        assert (out / f"{name}.png").stat().st_size > 1000
    with (out / "ranks.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["method"] for row in rows} == set(SOME)
    assert sum(float(row["mean_rank"]) for row in rows) == pytest.approx(6.0)
    assert {row["tasks"] for row in rows} == {"2"}


def run_here(study, out, workers, bar, notice):
    """Without processes, in which the small tasks would not be there."""
    from gibo_studies import engine

    engine.prepare(study, out)
    log = out / "cells.jsonl"
    known = engine.read_records(log)
    with log.open("a") as file:
        for cell in study.cells():
            if engine._key(cell) not in known:
                file.write(engine._run_cell(study, cell) + "\n")
    keys = {engine._key(cell) for cell in study.cells()}
    return engine.StudyResult([r for k, r in engine.read_records(log).items() if k in keys], [], True)


def test_a_cell_is_the_same_in_another_process_and_says_what_it_should(tmp_path):
    study = Leaderboard(tasks=("hyper5",), methods=("ARS",), trials=1, budget=20)
    (record,) = run_study(study, tmp_path, workers=1).records
    again = json.loads(json.dumps(study.run_cell(record["cell"])))
    assert again["curve"] == record["curve"]
    assert record["interval_held"] is None  # ARS reports none
    assert record["believed"][0] is None
    assert len(record["believed"]) == len(record["curve"])
    assert improvement(record)[0] == (0, 0.0)
    assert improvement(record)[-1][0] == 20


def test_expensive_tasks_run_fewer_methods_unless_named(monkeypatch):
    monkeypatch.setattr("gibo_studies.leaderboard.study.missing", lambda needs: [])
    ran = {cell["method"] for cell in Leaderboard(tasks=("Ant-v5",)).cells()}
    assert ran == {"GIBO", "CMA-ES", "ARS", "Random search"}
    assert {cell["method"] for cell in Leaderboard(tasks=("Ant-v5",), methods=("mpd",)).cells()} == {
        "MPD (our reading)"
    }
    assert len(Leaderboard(tasks=("Ant-v5",)).cells()) == 4 * 5


def test_what_is_not_installed_is_left_out_and_said(monkeypatch):
    lacking = {"Box2D"}
    monkeypatch.setattr(
        "gibo_studies.leaderboard.study.missing", lambda needs: [name for name in needs if name in lacking]
    )
    study = Leaderboard(tasks=("BipedalWalker-v3", "lqr"), methods=("GIBO",))
    assert {cell["task"] for cell in study.cells()} == {"lqr"}
    assert study.left_out() == ["BipedalWalker-v3 (needs Box2D)"]


def test_the_scale_is_an_option(tiny):
    study = Leaderboard(scales=(3.0, 0.1, 3.0), methods=("ARS",), trials=1)
    assert [cell["scale"] for cell in study.cells() if cell["task"] == "tiny"] == [0.1, 3.0]
    curves = [study.run_cell(cell)["curve"] for cell in study.cells()]
    assert curves[0] != curves[1]
    with pytest.raises(InputError, match="scales: expected positive"):
        Leaderboard(scales=(0.0,))


def test_mistakes_are_named(capsys, tmp_path):
    words = ["reproduce", "leaderboard", "--out", str(tmp_path)]
    assert main([*words, "--tasks", "sphere"]) == 2
    assert "tasks: 'sphere' is not known" in capsys.readouterr().err
    assert main([*words, "--scales", "much"]) == 2
    assert "--scales: expected a comma-separated list such as 0.1,1,10" in capsys.readouterr().err
    assert main([*words, "--methods", "SGD"]) == 2
    assert "methods: 'SGD' is not in the leaderboard" in capsys.readouterr().err


def test_methods_and_tasks_of_a_users_own_take_part_by_their_place(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.py").write_text(
        "import gibo\n"
        "from gibo_studies.leaderboard.functions import Shifted, sphere\n"
        "from gibo_studies.leaderboard.task import Task\n"
        "class Near(gibo.RandomSearch): pass\n"
        "bowl = Task('bowl', [0.0] * 2, 1.0, 20, Shifted('bowl', sphere, 2, 'small'), 'small', (10, 20))\n"
    )
    words = ["--methods", "mine:Near;GIBO", "--tasks", "mine:bowl", "--trials", "1", "--out", "board"]
    command = [sys.executable, "-m", "gibo", "reproduce", "leaderboard", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with (tmp_path / "board" / "ranks.csv").open() as file:
        assert {row["method"] for row in csv.DictReader(file)} == {"mine:Near", "GIBO"}
    assert (tmp_path / "board" / "learning.png").exists()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["reproduce", "leaderboard", "--methods", "mine:bowl", "--tasks", "mine:bowl", "--out", "other"]) == 2
    assert "expected the place of an Optimizer class" in capsys.readouterr().err
    sys.modules.pop("mine", None)


def test_a_new_method_is_one_entry(tiny, monkeypatch):
    entry = Method(lambda task, scale, seed: RandomSearch(task.start, scale=scale, seed=seed, batch=3))
    monkeypatch.setitem(METHODS, "Mine", entry)
    study = Leaderboard(methods=("mine",), trials=1)
    assert [cell["method"] for cell in study.cells()] == ["Mine", "Mine"]
    assert study.run_cell(study.cells()[0])["curve"][-1][0] == 24
