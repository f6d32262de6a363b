"""The SQLite file of a journal: how it is opened, limits for SQLite, and its errors as errors of gibo.

A file may come from anywhere. Only regular files are opened and no link is followed. SQLite runs no function that the
file names, reads no huge cell, and makes a number of steps that is limited by the size of the file.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from gibo.errors import GiboError, JournalError

FILE = "journal.sqlite"
SMALLEST = 512  # bytes of a page of SQLite
# Limits of SQLite for a foreign file: bytes of a cell and of a statement, instructions per byte of the file.
LONGEST_CELL, LONGEST_STATEMENT = 1 << 28, 1 << 16
MOST_INSTRUCTIONS, INSTRUCTIONS_PER_BYTE, COUNTED_AT_ONCE = 10_000_000, 100, 100_000
LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: LONGEST_CELL,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: LONGEST_STATEMENT,
}


def is_there(folder: Path) -> bool:
    """Whether a run has begun in this folder; a start that ends at once leaves a file without tables."""
    path = folder / FILE
    with explained(folder), ExitStack() as closing:
        found = regular(path)
        if found is None:
            return False
        check_files(folder)
        if 0 < found.st_size < SMALLEST:
            return True  # SQLite would take it for empty and overwrite somebody else's data
        try:
            connection = connect_to_read(folder, closing)
            with bounded(connection, folder):
                (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            return True  # something exists; opening it gives the reason
        return bool(tables)


def regular(path: Path) -> os.stat_result | None:
    """The status of a regular file; None if there is none. Raises for a link, a pipe or another kind of file."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        kinds = {stat.S_IFLNK: "a symbolic link", stat.S_IFIFO: "a named pipe", stat.S_IFDIR: "a folder"}
        kind = kinds.get(stat.S_IFMT(found.st_mode), "something else")
        raise JournalError(f"{path}: expected a regular file, found {kind}; nothing was written")
    return found


def check_files(folder: Path) -> None:
    for ending in ("", "-wal", "-shm", "-journal"):
        regular(folder / f"{FILE}{ending}")
    regular(folder / "reserve")


def _check_access(path: Path, mode: int) -> None:
    """Raise the reason why a file cannot be opened, which SQLite does not give."""
    if not os.access(path, mode, effective_ids=os.access in os.supports_effective_ids):
        raise JournalError(f"{path}: cannot be read or written: Permission denied")


def connect(folder: Path, closing: ExitStack) -> sqlite3.Connection:
    if regular(folder / FILE) is None:
        _check_access(folder, os.W_OK)
    connection = sqlite3.connect(folder / FILE, isolation_level=None, timeout=10.0, check_same_thread=False)
    closing.callback(connection.close)
    _restrict(connection)
    connection.execute("PRAGMA synchronous = FULL")  # a commit is on the disk when it returns
    return connection


def _restrict(connection: sqlite3.Connection) -> None:
    """Set the limits of SQLite for functions and cells of the file."""
    connection.execute("PRAGMA trusted_schema = OFF")
    for limit, value in LIMITS.items():
        connection.setlimit(limit, value)


@contextmanager
def bounded(connection: sqlite3.Connection, folder: Path) -> Iterator[None]:
    """Limit SQLite's steps in this block by the size of the file, because a tree of pages may contain a cycle."""
    size = sum(found.st_size for name in (FILE, f"{FILE}-wal") if (found := regular(folder / name)) is not None)
    left = (MOST_INSTRUCTIONS + INSTRUCTIONS_PER_BYTE * size) // COUNTED_AT_ONCE

    def count() -> bool:
        nonlocal left
        left -= 1
        return left < 0  # True ends the statement

    connection.set_progress_handler(count, COUNTED_AT_ONCE)
    try:
        yield
    finally:
        connection.set_progress_handler(None, 0)


def connect_to_read(folder: Path, closing: ExitStack) -> sqlite3.Connection:
    """Open for reading only; SQLite needs an option for a disk that cannot be written to."""
    path = folder / FILE
    _check_access(path, os.R_OK)
    address = path.absolute().as_uri()
    connection = sqlite3.connect(
        f"{address}?mode=ro", uri=True, isolation_level=None, timeout=10.0, check_same_thread=False
    )
    closing.callback(connection.close)  # also if this is no database
    _restrict(connection)
    try:
        with bounded(connection, folder):
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        wal = regular(folder / f"{FILE}-wal")
        if "open" not in str(error) and "readonly" not in str(error):
            raise
        if wal is not None and wal.st_size:
            raise JournalError(
                f"{folder}: the run was killed, and its last records cannot be read on a disk that cannot be "
                "written to; copy the folder"
            ) from None
        connection = sqlite3.connect(f"{address}?immutable=1", uri=True, isolation_level=None, check_same_thread=False)
        closing.callback(connection.close)
        _restrict(connection)
    return connection


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Turn errors of SQLite and of the system into errors of gibo."""
    try:
        yield
    except OSError as error:
        raise JournalError(f"{error.filename or folder}: cannot be read or written: {error.strerror}") from None
    except sqlite3.OperationalError as error:
        text = str(error)
        if text.startswith("Could not decode"):  # the rest is the row's content with any words
            raise damaged(folder, "unreadable text") from None
        if text == "interrupted":
            raise damaged(folder, "reading it does not end") from None
        if "full" in text or "I/O" in text:
            raise JournalError(f"{folder}: cannot be written, the disk may be full ({text})") from None
        if any(word in text for word in ("locked", "readonly", "unable to open")):
            raise JournalError(f"{folder / FILE}: {text}") from None
        raise damaged(folder, text) from None
    except sqlite3.Error as error:
        raise damaged(folder, str(error)) from None
    except UnicodeDecodeError:  # in SQLite's own message
        raise damaged(folder, "unreadable text") from None


@contextmanager
def sound(folder: Path, *otherwise: type[GiboError]) -> Iterator[None]:
    """Report any exception in this block as damage, except these kinds."""
    try:
        yield
    except (GiboError, LookupError, TypeError, ValueError, AttributeError, RuntimeError, ArithmeticError) as error:
        if isinstance(error, (JournalError, *otherwise)):
            raise
        raise damaged(folder, f"{type(error).__name__}: {error}") from None


def damaged(folder: Path, how: str) -> JournalError:
    """The error for a damaged journal."""
    return JournalError(
        f"{folder / FILE}: the journal is damaged ({' '.join(how.split())[:160]}); restore a copy of it"
    )
