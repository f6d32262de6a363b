"""The journal of a run: one SQLite file in the run's folder, from which the run can be continued at any time.

    facts         what the run is: optimiser and its arguments, sign, names, versions of what computed it
    starts        each process that worked on it: when, where, how it ended
    batches       what was asked together, where the optimiser stood, and what it thought (`Optimizer.thought`)
    queries       each query when it is asked; the first of a batch before the others are planned
    attempts      evaluations that failed and were tried again
    evaluations   each value or failure when it arrives, in the order of arrival
    iterations    what the optimiser knew when it made a step

Each record is committed, and on the disk, before the run goes on. The optimiser is never stored: `replay` tells a fresh
one what was told, in the same order. Vectors are JSON texts, which hold floats exactly; times are seconds since 1970;
values are the objective's own, also where it is minimised. Each row carries a checksum of its content, so damage that
SQLite cannot see is seen here.

SQLite's write-ahead log lets others read while a run is writing.
"""

from __future__ import annotations

import json
import math
import os
import platform
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gibo._linalg import Array
from gibo._serialize import to_plain
from gibo.errors import GiboError, InputError, JournalError
from gibo.optimizers.base import Optimizer, Query
from gibo.optimizers.gibo import Iteration
from gibo.runs.evaluation import Answer
from gibo.runs.learner import Learner, learn
from gibo.runs.lock import folder_lock

FILE = "journal.sqlite"
SCHEMA = 1
APPLICATION = 0x6769626F  # "gibo", in the file's header
# Kept on the disk so that what is being evaluated when it fills up can still be recorded.
RESERVE = 1 << 20

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
}


@dataclass(frozen=True)
class Facts:
    """What a run is; it cannot change once the run has begun.

    Attributes:
        optimizer: the name of its class.
        arguments: of its constructor, as plain data.
        sign: 1 where the objective is maximised, −1 where it is minimised.
        names: of the parameters; None if they have none.
        penalty: what a failed evaluation counts as; None if it is passed over.
        share: of an iteration's queries after which the next one may start.
        task: what the objective is, where that is known, as plain data.
    """

    optimizer: str
    arguments: dict[str, Any]
    sign: float = 1.0
    names: list[str] | None = None
    penalty: float | None = None
    share: float = 1.0
    task: dict[str, Any] | None = None

    @classmethod
    def of(cls, optimizer: Optimizer, **others: Any) -> Facts:
        """Those of a run of this optimiser."""
        state = optimizer.state()
        return cls(state["optimizer"], state["arguments"], **others)

    def differences(self, saved: Facts) -> str:
        """What differs from those in a journal, for a person to read; empty if nothing does. Names do not matter."""
        ours, theirs = self._flat(), saved._flat()
        names = [name for name in ours | theirs if ours.get(name) != theirs.get(name)]
        parts = [_difference(name, theirs.get(name), ours.get(name)) for name in names[:3]]
        return "; ".join(parts) + (f"; and {len(names) - 3} more" if len(names) > 3 else "")

    def _flat(self) -> dict[str, Any]:
        """Everything by its name, what is known of the task first."""
        flat: dict[str, Any] = {**(self.task or {})}
        flat |= {"optimizer": self.optimizer, "sign": self.sign, "penalty": self.penalty, "share": self.share}
        flat |= self.arguments
        settings = flat.pop("settings", None)
        return flat | (settings if isinstance(settings, dict) else {})

    def fresh_optimizer(self) -> Optimizer:
        """The optimiser before anything was asked."""
        return Optimizer.from_arguments(self.optimizer, self.arguments)


class Start(NamedTuple):
    """A process that worked on the run."""

    process: int
    host: str
    started: float
    options: dict[str, Any]
    versions: dict[str, str]
    ended: float | None
    reason: str | None


class Told(NamedTuple):
    """An evaluation as it was recorded: the query, the answer, and when it arrived."""

    query: Query
    answer: Answer
    told: float


class Journal:
    """A run's journal; see the module's text. Made by `create`, `open` or `read`."""

    def __init__(self, folder: Path, connection: sqlite3.Connection, closing: ExitStack) -> None:
        self.folder, self._connection, self._closing = folder, connection, closing
        self._start: int | None = None
        self._full: JournalError | None = None  # once the reserve was needed
        self._foreseen: int | None = None  # the last query that was recorded ahead of its batch
        self._inserted: dict[str, int] = {}  # rows, in the present transaction
        self._read_only = False

    # -- open and close -----------------------------------------------------------------------------------------------

    @classmethod
    def create(cls, folder: Path | str, facts: Facts) -> Journal:
        """Begin a journal; an error if there is one."""
        return cls._writer(Path(folder), facts, patience=0.0)

    @classmethod
    def open(cls, folder: Path | str, patience: float = 0.0) -> Journal:
        """Open a journal to write to it, alone: if another process does, wait this many seconds, then give up."""
        return cls._writer(Path(folder), None, patience)

    @classmethod
    def read(cls, folder: Path | str) -> Journal:
        """Open a journal to read from it, as it is at this moment, also while a run is writing."""
        folder = Path(folder)
        if not has_journal(folder):
            raise InputError(f"{folder}: there is no run; expected a folder with {FILE}")
        closing = ExitStack()
        with closing, _explained(folder):
            journal = cls(folder, _connect(folder, closing), closing)
            journal._read_only = True
            journal._connection.execute("BEGIN")  # all is read as it is now, whatever a run writes meanwhile
            journal._check()
            journal._closing = closing.pop_all()
        return journal

    @classmethod
    def _writer(cls, folder: Path, facts: Facts | None, patience: float) -> Journal:
        closing = ExitStack()
        with closing, _explained(folder):
            if facts is None and not has_journal(folder):
                raise InputError(f"{folder}: there is no run; expected a folder with {FILE}")
            folder.mkdir(parents=True, exist_ok=True)
            closing.enter_context(folder_lock(folder, patience))
            journal = cls(folder, _connect(folder, closing), closing)
            if facts is not None:
                if has_journal(folder):
                    raise InputError(f"{folder}: there is a run already; continue it, or name another folder")
                journal._lay_out(facts)
            journal._check()
            journal._keep_reserve()
            journal._closing = closing.pop_all()
        return journal

    def close(self) -> None:
        """Let go of the file and of the lock."""
        self._closing.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _lay_out(self, facts: Facts) -> None:
        self._connection.execute("PRAGMA journal_mode = WAL")
        with self._transaction():
            for name, columns in TABLES.items():
                self._connection.execute(f"CREATE TABLE {name} ({columns}, crc INTEGER NOT NULL)")
            self._connection.execute("CREATE TABLE tally (content TEXT NOT NULL, crc INTEGER NOT NULL)")
            content = json.dumps(dict.fromkeys(TABLES, 0))
            self._connection.execute("INSERT INTO tally VALUES (?, ?)", (content, _checksum("tally", [content])))
            for field in fields(facts):
                self._insert("facts", field.name, json.dumps(getattr(facts, field.name)))
            # In the same transaction: either the whole journal is there or nothing.
            self._connection.execute(f"PRAGMA application_id = {APPLICATION}")
            self._connection.execute(f"PRAGMA user_version = {SCHEMA}")

    def _check(self) -> None:
        """That this is a journal, of a version that is known, and whole."""
        (application,) = self._connection.execute("PRAGMA application_id").fetchone()
        (schema,) = self._connection.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION:
            raise JournalError(f"{self.folder / FILE}: not a journal of gibo")
        if schema > SCHEMA or schema < 1:
            raise JournalError(
                f"{self.folder / FILE}: a journal of version {schema}, and this gibo knows versions up to {SCHEMA}; "
                "update gibo"
            )
        (state,) = self._connection.execute("PRAGMA quick_check(1)").fetchone()
        if state != "ok":
            raise _damaged(self.folder, state)

    def _keep_reserve(self) -> None:
        path = self.folder / "reserve"
        if not path.exists() or path.stat().st_size < RESERVE:
            with path.open("wb") as file:
                file.write(b"\0" * RESERVE)
                file.flush()
                os.fsync(file.fileno())

    # -- writing ------------------------------------------------------------------------------------------------------

    def begin(self, options: dict[str, Any]) -> None:
        """Record that this process starts to work on the run."""
        (count,) = self._connection.execute("SELECT count(*) FROM starts").fetchone()
        with self._recording():
            self._insert(
                "starts",
                count,
                os.getpid(),
                platform.node(),
                time.time(),
                json.dumps(to_plain(options)),
                json.dumps(versions()),
            )
        self._start = count

    def end(self, reason: str, iterations: Sequence[Iteration] = ()) -> None:
        """Record why this process stops working on the run."""
        with self._recording():
            self._record_iterations(iterations)
            if self._start is not None:
                self._insert("ends", self._start, time.time(), reason)

    def asked(
        self, batch: Sequence[Query], iterate: Array, thought: dict[str, Any], iterations: Sequence[Iteration] = ()
    ) -> None:
        """Record a batch before any of it is evaluated (but see `foreseen`), and the steps since the one before."""
        if self._full is not None:
            raise self._full
        (count,) = self._connection.execute("SELECT count(*) FROM batches").fetchone()

        def record() -> None:
            self._record_iterations(iterations)
            first = batch[0]
            self._insert(
                "batches",
                count,
                first.iteration,
                first.id,
                len(batch),
                time.time(),
                _vector(iterate),
                json.dumps(thought),
            )
            for query in batch:
                self._record_query(query)

        if batch[0].id == self._foreseen:
            self._record_by_all_means(record)  # it is being evaluated
        else:
            with self._recording():
                record()

    def foreseen(self, query: Query) -> None:
        """Record the first query of a batch that is still being planned, before it is evaluated."""
        if self._full is not None:
            raise self._full
        with self._recording():
            self._record_query(query)
        self._foreseen = query.id

    def told(self, arrivals: Sequence[tuple[int, Answer]]) -> None:
        """Record answers as they arrived; if the disk is full, with the space that was kept for it."""
        try:
            self._record_by_all_means(lambda: self._record_answers(arrivals))
        except JournalError as error:
            if self._read_only:
                raise
            lost = ", ".join(f"query {i}: {answer.failure or answer.value!r}" for i, answer in arrivals)
            raise JournalError(f"{error}; not recorded, so note it down: {lost}") from None

    def _record_by_all_means(self, record: Callable[[], None]) -> None:
        """If the disk is full, with the space that was kept for what is being evaluated; then nothing more is asked."""
        try:
            with self._recording():
                record()
        except JournalError as error:
            if self._read_only:
                raise
            (self.folder / "reserve").unlink(missing_ok=True)
            self._full = error
            try:
                with self._recording():
                    record()
            except JournalError:
                raise error from None

    def _record_query(self, query: Query) -> None:
        """Once: one that was foreseen may be there."""
        if not self._connection.execute("SELECT 1 FROM queries WHERE id = ?", (query.id,)).fetchone():
            self._insert("queries", query.id, query.iteration, query.kind, query.seed, _vector(query.x))

    def told_elsewhere(self, query: Query, answer: Answer) -> None:
        """Record a point that nobody asked for."""
        with self._recording():
            self._insert("queries", query.id, query.iteration, query.kind, query.seed, _vector(query.x))
            self._record_answers([(query.id, answer)])

    def attempted(self, query: int, answer: Answer) -> None:
        """Record an attempt that failed and is made again."""
        (count,) = self._connection.execute("SELECT count(*) FROM attempts").fetchone()
        with self._recording():
            self._insert("attempts", count, query, time.time(), answer.seconds, answer.failure, answer.traceback)

    def moved_on(self) -> None:
        """Record that the optimiser went on without the queries that are still out."""
        (batch,) = self._connection.execute("SELECT max(number) FROM batches").fetchone()
        with self._recording():
            self._insert("moves", self._last_evaluation, batch)

    def _record_answers(self, arrivals: Sequence[tuple[int, Answer]]) -> None:
        for number, (query, answer) in enumerate(arrivals, start=self._last_evaluation + 1):
            self._insert(
                "evaluations",
                number,
                query,
                time.time(),
                answer.seconds,
                answer.value,
                _optional(answer.gradient),
                _optional(answer.gradient_noise),
                _optional(answer.info),
                answer.failure,
                answer.traceback,
            )

    @property
    def _last_evaluation(self) -> int:
        (last,) = self._connection.execute("SELECT max(number) FROM evaluations").fetchone()
        return -1 if last is None else int(last)

    def _record_iterations(self, iterations: Sequence[Iteration]) -> None:
        (known,) = self._connection.execute("SELECT count(*) FROM iterations").fetchone()
        for step in iterations[known:]:
            row = [_cell(getattr(step, "x" if name == "iterate" else name)) for name in _columns("iterations")]
            self._insert("iterations", *row)

    @contextmanager
    def _recording(self) -> Iterator[None]:
        """A transaction; when the disk is full, its error."""
        if self._read_only:
            raise JournalError(f"{self.folder}: the journal was opened for reading")
        with _explained(self.folder), self._transaction():
            yield

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            self._inserted = {}
            yield
            self._count()
            self._connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # SQLite has done it itself after some errors
                self._connection.execute("ROLLBACK")
            raise

    def _insert(self, table: str, *values: Any) -> None:
        marks = ", ".join("?" * (len(values) + 1))
        self._connection.execute(f"INSERT INTO {table} VALUES ({marks})", (*values, _checksum(table, values)))
        self._inserted[table] = self._inserted.get(table, 0) + 1

    def _count(self) -> None:
        """Keep the tally: damage that empties a table would not be seen otherwise."""
        counts = self._tally()
        content = json.dumps({table: count + self._inserted.get(table, 0) for table, count in counts.items()})
        self._connection.execute("UPDATE tally SET content = ?, crc = ?", (content, _checksum("tally", [content])))

    # -- reading ------------------------------------------------------------------------------------------------------

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        """All rows of a table, by its first column, each checked against its checksum."""
        columns = _columns(table)
        with _explained(self.folder):
            found = self._connection.execute(f"SELECT * FROM {table} ORDER BY {columns[0]}").fetchall()
        with _sound(self.folder):
            for row in found:
                if len(row) != len(columns) + 1 or row[-1] != _checksum(table, row[:-1]):
                    raise _damaged(self.folder, f"a row of {table} does not match its checksum")
            if len(found) != self._tally()[table]:
                raise _damaged(self.folder, f"rows of {table} are missing")
        return [row[:-1] for row in found]

    def _tally(self) -> dict[str, int]:
        """How many rows each table has, by the journal's own count."""
        with _explained(self.folder), _sound(self.folder):
            ((content, crc),) = self._connection.execute("SELECT content, crc FROM tally").fetchall()
            if crc != _checksum("tally", [content]):
                raise _damaged(self.folder, "its tally does not match its checksum")
            counts: dict[str, int] = json.loads(content)
            return counts

    def facts(self) -> Facts:
        """What the run is."""
        with _sound(self.folder):
            return Facts(**{name: json.loads(content) for name, content in self.rows("facts")})

    def starts(self) -> list[Start]:
        """The processes that worked on the run."""
        ends = {row[0]: row[1:] for row in self.rows("ends")}
        with _sound(self.folder):
            return [
                Start(process, host, started, json.loads(options), json.loads(found), *ends.get(number, (None, None)))
                for number, process, host, started, options, found in self.rows("starts")
            ]

    def queries(self) -> list[Query]:
        """All that was asked, by id; not what was foreseen before a process ended, which will be asked again."""
        with _sound(self.folder):
            asked = {first + i for _, _, first, size, *_ in self.rows("batches") for i in range(size)}
            return [
                Query(number, np.array(json.loads(x), dtype=np.float64), seed, kind, iteration)
                for number, iteration, kind, seed, x in self.rows("queries")
                if number in asked or kind == "told"
            ]

    def evaluations(self) -> list[Told]:
        """All that was told, in the order of arrival."""
        asked = {query.id: query for query in self.queries()}
        told = []
        with _sound(self.folder):
            for _, query, at, seconds, value, gradient, noise, info, failure, traceback in self.rows("evaluations"):
                g, v, kept = (None if text is None else json.loads(text) for text in (gradient, noise, info))
                told.append(Told(asked[query], Answer(value, g, v, kept, failure, traceback, seconds), at))
        return told

    def attempts(self) -> dict[int, int]:
        """How often the evaluation of a query failed and was tried again."""
        counts: dict[int, int] = {}
        for _, query, *_ in self.rows("attempts"):
            counts[query] = counts.get(query, 0) + 1
        return counts

    def replay(
        self,
        optimizer: Optimizer,
        learner: Learner | None = None,
        watch: Callable[[int], None] | None = None,
    ) -> None:
        """Bring a fresh optimiser to where the run is: ask what was asked, tell what was told, in that order.

        A learner, fresh too, learns again what it had learnt. After each iteration `watch` is called with the number of
        evaluations by then.
        """
        sign = self.facts().sign
        asked = {query.id: query for query in self.queries()}
        moves = dict(self.rows("moves"))
        with _sound(self.folder):
            batches = [
                ([asked[first + i] for i in range(size)], json.loads(thought))
                for _, _, first, size, _, _, thought in self.rows("batches")
            ]
            evaluations = self.evaluations()
            known, pending = 0, iter(batches)
            infos: dict[int, Any] = {}  # of the iteration so far
            for number, told in enumerate(evaluations):
                elsewhere = told.query.kind == "told"
                while known < told.query.id + (not elsewhere):
                    batch, thought = next(pending)
                    optimizer.recall(batch, thought)
                    known = batch[-1].id + 1
                known += elsewhere
                before = optimizer.iteration
                tell(optimizer, told.query.x if elsewhere else told.query, told.answer, sign)
                if number in moves:
                    optimizer.move_on()
                if learner is not None:
                    infos[told.query.id] = told.answer.info or {}
                if optimizer.iteration == before:
                    continue
                if learner is not None:
                    learn(learner, optimizer, [infos[i] for i in sorted(infos)])
                    infos.clear()
                if watch is not None:
                    watch(number + 1)
            for batch, thought in pending:
                optimizer.recall(batch, thought)

    def optimizer(self, learner: Learner | None = None) -> Optimizer:
        """The run's optimiser, where the run is; with a learner, that is brought there too."""
        with _sound(self.folder):
            optimizer = self.facts().fresh_optimizer()
        self.replay(optimizer, learner)
        return optimizer


def tell(optimizer: Optimizer, query: Query | Array, answer: Answer, sign: float) -> None:
    """Tell an answer in the objective's sign; one with both a value and a failure is a failure with its penalty."""
    if answer.value is None:
        optimizer.tell(query, failed=answer.failure or True)
        return
    if answer.gradient is None or answer.gradient_noise is None:
        optimizer.tell(query, sign * answer.value)
        return
    gradient = sign * np.array(answer.gradient)
    optimizer.tell(query, sign * answer.value, gradient=gradient, gradient_noise=answer.gradient_noise)


def has_journal(folder: Path | str) -> bool:
    """Whether a run has begun in this folder; a file without any table is left by a start that ended at once."""
    path = Path(folder) / FILE
    with _explained(Path(folder)):
        if not path.is_file() or not path.stat().st_size:
            return False
        with path.open("rb") as file:
            if file.read(16) != b"SQLite format 3\0":
                return True
        with ExitStack() as closing:
            try:
                (tables,) = _connect(Path(folder), closing).execute("SELECT count(*) FROM sqlite_master").fetchone()
            except (sqlite3.DatabaseError, UnicodeDecodeError):
                return True  # something is there, and who opens it will be told what
            return bool(tables)


@cache
def versions() -> dict[str, str]:
    """What computes here, for the record; looked up once, because it is slow."""
    from importlib.metadata import PackageNotFoundError, version  # here, because it is slow to load

    found = {"python": platform.python_version(), "platform": platform.platform()}
    for name in ("gibo", "numpy", "scipy", "cma", "gymnasium", "mujoco"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _connect(folder: Path, closing: ExitStack) -> sqlite3.Connection:
    connection = sqlite3.connect(folder / FILE, isolation_level=None, timeout=10.0, check_same_thread=False)
    closing.callback(connection.close)
    connection.execute("PRAGMA synchronous = FULL")  # a commit is on the disk when it returns
    return connection


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """SQLite's and the system's errors in our words."""
    try:
        yield
    except OSError as error:
        raise JournalError(f"{error.filename or folder}: cannot be written: {error.strerror}") from None
    except sqlite3.OperationalError as error:
        text = str(error)
        if "full" in text or "I/O" in text:
            raise JournalError(f"{folder}: nothing can be written there, the disk may be full ({text})") from None
        if any(word in text for word in ("locked", "readonly", "unable to open")):
            raise JournalError(f"{folder / FILE}: {text}") from None
        raise _damaged(folder, text) from None
    except sqlite3.Error as error:
        raise _damaged(folder, str(error)) from None
    except UnicodeDecodeError:  # in SQLite's own message
        raise _damaged(folder, "unreadable text") from None


@contextmanager
def _sound(folder: Path) -> Iterator[None]:
    """What cannot be made sense of is damage."""
    try:
        yield
    except GiboError:
        raise
    except (KeyError, TypeError, ValueError, StopIteration, AttributeError) as error:
        raise _damaged(folder, f"{type(error).__name__}: {error}") from None


def _damaged(folder: Path, how: str) -> JournalError:
    return JournalError(
        f"{folder / FILE}: the journal is damaged ({' '.join(how.split())[:160]}); restore a copy of it"
    )


def _difference(name: str, was: Any, now: Any) -> str:
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now) > 1:
        i = next(i for i in range(len(was)) if was[i] != now[i])
        return _difference(f"{name}[{i}]", was[i], now[i])
    return f"{name} was {was!r:.60}, now {now!r:.60}"


def _columns(table: str) -> list[str]:
    return [column.split()[0] for column in TABLES[table].split(", ")]


def _checksum(table: str, values: Sequence[Any]) -> int:
    # SQLite does not keep the sign of zero.
    return zlib.crc32(json.dumps([table, *(0.0 if value == 0.0 else value for value in values)]).encode())


def _vector(x: Array) -> str:
    return json.dumps(x.tolist())


def _optional(value: Any) -> str | None:
    return None if value is None else json.dumps(value)


def _cell(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _vector(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value  # SQLite has no NaN
