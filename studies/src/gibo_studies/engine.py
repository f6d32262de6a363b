"""Runs the cells of a study over processes and keeps each finished one on disk at once.

A study's folder holds

    study.json    the options that define the study; another study cannot be continued in its folder
    lock          held while a process works there
    cells.jsonl   one line per finished cell, written and synced as it ends

A second start reads the finished cells and runs the rest. A line torn by a kill or a power cut is recognised and cut
off.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, NamedTuple, TextIO, TypeAlias

from gibo._checks import describe_error
from gibo._serialize import to_plain
from gibo.errors import InputError, StudyError
from gibo.runs.lock import folder_lock
from gibo.runs.workers import end_with_parent
from gibo_studies.study import Record, Study

Bar: TypeAlias = Callable[[int], None]  # shows how many cells are done
Notice: TypeAlias = Callable[[str], None]  # shows a line to the user


class StudyResult(NamedTuple):
    """The finished cells, what went wrong in the others (cell and cause), and whether these are all."""

    records: list[Record]
    failures: list[tuple[Mapping[str, Any], str]]
    complete: bool


def run_study(
    study: Study, out: Path, workers: int, bar: Bar = lambda done: None, notice: Notice = lambda line: None
) -> StudyResult:
    """Run what is not finished yet; Ctrl-C ends it with what is there, and a later start continues.

    Cells run in separate processes; the result of a cell does not depend on how many there are. A cell that fails does
    not keep the others from running; a later start tries it again. The first Ctrl-C lets the running cells finish, the
    second one ends them.
    """
    prepare(study, out)
    with folder_lock(out):
        log = out / "cells.jsonl"
        cells = {_key(cell): cell for cell in study.cells()}
        finished = {key: record for key, record in read_records(log).items() if key in cells}
        records = list(finished.values())
        todo = [cell for key, cell in cells.items() if key not in finished]
        bar(len(records))
        if not todo:
            return StudyResult(records, [], True)
        with log.open("a", encoding="utf-8") as file:
            return _run_cells(study, todo, min(workers, len(todo)), records, file, bar, notice)


def _run_cells(
    study: Study, todo: list[Any], workers: int, records: list[Record], file: TextIO, bar: Bar, notice: Notice
) -> StudyResult:
    failures: list[tuple[Mapping[str, Any], str]] = []
    running: dict[Future[str], Mapping[str, Any]] = {}
    queue = list(reversed(todo))
    stopping = False
    pool = ProcessPoolExecutor(workers, initializer=_start_worker)
    try:
        while running or (queue and not stopping):
            try:
                while queue and not stopping and len(running) < 2 * workers:
                    cell = queue.pop()
                    running[pool.submit(_run_cell, study, cell)] = cell
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    cell = running.pop(future)
                    error = future.exception()
                    if isinstance(error, BrokenProcessPool):
                        raise error
                    if error is not None:
                        failures.append((cell, describe_error(error)))
                        continue
                    file.write(future.result() + "\n")
                    file.flush()
                    os.fsync(file.fileno())
                    records.append(json.loads(future.result()))  # as a later start will read it
                    bar(len(records))
            except KeyboardInterrupt:
                if stopping:
                    raise
                stopping = True
                for future in [future for future in running if future.cancel()]:
                    del running[future]
                if running:
                    notice("finishing the cells that are running; Ctrl-C again ends them")
    except BrokenProcessPool:  # of a cell that ran, or of the next one, which no worker takes
        message = "a worker process died (killed, or out of memory?); the same command continues"
        raise StudyError(message) from None
    except KeyboardInterrupt:
        stopping = True
        _kill_workers(pool)
    finally:
        try:
            pool.shutdown(cancel_futures=True)  # and wait: at the exit Python would trip over a pool that is ending
        except RuntimeError:  # Ctrl-C came while the pool's thread was started: nobody leads its workers
            _kill_workers(pool)
    return StudyResult(records, failures, not stopping and not failures)


def _kill_workers(pool: ProcessPoolExecutor) -> None:
    for process in list((getattr(pool, "_processes", None) or {}).values()):
        process.kill()  # a run would take SIGTERM for a wish to end soon; journals stand a kill


def _run_cell(study: Study, cell: Mapping[str, Any]) -> str:
    """A cell's line; made where the cell runs, so that a result that JSON cannot hold is that cell's failure."""
    started = time.perf_counter()
    record = study.run_cell(cell)
    seconds = round(time.perf_counter() - started, 3)
    return json.dumps(to_plain({**record, "seconds": seconds}), separators=(",", ":"))


def prepare(study: Study, out: Path) -> None:
    """Make the folder, or check that it holds this very study."""
    path = out / "study.json"
    definition = json.loads(json.dumps(study.definition()))
    try:
        out.mkdir(parents=True, exist_ok=True)
        if not path.exists() or not path.stat().st_size:  # empty: an earlier start ended while it was being written
            if any(entry.name != path.name for entry in out.iterdir()):
                raise InputError(f"{out}: it holds files, but no study; name another folder with --out")
            path.write_text(json.dumps(definition, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{out}: cannot be used as the study's folder: {error.strerror}") from None
    found = read_definition(out)
    names = [name for name in sorted({*found, *definition}) if found.get(name) != definition.get(name)]
    if names:
        what = "; ".join(f"{name} was {found.get(name)!r}, now {definition.get(name)!r}" for name in names)
        raise InputError(f"{out} holds another study: {what}. Name a new folder with --out, or use the old options")


def read_definition(out: Path) -> dict[str, Any]:
    """The options of the study in a folder."""
    try:
        return dict(json.loads((out / "study.json").read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise InputError(f"{out}: no study.json there; run the study first, or name its folder") from None
    except (ValueError, TypeError):
        raise InputError(f"{out / 'study.json'}: not a study's definition; name another folder with --out") from None


def read_records(log: Path) -> dict[str, Record]:
    """The finished cells by their key; what is behind the last whole line is cut off the file."""
    if not log.exists():
        return {}
    data = log.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        with log.open("r+b") as file:
            file.truncate(len(whole))
    records: dict[str, Record] = {}
    for number, line in enumerate(whole.decode("utf-8", errors="replace").splitlines(), start=1):
        try:
            record = json.loads(line)
            records.setdefault(_key(record["cell"]), record)
        except (json.JSONDecodeError, KeyError, TypeError):
            raise InputError(f"{log}: line {number} is damaged; remove that line to run its cell again") from None
    return records


def _start_worker() -> None:
    """Only the parent acts on Ctrl-C, and when it is gone, however it went, its workers end too."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


def _key(cell: Mapping[str, Any]) -> str:
    return json.dumps(dict(cell), sort_keys=True)
