"""A lock on a folder: only one process may work in it.

The lock is on the folder itself, so that it holds for every path to the folder and when files in it are deleted. The
operating system releases it when the owner's process ends. This module never opens a file of a journal: SQLite has its
own locks on it, and the system drops all locks of a process as soon as the process closes the file anywhere.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gibo.errors import InUseError

# A file in a folder whose holder keeps it for long, as a server does. Others then do not wait.
KEPT = "kept"

# Seconds. Two programs that drive one run by hand may meet; each holds the journal for a moment only.
LOCK_PATIENCE = 60.0

# The differences between systems: on Windows folders cannot be opened, and there are neither flock nor forks.
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
        """An open descriptor that holds the folder; raises BlockingIOError if another one holds it."""
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _release(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # also for a child that was just forked
        os.close(descriptor)


BUSY_PAUSE = 0.02
SAY_AFTER = 1.0  # seconds of waiting
KEPT_ADVICE = (
    "it keeps the run until it ends. Ask and tell through it (gibo serve, or its page with --control), or end it"
)
INSTANT = 0.1  # seconds; `is_held` has a folder for less, so that long is always waited

_descriptors: set[int] = set()  # descriptors that hold folders for this process


def at_fork(**functions: Callable[[], object]) -> None:
    """`os.register_at_fork`, on systems that fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(**functions)


def _let_go() -> None:
    """Close the copies in a forked child, which would otherwise keep the parent's locks."""
    while _descriptors:
        os.close(_descriptors.pop())


at_fork(after_in_child=_let_go)


@contextmanager
def folder_lock(folder: Path, patience: float = 0.0, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold a folder; if another process holds it, wait `patience` seconds and then raise with its process id.

    Nobody waits for a process that keeps the folder, see `keep`. `waiting` is called once if the wait is not short.
    """
    started = time.monotonic()
    while True:
        try:
            descriptor = _held(folder)
            break
        except BlockingIOError:
            waited, is_kept = time.monotonic() - started, (folder / KEPT).exists()
            if waited >= (INSTANT if is_kept else max(patience, INSTANT)):
                advice = KEPT_ADVICE if is_kept else "wait for it, or end it"
                raise InUseError(f"{folder}: in use by {_owner(folder)}; {advice}") from None
            if waited >= SAY_AFTER and waiting is not None:
                waiting()
                waiting = None
            time.sleep(BUSY_PAUSE)
    _descriptors.add(descriptor)
    with suppress(OSError):
        (folder / KEPT).unlink()  # of a process that was killed
    try:
        yield
    finally:
        if descriptor in _descriptors:  # not in a forked child that has closed it
            with suppress(OSError):
                (folder / KEPT).unlink()
            _descriptors.remove(descriptor)
            _release(descriptor)


def keep(folder: Path) -> None:
    """Say that this process, which holds the folder, keeps it for long: others give up at once and say what to do."""
    with suppress(OSError):  # without the file they wait
        (folder / KEPT).touch()


def is_held(folder: Path) -> bool:
    """Whether a process holds a folder now; the check holds it for an instant."""
    try:
        _release(_held(folder))
    except BlockingIOError:
        return True
    return False


def _owner(folder: Path) -> str:
    """The process that holds the lock, on systems that tell."""
    with suppress(OSError, ValueError, IndexError):
        inode = str(folder.stat().st_ino)
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            words = line.split()  # 1: FLOCK ADVISORY WRITE process device:inode start end
            if words[1] == "FLOCK" and words[5].split(":")[-1] == inode:
                return f"process {words[4]}"
    return "another process"
