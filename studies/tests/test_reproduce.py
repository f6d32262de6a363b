"""`gibo reproduce` and `gibo figures`, from the command to the files."""

import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from gibo.cli import main

ILLUSTRATIONS = ("jacobian-model", "sampling-process", "lengthscales")
TINY = ["--dimensions", "2", "--functions", "2", "--budget", "6", "--workers", "1"]


def gibo(*words, cwd, **options):
    return subprocess.Popen(
        [sys.executable, "-c", "from gibo.cli import entry; entry()", *words],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )


def test_a_study_gives_data_and_figures_and_a_second_start_changes_nothing(tmp_path, capsys):
    assert main(["reproduce", "illustrations", "--out", str(tmp_path / "drawn")]) == 0
    assert {path.stem for path in (tmp_path / "drawn").glob("*.png")} == {*ILLUSTRATIONS}
    capsys.readouterr()
    words = ["reproduce", "ablation-sampling", *TINY, "--out", str(tmp_path / "out")]
    assert main(words) == 0
    first = capsys.readouterr().out
    assert "| 2 | active |" in first
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {
        *("study.json", "cells.jsonl", "regret.csv", "curves.csv", "marks.csv", "summary.md"),
        *(f"{name}.{ending}" for name in ("regret", "spread", "boxes") for ending in ("png", "svg")),
    }
    out = tmp_path / "out"
    drawn = {path.name: path.read_bytes() for path in out.glob("*.svg")}
    for path in drawn.values():
        ET.fromstring(path)
    cells = (out / "cells.jsonl").read_bytes()
    for path in out.iterdir():
        if path.name not in ("study.json", "curves.csv", "marks.csv"):
            path.unlink()
    assert main(["figures", str(out)]) == 0
    assert {path.name: path.read_bytes() for path in out.glob("*.svg")} == drawn
    (out / "cells.jsonl").write_bytes(cells)
    assert main(words) == 0
    assert (out / "cells.jsonl").read_bytes() == cells
    assert set(first.splitlines()[:8]) <= set(capsys.readouterr().out.splitlines())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["reproduce", "within-model", "--methods", "GIBBO"], "methods: 'GIBBO' is not in within-model"),
        (["reproduce", "within-model", "--functions", "0"], "functions: must be at least 1, got 0"),
        (["reproduce", "within-model", "--out", "/proc/nowhere"], "cannot be used as the study's folder"),
        (["figures", "nowhere"], "run the study first"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith("gibo: ")
    assert message in error
    assert len(error.splitlines()) == 1


def test_the_studies_are_listed_and_only_then_loaded():
    loaded = "print(sorted(name for name in sys.modules if name.startswith('gibo_studies.')), file=sys.stderr)"
    code = "import sys, atexit; from gibo.cli import main; atexit.register(lambda: LOADED); main(sys.argv[1:])"
    command = [sys.executable, "-c", code.replace("LOADED", loaded), "reproduce", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "within-model, out-of-model" in " ".join(done.stdout.split())
    assert done.stderr.strip() == "['gibo_studies.cli', 'gibo_studies.table']"


def test_ctrl_c_stops_with_a_message_and_the_same_command_continues(tmp_path):
    words = ["reproduce", "ablation-sampling", "--dimensions", "8", "--functions", "60", "--budget", "100"]
    process = gibo(*words, "--out", "x", cwd=tmp_path)
    log = Path(tmp_path / "x" / "cells.jsonl")
    until(lambda: log.exists() and log.stat().st_size)
    os.killpg(process.pid, signal.SIGINT)  # as the terminal does: to every process of the group
    output, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command continues" in output
    assert "finishing the cells that are running" in error
    assert "Traceback" not in error
    assert log.read_text().endswith("\n")


def until(condition):
    """Wait for something that happens soon."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def alive(group):
    """The states of the processes of a group that have not ended, by their ids."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, pgrp = stat.read_text().rsplit(")", 1)[1].split()[:3]
        except OSError:  # it ended while we looked
            continue
        if int(pgrp) == group and state != "Z":
            found[stat.parent.name] = state
    return found


@pytest.mark.parametrize("how", ["kill", "twice"])
def test_no_process_stays_behind(tmp_path, how):
    words = ["reproduce", "ablation-sampling", "--dimensions", "30", "--functions", "30", "--budget", "3000"]
    process = gibo(*words, "--workers", "2", "--out", "x", cwd=tmp_path)
    until(lambda: len(alive(process.pid)) == 3 and alive(process.pid)[str(process.pid)] == "S")
    said = ""
    if how == "kill":
        process.kill()
    else:
        os.kill(process.pid, signal.SIGINT)
        while "finishing the cells that are running" not in said:
            more = process.stderr.read(1)
            assert more, said  # it has ended
            said += more
        os.kill(process.pid, signal.SIGTERM)
    _, error = process.communicate(timeout=60)
    until(lambda: not alive(process.pid))
    assert "Traceback" not in said + error
