import numpy as np
import pytest

from gibo_studies.paper.problems import gp_function
from gibo_studies.paper.synthetic import STUDIES, SyntheticStudy, regret_curve
from gibo_studies.report import read_csv, read_curves, read_points

SMALL = SyntheticStudy(name="within-model", dimensions=(2, 3), functions=2, budget=12)


@pytest.fixture(scope="module")
def records():
    return [SMALL.run_cell(cell) for cell in SMALL.cells()]


@pytest.mark.parametrize("name", STUDIES)
def test_every_method_of_every_study_gives_a_falling_regret_curve(name):
    function = gp_function(3, 0)
    for method, make in STUDIES[name].items():
        curve = regret_curve(make(function), function, 20)
        assert len(curve) == 20, method
        assert np.all(np.diff([round(function.regret(function.start), 6), *curve]) <= 0), method


def test_the_curve_is_the_best_noise_free_regret_of_the_guesses_so_far():
    function = gp_function(3, 1)
    make = STUDIES["within-model"]["GIBO"]
    curve = regret_curve(make(function), function, 30)
    optimizer, rng = make(function), np.random.default_rng((3, 1, 1))
    guesses, expected = [optimizer.iterate], []
    while len(expected) < 30:
        for query in optimizer.ask():
            optimizer.tell(query, function.observe(query.x, rng))
            guesses.append(optimizer.iterate)
            expected.append(min(function.regret(x) for x in guesses))
    assert curve == pytest.approx(expected[:30], abs=1e-6)


def test_the_report_holds_the_records(tmp_path, records):
    text = SMALL.write(records, tmp_path, "the command")
    assert (tmp_path / "summary.md").read_text() == text
    assert text.rstrip().endswith("the command")
    rows = read_csv(tmp_path / "regret.csv")
    assert len(rows) == len(records) * 12
    by_cell = {tuple(record["cell"].values()): record["regret"] for record in records}
    for row in rows:
        expected = by_cell[row["method"], int(row["d"]), int(row["function"])][int(row["evaluation"]) - 1]
        assert float(row["regret"]) == pytest.approx(expected, rel=1e-5)
    curves, marks = read_curves(tmp_path, SMALL.columns), read_points(tmp_path / "marks.csv", SMALL.columns)
    assert list(curves) == list(marks) == [(method, d) for d in (2, 3) for method in SMALL.methods]
    for (method, d), curve in curves.items():
        regrets = np.array([by_cell[method, d, i] for i in range(2)])
        assert curve["evaluation"].tolist() == list(range(1, 13))
        assert curve["mean"] == pytest.approx(regrets.mean(axis=0), rel=1e-3)
        assert curve["sd"] == pytest.approx(regrets.std(axis=0), rel=1e-3, abs=1e-6)
        assert curve["median"] == pytest.approx(np.median(regrets, axis=0), rel=1e-3)
        assert [n for each in marks[method, d] for n, _ in each] == [12, 12]
        assert [regret for each in marks[method, d] for _, regret in each] == pytest.approx(regrets[:, -1], rel=1e-3)
        row = next(line for line in text.splitlines() if line.startswith(f"| {d} | {method} |"))
        assert f"{regrets[:, -1].mean():.3f} ±" in row
