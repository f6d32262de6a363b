"""A lock on a file: only one process may work with it.

The lock is on the file itself, whatever path leads to it and whatever else is deleted. The system
releases it when the owner's process ends, however that happens.

SQLite has locks of another kind on a journal, and the system drops those of a whole process as soon as that process
closes the file anywhere. So a file that was opened here stays open until nobody in this process uses it any more.
"""

from __future__ import annotations

import importlib
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from gibo.errors import InUseError, JournalError

# What differs between systems is here: Windows has neither flock nor forks, and locks bytes of a file.
try:
    import fcntl
except ImportError:  # Windows
    FAR = 1 << 40  # a byte that no journal has, because a lock there keeps others from reading what it covers

    def flock(descriptor: int, hold: bool) -> None:
        msvcrt = importlib.import_module("msvcrt")
        position = os.lseek(descriptor, 0, os.SEEK_CUR)
        os.lseek(descriptor, FAR, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK if hold else msvcrt.LK_UNLCK, 1)
        except PermissionError as error:
            raise BlockingIOError from error
        finally:
            os.lseek(descriptor, position, os.SEEK_SET)

else:

    def flock(descriptor: int, hold: bool) -> None:
        """Hold an open file, or let it go; BlockingIOError if another process holds it."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB if hold else fcntl.LOCK_UN)


# Follow no link, do not wait, do not pass the file on to child processes: flags that this system has.
CAREFULLY = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY", "O_NOINHERIT"))


def at_fork(**functions: Callable[[], object]) -> None:
    """`os.register_at_fork`, where processes fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(**functions)


BUSY_PAUSE = 0.02
SAY_AFTER = 1.0  # seconds of waiting


@dataclass
class _File:
    """An open file of this process: its descriptor if it was opened here, its users, and whether it is locked."""

    descriptor: int | None = None
    users: int = 0
    locked: bool = False


# By device and inode; whoever counts users holds the guard, for a page may be read beside the run that it shows.
_files: dict[tuple[int, int], _File] = {}
_guard = threading.RLock()


def _let_go() -> None:
    """A child of a fork must let go of its copies, or it would hold the locks for its parent."""
    for file in _files.values():
        if file.descriptor is not None:
            os.close(file.descriptor)
            file.descriptor = None
    _files.clear()
    _guard.release()


# Nobody counts while the process forks: the child would wait forever for a thread that it does not have.
at_fork(before=_guard.acquire, after_in_parent=_guard.release, after_in_child=_let_go)


def regular(path: Path) -> os.stat_result | None:
    """What is known of a file, which must not be a link, a pipe or anything else; None if there is none."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise JournalError(f"{path}: expected a regular file, found {_kind(found.st_mode)}; nothing was written")
    return found


def open_regular(path: Path, flags: int) -> int:
    """A descriptor of a regular file; no link is followed, and nothing waits."""
    regular(path)
    try:
        descriptor = os.open(path, flags | CAREFULLY, 0o644)
    except OSError as error:
        raise JournalError(f"{path}: cannot be opened: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise JournalError(f"{path}: expected a regular file; nothing was written")
    return descriptor


@contextmanager
def in_use(path: Path) -> Iterator[_File]:
    """While somebody in this process uses a file, by means of its own, that file is not closed here."""
    found = regular(path)
    key = (0, 0) if found is None else (found.st_dev, found.st_ino)
    with _guard:
        file = _files.setdefault(key, _File())
        file.users += 1
    try:
        yield file
    finally:
        with _guard:
            file.users -= 1
            if file.users == 0 and _files.get(key) is file:  # the last one closes it
                del _files[key]
                if file.descriptor is not None:
                    os.close(file.descriptor)


@contextmanager
def locked(
    path: Path,
    *,
    create: bool = False,
    patience: float = 0.0,
    waiting: Callable[[], None] | None = None,
) -> Iterator[None]:
    """Hold a file; if another process does, wait this many seconds and then say who it is.

    Args:
        path: of the file.
        create: make an empty one if there is none.
        patience: seconds to wait.
        waiting: called once if there is a wait of more than a moment.
    """
    if create and regular(path) is None:
        os.close(open_regular(path, os.O_RDWR | os.O_CREAT))
    if regular(path) is None:
        raise JournalError(f"{path}: it is not there any more")
    with in_use(path) as file:
        _acquire(path, file, patience, waiting)
        try:
            yield
        finally:
            if file.descriptor is not None:  # not in a child that has let go of it
                file.locked = False
                flock(file.descriptor, hold=False)


def is_held(path: Path) -> bool:
    """Whether a process works with a file at this moment; it is held for an instant to find out."""
    try:
        with locked(path):
            return False
    except InUseError:
        return True


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Hold a folder, by a file in it."""
    with locked(folder / "lock", create=True):
        yield


def _acquire(path: Path, file: _File, patience: float, waiting: Callable[[], None] | None) -> None:
    started, said = time.monotonic(), False
    while not _try(path, file):
        waited = time.monotonic() - started
        if waited >= patience:
            raise InUseError(f"{path}: in use by {_owner(path)}; wait for it, or end it")
        if waited >= SAY_AFTER and waiting is not None and not said:
            waiting()
            said = True
        time.sleep(BUSY_PAUSE)


def _try(path: Path, file: _File) -> bool:
    if file.locked:
        return False
    if file.descriptor is None:
        file.descriptor = open_regular(path, os.O_RDWR)
    try:
        flock(file.descriptor, hold=True)
    except BlockingIOError:
        return False
    file.locked = True
    return True


def _owner(path: Path) -> str:
    """Who holds the lock, where the system tells."""
    with suppress(OSError, ValueError, IndexError):
        inode = str(path.stat().st_ino)
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            words = line.split()  # 1: FLOCK ADVISORY WRITE process device:inode start end
            if words[1] == "FLOCK" and words[5].split(":")[-1] == inode:
                return f"process {words[4]}"
    return "another process"


def _kind(mode: int) -> str:
    kinds = {stat.S_IFLNK: "a symbolic link", stat.S_IFIFO: "a named pipe", stat.S_IFDIR: "a folder"}
    return kinds.get(stat.S_IFMT(mode), "something else")
