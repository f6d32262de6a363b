"""The studies of the default algorithm: their committed rows, tasks and tables."""

import numpy as np
import pytest

from gibo_studies.algorithm.ablations import DEFAULT, Ablations
from gibo_studies.algorithm.noise import LOOKS, NoiseStudy, left
from gibo_studies.algorithm.study import ROW, key_of, read, results
from gibo_studies.algorithm.tasks import Shuffled, choosing_tasks
from gibo_studies.leaderboard.task import Problem


def test_with_pure_noise_at_most_5_percent_of_the_committed_runs_leave_the_start():
    rows = read("noise")
    assert len({key_of(row) for row in rows}) >= 200
    for look in LOOKS:
        assert left(rows, look) <= 0.05


def test_a_run_of_the_noise_study_gives_the_committed_rows():
    cell = {"task": "skewed 4", "scale": 1.0, "variant": DEFAULT, "trial": 0}
    committed = [row for row in read("noise") if key_of(row) == key_of(cell)]
    found = NoiseStudy().run_cell(cell)["rows"]
    assert [(row["look"], row["at_start"]) for row in found] == [(row["look"], row["at_start"]) for row in committed]


def test_shuffled_parameters_belong_to_the_same_problem():
    theta = np.array([1.0, 2.0, 3.0])
    problem = Shuffled(
        lambda number: Problem(lambda x, seed: float(x @ theta), lambda x: float(x @ theta), 1.0), theta, signs=True
    )(4)
    assert sorted(abs(problem.start)) == theta.tolist()
    assert (problem.start != theta).any()
    assert problem.evaluate(problem.start, 0) == problem.truth(problem.start) == 14.0


@pytest.mark.parametrize("name", ["skewed6", "chain8", "g-pi2", "g-pid3"])
def test_a_choosing_task_can_be_improved_from_its_start(name):
    task = choosing_tasks()[name]
    problem = task.make(0)
    start = task.start if problem.start is None else problem.start
    assert np.isfinite(problem.evaluate(start, 0))
    assert problem.evaluate(start, 0) == problem.evaluate(start, 0) != problem.evaluate(start, 1)
    assert problem.truth(start) < problem.reference


def test_a_variant_is_compared_where_the_default_ran_on_the_same_trial():
    def rows(variant, trial, *shares):
        cell = ("gp8", 1.0, variant, trial)
        return [dict(zip(ROW, map(str, (*cell, 10, "", share, 0, "")), strict=True)) for share in shares]

    made = [*rows(DEFAULT, 0, 0.5, 0.5, 0.5), *rows("no warp", 0, 0.7, 0.5, -9.0), *rows("no warp", 1, 0.0, 0.0, 0.0)]
    made += [{**row, "task": "lqr"} for row in made]
    table = Ablations().table(made)
    assert "| default | 2 | 2 | 50.0 | 50.0 | 50.0 |" in table
    assert "| no warp | 2 | 2 | +20.0 ± 0.0 | +0.0 ± 0.0 | -150.0 ± 0.0 |" in table


@pytest.mark.parametrize("name", [path.stem for path in results().glob("*.md")])
def test_the_page_has_the_committed_table(name):
    page = (results().parents[2] / "docs" / "algorithm.md").read_text(encoding="utf-8")
    lines = (results() / f"{name}.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("|") and line not in page] == []
