"""Journals that are damaged at random, and journals with any content and right checksums."""

import contextlib
import functools
import io
import json
import shutil
import sqlite3
import warnings
from unittest import mock

import numpy as np
import test_damage
from hostile_calls import attacked
from hostile_targets import Call
from hostile_values import bent
from run_helpers import D, add_row, climb, columns_of, content, hill, tamper
from run_helpers import rows as rows_of

import gibo
from gibo import InputError, JournalError
from gibo.cli import main
from gibo.runs.store import FILE, TABLES
from soak import SEED, Row, share_of

HOSTILE = {
    "INTEGER": [-1, 10**9, 2**62, None, "text", 1.5],
    "REAL": [float("inf"), None, "text", -1e308],
    "TEXT": ["[" * 100_000 + "]" * 100_000, None, "", "[]", "[NaN, NaN]", "[1" + ",1" * 100_000 + "]", 12, b"\xff"],
}
COMMANDS = (["status"], ["ask"], ["best"], ["tell", "14", "1.0"], ["export"], ["resume"])


# -- damaged ----------------------------------------------------------------------------------------------------------


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


def in_a_header(data, rng):
    """In the first bytes of a page, which say how to read the rest."""
    damaged = bytearray(data)
    damaged[4096 * int(rng.integers(len(data) // 4096)) + int(rng.integers(120))] = int(rng.integers(256))
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


KINDS = [overwritten, in_a_header, cut_off, zeroed, swapped]


def damaged(tries, folder):
    sound, other = folder / "sound", folder / "other"
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


# -- forged -----------------------------------------------------------------------------------------------------------


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


def forged(run, rng):
    """Write anything into any place of a journal: another value, or other data in the place of JSON."""
    tables = [table for table in TABLES if rows_of(run, table)]
    table = tables[rng.integers(len(tables))]
    columns, known = TABLES[table].split(", "), rows_of(run, table)
    i, row = int(rng.integers(len(columns))), int(rng.integers(len(known)))
    kind = columns[i].split()[1]
    value = HOSTILE[kind][rng.integers(len(HOSTILE[kind]))]
    if kind == "TEXT" and rng.random() < 0.7:
        with contextlib.suppress(ValueError, TypeError, RecursionError):
            value = json.dumps(bent(json.loads(known[row][i]), rng))
    with contextlib.suppress(sqlite3.Error):  # SQLite itself does not take it
        tamper(run, table, columns_of(table)[i], value, row)


def attempt(victim, number, folder):
    """A command, or the run continued, with a forged journal; raises what is not as promised, or gibo's refusal."""
    run, words = folder / "copy", COMMANDS[number % len(COMMANDS)]
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(victim, run)
    forged(run, np.random.default_rng((SEED, number)))
    if words == ["resume"]:
        gibo.resume(run, lambda x: 1.0, budget=17)
        return
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        code = main([words[0], str(run), *words[1:]])
    assert code in (0, 2), code
    if code == 2:
        assert said.getvalue().endswith("\n"), said.getvalue()
        raise gibo.GiboError(said.getvalue()[:-1])


def tampered(tries, folder):
    with mock.patch("gibo.runs.api.fingerprint", return_value=None):  # a victim has values of two objectives
        make_victims(folder / "victims")
    victims = sorted((folder / "victims").iterdir())

    def targets(number):
        victim = victims[number % len(victims)]
        call = functools.partial(attempt, victim, number // len(victims), folder)
        return lambda folder: Call(f"{victim.name}, case {number // len(victims)}", call, {}, lambda found: None)

    findings, made, refused = attacked([targets(number) for number in range(tries)], tries, folder)
    what = f"forged journals with right checksums ({refused:,} refused)"
    return Row(what, made, made - len(findings), 0, 0, tuple(findings))


def rows(share, folder):
    yield damaged(share_of(2500, share), folder)
    yield tampered(share_of(400, share), folder)
