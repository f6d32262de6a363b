import csv
import math

import numpy as np
import pytest

from gibo_studies.paper.control import LQR
from gibo_studies.paper.lqr import METHODS, LQRStudy, cost_curve

# -- the methods ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
def test_a_method_spends_its_episodes_and_repeats_itself(name):
    curve = cost_curve(METHODS[name], trial=3, budget=23)
    assert curve == cost_curve(METHODS[name], trial=3, budget=23)
    assert curve[0] == (0, math.inf)  # K = 0
    spent = [n for n, _ in curve]
    assert spent == sorted(set(spent))
    assert 16 <= spent[-1] <= 23
    assert cost_curve(METHODS[name], trial=3, budget=28)[: len(curve)] == curve


# -- the study --------------------------------------------------------------------------------------------------------


def test_statistics_are_over_the_stable_ones(tmp_path):
    study = LQRStudy(trials=5, budget=10, methods=("ARS",))
    costs = [0.1, 0.2, 0.4, None, 0.3]
    records = [{"cell": {"method": "ARS", "trial": i}, "curve": [(0, None), (2400, c)]} for i, c in enumerate(costs)]
    text = study.write(records, tmp_path, "footnote")
    low, high = np.percentile([0.1, 0.2, 0.3, 0.4], [2, 98])
    assert f"| ARS | 80 %; 0.25 ({low:.2g} to {high:.2g}) |" in text
    with (tmp_path / "curves.csv").open() as file:
        rows = {int(row["steps"]): row for row in csv.DictReader(file)}
    assert (rows[2100]["stable"], rows[2100]["median"]) == ("0", "")
    assert (rows[2400]["stable"], rows[2400]["median"]) == ("0.8", "0.25")
    assert max(rows) == 3000


def test_episodes_of_the_published_regulator_start_anywhere():
    """Those of the others start at 0."""
    starts = []

    class Seen(LQR):
        def episode_return(self, K, steps=300, *, seed, x0=None):
            starts.append(x0)
            return super().episode_return(K, steps, seed=seed, x0=x0)

    paper = LQR.paper()
    seen = Seen(paper.A, paper.B, paper.Q, paper.R, paper.W)
    list(METHODS["GIBO (published)"](seen, list(range(40)), 0))
    assert np.std(starts) == pytest.approx(1.0, abs=0.25)
    assert len({tuple(x) for x in starts}) == 40
    starts.clear()
    list(METHODS["GIBO (fixed mean)"](seen, list(range(10)), 0))
    assert starts == [None] * 10
