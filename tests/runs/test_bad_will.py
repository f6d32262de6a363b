"""A run's folder from elsewhere is harmless: links, pipes and hostile contents are one clear line."""

import contextlib
import copy
import io
import json
import multiprocessing
import os
import resource
import shutil
import signal
import sqlite3
import sys
import traceback
import warnings
from pathlib import Path

import pytest
from run_helpers import D, add_row, climb, columns_of, forked, hill, rows, tamper

import gibo
from gibo import GIBO, GiboError, Journal, JournalError
from gibo.cli import main
from gibo.runs.store import FILE, TABLES

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
WORDS = {"link": "symbolic link", "dangling": "symbolic link", "pipe": "named pipe", "folder": "folder"}


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
        with pytest.raises(JournalError, match=f"{name}: expected a regular file, found a {WORDS[kind]}; nothing was"):
            use(run)
    for words in (["ask"], ["tell", "4", "1.0"], ["status"], ["best"], ["export"]):
        assert main([words[0], str(run), *words[1:]]) == 2
        captured = capsys.readouterr()
        assert captured.err.count("\n") == 1
        assert "expected a regular file" in captured.err
    assert not calls
    assert (outside.read_bytes() if outside.exists() else None) == before
    assert sorted(path.name for path in run.iterdir()) == listed


def test_a_link_called_lock_is_nobodys_business(tmp_path):
    """Earlier versions wrote to a file of that name."""
    climb(tmp_path / "run", budget=4)
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "run" / "lock").symlink_to(tmp_path / "precious")
    assert climb(tmp_path / "run", budget=6).evaluations == 6
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_new_run_does_not_follow_links_either(tmp_path):
    for name in (FILE, "reserve"):
        run = tmp_path / f"run-{name}"
        run.mkdir()
        (run / name).symlink_to(tmp_path / "outside")
        with pytest.raises(JournalError, match="found a symbolic link"):
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

DEEP = "[" * 100_000 + "]" * 100_000
HOSTILE = {
    "INTEGER": [-1, 10**9, 2**62, None, "text", 1.5],
    "REAL": [float("inf"), None, "text", -1e308],
    "TEXT": [
        DEEP,
        None,
        "",
        "[]",
        '{"iterate": [1]}',
        "[NaN, NaN]",
        '["a", "b"]',
        "[1" + ",1" * 100_000 + "]",
        12,
        b"\xff",
    ],
}
NESTED = [None, -1, 10**12, 1e308, "text", [], {}, [[1.0, 2.0], [3.0, 4.0]], {"type": "Settings"}]
COMMANDS = (["status"], ["ask"], ["best"], ["tell", "14", "1.0"], ["export"], ["resume"])


def flaky(x, seed):
    if seed % 3 == 0:
        raise RuntimeError("it broke")
    return hill(x, seed)


def make_victims(base):
    """Whole journals, with rows in every table."""
    climb(base / "GIBO", budget=8)
    climb(base / "GIBO", flaky, budget=14, retries=1)
    add_row(base / "GIBO", "moves", 3, 1)
    add_row(base / "GIBO", "actions", 0, 1.7e9, 3, "told", '{"id": 2, "value": 1.5}')
    add_row(base / "GIBO", "views", "test", 3, "[1.0]")
    optimizers = [gibo.CMAES([0.0] * D, scale=0.3), gibo.ARS([0.0] * D), gibo.VanillaBO([0.0] * D, bounds=(-1.0, 1.0))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gibo.FailedEvaluationWarning)
        for optimizer in optimizers:
            gibo.run(optimizer, hill, budget=14, journal=base / type(optimizer).__name__)


@pytest.fixture(scope="module")
def victims(tmp_path_factory):
    base = tmp_path_factory.mktemp("victims")
    make_victims(base)
    return base


def outcome_of(words, run):
    """The exit code of a command, or of continuing the run, and what it says."""
    if words == ["resume"]:
        try:
            gibo.resume(run, lambda x: 1.0, budget=17)
        except GiboError as error:
            return 2, f"{error}\n"
        return 0, ""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        code = main([words[0], str(run), *words[1:]])
    return code, said.getvalue()


def attack(victim, base, cases, connection):
    """Try each case, in a process that may use so much memory and so much of a processor, and tell what went wrong."""
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (300, 300))
    warnings.simplefilter("ignore")
    wrong, refused, tried = [], 0, 0
    for i, (table, column, row, value) in enumerate(cases):
        words, run = COMMANDS[i % len(COMMANDS)], base / "copy"
        shutil.rmtree(run, ignore_errors=True)
        run.mkdir()
        shutil.copy(victim / FILE, run / FILE)
        try:
            tamper(run, table, column, value, row)
        except sqlite3.Error:  # SQLite itself does not take it
            continue
        tried += 1
        label = f"{table}.{column}[{row}] = {str(value)[:60]!r}: {' '.join(words)}"
        try:
            code, said = outcome_of(words, run)
        except BaseException:
            wrong.append(f"{label}\n{traceback.format_exc(limit=-3)}")
            continue
        refused += code != 0
        if code not in (0, 2) or (code == 2 and said.count("\n") != 1) or len(said) > 1000:
            wrong.append(f"{label}: {code}, {said[:300]}")
    connection.send((wrong, refused, tried))


def attacked(victim, base, cases):
    ours, theirs = multiprocessing.Pipe()
    process = forked(attack, victim, base, cases, theirs)
    theirs.close()
    try:
        wrong, refused, tried = ours.recv()
    except EOFError:
        process.join()
        pytest.fail(
            f"ended with {signal.Signals(-process.exitcode).name if process.exitcode < 0 else process.exitcode}"
        )
    process.join()
    assert not wrong, "\n".join(wrong[:5])
    return refused, tried


@pytest.mark.parametrize("table", TABLES)
def test_any_content_of_any_column_is_taken_or_refused_in_one_line(table, victims, in_memory):
    count = len(rows(victims / "GIBO", table))
    kinds = [column.split()[:2] for column in TABLES[table].split(", ")]
    which = range(count) if table == "facts" else [count - 1]
    cases = [(table, column, row, value) for column, kind in kinds for row in which for value in HOSTILE[kind]]
    refused, tried = attacked(victims / "GIBO", in_memory, cases)
    assert tried > len(cases) / 2
    assert refused > 0 or table == "views"  # which only a page reads


def paths(data, prefix=()):
    yield prefix
    if isinstance(data, dict):
        for name, part in data.items():
            yield from paths(part, (*prefix, name))
    elif isinstance(data, list) and data:
        yield from paths(data[0], (*prefix, 0))


def with_part(data, path, value):
    if not path:
        return value
    data = copy.deepcopy(data)
    part = data
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = value
    return data


@pytest.mark.parametrize("name", ["GIBO", "CMAES", "ARS", "VanillaBO"])
def test_any_argument_and_any_memo_is_taken_or_refused_in_one_line(name, victims, in_memory):
    run = victims / name
    facts = [row[0] for row in rows(run, "facts")]
    places = [("facts", "content", facts.index("arguments")), ("batches", "thought", len(rows(run, "batches")) - 1)]
    cases = []
    for table, column, row in places:
        data = json.loads(rows(run, table)[row][columns_of(table).index(column)])
        for i, path in enumerate(paths(data)):
            values = NESTED[i % 3 :: 3]  # all of them would take a minute
            cases += [(table, column, row, json.dumps(with_part(data, path, value))) for value in values]
    refused, tried = attacked(run, in_memory, cases)
    assert tried == len(cases)
    assert refused > 0


def test_an_optimizer_that_is_not_known_is_named(victims, tmp_path):
    shutil.copy(victims / "GIBO" / FILE, tmp_path / FILE)
    number = [row[0] for row in rows(tmp_path, "facts")].index("optimizer")
    tamper(tmp_path, "facts", "content", '"os.system"', number)
    with pytest.raises(GiboError, match=r"one of 'os\.system'"):
        gibo.resume(tmp_path, pytest.fail, budget=20)


def test_a_batch_of_a_billion_queries_is_no_batch(victims, tmp_path):
    shutil.copy(victims / "GIBO" / FILE, tmp_path / FILE)
    tamper(tmp_path, "batches", "size", 10**9)
    with pytest.raises(JournalError, match="a batch has more queries than there are"):
        gibo.resume(tmp_path, pytest.fail, budget=20)


def test_a_gradient_of_another_dimension_is_damage(tmp_path):
    gibo.run(GIBO([0.0] * D), lambda x: gibo.Outcome(1.0, [1.0] * D, 0.1), budget=4, journal=tmp_path)
    for column in ("gradient", "gradient_noise"):
        tamper(tmp_path, "evaluations", column, "[1.0, 1.0, 1.0]")
    with pytest.raises(JournalError, match="damaged"):
        gibo.resume(tmp_path, pytest.fail, budget=9)
