"""A lock on a folder: only one process may work with what is in it.

The lock is on the folder itself, whatever path leads to it and whatever in it is deleted. The system releases it when
the owner's process ends, however that happens. No file of a journal is ever opened here: SQLite has locks of its own,
and the system drops those of a whole process as soon as that process closes the file anywhere.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gibo.errors import InUseError

# What differs between systems is here: on Windows folders cannot be opened, and there are neither flock nor forks.
try:
    import fcntl
except ImportError:

    def _held(folder: Path) -> int:
        msvcrt = importlib.import_module("msvcrt")
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            os.close(descriptor)
            raise BlockingIOError from error
        return descriptor

    def _release(descriptor: int) -> None:
        os.close(descriptor)

else:

    def _held(folder: Path) -> int:
        """An open descriptor that holds the folder; BlockingIOError if another one does."""
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _release(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # also for a child that was forked a moment ago
        os.close(descriptor)


BUSY_PAUSE = 0.02
SAY_AFTER = 1.0  # seconds of waiting

_descriptors: set[int] = set()  # that hold a folder for this process


def at_fork(**functions: Callable[[], object]) -> None:
    """`os.register_at_fork`, where processes fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(**functions)


def _let_go() -> None:
    """A child of a fork must close its copies, or it would hold the locks for its parent."""
    while _descriptors:
        os.close(_descriptors.pop())


at_fork(after_in_child=_let_go)


@contextmanager
def folder_lock(folder: Path, patience: float = 0.0, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold a folder; if another process does, wait this many seconds and then say who it is.

    Args:
        folder: one that exists.
        patience: seconds to wait.
        waiting: called once if there is a wait of more than a moment.
    """
    started = time.monotonic()
    while True:
        try:
            descriptor = _held(folder)
            break
        except BlockingIOError:
            waited = time.monotonic() - started
            if waited >= patience:
                raise InUseError(f"{folder}: in use by {_owner(folder)}; wait for it, or end it") from None
            if waited >= SAY_AFTER and waiting is not None:
                waiting()
                waiting = None
            time.sleep(BUSY_PAUSE)
    _descriptors.add(descriptor)
    try:
        yield
    finally:
        if descriptor in _descriptors:  # not in a child that has let go of it
            _descriptors.remove(descriptor)
            _release(descriptor)


def is_held(folder: Path) -> bool:
    """Whether a process works with a folder at this moment; it is held for an instant to find out."""
    try:
        with folder_lock(folder):
            return False
    except InUseError:
        return True


def _owner(folder: Path) -> str:
    """Who holds the lock, where the system tells."""
    with suppress(OSError, ValueError, IndexError):
        inode = str(folder.stat().st_ino)
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            words = line.split()  # 1: FLOCK ADVISORY WRITE process device:inode start end
            if words[1] == "FLOCK" and words[5].split(":")[-1] == inode:
                return f"process {words[4]}"
    return "another process"
