"""The studies of the default algorithm: their committed rows, tasks and tables."""

import pytest

from gibo_studies.algorithm.ablations import DEFAULT, Ablations
from gibo_studies.algorithm.noise import LOOKS, NoiseStudy, left
from gibo_studies.algorithm.study import ROW, key_of, read
from gibo_studies.study import results_folder

RESULTS = results_folder("algorithm", None)


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


def test_a_variant_is_compared_where_the_default_ran_on_the_same_trial():
    def rows(variant, trial, *shares):
        cell = ("gp8", 1.0, variant, trial)
        return [dict(zip(ROW, map(str, (*cell, 10, "", share, 0, "")), strict=True)) for share in shares]

    made = [*rows(DEFAULT, 0, 0.5, 0.5, 0.5), *rows("no warp", 0, 0.7, 0.5, -9.0), *rows("no warp", 1, 0.0, 0.0, 0.0)]
    made += [{**row, "task": "lqr"} for row in made]
    table = Ablations().table(made)
    assert "| default | 2 | 2 | 50.0 | 50.0 | 50.0 |" in table
    assert "| no warp | 2 | 2 | +20.0 ± 0.0 | +0.0 ± 0.0 | -150.0 ± 0.0 |" in table


@pytest.mark.parametrize("name", [path.stem for path in RESULTS.glob("*.md")])
def test_the_page_has_the_committed_table(name):
    page = (RESULTS.parents[2] / "docs" / "algorithm.md").read_text(encoding="utf-8")
    lines = (RESULTS / f"{name}.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("|") and line not in page] == []
