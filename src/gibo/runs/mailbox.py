"""Word from people to the process that holds a run, and word from it of what it is doing.

Only the process that holds a run's lock writes its journal. Others leave it a line in the run's mailbox, a JSON object
such as ``{"kind": "remark", "text": "the oil is warm"}``; it looks there between two evaluations, which costs a stat,
does what it is asked to, records that in the journal (`gibo.runs.records`) and empties the box. And it says in a file
what is being evaluated, on which worker, since when: that is of this moment, and not worth a place in the journal.

Both are files in the run's folder: regular ones, of one name, of a bounded size; no link is followed. What is in them
is checked like all that comes from elsewhere, and nothing in them can end a run in any other way than by asking.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISREG
from typing import Any

from gibo.errors import GiboError, InputError, JournalError
from gibo.runs.lock import CAREFULLY, POLL, flock, open_regular, regular
from gibo.runs.pools import Underway
from gibo.runs.records import action
from gibo.runs.store import BOX, explained

NOW = "now.json"
LARGEST = 1 << 20  # bytes of either
MOST = 1000  # lines that are looked at
PATIENCE = 5.0  # seconds in which somebody else must have read or written
MAILED = ("paused", "continued", "stop", "failed", "told", "remark")


def post(folder: Path, kind: str, body: dict[str, Any]) -> None:
    """Leave word for the process that holds the run; it is on the disk when this returns."""
    if kind not in MAILED:
        raise InputError(f"action: expected one of {', '.join(MAILED)}, got {kind!r:.80}")
    action(time.time(), 0, kind, body)  # what makes no sense is refused here, too
    line = json.dumps({"kind": kind, **body}).encode() + b"\n"
    with explained(folder), _locked(folder / BOX, os.O_WRONLY | os.O_APPEND | os.O_CREAT, PATIENCE) as descriptor:
        if os.fstat(descriptor).st_size + len(line) > LARGEST:
            raise JournalError(f"{folder / BOX}: it is full; the process of this run does not read it")
        os.write(descriptor, line)
        os.fsync(descriptor)


class Mailbox:
    """What was left for a run that this process holds."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / BOX
        self._done = 0  # bytes that were dealt with
        self._passed_over: tuple[int, int] | None = None  # a file that is too large, as it was then

    def has_mail(self) -> bool:
        """Whether there is something to deal with; costs a stat."""
        try:
            found = os.lstat(self.path)
        except OSError:
            return False
        return S_ISREG(found.st_mode) and found.st_size > 0 and (found.st_ino, found.st_size) != self._passed_over

    def deal(self, act: Callable[[str, dict[str, Any]], None]) -> None:
        """Do what was asked for since, one after the other; it is gone once all of it is done.

        If this process dies meanwhile it is still there, which is better than lost.
        """
        data = self._new() if self.has_mail() else b""
        if data:
            for kind, body in _parsed(data):
                act(kind, body)
            self._empty(self._done + len(data))

    def _new(self) -> bytes:
        """Whole lines; what has no end is of somebody who died while writing, for who writes has the box to itself."""
        try:
            with _locked(self.path, os.O_RDWR, 0.0) as descriptor:
                found = os.fstat(descriptor)
                self._done = self._done if self._done <= found.st_size else 0  # another box
                data = os.pread(descriptor, LARGEST + 1, self._done)
        except BlockingIOError:  # somebody is writing: at the next look
            return b""
        except (OSError, JournalError):
            return b""
        if len(data) > LARGEST:
            self._passed_over = (found.st_ino, found.st_size)
            return b""
        return data

    def _empty(self, done: int) -> None:
        """Unless something has come meanwhile."""
        self._done = done
        with suppress(OSError, JournalError), _locked(self.path, os.O_RDWR, 0.0) as descriptor:
            if os.fstat(descriptor).st_size == done:
                os.ftruncate(descriptor, 0)
                self._done = 0


@contextmanager
def _locked(path: Path, flags: int, patience: float) -> Iterator[int]:
    """A descriptor of a file that nobody else reads or writes meanwhile."""
    descriptor = open_regular(path, flags)
    try:
        if os.fstat(descriptor).st_nlink > 1:
            raise JournalError(f"{path}: the file has a second name (a hard link); nothing was written")
        deadline = time.monotonic() + patience
        while True:
            try:
                flock(descriptor, hold=True)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(POLL)
        yield descriptor
    finally:
        os.close(descriptor)


def _parsed(data: bytes) -> list[tuple[str, dict[str, Any]]]:
    """The lines that make sense; a line without an end is of somebody who died while writing."""
    found: list[tuple[str, dict[str, Any]]] = []
    for line in data.split(b"\n")[:-1][:MOST]:
        with suppress(GiboError, ValueError, RecursionError):
            body = json.loads(line)
            kind = body.pop("kind", None) if isinstance(body, dict) else None
            if kind in MAILED:
                found.append(action(time.time(), 0, kind, body)[2:])
    return found


# -- what is being done now -------------------------------------------------------------------------------------------


class Now:
    """Says what this process is evaluating, for those who watch."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NOW
        self._said: list[Any] | None = None

    def say(self, underway: Sequence[Underway]) -> None:
        """Written only if it is news; whoever reads sees all of it or nothing."""
        news = [each[:2] for each in underway]
        if news == self._said:
            return
        self._said = news
        text = json.dumps({"process": os.getpid(), "underway": list(underway)})
        part = self.path.with_suffix(".part")
        with suppress(OSError):  # a run does not depend on whether somebody can watch it
            part.unlink(missing_ok=True)
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | CAREFULLY, 0o644)
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(text)
            part.replace(self.path)

    def close(self) -> None:
        """Nothing is being done any more."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)


def underway(folder: Path, process: int) -> list[Underway] | None:
    """What this process says it is evaluating; None where it does not say."""
    try:
        found = regular(folder / NOW)
        if found is None or found.st_size > LARGEST:
            return None
        descriptor = open_regular(folder / NOW, os.O_RDONLY)
        with os.fdopen(descriptor, encoding="ascii") as file:
            data = json.loads(file.read(LARGEST))
        if data["process"] != process:
            return None
        return [_underway(*each) for each in data["underway"]]
    except (OSError, GiboError, ValueError, TypeError, LookupError, RecursionError):
        return None


def _underway(query: Any, worker: Any, since: Any) -> Underway:
    known = isinstance(query, int) and isinstance(worker, str | None) and isinstance(since, (int, float))
    if not known or len(worker or "") > 100 or not 0.0 <= since < 1e11:
        raise ValueError
    return Underway(query, worker, float(since))
