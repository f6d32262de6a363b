"""What the tests of runs share: a run to record, what is in a journal, processes that start in milliseconds."""

import gc
import json
import multiprocessing
import sqlite3
import warnings

import numpy as np

import gibo
from gibo import Journal, Outcome, Settings
from gibo.runs.session import Session
from gibo.runs.store import FILE, TABLES, _checksum

FORK = multiprocessing.get_context("fork")
SETTINGS = Settings(lengthscale=1.0, variance=1.0, noise=0.01, M=2, N_m=12)
D = 2


def hill(x, seed):
    """A noisy hill that fails now and then and has more to tell than its value."""
    rng = np.random.default_rng(seed)
    if rng.random() < 0.1:
        raise RuntimeError("it broke")
    value = 5.0 - float(((x - 1.0) ** 2).sum()) + 0.1 * rng.standard_normal()
    info = {"steps": int(seed % 100), "x": x.tolist()}
    return Outcome(value, 2.0 - 2.0 * x, 0.1, info, noise=0.01, measured={"steps": float(seed % 100)}, block="monday")


def climb(folder, objective=hill, budget=12, **options):
    """A run with a journal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gibo.FailedEvaluationWarning)
        return gibo.maximize(
            objective, [0.0] * D, **{"budget": budget, "settings": SETTINGS, "journal": folder, **options}
        )


def state_of(folder):
    """The state of the optimiser of a run, as another process would make it from the journal."""
    with Journal.read(folder) as journal:
        return Session.of(journal).optimizer.state()


def as_data(query):
    return (query.id, query.x.tolist(), query.seed, query.kind, query.iteration)


def as_plain(outcome):
    """An outcome as data whose text distinguishes floats to the last bit."""
    arrays = [
        None if part is None else np.asarray(part).tolist() for part in (outcome.gradient, outcome.gradient_noise)
    ]
    others = (outcome.failure, outcome.traceback, outcome.seconds)
    return (outcome.value, *arrays, dict(outcome.info), outcome.details(), *others)


def told_in(folder):
    """All evaluations of a journal in their order of arrival."""
    with Journal.read(folder) as journal:
        return [e for e, _ in journal.evaluations()]


def content(folder):
    """All that a reader can see; its text distinguishes floats to the last bit."""
    with Journal.read(folder) as journal:
        told = [(as_data(e.query), as_plain(e.outcome), at) for e, at in journal.evaluations()]
        asked = [(as_data(query), at) for query, at in journal.queries().values()]
        where = {number: x.tolist() for number, x in journal.iterates().items()}
        state = json.dumps(Session.of(journal).optimizer.state())
        return repr(
            (journal.spec(), journal.starts(), journal.actions(), told, asked, where, journal.attempts(), state)
        )


def rows(folder, table):
    """A table as SQLite has it, without the checksums, in the order of its first column."""
    connection = sqlite3.connect(f"file:{folder / FILE}?mode=ro", uri=True)
    try:
        return [row[:-1] for row in connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()]
    finally:
        connection.close()


def forked(target, *arguments):
    """A process that starts in milliseconds."""
    process = FORK.Process(target=target, args=arguments)
    gc.freeze()  # or the child would look through, and so copy, all that the tests have in memory
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forking beside threads
        process.start()
    gc.unfreeze()
    return process


def columns_of(table):
    return [column.split()[0] for column in TABLES[table].split(", ")]


def tamper(folder, table, column, value, row=0):
    """Write another value into a row of a journal, and make all checksums right again."""
    connection = sqlite3.connect(folder / FILE, isolation_level=None)
    names = columns_of(table)
    try:
        query = f"SELECT rowid FROM {table} ORDER BY {names[0]} LIMIT 1 OFFSET ?"
        (number,) = connection.execute(query, (row,)).fetchone()
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, number))
        if f"{column} INTEGER PRIMARY KEY" in TABLES[table] and isinstance(value, int):  # it is the rowid
            number = value
        found = connection.execute(f"SELECT {', '.join(names)} FROM {table} WHERE rowid = ?", (number,)).fetchone()
        if not any(isinstance(part, bytes) for part in found):  # of which there is no checksum
            connection.execute(f"UPDATE {table} SET crc = ? WHERE rowid = ?", (_checksum(table, found), number))
    finally:
        connection.close()


def add_row(folder, table, *values):
    """Write another row into a journal, with all checksums and the tally."""
    connection = sqlite3.connect(folder / FILE, isolation_level=None)
    try:
        marks = ", ".join("?" * (len(values) + 1))
        connection.execute(f"INSERT INTO {table} VALUES ({marks})", (*values, _checksum(table, values)))
        tally = json.loads(connection.execute("SELECT content FROM tally").fetchone()[0])
        text = json.dumps({**tally, table: tally[table] + 1})
        connection.execute("UPDATE tally SET content = ?, crc = ?", (text, _checksum("tally", [text])))
    finally:
        connection.close()
