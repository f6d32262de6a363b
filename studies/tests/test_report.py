"""The report of every study, on the results that are kept: their tables are what their data say."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from gibo_studies.command import make_study, study_class
from gibo_studies.report import Columns, CurveStudy, read_curves, read_points, sample
from gibo_studies.table import STUDIES

RESULTS = Path(__file__).resolve().parents[1] / "results"
KEPT = sorted(path.parent.name for path in RESULTS.glob("*/curves.csv"))


def kept_study(folder):
    options = json.loads((folder / "study.json").read_text())
    return make_study(options["name"], folder, {name: _tuple(value) for name, value in options.items()})


def _tuple(value):
    return tuple(value) if isinstance(value, list) else value


def test_results_of_every_study_are_kept():
    """Those of the algorithm and of the judges have other files."""
    assert {kept_study(RESULTS / name).name for name in KEPT} == {
        name for name in STUDIES if issubclass(study_class(name), CurveStudy)
    }


@pytest.mark.parametrize("name", KEPT)
def test_the_summary_is_what_the_data_say(name):
    folder = RESULTS / name
    report = kept_study(folder)
    data = folder / ("marks.csv" if report.marks() else report.data)
    expected, footnote = (folder / "summary.md").read_text().rsplit("\n\n", 1)
    assert footnote.startswith("`gibo reproduce ")
    found = report.summary(read_points(data, report.columns)).removesuffix("\n")
    if report.marks():  # they have 4 digits, and some of the table's round differently
        (words, numbers), (expected_words, expected_numbers) = _apart(found), _apart(expected)
        assert words == expected_words
        np.testing.assert_allclose(numbers, expected_numbers, rtol=0.0, atol=0.0011)
    else:
        assert found == expected


def _apart(text):
    return re.sub(r"[0-9.]+", "#", text), [float(number) for number in re.findall(r"\d[0-9.]*", text)]


# Of the synthetic studies the data themselves are too large to be kept.
HAVE_DATA = [n for n in KEPT if not (RESULTS / n / "marks.csv").exists()]


@pytest.mark.parametrize("name", HAVE_DATA)
def test_the_curves_are_what_the_data_say(name):
    folder = RESULTS / name
    report = kept_study(folder)
    points, curves = read_points(folder / report.data, report.columns), read_curves(folder, report.columns)
    assert list(points) == list(curves)
    for arm, each in points.items():
        grid = list(report.grid(arm))
        assert curves[arm][report.columns.spent].tolist() == grid
        statistics = [report.statistics(values) for values in sample(each, grid)]
        for column in statistics[0]:
            expected = np.array([row[column] for row in statistics])
            expected[~np.isfinite(expected)] = np.nan
            np.testing.assert_allclose(curves[arm][column], expected, rtol=1e-3, atol=1e-6)  # of rounded data


def test_a_curve_holds_its_value_until_the_next_one():
    curves = [[(0, 5.0), (9, 7.0), (18, 6.0)], [(10, 1.0)]]
    np.testing.assert_equal(sample(curves, [0, 8, 9, 30]), [[5, np.nan], [5, np.nan], [7, np.nan], [6, 1]])


def test_what_is_not_a_number_is_empty_in_a_file(tmp_path):
    columns = Columns(("problem", "M"), "trial", "spent", "value")
    (tmp_path / "points.csv").write_text("problem,M,trial,spent,value\nlqr,3,0,0,\nlqr,3,0,5,0.5\nlqr,3,1,0,2\n")
    assert read_points(tmp_path / "points.csv", columns) == {("lqr", 3): [[(0, np.inf), (5, 0.5)], [(0, 2.0)]]}
    (tmp_path / "curves.csv").write_text("problem,M,spent,mean\nlqr,3,0,\nlqr,3,5,0.5\n")
    np.testing.assert_equal(read_curves(tmp_path, columns)["lqr", 3]["mean"], [np.nan, 0.5])
