"""What `gibo reproduce` and `gibo figures` do: a study by its name, from its options to its figures."""

from __future__ import annotations

import importlib.util
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from gibo.errors import InputError, MissingExtraError
from gibo.runs.progress import bar_over
from gibo_studies.engine import StudyResult, read_definition, run_study
from gibo_studies.options import WrittenStudy
from gibo_studies.table import STUDIES, load


class Done(NamedTuple):
    """What to tell the user, what went wrong (a line per cell), and the command's exit code."""

    text: str
    errors: list[str]
    code: int


def reproduce(
    name: str,
    *,
    out: Path | None = None,
    quick: bool = False,
    workers: int | None = None,
    options: Mapping[str, Any],
    command: str,
) -> Done:
    """Run what is not finished of a study, and write its data, table and figures once all of it is.

    Args:
        name: of the study.
        out: its folder.
        quick: its small version.
        workers: processes; one per core if None.
        options: of the study, as they were given on the command line; text where it is a list.
        command: how all this was asked for, for the summary's footnote.
    """
    entry = STUDIES[name]
    out = out or Path("results") / (name + ("-quick" if quick and entry.quick else ""))
    for option in (*options, *(["workers"] if workers is not None and not entry.cells else [])):
        if option not in (*entry.options, "seed"):
            raise InputError(f"--{option}: {name} has no such option")
    if not entry.cells:
        load(entry.study)(out)
        return Done("\n".join(map(str, draw(out))), [], 0)
    need("matplotlib", *entry.needs)
    study = make_study(name, out, {**(entry.quick if quick else {}), **parse_options(options)})
    workers = _cores() if workers is None else workers
    if workers < 1:
        raise InputError(f"--workers: expected at least 1, got {workers}")
    started = time.perf_counter()
    result = _run(study, out, workers)
    minutes = (time.perf_counter() - started) / 60
    errors = [f"{' '.join(str(part) for part in cell.values())}: {cause}" for cell, cause in result.failures]
    done, total = len(result.records), len(study.cells())
    spent = sum(record["seconds"] for record in result.records) / 60
    footnote = f"`{command}`: {done} cells, {spent:.1f} minutes of one core; this start took {minutes:.1f} minutes."
    if not result.complete:
        if study.reports_unfinished and result.records:
            study.write(result.records, out, footnote)
        text = f"Stopped with {done} of {total} cells in {out}; the same command continues."
        return Done(text, errors, 1 if errors else 130)
    text = study.write(result.records, out, footnote)
    return Done(f"{text}\nData, table and {len(draw(out))} figures: {out}", errors, 0)


def draw(folder: Path) -> list[Path]:
    """Draw the figures of the study in a folder again, from its saved data alone."""
    # What has no cells has no definition either.
    drawn = [name for name, entry in STUDIES.items() if not entry.cells and (folder / f"{name}.json").exists()]
    name = drawn[0] if drawn else read_definition(folder).get("name")
    if not isinstance(name, str) or name not in STUDIES:
        raise InputError(f"{folder / 'study.json'}: expected the name of one of {', '.join(STUDIES)}, got {name!r}")
    paths: list[Path] = load(STUDIES[name].figures)(folder)
    return paths


def make_study(name: str, out: Path, options: Mapping[str, Any]) -> WrittenStudy:
    """The study of that name with these options."""
    kind: Any = load(STUDIES[name].study)
    given = {"name": name, "folder": out, **options}
    study: WrittenStudy = kind(**{field.name: given[field.name] for field in fields(kind) if field.name in given})
    return study


def need(*modules: str) -> None:
    """Check before the first cell that everything is installed."""
    for module in modules:
        try:
            found = importlib.util.find_spec(module) is not None
        except ValueError:  # what sys.modules holds in its place is no module
            found = False
        if not found:
            raise MissingExtraError(f"this needs {module}, which is not installed: pip install {module}")


def parse_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Lists of the command line as tuples: numbers between commas, and names, which have some, between semicolons."""
    options = dict(given)
    for name in ("methods", "tasks"):
        if name in options:
            options[name] = tuple(part.strip() for part in options[name].split(";") if part.strip()) or ("",)
    if "dimensions" in options:
        text = options["dimensions"]
        try:
            options["dimensions"] = tuple(int(part) for part in text.split(",") if part.strip())
        except ValueError:
            options["dimensions"] = ()
        if not options["dimensions"]:
            raise InputError(f"--dimensions: expected a comma-separated list such as 4,8,12, got {text!r}")
    return options


def _run(study: WrittenStudy, out: Path, workers: int) -> StudyResult:
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        with bar_over(len(study.cells()), "cells") as bar:
            return run_study(study, out, workers, bar.show, bar.above)
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(number: int, frame: object) -> None:
    """A polite request to end is like Ctrl-C."""
    raise KeyboardInterrupt


def _cores() -> int:
    """The cores that this process may use, where the system says so, or all there are."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else (os.cpu_count() or 1)
