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

A checksum per row and a tally of the rows detect damage that SQLite does not. SQLite's write-ahead log lets others read
while a run is writing. Each transaction is on the disk when it returns, and in the main file soon after.

A file may come from anywhere. No link is followed, a file with a foreign table, view, trigger or index is refused, and
the number of SQLite's steps is limited by the size of the file.
"""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from gibo._checks import as_path
from gibo.errors import GiboError, InputError, JournalError
from gibo.runs.lock import folder_lock

FILE = "journal.sqlite"
APPLICATION = 0x6769626F  # "gibo", in the file's header
RESERVE = 1 << 20  # bytes kept on the disk so that running evaluations can still be recorded when it fills up
CHECKPOINT_AFTER = 0.05  # seconds after which records are moved from the write-ahead log to the main file
# Instructions of SQLite for a statement, per byte of the file, and between two counts.
MOST_INSTRUCTIONS, INSTRUCTIONS_PER_BYTE, COUNTED_AT_ONCE = 10_000_000, 100, 100_000

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
# The first version of the journal with a table; the other tables exist since version 1.
SINCE = {"actions": 2, "beliefs": 3, "details": 3, "views": 3}
TABLES_OF = {version: [table for table in TABLES if SINCE.get(table, 1) <= version] for version in (1, 2, SCHEMA)}
MADE = {name: f"CREATE TABLE {name} ({columns}, crc INTEGER NOT NULL)" for name, columns in TABLES.items()}
MADE["tally"] = "CREATE TABLE tally (content TEXT NOT NULL, crc INTEGER NOT NULL)"
INDEXED = ("facts", "evaluations", "views")  # SQLite makes an index itself for a key that is no whole number
COLUMNS = {table: [column.split()[0] for column in columns.split(", ")] for table, columns in TABLES.items()}

Row = tuple[Any, ...]


def has_journal(folder: Path | str, needed: bool = False) -> bool:
    """Whether a run has begun in this folder; raises if it has not and is needed."""
    path = as_path("folder", folder)
    with explained(path):
        found = regular(path / FILE)
    begun = found is not None and found.st_size > 0
    if needed and not begun:
        raise InputError(f"{folder}: there is no run; expected a folder with {FILE}")
    return begun


class Store:
    """Tables of rows in a folder's journal file; see the module's docstring. Use `create`, `read` or `write`.

    Attributes:
        folder: of the file.
        count: the number of rows of each table, those of the present transaction included.
    """

    def __init__(self, folder: Path, stack: ExitStack, writing: bool) -> None:
        self.folder, self._stack, self._writing = folder, stack, writing
        self._connection = connect(folder, stack, writing)
        self._paths = (folder / FILE, folder / f"{FILE}-wal")
        self._version = 0  # of the file
        self.count: dict[str, int] = {}
        self._rows: dict[str, list[Row]] = {}  # tables that have not changed since they were read
        self._files: dict[Path, os.stat_result] = {}  # after the last transaction
        self._checkpointed = 0.0

    # -- open and close -----------------------------------------------------------------------------------------------

    @classmethod
    def create(cls, folder: Path, facts: Mapping[str, Any]) -> Store:
        """Begin a journal with these facts, as its only writer. Its file is complete when it gets its name."""
        with ExitStack() as stack, explained(folder):
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(folder_lock(folder))
            if has_journal(folder):
                raise InputError(f"{folder}: there is already a run; continue it, or name another folder")
            new = folder / "new"
            new.unlink(missing_ok=True)  # of a process that was killed
            _make(new, facts)
            new.replace(folder / FILE)
            store = cls(folder, stack, writing=True)
            store._read_tally()
            store._prepare(stack)
            return store

    @classmethod
    def write(cls, folder: Path, patience: float = 0.0, waiting: Callable[[], None] | None = None) -> Store:
        """Open for writing, as the only writer."""
        with ExitStack() as stack, explained(folder):
            has_journal(folder, needed=True)
            stack.enter_context(folder_lock(folder, patience, waiting))
            store = cls(folder, stack, writing=True)
            store._check()
            store._prepare(stack)
            return store

    def _prepare(self, stack: ExitStack) -> None:
        """Prepare to write; the stack is closed with this object."""
        path = self.folder / FILE
        self._files = {path: path.lstat()}
        if self._files[path].st_nlink > 1:  # SQLite would keep a write-ahead log for each of its names
            raise JournalError(f"{path}: the file has a second name (a hard link); copy it instead")
        self._connection.execute("PRAGMA journal_mode = WAL")
        reserve = self.folder / "reserve"
        if not reserve.exists() or reserve.stat().st_size < RESERVE:
            reserve.unlink(missing_ok=True)  # not written to: it may be a hard link of another file
            with reserve.open("xb") as file:
                file.write(b"\0" * RESERVE)
                file.flush()
                os.fsync(file.fileno())
        self._stack = stack.pop_all()

    @classmethod
    def read(cls, folder: Path) -> Store:
        """Open for reading the present content, also while a run is writing; writes nothing."""
        with ExitStack() as stack, explained(folder):
            has_journal(folder, needed=True)
            store = cls(folder, stack, writing=False)
            store._connection.execute("BEGIN")  # read the present state, even if a run writes meanwhile
            store._check()
            store._stack = stack.pop_all()
            return store

    def close(self) -> None:
        """Close the file and release the lock."""
        self._stack.close()

    def _check(self) -> None:
        """Check that this is a journal of a known version, made by gibo only, and complete; reads every row."""
        path = self.folder / FILE
        if self._select("PRAGMA application_id") != [(APPLICATION,)]:
            raise JournalError(f"{path}: not a journal of gibo")
        ((version,),) = self._select("PRAGMA user_version")
        if not 1 <= version <= SCHEMA:
            raise JournalError(
                f"{path}: a journal of version {version}, but this gibo knows versions up to {SCHEMA}; update gibo"
            )
        expected: set[Row] = {("table", "tally", MADE["tally"])}
        for table in TABLES_OF[version]:
            expected.add(("table", table, MADE[table]))
            if table in INDEXED:
                expected.add(("index", f"sqlite_autoindex_{table}_1", None))
        # Views and triggers are programs.
        found = set(self._select("SELECT type, name, sql FROM sqlite_master"))
        if wrong := sorted(found - expected, key=str):
            raise damaged(self.folder, f"gibo did not make its {wrong[-1][0]} {wrong[-1][1]}")
        if (state := self._select("PRAGMA quick_check(1)")) != [("ok",)]:
            raise damaged(self.folder, str(state))
        self._read_tally()
        for table in TABLES:
            self.rows(table)

    def _read_tally(self) -> None:
        """Read the version, and the number of rows of each table."""
        with sound(self.folder):
            ((self._version,),) = self._select("PRAGMA user_version")
            ((content, crc),) = self._select("SELECT content, crc FROM tally")
            if crc != _checksum("tally", [content]):
                raise damaged(self.folder, "its tally does not match its checksum")
            self.count = dict.fromkeys(TABLES, 0) | json.loads(content)

    # -- rows ---------------------------------------------------------------------------------------------------------

    def rows(self, table: str) -> list[Row]:
        """All rows of a table, by its first column, each with a correct checksum."""
        if table not in self._rows:
            self._rows |= {table: self._checked(table)} if self._version == SCHEMA else self._upgraded()
        return self._rows[table]

    def _checked(self, table: str) -> list[Row]:
        found = []
        with explained(self.folder), sound(self.folder):
            for row in self._select(f"SELECT * FROM {table} ORDER BY 1"):
                found.append(row[:-1])
                if row[-1] != _checksum(table, row[:-1]):
                    raise damaged(self.folder, f"a row of {table} does not match its checksum")
            if len(found) != self.count[table]:
                raise damaged(self.folder, f"rows of {table} are missing")
        return found

    def _upgraded(self) -> dict[str, list[Row]]:
        """The rows of a journal of an earlier version, as rows of the present version."""
        from gibo.runs.legacy import upgraded  # here, because only old journals need it

        there = TABLES_OF[self._version]
        with sound(self.folder):
            return upgraded({table: self._checked(table) if table in there else [] for table in TABLES})

    def _select(self, statement: str) -> list[Row]:
        """The result of a statement, in a limited number of steps, because a tree of pages may contain a cycle."""
        path, log = self._paths
        size = path.stat().st_size + (log.stat().st_size if log.exists() else 0)
        left = iter(range((MOST_INSTRUCTIONS + INSTRUCTIONS_PER_BYTE * size) // COUNTED_AT_ONCE))
        self._connection.set_progress_handler(lambda: next(left, None) is None, COUNTED_AT_ONCE)  # True ends it
        try:
            return self._connection.execute(statement).fetchall()
        finally:
            self._connection.set_progress_handler(None, 0)

    def insert(self, table: str, *values: Any) -> None:
        """Add a row, in a transaction."""
        _insert(self._connection, table, values)
        self.count[table] += 1
        self._rows.pop(table, None)

    def delete(self, table: str, key: Any) -> None:
        """Delete the row with this first column, if any, in a transaction."""
        deleted = self._connection.execute(f"DELETE FROM {table} WHERE {COLUMNS[table][0]} = ?", (key,)).rowcount
        self.count[table] -= deleted
        self._rows.pop(table, None)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """At the end of this block either all of its rows are on the disk, or none."""
        with explained(self.folder):
            self._still_there()
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                self._read_tally()  # an interrupt during the last commit may have hidden its success
                if self._version < SCHEMA:
                    self._upgrade()
                yield
                content = json.dumps(self.count)
                self._connection.execute(
                    "UPDATE tally SET content = ?, crc = ?", (content, _checksum("tally", [content]))
                )
                self._connection.execute("COMMIT")
            except BaseException:
                self._rows.clear()
                with suppress(sqlite3.Error, JournalError, OSError):
                    if self._connection.in_transaction:  # after some errors SQLite has already rolled back
                        self._connection.execute("ROLLBACK")
                    self._read_tally()
                raise
            if time.monotonic() - self._checkpointed > CHECKPOINT_AFTER:
                with suppress(sqlite3.Error):  # for example a full disk; the record is complete nevertheless
                    self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
                self._checkpointed = time.monotonic()
            for path in self._paths:
                self._files[path] = path.lstat()

    def _upgrade(self) -> None:
        """Convert a journal of an earlier version, in the transaction of a record."""
        there, tables = TABLES_OF[self._version], self._upgraded()
        for table, rows in tables.items():
            self._connection.execute(f"DELETE FROM {table}" if table in there else MADE[table])
            self.count[table] = 0
            for row in rows:
                self.insert(table, *row)
        self._connection.execute(f"PRAGMA user_version = {SCHEMA}")
        self._version = SCHEMA

    def use_reserve(self) -> None:
        """Release the space that was reserved for running evaluations."""
        with explained(self.folder):
            self._still_there()  # otherwise it could be another run's
            (self.folder / "reserve").unlink(missing_ok=True)

    def _still_there(self) -> None:
        """Raise if a file was deleted, replaced or truncated, because records would be lost without a notice."""
        if not self._writing:
            raise JournalError(f"{self.folder}: the journal was opened for reading")
        for path, before in self._files.items():
            now = regular(path)
            if now is None or not os.path.samestat(now, before):
                raise JournalError(f"{path}: it was deleted or replaced during the run")
            if now.st_size < before.st_size:
                raise JournalError(f"{path}: it was truncated during the run; the last records may be lost")


# -- the file ---------------------------------------------------------------------------------------------------------


def connect(folder: Path, stack: ExitStack, writing: bool = False) -> sqlite3.Connection:
    """Open the file of a journal; it may come from anywhere."""
    for name in (FILE, f"{FILE}-wal", f"{FILE}-shm", f"{FILE}-journal", "reserve"):
        regular(folder / name)
    address, options = (folder / FILE).absolute().as_uri(), "mode=rw" if writing else "mode=ro"
    is_mine = os.access(folder, os.W_OK, effective_ids=os.access in os.supports_effective_ids)
    if not writing and not is_mine and not (folder / f"{FILE}-wal").exists():
        options = "immutable=1"  # SQLite needs this on a disk that cannot be written to
    connection = sqlite3.connect(
        f"{address}?{options}", uri=True, isolation_level=None, timeout=10.0, check_same_thread=False
    )
    stack.callback(connection.close)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA synchronous = FULL")  # a commit is on the disk when it returns
    return connection


def regular(path: Path) -> os.stat_result | None:
    """The status of a regular file; None if there is none. Raises for a link, a pipe or a folder."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise JournalError(f"{path}: expected a regular file, found a link, a folder or the like; nothing was written")
    return found


def _make(path: Path, facts: Mapping[str, Any]) -> None:
    """A new file with all tables."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = OFF")  # nobody knows the file yet
        connection.execute("BEGIN")
        for statement in MADE.values():
            connection.execute(statement)
        for name, value in facts.items():
            _insert(connection, "facts", [name, json.dumps(value)])
        _insert(connection, "tally", [json.dumps({"facts": len(facts)})])
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {SCHEMA}")
        connection.execute("COMMIT")
    finally:
        connection.close()


def _insert(connection: sqlite3.Connection, table: str, values: Sequence[Any]) -> None:
    marks = ", ".join("?" * (len(values) + 1))
    connection.execute(f"INSERT INTO {table} VALUES ({marks})", (*values, _checksum(table, values)))


def _checksum(table: str, values: Sequence[Any]) -> int:
    # SQLite does not keep the sign of zero.
    return zlib.crc32(json.dumps([table, *(0.0 if value == 0.0 else value for value in values)]).encode())


# -- errors -----------------------------------------------------------------------------------------------------------


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Turn errors of SQLite and of the system into errors of gibo."""
    try:
        yield
    except OSError as error:
        raise JournalError(f"{error.filename or folder}: cannot be read or written: {error.strerror}") from None
    except UnicodeDecodeError:  # in SQLite's own message
        raise damaged(folder, "unreadable text") from None
    except sqlite3.Error as error:
        text = str(error)
        if text.startswith("Could not decode"):  # the rest is the row's content with any words
            text = "unreadable text"
        elif text == "interrupted":
            text = "reading it does not end"
        if "full" in text or "I/O" in text:
            raise JournalError(f"{folder}: cannot be written, the disk may be full ({text})") from None
        if "unable to open" in text:
            advice = "check its permissions; if the disk cannot be written to, copy the folder"
            raise JournalError(f"{folder / FILE}: {text}; {advice}") from None
        if "locked" in text or "readonly" in text:
            raise JournalError(f"{folder / FILE}: {text}") from None
        raise damaged(folder, text) from None


@contextmanager
def sound(folder: Path, *otherwise: type[GiboError]) -> Iterator[None]:
    """Report any exception in this block as damage, except these kinds, and those of `explained`."""
    try:
        yield
    except Exception as error:
        if isinstance(error, (JournalError, OSError, sqlite3.Error, *otherwise)):
            raise
        raise damaged(folder, f"{type(error).__name__}: {error}") from None


def damaged(folder: Path, how: str) -> JournalError:
    """The error for a damaged journal."""
    return JournalError(
        f"{folder / FILE}: the journal is damaged ({' '.join(how.split())[:160]}); restore a copy of it"
    )
