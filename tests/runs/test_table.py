"""A run as a table, in data frames and files, and as what a notebook shows."""

import csv
import io
import json
import re
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import gibo
from gibo.cli import main

SVG = "{http://www.w3.org/2000/svg}"


def cost(x):
    if x[0] > 0.9:
        raise ValueError("<b>too far</b>")
    return gibo.Outcome(float(((x - 0.3) ** 2).sum()), info={"steps": 7, "words": "many"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs") / "run"


@pytest.fixture(scope="module")
def result(folder):
    with pytest.warns(gibo.FailedEvaluationWarning):
        found = gibo.minimize(cost, [0.85, 0.0], budget=12, scale=0.2, seed=1, journal=folder, settings=gibo.Settings())
    assert 0 < len(found.failures) < 6
    return found


@pytest.mark.parametrize("library", ["pandas", "polars", None])
def test_a_data_frame_has_every_evaluation_in_the_objectives_own_sign(result, folder, library):
    frame = result.to_dataframe(library)
    assert type(frame).__module__.split(".")[0] == (library or "pandas")
    assert list(frame.columns)[:6] == ["id", "iteration", "kind", "x0", "x1", "value"]
    assert np.array_equal(np.array(frame["value"], dtype=float), result.history.value, equal_nan=True)
    assert np.array_equal(np.column_stack([frame["x0"], frame["x1"]]), result.history.x)
    assert [f is not None and "too far" in str(f) for f in frame["failure"]] == np.isnan(result.history.value).tolist()
    assert set(np.array(frame["info.steps"], dtype=float)[~np.isnan(result.history.value)]) == {7.0}
    assert "info.words" not in frame.columns
    with gibo.Journal.read(folder) as journal:
        recorded = journal.to_dataframe(library)
    same = [name for name in frame.columns if name not in ("asked", "told", "seconds")]
    assert repr(recorded[same]) == repr(frame[same])
    assert (recorded["told"] >= recorded["asked"]).all()


def test_without_a_library_the_message_says_what_to_install(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert type(result.to_dataframe()).__module__.startswith("polars")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(gibo.MissingExtraError, match=r"^a data frame needs pandas or polars, which is not installed: "):
        result.to_dataframe()
    with pytest.raises(gibo.InputError, match=r"^library: expected one of 'pandas', 'polars', got 'excel'"):
        result.to_dataframe("excel")


def test_the_formats_of_export_hold_the_same(result, folder, tmp_path, capsys, monkeypatch):
    import polars

    for name in ("out.csv", "out.json", "out.parquet"):
        assert main(["export", str(folder), "--out", str(tmp_path / name)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"12 rows: {tmp_path / 'out.parquet'}"
    records = json.loads((tmp_path / "out.json").read_text())
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    frame = polars.read_parquet(tmp_path / "out.parquet").to_dicts()
    assert records == frame
    assert [[row["id"], row["x0"]] for row in rows] == [[str(r["id"]), repr(r["x0"])] for r in records]
    assert [row["value"] or None for row in rows] == [None if r["value"] is None else repr(r["value"]) for r in records]
    assert main(["export", str(folder), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == records
    monkeypatch.setitem(sys.modules, "polars", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "fastparquet", None)
    assert main(["export", str(folder), "--out", str(tmp_path / "new.parquet")]) == 2
    assert "a parquet file needs polars, or pandas with pyarrow" in capsys.readouterr().err


def figure(result):
    return re.search(r"<svg.*</svg>", result._repr_html_())[0]


# -- notebooks --------------------------------------------------------------------------------------------------------


def test_a_notebook_shows_the_values_and_obeys_nothing(result):
    page = result._repr_html_()
    assert "<b>" not in page
    svg = ET.fromstring(figure(result))
    failed = int(np.isnan(result.history.value).sum())
    assert len(svg.findall(f"{SVG}circle")) == 12 - failed
    assert len(svg.findall(f"{SVG}path")) == failed
    heights = [float(dot.get("cy")) for dot in svg.findall(f"{SVG}circle")]
    known = result.history.value[~np.isnan(result.history.value)]
    assert (np.diff(np.array(heights)[np.argsort(known)]) <= 0.1).all()  # rounded to a tenth of a pixel
    ET.fromstring(page.replace("<br>", "<br/>"))
