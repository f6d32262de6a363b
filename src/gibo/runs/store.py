"""The storage of a journal: one SQLite file, rows with checksums, one writer at a time, any number of readers.

    facts         the specification of the run: the fields of `RunSpec`
    starts, ends  each process that worked on it: when, where, how it ended
    batches       queries that were asked together, the iterate, and the optimiser's memo of slow computations
    queries       each query when it is asked
    attempts      evaluations that failed and were tried again
    evaluations   each value or failure when it arrives, in the order of arrival
    moves         iterations that went on early
    iterations    the optimiser's record of each step
    actions       actions of people: pause, a told or corrected value, a remark (since version 2)
    beliefs       the model's predictions after an update, as JSON; see `gibo.runs.views` (since version 3)
    details       an evaluation's measured quantities, noise, repeats and block, if any, as JSON (since version 3)
    views         data for the page's drawings of the model, one row per kind, as JSON (since version 3)

Vectors are JSON texts, which keep floats exactly. Times are seconds since 1970. Values have the objective's sign, also
if it is minimised. `gibo.runs.legacy` converts rows of earlier versions.

Each row has a checksum of its content and a tally counts the rows of each table, which detects damage that SQLite does
not. SQLite's write-ahead log lets others read while a run is writing. Each transaction is on the disk when it returns,
and in the main file soon after. Only regular files are opened, no link is followed, and a file with a foreign table,
view, trigger or index is refused.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from gibo.errors import InputError, JournalError
from gibo.runs.database import (
    FILE,
    bounded,
    check_files,
    connect,
    connect_to_read,
    damaged,
    explained,
    is_there,
    regular,
    sound,
)
from gibo.runs.lock import folder_lock

APPLICATION = 0x6769626F  # "gibo", in the file's header
# Bytes kept on the disk so that running evaluations can still be recorded when it fills up.
RESERVE = 1 << 20
CHECKPOINT_AFTER = 0.05  # seconds after which records are moved from the write-ahead log to the main file


SCHEMA = 3

TABLES = {
    "facts": "name TEXT PRIMARY KEY, content TEXT NOT NULL",
    "starts": "number INTEGER PRIMARY KEY, process INTEGER, host TEXT, started REAL, options TEXT, versions TEXT",
    "ends": "start INTEGER PRIMARY KEY, ended REAL, reason TEXT",
    "batches": "number INTEGER PRIMARY KEY, iteration INTEGER, first INTEGER, size INTEGER, asked REAL, iterate TEXT, "
    "thought TEXT",
    "queries": "id INTEGER PRIMARY KEY, iteration INTEGER, kind TEXT, seed INTEGER, x TEXT",
    "attempts": "number INTEGER PRIMARY KEY, query INTEGER, failed REAL, seconds REAL, failure TEXT, traceback TEXT",
    "evaluations": "number INTEGER PRIMARY KEY, query INTEGER UNIQUE, told REAL, seconds REAL, value REAL, "
    "gradient TEXT, gradient_noise TEXT, info TEXT, failure TEXT, traceback TEXT",
    "moves": "after INTEGER PRIMARY KEY, batch INTEGER",
    "iterations": "number INTEGER PRIMARY KEY, evaluations INTEGER, iterate TEXT, gradient TEXT, uncertainty REAL, "
    "probability_of_ascent REAL, certainty REAL, step TEXT, lengthscale TEXT, variance REAL, noise REAL, jitter REAL, "
    "warning TEXT",
    "actions": "number INTEGER PRIMARY KEY, time REAL, after INTEGER, kind TEXT, body TEXT",
    "beliefs": "number INTEGER PRIMARY KEY, evaluations INTEGER, body TEXT",
    "details": "number INTEGER PRIMARY KEY, body TEXT",
    "views": "kind TEXT PRIMARY KEY, number INTEGER, body TEXT",
}
SINCE = {
    "actions": 2,
    "beliefs": 3,
    "details": 3,
    "views": 3,
}  # the first version of the journal with a table; the other tables exist since version 1
MADE = {name: f"CREATE TABLE {name} ({columns}, crc INTEGER NOT NULL)" for name, columns in TABLES.items()}
MADE["tally"] = "CREATE TABLE tally (content TEXT NOT NULL, crc INTEGER NOT NULL)"
INDEXED = ("facts", "evaluations", "views")  # SQLite makes an index itself for a key that is no whole number
COLUMNS = {table: [column.split()[0] for column in columns.split(", ")] for table, columns in TABLES.items()}


Row = tuple[Any, ...]


def tables_of(version: int) -> set[str]:
    """The tables of a journal of this version, besides the tally."""
    return {table for table in TABLES if SINCE.get(table, 1) <= version}


class Store:
    """Tables of rows in a folder's journal file; see the module's docstring. Use `read` or `write` to make one.

    ``with store:`` is a transaction: at its end either all of its rows are on the disk, or none.
    """

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self.folder = folder
        self._version = 0  # of the file
        self._connection, self._closing = connection, ExitStack()
        self._file: tuple[int, int] | None = None  # of a writer: device and inode
        self._log_size = 0  # of the write-ahead log, which does not shrink while somebody writes
        self._checkpointed = 0.0
        self._tally: dict[str, int] = dict.fromkeys(TABLES, 0)  # rows, those of the present transaction included
        self._read: dict[str, list[Row]] = {}  # of a reader, or of a writer that has not written yet
        self._before = (self._tally, self._read)  # at the beginning of the present transaction

    # -- open and close -----------------------------------------------------------------------------------------------

    @classmethod
    def read(cls, folder: Path, whole: bool = True) -> Store:
        """Open for reading the present content, also while a run is writing; writes nothing.

        With `whole`, all tables are checked at once; otherwise each table is checked when it is read.
        """
        if not is_there(folder):
            raise InputError(f"{folder}: there is no run; expected a folder with {FILE}")
        with ExitStack() as closing, explained(folder):
            connection = connect_to_read(folder, closing)
            connection.execute("BEGIN")  # read the present state, even if a run writes meanwhile
            store = cls(folder, connection)
            store._check(whole)
            store._closing = closing.pop_all()
        return store

    @classmethod
    def write(
        cls, folder: Path, *, new: bool, patience: float = 0.0, waiting: Callable[[], None] | None = None
    ) -> Store:
        """Open for writing, as the only writer; the first transaction creates the tables of a new file."""
        with ExitStack() as closing, explained(folder):
            if new:
                folder.mkdir(parents=True, exist_ok=True)
            elif not is_there(folder):
                raise InputError(f"{folder}: there is no run; expected a folder with {FILE}")
            closing.enter_context(folder_lock(folder, patience, waiting))
            if new and is_there(folder):
                raise InputError(f"{folder}: there is already a run; continue it, or name another folder")
            check_files(folder)
            store = cls(folder, connect(folder, closing))
            path = folder / FILE
            found = path.lstat()
            if found.st_nlink > 1:  # SQLite would keep a write-ahead log for each of its names
                raise JournalError(f"{path}: the file has a second name (a hard link); copy it instead")
            store._file = (found.st_dev, found.st_ino)
            if new:
                store._connection.execute("PRAGMA journal_mode = WAL")
            else:
                store._check()
            store._keep_reserve()
            store._closing = closing.pop_all()
        return store

    def close(self) -> None:
        """Close the file and release the lock."""
        self._closing.close()

    def _upgrade(self) -> None:
        """Create the present tables with the rows of an earlier version, if any, in the transaction of a record."""
        there = tables_of(self._version) if self._version else set()
        upgraded = self._upgraded(there) if there else {}
        for table in ([] if there else ["tally"]) + [table for table in TABLES if table not in there]:
            self._connection.execute(MADE[table])
        if not there:
            self._connection.execute("INSERT INTO tally VALUES ('{}', ?)", (_checksum("tally", ["{}"]),))
            self._connection.execute(f"PRAGMA application_id = {APPLICATION}")
        for table, rows in upgraded.items():
            if rows != self._checked_rows(table):
                self._connection.execute(f"DELETE FROM {table}")
                self._tally[table] = 0
                for row in rows:
                    self.insert(table, *row)
        self._connection.execute(f"PRAGMA user_version = {SCHEMA}")

    def _upgraded(self, there: set[str]) -> dict[str, list[Row]]:
        """The rows of an earlier version with these tables, as rows of the present version."""
        from gibo.runs.legacy import upgraded  # here, because only old journals need it

        with sound(self.folder):
            return upgraded({table: self._checked_rows(table) if table in there else [] for table in TABLES})

    def _check(self, whole: bool = True) -> None:
        """Check that this is a journal of a known version, made by gibo only, and complete; reads every row."""
        (application,) = self._connection.execute("PRAGMA application_id").fetchone()
        (found,) = self._connection.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION:
            raise JournalError(f"{self.folder / FILE}: not a journal of gibo")
        if found > SCHEMA or found < 1:
            raise JournalError(
                f"{self.folder / FILE}: a journal of version {found}, but this gibo knows versions up to {SCHEMA}; "
                "update gibo"
            )
        self._version = found
        there = tables_of(found)
        with bounded(self._connection, self.folder):
            self._check_objects(there)
            if whole:
                (state,) = self._connection.execute("PRAGMA quick_check(1)").fetchone()
                if state != "ok":
                    raise damaged(self.folder, state)
        with sound(self.folder):
            self._read_tally()
        if found < SCHEMA:
            self._read = self._upgraded(there)
        elif whole:
            self._read = {table: self._checked_rows(table) for table in TABLES}

    def _check_objects(self, tables: set[str]) -> None:
        """Check that the file has only the tables of gibo, because views and triggers are programs."""
        expected: set[tuple[str, str, str | None]] = {("table", name, MADE[name]) for name in (*tables, "tally")}
        expected |= {("index", f"sqlite_autoindex_{name}_1", None) for name in INDEXED if name in tables}
        found = set(self._connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall())
        wrong = sorted(found - expected, key=lambda each: each[:2], reverse=True)
        if wrong:
            raise damaged(self.folder, f"gibo did not make its {wrong[0][0]} {wrong[0][1]}")

    def _read_tally(self) -> None:
        """Read the number of rows of each table."""
        ((content, crc),) = self._connection.execute("SELECT content, crc FROM tally").fetchall()
        if crc != _checksum("tally", [content]):
            raise damaged(self.folder, "its tally does not match its checksum")
        self._tally = dict.fromkeys(TABLES, 0) | {table: int(count) for table, count in json.loads(content).items()}

    def _keep_reserve(self) -> None:
        path = self.folder / "reserve"
        found = regular(path)
        if found is None or found.st_size < RESERVE:
            path.unlink(missing_ok=True)  # replace it instead of writing to it: it may be a hard link of another file
            with path.open("xb") as file:
                file.write(b"\0" * RESERVE)
                file.flush()
                os.fsync(file.fileno())

    # -- rows ---------------------------------------------------------------------------------------------------------

    def rows(self, table: str) -> list[Row]:
        """All rows of a table, by its first column, each with a correct checksum."""
        return self._read[table] if table in self._read else self._checked_rows(table)

    def _checked_rows(self, table: str) -> list[Row]:
        with explained(self.folder), bounded(self._connection, self.folder):
            found = self._connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()
        with sound(self.folder):
            for row in found:
                if row[-1] != _checksum(table, row[:-1]):
                    raise damaged(self.folder, f"a row of {table} does not match its checksum")
            if len(found) != self.count(table):
                raise damaged(self.folder, f"rows of {table} are missing")
        return [row[:-1] for row in found]

    def count(self, table: str) -> int:
        """The number of rows."""
        return self._tally[table]

    def insert(self, table: str, *values: Any) -> None:
        """Add a row, in a transaction."""
        marks = ", ".join("?" * (len(values) + 1))
        self._connection.execute(f"INSERT INTO {table} VALUES ({marks})", (*values, _checksum(table, values)))
        self._tally[table] += 1

    def delete(self, table: str, key: Any) -> None:
        """Delete the row with this first column, if any, in a transaction."""
        deleted = self._connection.execute(f"DELETE FROM {table} WHERE {COLUMNS[table][0]} = ?", (key,)).rowcount
        self._tally[table] -= deleted

    def __enter__(self) -> None:
        """Begin a transaction; roll back one that was left without an end."""
        with explained(self.folder):
            self._still_there()
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            self._connection.execute("BEGIN IMMEDIATE")
            if self._version:
                self._read_tally()  # from the disk: an interrupt during the last commit may have hidden its success
            self._before = (dict(self._tally), self._read)
            self._read = {}
            if self._version < SCHEMA:
                self._upgrade()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Commit the new rows and the row counts, which detect missing rows."""
        with explained(self.folder):
            try:
                if error is not None:
                    raise error
                row = (content := json.dumps(self._tally), _checksum("tally", [content]))
                self._connection.execute("UPDATE tally SET content = ?, crc = ?", row)
                self._connection.execute("COMMIT")
                self._version = SCHEMA
            except BaseException:
                with suppress(sqlite3.Error):  # after some errors SQLite has already rolled back
                    self._connection.execute("ROLLBACK")
                self._tally, self._read = self._before
                raise
            if time.monotonic() - self._checkpointed > CHECKPOINT_AFTER:
                with suppress(sqlite3.Error):  # for example a full disk; the record is complete nevertheless
                    self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
                self._checkpointed = time.monotonic()
            self._log_size = (self.folder / f"{FILE}-wal").lstat().st_size

    def use_reserve(self) -> None:
        """Release the space that was reserved for running evaluations."""
        with explained(self.folder):
            self._still_there()  # otherwise it could be another run's
            (self.folder / "reserve").unlink(missing_ok=True)

    def _still_there(self) -> None:
        """Raise if the file was deleted or replaced, because records would be lost without a notice."""
        if self._file is None:
            raise JournalError(f"{self.folder}: the journal was opened for reading")
        path, log = self.folder / FILE, self.folder / f"{FILE}-wal"
        found, log_found = regular(path), regular(log)
        if found is None or (found.st_dev, found.st_ino) != self._file:
            raise JournalError(f"{path}: it was deleted or replaced during the run")
        if self._log_size and log_found is None:
            raise JournalError(f"{log}: it was deleted or replaced during the run")
        if log_found is not None and log_found.st_size < self._log_size:
            raise JournalError(f"{log}: it was truncated during the run; the last records may be lost")


def _checksum(table: str, values: Sequence[Any]) -> int:
    # SQLite does not keep the sign of zero.
    return zlib.crc32(json.dumps([table, *(0.0 if value == 0.0 else value for value in values)]).encode())
