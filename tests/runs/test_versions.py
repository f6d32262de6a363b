"""A run that another version of gibo continues: settings that were not given are the journal's, and it says so once."""

import json
import shutil

import numpy as np
import pytest
from run_helpers import SETTINGS, D, climb, hill, rows, tamper

import gibo
from gibo import Journal
from gibo._serialize import to_plain
from gibo.cli import main
from gibo.runs import manual
from gibo.runs.legacy import ROUGHLY, current_facts
from gibo.runs.store import FILE


def content_of(folder, name):
    number = [row[0] for row in rows(folder, "facts")].index(name)
    return json.loads(rows(folder, "facts")[number][1]), number


def written_by(folder, **versions):
    """As if the last start had been another version's."""
    number = len(rows(folder, "starts")) - 1
    before = json.loads(rows(folder, "starts")[number][5])
    tamper(folder, "starts", "versions", json.dumps({**before, **versions}), number)


def bowl(x, seed):
    return -float(x @ x) + 0.1 * float(np.random.default_rng(seed).standard_normal())


def test_settings_bounds_scale_and_seed_that_are_not_given_are_the_journals(tmp_path):
    options = {"settings": SETTINGS, "bounds": (-2.0, 2.0), "scale": 0.4, "seed": 7}
    gibo.maximize(bowl, [1.0] * D, budget=6, **options, journal=tmp_path / "run")
    shutil.copytree(tmp_path / "run", tmp_path / "again")
    expected = gibo.maximize(bowl, [1.0] * D, budget=15, **options, journal=tmp_path / "run")
    continued = gibo.maximize(bowl, [1.0] * D, budget=15, journal=tmp_path / "again")  # without scale and seed, too
    assert continued.history.x.tolist() == expected.history.x.tolist()
    optimizer = gibo.GIBO([1.0] * D)
    assert gibo.run(optimizer, bowl, budget=16, journal=tmp_path / "again").evaluations == 16
    assert optimizer.settings.noise == SETTINGS.noise


def test_other_versions_are_named_once_and_stay_in_the_record(tmp_path, capsys):
    climb(tmp_path, budget=6)
    written_by(tmp_path, numpy="1.0.0", gibo="0.0.1", cma="0.1")
    capsys.readouterr()
    assert len(climb(tmp_path, budget=6).notes) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"gibo 0.0.1, now {gibo.__version__}; numpy 1.0.0, now {np.__version__}" in said
    assert "cma" not in said
    result = climb(tmp_path, budget=9)
    assert capsys.readouterr().err == ""
    assert len(result.notes) == 1
    assert main(["status", str(tmp_path)]) == 0
    assert "numpy 1.0.0, now" in capsys.readouterr().out


def test_a_memo_that_cannot_be_used_costs_no_value_and_no_query(tmp_path, capsys):
    climb(tmp_path, budget=8)
    with Journal.read(tmp_path) as journal:
        told, asked = journal.evaluations(), journal.queries()
    last = len(rows(tmp_path, "batches")) - 1
    memo = json.loads(rows(tmp_path, "batches")[last][-1])
    other = {"generator": memo["generator"], "iterate": memo["iterate"], "after": memo["after"], "hyperparameters": []}
    tamper(tmp_path, "batches", "thought", json.dumps(other), last)
    assert manual.status(tmp_path).result.evaluations == 8
    capsys.readouterr()
    result = climb(tmp_path, budget=16)
    assert capsys.readouterr().err == f"gibo: {ROUGHLY}\n"
    assert result.notes == (ROUGHLY,)
    assert result.evaluations == 16, result.reason
    with Journal.read(tmp_path) as journal:
        assert journal.evaluations()[: len(told)] == told or len(journal.evaluations()) == 16
        assert [query.x.tolist() for i, (query, _) in journal.queries().items() if i in asked] == [
            query.x.tolist() for query, _ in asked.values()
        ]
    assert climb(tmp_path, budget=17).notes == (ROUGHLY,)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("earlier", [{}, {"scale_search": True}], ids=["without a survey", "before 1.0"])
def test_a_run_of_a_version_without_a_survey_has_none(earlier):
    settings = {name: part for name, part in to_plain(gibo.Settings()).items() if name != "survey"}
    facts, _ = current_facts({"arguments": {"settings": settings | earlier}})
    assert facts["arguments"]["settings"]["survey"] == 0


def test_settings_that_are_gone_are_left_out_and_named_once(tmp_path, capsys):
    climb(tmp_path, budget=6)
    arguments, number = content_of(tmp_path, "arguments")
    arguments["settings"] |= {"leaps": 3, "of_faith": True}
    tamper(tmp_path, "facts", "content", json.dumps(arguments), number)
    assert manual.status(tmp_path).result.evaluations == 6
    capsys.readouterr()
    gibo.resume(tmp_path, hill, budget=8)
    assert "it continues without leaps, of_faith\n" in capsys.readouterr().err
    gibo.resume(tmp_path, hill, budget=9)
    assert capsys.readouterr().err == ""
    assert "leaps" not in content_of(tmp_path, "arguments")[0]["settings"]
    assert (tmp_path / FILE).exists()
