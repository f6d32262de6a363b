"""What SQLite alone would not notice in a journal's file, or would do for whoever made it."""

import os
import shutil
import sqlite3
import time

import pytest
from run_helpers import climb, hill, told_in

import gibo
from gibo import JournalError
from gibo.cli import main
from gibo.runs import manual
from gibo.runs.store import FILE, RESERVE

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, 'x', 0.0, 0, '' FROM n"
PROGRAMS = {
    "view": f"CREATE VIEW more AS {ENDLESS}",
    "view-for-table": f"DROP TABLE moves; CREATE VIEW moves AS {ENDLESS}",
    "trigger": "CREATE TRIGGER t AFTER INSERT ON evaluations BEGIN DELETE FROM evaluations; END",
    "table": "CREATE TABLE more (x)",
    "index": "CREATE INDEX i ON evaluations (abs(value))",
    "other-columns": "DROP TABLE moves; CREATE TABLE moves (after INTEGER PRIMARY KEY, batch INTEGER, crc INTEGER)",
    "checked": "ALTER TABLE moves ADD COLUMN more INTEGER DEFAULT (1)",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    climb(folder, budget=6)
    return folder


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_a_file_with_something_that_gibo_did_not_make_is_refused(program, run, tmp_path, capsys):
    shutil.copy(run / FILE, tmp_path / FILE)
    connection = sqlite3.connect(tmp_path / FILE)
    connection.executescript(program)
    connection.close()
    before = (tmp_path / FILE).read_bytes()
    for use in (manual.status, lambda folder: gibo.resume(folder, hill, budget=9)):
        with pytest.raises(JournalError, match="gibo did not make its"):
            use(tmp_path)
    assert main(["status", str(tmp_path)]) == 2
    assert "gibo did not make its" in capsys.readouterr().err
    assert (tmp_path / FILE).read_bytes() == before


def test_free_pages_that_are_in_use_are_found_before_anything_is_written_over_them(run, tmp_path):
    data = bytearray((run / FILE).read_bytes())
    data[32:40] = bytes([0, 0, 0, 5] * 2)  # the first one of five free pages is the fifth page
    (tmp_path / FILE).write_bytes(data)
    for use in (manual.status, lambda folder: gibo.resume(folder, hill, budget=9)):
        with pytest.raises(JournalError, match="the journal is damaged"):
            use(tmp_path)
    assert (tmp_path / FILE).read_bytes() == data


def test_a_tree_of_pages_that_leads_in_circles_is_left(run, tmp_path, monkeypatch):
    """Every statement that reads a file from elsewhere may do a bounded number of steps."""
    shutil.copy(run / FILE, tmp_path / FILE)
    monkeypatch.setattr("gibo.runs.store.MOST_INSTRUCTIONS", 100)
    monkeypatch.setattr("gibo.runs.store.INSTRUCTIONS_PER_BYTE", 0)
    monkeypatch.setattr("gibo.runs.store.COUNTED_AT_ONCE", 10)
    with pytest.raises(JournalError, match="reading it does not end"):
        manual.status(tmp_path)


def test_a_reserve_that_is_another_file_too_is_not_written_to(run, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    folder = tmp_path / "run"
    folder.mkdir()
    shutil.copy(run / FILE, folder / FILE)
    os.link(precious, folder / "reserve")
    assert climb(folder, budget=9).evaluations == 9
    assert precious.read_text() == "precious"
    assert (folder / "reserve").stat().st_size == RESERVE


def test_a_log_that_is_cut_off_during_a_run_is_noticed_and_what_was_moved_before_is_kept(tmp_path):
    calls = []

    def objective(x, seed):
        calls.append(seed)
        if len(calls) == 10:
            os.truncate(tmp_path / f"{FILE}-wal", 0)
        time.sleep(0.1)  # longer than gibo.runs.store.CHECKPOINT_AFTER
        return -float(x @ x)

    result = climb(tmp_path, objective, budget=20)
    assert result.status is gibo.Status.ERROR
    assert "it was truncated during the run" in result.reason
    assert "not recorded, so write it down: query 9" in result.reason
    assert result.evaluations == len(calls) == 10
    assert len(told_in(tmp_path)) >= 8
