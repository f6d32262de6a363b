"""A study of one's own, as CONTRIBUTING has it: a dataclass, how it is reported, a figure, an entry in the table."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from gibo import RandomSearch
from gibo.cli import main
from gibo.outcome import Outcome
from gibo_studies.engine import run_study
from gibo_studies.report import Columns, CurveStudy, after, checkpoints, read_curves, record_of, sample, table
from gibo_studies.study import iterates
from gibo_studies.table import STUDIES

METHODS = {"near": 0.5, "far": 2.0}  # how far away to search
NEEDS = ("numpy",)


@dataclass(frozen=True)
class Distances(CurveStudy):
    """How close random search comes to the origin."""

    trials: int = 3
    budget: int = 10
    methods: tuple[str, ...] = ()

    broken: bool = False

    data: ClassVar[str] = "distances.csv"
    columns: ClassVar[Columns] = Columns(arm=("method",), repeat="trial", spent="values", value="distance")
    quick: ClassVar[Mapping[str, Any]] = {"trials": 2}

    def known_methods(self):
        return METHODS

    def needs(self):
        return NEEDS

    def definition(self) -> dict[str, Any]:
        return {name: value for name, value in super().definition().items() if name != "broken"}

    def arms(self):
        return [(method,) for method in self.methods]

    def run_cell(self, cell: Mapping[str, Any]) -> dict[str, Any]:
        if self.broken and cell["trial"] == 1:
            raise ValueError("no light")
        reach = METHODS[cell["method"]]
        optimizer = RandomSearch(np.ones(2), bounds=(-reach, reach + 1.0), seed=self.seed_of(cell["trial"]))
        points = []

        def evaluate(query: Any, spent: int) -> Outcome:
            points.append(query.x)
            return Outcome(-float(query.x @ query.x))

        curve = [(n, float(np.linalg.norm(x))) for n, x in iterates(optimizer, evaluate, self.budget)]
        return {**record_of(cell, curve), "points": np.array(points)}  # whatever else is worth keeping

    def grid(self, arm):
        return checkpoints(self.budget)

    def summary(self, curves):
        marks = (5, 10)
        rows = [(method, *(f"{v.mean():.2f}" for v in sample(each, marks))) for (method,), each in curves.items()]
        return f"Distance, {self.trials} trials.\n\n" + table(("method", *after(marks)), rows)

    @classmethod
    def figures(cls, out):
        path, curves = out / "distances.txt", read_curves(out, cls.columns)
        path.write_text("\n".join(f"{arm[0]} {curve['mean'][-1]}" for arm, curve in curves.items()))
        return [path]


def lines(log: Path) -> list[dict[str, Any]]:
    return [{**json.loads(line), "seconds": None} for line in log.read_text().splitlines()]


def test_it_is_run_continued_and_reported(tmp_path):
    whole = run_study(Distances(name="distances"), tmp_path / "whole", workers=2)
    stopped = run_study(Distances(name="distances", broken=True), tmp_path / "stopped", workers=1)
    assert whole.complete
    assert np.shape(whole.records[0]["points"]) == (10, 2)
    assert not stopped.complete
    assert [(cell["trial"], cause) for cell, cause in stopped.failures] == [(1, "ValueError: no light")] * 2
    assert len(stopped.records) == 4
    continued = run_study(Distances(name="distances"), tmp_path / "stopped", workers=1)
    assert continued.complete
    key = json.dumps
    logs = [lines(tmp_path / name / "cells.jsonl") for name in ("whole", "stopped")]
    assert sorted(logs[0], key=key) == sorted(logs[1], key=key)

    texts = [
        Distances(name="distances").write(each.records, tmp_path / name, "the command")
        for name, each in {"whole": whole, "stopped": continued}.items()
    ]
    assert texts[0] == texts[1] == (tmp_path / "whole" / "summary.md").read_text()
    near = [record["curve"][-1][1] for record in whole.records if record["cell"]["method"] == "near"]
    assert texts[0].startswith("Distance, 3 trials.\n\n| method | after 5 | after 10 |\n|---|---|---|\n| near | ")
    assert f"| {np.mean(near):.2f} |\n| far | " in texts[0]
    for name in ("distances.csv", "curves.csv"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "stopped" / name).read_bytes()
    first, row = (tmp_path / "whole" / "distances.csv").read_text().splitlines()[:2]
    assert (first, row) == ("method,trial,values,distance", "near,0,0,1.41421")


def test_an_entry_in_the_table_makes_it_a_command(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(STUDIES, "distances", Distances)
    out = tmp_path / "out"
    words = ["reproduce", "distances", "--quick", "--methods", "FAR", "--workers", "1", "--out", str(out)]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "Distance, 2 trials." in said
    assert "near" not in said
    assert "2 cells" in said
    assert f"Data, table and 1 figures: {out}" in said
    (out / "distances.txt").unlink()
    assert main(["figures", str(out)]) == 0
    assert (out / "distances.txt").read_text().startswith("far ")
    assert main([*words, "--functions", "4"]) == 2
    assert "--functions: distances has no such option" in capsys.readouterr().err
    monkeypatch.setitem(globals(), "NEEDS", ("no_such_thing",))
    assert main(["reproduce", "distances", "--out", str(out)]) == 2
    assert "needs no_such_thing" in capsys.readouterr().err


@pytest.mark.parametrize("text", ['{"name": "distances"}', "{}", '{"name": ["lqr"]}'])
def test_a_folder_of_no_study_that_is_known(tmp_path, capsys, text):
    (tmp_path / "study.json").write_text(text)
    assert main(["figures", str(tmp_path)]) == 2
    assert "expected the name of one of within-model" in capsys.readouterr().err
