"""A run's folder from elsewhere is harmless: links, pipes and hostile contents are one clear line."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from run_helpers import climb, rows, tamper

import gibo
from gibo import Journal, JournalError
from gibo.cli import main
from gibo.runs.store import FILE

DATA = Path(__file__).parent.parent / "data"


# -- files that are none ----------------------------------------------------------------------------------------------


def linked(path, outside):
    outside.write_bytes(b"precious" if path.name != FILE else path.read_bytes())
    path.unlink(missing_ok=True)
    path.symlink_to(outside)


def dangling(path, outside):
    path.unlink(missing_ok=True)
    path.symlink_to(outside)


def pipe(path, outside):
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def folder(path, outside):
    path.unlink(missing_ok=True)
    path.mkdir()


KINDS = {"link": linked, "dangling": dangling, "pipe": pipe, "folder": folder}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [FILE, f"{FILE}-wal", f"{FILE}-shm", f"{FILE}-journal", "reserve"])
def test_what_is_no_regular_file_is_named_and_left_alone(name, kind, tmp_path, capsys):
    run, outside = tmp_path / "run", tmp_path / "outside"
    climb(run, budget=4)
    KINDS[kind](run / name, outside)
    before = outside.read_bytes() if outside.exists() else None
    listed = sorted(path.name for path in run.iterdir())
    calls = []
    for use in (
        Journal.read,
        Journal.open,
        lambda f: gibo.resume(f, calls.append, budget=9),
        lambda f: climb(f, calls.append, budget=9),
    ):
        with pytest.raises(JournalError, match=f"{name}: expected a regular file, found a link, "):
            use(run)
    for words in (["ask"], ["tell", "4", "1.0"], ["status"], ["best"], ["export"]):
        assert main([words[0], str(run), *words[1:]]) == 2
        captured = capsys.readouterr()
        assert captured.err.count("\n") == 1
        assert "expected a regular file" in captured.err
    assert not calls
    assert (outside.read_bytes() if outside.exists() else None) == before
    assert sorted(path.name for path in run.iterdir()) == listed


def test_a_new_run_does_not_follow_links_either(tmp_path):
    for name in (FILE, "reserve"):
        run = tmp_path / f"run-{name}"
        run.mkdir()
        (run / name).symlink_to(tmp_path / "outside")
        with pytest.raises(JournalError, match="found a link"):
            climb(run, pytest.fail)
        assert not (tmp_path / "outside").exists()


# -- what a file names is not loaded ----------------------------------------------------------------------------------


@pytest.fixture
def training(tmp_path):
    """A run of gibo train with normalised states."""
    (tmp_path / "run").mkdir()
    shutil.copy(DATA / "journal-v1-train" / FILE, tmp_path / "run" / FILE)
    return tmp_path / "run"


def test_reading_a_run_imports_nothing_that_it_names(training, tmp_path, monkeypatch, capsys):
    (tmp_path / "evil_module.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    number = [row[0] for row in rows(training, "facts")].index("task")
    plain = json.loads(rows(training, "facts")[number][1])
    tamper(training, "facts", "content", json.dumps({**plain, "environment": "evil_module:Env-v0"}), number)
    monkeypatch.setitem(sys.modules, "gymnasium", None)  # whoever imports it gets an error
    for command in ("status", "best", "export"):
        assert main([command, str(training)]) == 0
        assert capsys.readouterr().err == ""
    assert "evil_module" not in sys.modules


def test_a_run_with_normalised_states_is_not_driven_by_hand(training, capsys):
    before = (training / FILE).read_bytes()
    for words in (["ask", training], ["tell", training, "20", "1.0"]):
        assert main([str(word) for word in words]) == 2
        assert "normalised states cannot be driven by hand; continue it with" in capsys.readouterr().err
    assert (training / FILE).read_bytes() == before


# -- contents with right checksums ------------------------------------------------------------------------------------


def test_a_batch_of_a_billion_queries_is_no_batch(tmp_path):
    climb(tmp_path, budget=8)
    tamper(tmp_path, "batches", "size", 10**9)
    with pytest.raises(JournalError, match="a batch has more queries than exist"):
        gibo.resume(tmp_path, pytest.fail, budget=20)
