"""Journals that are damaged at random, and journals with any content and right checksums."""

import contextlib
import copy
import io
import json
import multiprocessing
import resource
import shutil
import sqlite3
import traceback
import warnings
from unittest import mock

import numpy as np
import test_damage
from run_helpers import D, add_row, climb, columns_of, content, forked, hill, tamper
from run_helpers import rows as rows_of

import gibo
from gibo import GiboError, InputError, JournalError
from gibo.cli import main
from gibo.runs.store import FILE, TABLES
from soak import SEED, Row, share_of

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


def read_damaged(data, folder, expected):
    """Read a journal of these bytes; returns whether it was refused."""
    path = folder / FILE
    path.write_bytes(data)
    refusal = None
    try:
        found = content(folder)
    except (JournalError, InputError) as error:  # anything else ends the test
        refusal = str(error)
    assert refusal is not None or found == expected, "other content than was written"
    assert "\n" not in (refusal or "")
    assert path.read_bytes() == data, "reading changed the file"
    for name in (f"{FILE}-wal", f"{FILE}-shm"):
        (folder / name).unlink(missing_ok=True)
    return refusal is not None


def overwritten(data, rng):
    damaged = bytearray(data)
    for _ in range(2 ** int(rng.integers(0, 7))):
        damaged[int(rng.integers(len(data)))] = int(rng.integers(256))
    return bytes(damaged)


def cut_off(data, rng):
    return data[: int(rng.integers(len(data)))]


def zeroed(data, rng):
    """A block that never reached the disk."""
    block, at = 512 * int(rng.integers(1, 17)), int(rng.integers(len(data) // 512)) * 512
    return data[:at] + b"\0" * len(data[at : at + block]) + data[at + block :]


def swapped(data, rng):
    """Two pages in each other's place."""
    pages = [data[i : i + 4096] for i in range(0, len(data), 4096)]
    i, j = rng.choice(len(pages), 2, replace=False)
    pages[i], pages[j] = pages[j], pages[i]
    return b"".join(pages)


def headers(data, rng):
    """In the first bytes of a page, which say how to read the rest."""
    damaged = bytearray(data)
    at = 4096 * int(rng.integers(len(data) // 4096)) + int(rng.integers(120))
    damaged[at] = int(rng.integers(256))
    return bytes(damaged)


KINDS = [overwritten, cut_off, zeroed, swapped, headers]


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


def damaged(tries, folder):
    sound, other = folder / "sound", folder / "copy"
    other.mkdir()
    test_damage.make_sound(sound)
    data, expected, rng = (sound / FILE).read_bytes(), content(sound), np.random.default_rng(SEED)
    refused, findings = 0, []
    for i in range(tries):
        try:
            refused += read_damaged(KINDS[i % len(KINDS)](data, rng), other, expected)
        except BaseException as error:
            findings.append(f"copy {i}: {type(error).__name__}: {error}")
    what = f"damaged journals ({refused:,} refused, the others read as written)"
    return Row(what, tries, tries - len(findings), 0, len(findings), tuple(findings))


def cases(victim):
    """Any content in any column, and in any place of the arguments and of the last memo."""
    for table in TABLES:
        count = len(rows_of(victim, table))
        for column, kind, *_ in (column.split() for column in TABLES[table].split(", ")):
            for row in range(count) if table == "facts" else [count - 1] if count else []:
                yield from ((table, column, row, value) for value in HOSTILE[kind])
    facts = [row[0] for row in rows_of(victim, "facts")]
    places = [("facts", "content", facts.index("arguments"))]
    places += [("batches", "thought", len(rows_of(victim, "batches")) - 1)]
    for table, column, row in places:
        data = json.loads(rows_of(victim, table)[row][columns_of(table).index(column)])
        for path in paths(data):
            for value in NESTED:
                yield table, column, row, json.dumps(with_part(data, path, value))


def tampered(tries, folder):
    with mock.patch("gibo.runs.api.fingerprint", return_value=None):  # a victim has values of two objectives
        make_victims(folder / "victims")
    rng, findings, made, refused = np.random.default_rng(SEED), [], 0, 0
    victims = sorted((folder / "victims").iterdir())
    for victim in victims:
        known = list(cases(victim))
        chosen = rng.permutation(len(known))[: max(1, tries // len(victims))]
        ours, theirs = multiprocessing.Pipe()
        process = forked(attack, victim, folder, [known[i] for i in chosen], theirs)
        theirs.close()
        try:
            wrong, was_refused, tried = ours.recv()
        except EOFError:
            wrong, was_refused, tried = ["the process ended"], 0, len(chosen)
        process.join()
        findings, made, refused = [*findings, *wrong], made + tried, refused + was_refused
    what = f"tampered journals, right checksums ({refused:,} refused)"
    return Row(what, made, made - len(findings), 0, 0, tuple(findings))


def rows(share, folder):
    yield damaged(share_of(2500, share), folder)
    yield tampered(share_of(400, share), folder)
