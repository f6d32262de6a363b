import json
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from gibo.errors import InputError, JournalError, StudyError
from gibo.runs.lock import folder_lock
from gibo_studies.command import parse_options
from gibo_studies.engine import run_study


@dataclass(frozen=True)
class Squares:
    """A study whose cells are the squares of numbers; each run of a cell leaves a mark in a folder."""

    marks: str
    count: int = 6
    dying: tuple[int, ...] = ()
    name: str = "squares"

    def definition(self):
        return {"count": self.count}

    def cells(self):
        return [{"i": i} for i in range(self.count)]

    def run_cell(self, cell):
        if cell["i"] in self.dying:
            os._exit(1)
        with (Path(self.marks) / str(cell["i"])).open("a") as file:
            file.write(f"{os.getpid()}\n")
        return {"cell": dict(cell), "square": cell["i"] ** 2}


@pytest.fixture
def marks(tmp_path):
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder


def runs(marks):
    return {int(path.name): len(path.read_text().splitlines()) for path in marks.iterdir()}


@pytest.mark.parametrize("torn", ["", '{"cell": {"i": 5}, "square": 25, "seconds": 0.0}', "\x00\x00"])
def test_a_second_start_runs_only_what_is_missing_and_cuts_a_line_without_its_end(tmp_path, marks, torn):
    out = tmp_path / "out"
    run_study(Squares(str(marks)), out, 1)
    log = out / "cells.jsonl"
    whole = log.read_text().splitlines(keepends=True)[:5]
    log.write_text("".join(whole) + torn)
    outcome = run_study(Squares(str(marks)), out, 1)
    assert sorted(record["square"] for record in outcome.records) == [0, 1, 4, 9, 16, 25]
    assert [json.loads(line) for line in log.read_text().splitlines()] == outcome.records
    assert sorted(runs(marks).values()) == [1, 1, 1, 1, 1, 2]


def test_a_damaged_line_is_named(tmp_path, marks):
    out = tmp_path / "out"
    run_study(Squares(str(marks)), out, 1)
    log = out / "cells.jsonl"
    lines = log.read_text().splitlines()
    lines[2] = lines[2][:10]
    log.write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match="line 3 is damaged"):
        run_study(Squares(str(marks)), out, 1)


def test_another_study_in_the_same_folder_is_refused_and_nothing_changes(tmp_path, marks):
    out = tmp_path / "out"
    run_study(Squares(str(marks)), out, 1)
    before = (out / "cells.jsonl").read_bytes()
    with pytest.raises(InputError, match=r"holds another study: count was 6, now 7.*--out"):
        run_study(Squares(str(marks), count=7), out, 1)
    assert (out / "cells.jsonl").read_bytes() == before


def test_lists_of_options():
    given = {"dimensions": "4, 8,12", "methods": "GIBO, our defaults; ARS", "budget": 3}
    assert parse_options(given) == {"dimensions": (4, 8, 12), "methods": ("GIBO, our defaults", "ARS"), "budget": 3}
    for text in ("", "4,x", ","):
        with pytest.raises(InputError, match="--dimensions: expected"):
            parse_options({"dimensions": text})


def test_a_worker_that_dies_is_named_and_what_was_finished_is_kept(tmp_path, marks):
    out = tmp_path / "out"
    with pytest.raises(StudyError, match="a worker process died"):
        run_study(Squares(str(marks), dying=(4,)), out, 1)
    assert run_study(Squares(str(marks)), out, 1).complete


def test_a_second_process_in_the_same_folder_is_refused(tmp_path, marks):
    out = tmp_path / "out"
    out.mkdir()
    with folder_lock(out), pytest.raises(JournalError, match=rf"in use by process {os.getpid()};"):
        run_study(Squares(str(marks)), out, 1)


def test_a_folder_with_other_files_is_left_alone(tmp_path, marks):
    (tmp_path / "cells.jsonl").write_text("precious")
    with pytest.raises(InputError, match="it holds files, but no study"):
        run_study(Squares(str(marks)), tmp_path, 1)
    assert (tmp_path / "cells.jsonl").read_text() == "precious"
