"""Runs the cells of a study over processes and keeps each finished one on disk at once.

A study's folder holds

    study.json    the options that define the study; another study cannot be continued in its folder
    cells.jsonl   one line per finished cell, written and synced as it ends

A second start reads the finished cells and runs the rest. A line torn by a kill or a power cut is recognised and cut
off.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

from gibo.errors import InputError, MissingExtraError

Record: TypeAlias = dict[str, Any]


class Study(Protocol):
    """What the engine needs to know of a study: its options, its cells, and what running one gives."""

    @property
    def name(self) -> str: ...

    def definition(self) -> Mapping[str, Any]: ...

    def cells(self) -> Sequence[Mapping[str, Any]]: ...

    def run_cell(self, cell: Mapping[str, Any]) -> Record: ...


class Bar(Protocol):
    """Shows how many cells are done."""

    def __call__(self, done: int) -> None: ...


class Outcome(NamedTuple):
    """The finished cells, and whether these are all."""

    records: list[Record]
    complete: bool


def run_study(study: Study, out: Path, workers: int, bar: Bar | None = None) -> Outcome:
    """Run what is not finished yet; Ctrl-C ends it with what is there, and a later start continues.

    Cells run in separate processes; the result of a cell does not depend on how many there are.
    """
    prepare(study, out)
    log = out / "cells.jsonl"
    records = read_records(log)
    finished = {_key(record["cell"]) for record in records}
    cells = [cell for cell in study.cells() if _key(cell) not in finished]
    report = bar if bar is not None else _silent
    report(len(records))
    if not cells:
        return Outcome(records, True)
    with log.open("a", encoding="utf-8") as file, _pool(workers) as pool:
        waiting = set()
        todo = iter(cells)
        try:
            for cell in todo:
                waiting.add(pool.submit(study.run_cell, cell))
                if len(waiting) < 2 * workers:
                    continue
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                records += _write(file, [future.result() for future in done], report, len(records))
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                records += _write(file, [future.result() for future in done], report, len(records))
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            return Outcome(records, False)
    return Outcome(records, True)


def prepare(study: Study, out: Path) -> None:
    """Make the folder, or check that it holds this very study."""
    path = out / "study.json"
    definition = json.loads(json.dumps(dict(study.definition())))
    try:
        out.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text(json.dumps(definition, indent=1) + "\n", encoding="utf-8")
            return
        found = read_definition(out)
    except OSError as error:
        raise InputError(f"{out}: cannot be used as the study's folder: {error.strerror}") from None
    if found != definition:
        names = sorted(set(found) | set(definition))
        differing = [name for name in names if found.get(name) != definition.get(name)]
        what = "; ".join(f"{name} was {found.get(name)!r}, now {definition.get(name)!r}" for name in differing)
        raise InputError(f"{out} holds another study: {what}. Name a new folder with --out, or use the old options")


def read_definition(out: Path) -> dict[str, Any]:
    """The options of the study in a folder."""
    try:
        found = json.loads((out / "study.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{out}: no study.json there; it is not a study's folder") from None
    except json.JSONDecodeError:
        raise InputError(f"{out / 'study.json'}: not readable as JSON") from None
    if not isinstance(found, dict):
        raise InputError(f"{out / 'study.json'}: not a study's definition")
    return found


def read_records(log: Path) -> list[Record]:
    """The finished cells; what is behind the last whole line is cut off the file."""
    if not log.exists():
        return []
    data = log.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        with log.open("r+b") as file:
            file.truncate(len(whole))
    records = []
    for number, line in enumerate(whole.decode("utf-8", errors="replace").splitlines(), start=1):
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            raise InputError(f"{log}: line {number} is damaged; remove that line to run its cell again") from None
    return records


def _write(file: Any, records: list[Record], report: Bar, done: int) -> list[Record]:
    for record in records:
        file.write(json.dumps(record) + "\n")
    file.flush()
    os.fsync(file.fileno())
    report(done + len(records))
    return records


def _key(cell: Mapping[str, Any]) -> str:
    return json.dumps(dict(cell), sort_keys=True)


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    # Ctrl-C reaches every process of the terminal; only this one shall act on it.
    with ProcessPoolExecutor(workers, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN)) as pool:
        yield pool


def _silent(done: int) -> None:
    pass


@contextmanager
def cell_bar(total: int) -> Iterator[Bar]:
    """A progress bar over the cells, with the time left."""
    try:
        from rich import progress
        from rich.console import Console
    except ImportError:
        raise MissingExtraError("this needs rich, which is not installed: pip install 'gibo[reproduce]'") from None
    columns = (
        progress.TextColumn("cells"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left"),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=Console(stderr=True), speed_estimate_period=600) as bar:
        task = bar.add_task("cells", total=total)
        first: list[int] = []

        def show(done: int) -> None:
            if not first:  # cells of an earlier start say nothing about the speed of this one
                first.append(done)
                bar.reset(task, total=total, completed=done)
            bar.update(task, completed=done)

        yield show


def parse_list(text: str, kind: Callable[[str], Any], name: str) -> list[Any]:
    """A comma-separated option."""
    try:
        items = [kind(part.strip()) for part in text.split(",") if part.strip()]
    except ValueError:
        raise InputError(f"{name}: expected a comma-separated list, got {text!r}") from None
    if not items:
        raise InputError(f"{name}: expected at least one, got {text!r}")
    return items
