import csv
import math
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from gibo.cli import main
from gibo.errors import InputError
from gibo_studies.paper.control import LQR
from gibo_studies.paper.lqr import METHODS, LQRStudy, cost_curve
from gibo_studies.report import write_report

# -- the methods ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
def test_a_method_spends_its_episodes_and_repeats_itself(name):
    curve = cost_curve(METHODS[name], trial=3, budget=23)
    assert curve == cost_curve(METHODS[name], trial=3, budget=23)
    assert curve[0] == (0, math.inf)  # K = 0
    spent = [n for n, _ in curve]
    assert spent == sorted(set(spent))
    assert 16 <= spent[-1] <= 23
    longer = cost_curve(METHODS[name], trial=3, budget=28)
    assert longer[: len(curve)] == curve
    assert cost_curve(METHODS[name], trial=4, budget=40) != cost_curve(METHODS[name], trial=3, budget=40)


def test_an_optimiser_sees_the_returns_of_its_own_episodes():
    lqr, seeds = LQR.paper(), list(range(100, 118))
    gains = list(METHODS["GIBO (published)"](lqr, seeds, 0))
    assert [spent for spent, _ in gains] == [0, 10]  # the iterate and 9 queries; the second iteration is not whole
    assert all(K.shape == (9,) for _, K in gains)


def test_published_gibo_finds_a_stable_controller():
    for trial in range(2):
        costs = dict(cost_curve(METHODS["GIBO (published)"], trial, budget=40))
        assert costs[40] < 0.3  # 0.07 and less in most trials


# -- the study --------------------------------------------------------------------------------------------------------


def test_a_tiny_study_as_it_is_typed(tmp_path, capsys):
    out = tmp_path / "out"
    methods = "gibo (published);LSPI"
    words = ["reproduce", "lqr", "--trials", "2", "--budget", "20", "--methods", methods, "--workers", "1"]
    words += ["--out", str(out)]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "| method | 3000 | 6000 |" in said
    assert "| GIBO (published) | " in said
    files = {path.name for path in out.iterdir()}
    assert files >= {"study.json", "cells.jsonl", "costs.csv", "curves.csv", "summary.md"}
    assert files >= {"controllers.png", "controllers.svg"}
    with (out / "costs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {(row["method"], row["trial"]) for row in rows} == {
        (method, trial) for method in ("GIBO (published)", "LSPI") for trial in "01"
    }
    own = [(int(r["steps"]), r["relative_cost"]) for r in rows if r["method"] == "LSPI" and r["trial"] == "1"]
    expected = cost_curve(METHODS["LSPI"], 1, budget=20)
    assert [n for n, _ in own] == [300 * n for n, _ in expected]
    for (_, text), (_, cost) in zip(own, expected, strict=True):
        assert (float(text) if text else math.inf) == pytest.approx(cost, rel=1e-4)

    # The same command again changes nothing that was computed or drawn.
    kept = {path: path.read_bytes() for path in out.rglob("*") if path.suffix in (".csv", ".jsonl", ".svg", ".json")}
    assert main(words) == 0
    assert {path: path.read_bytes() for path in kept} == kept

    # The figure is drawn again from the tables alone.
    drawn = (out / "controllers.svg").read_bytes()
    for path in (*out.glob("controllers.*"), out / "cells.jsonl"):
        path.unlink()
    assert main(["figures", str(out)]) == 0
    assert (out / "controllers.svg").read_bytes() == drawn
    ET.fromstring(drawn)


def test_statistics_are_over_the_stable_ones(tmp_path):
    study = LQRStudy(trials=5, budget=10, methods=("ARS",))
    costs = [0.1, 0.2, 0.4, None, 0.3]
    records = [{"cell": {"method": "ARS", "trial": i}, "curve": [(0, None), (2400, c)]} for i, c in enumerate(costs)]
    text = write_report(study, records, tmp_path, "footnote")
    low, high = np.percentile([0.1, 0.2, 0.3, 0.4], [2, 98])
    assert f"| ARS | 80 %; 0.25 ({low:.2g} to {high:.2g}) |" in text
    with (tmp_path / "curves.csv").open() as file:
        rows = {int(row["steps"]): row for row in csv.DictReader(file)}
    assert (rows[2100]["stable"], rows[2100]["median"]) == ("0", "")
    assert (rows[2400]["stable"], rows[2400]["median"]) == ("0.8", "0.25")
    assert max(rows) == 3000


def test_cells():
    study = LQRStudy(trials=2, methods=("LSPI", "ARS"))
    assert study.methods == ("ARS", "LSPI")
    assert len(study.cells()) == 4
    assert study.definition()["budget"] == 130
    record = study.run_cell({"method": "LSPI", "trial": 0})
    assert record["curve"][0] == (0, None)
    other = LQRStudy(seed=1).run_cell({"method": "LSPI", "trial": 0})
    assert other["curve"] != record["curve"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": ("PPO",)}, "'PPO' is not in lqr; there are GIBO"),
        ({"trials": 0}, "trials: must be at least 1, got 0"),
        ({"trials": 1001}, "at most 1000"),
        ({"budget": 0}, "budget: must be at least 1, got 0"),
        ({"seed": -1}, "seed: must be at least 0"),
    ],
)
def test_mistakes(options, message):
    with pytest.raises(InputError, match=message):
        LQRStudy(**options)
