"""A folder that only one process may write to.

The system frees the lock when its owner ends, however that happens, so a lock left by a dead process is none.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO

from gibo.errors import JournalError

POLL = 0.02
# The open locks of this process: a child of a fork must let go of its copies, or it would hold them for its parent.
_held: set[IO[str]] = set()


def _let_go() -> None:
    for file in _held:
        file.close()
    _held.clear()


os.register_at_fork(after_in_child=_let_go)


@contextmanager
def folder_lock(folder: Path, patience: float = 0.0) -> Iterator[None]:
    """Hold the folder; if another process does, wait this many seconds and then say which one it is."""
    with (folder / "lock").open("a+", encoding="utf-8") as file:
        deadline = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise JournalError(f"{folder}: in use by {_owner(file)}; wait for it, or end it") from None
                time.sleep(POLL)
        started = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
        file.truncate(0)
        file.write(json.dumps({"process": os.getpid(), "host": socket.gethostname(), "started": started}) + "\n")
        file.flush()
        _held.add(file)
        try:
            yield
        finally:
            if file in _held:  # not in a child that has let go of it
                _held.discard(file)
                fcntl.flock(file, fcntl.LOCK_UN)


def _owner(file: IO[str]) -> str:
    file.seek(0)
    try:
        owner = json.loads(file.read())
        return f"process {owner['process']} on {owner['host']}, started {owner['started']}"
    except (json.JSONDecodeError, KeyError, TypeError):
        return "another process"
