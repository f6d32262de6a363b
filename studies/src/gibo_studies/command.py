"""What `gibo reproduce` and `gibo figures` do: a study by its name, from its options to its figures."""

from __future__ import annotations

import importlib
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from gibo.cli import complain, say
from gibo.errors import InputError, MissingExtraError
from gibo.runs.progress import Bar
from gibo_studies.engine import StudyResult, read_definition, run_study
from gibo_studies.study import Study, missing
from gibo_studies.table import STUDIES


def reproduce(
    name: str, out: Path | None, quick: bool, workers: int | None, given: Mapping[str, Any], command: str
) -> int:
    """Run what is not finished of a study, write its data, table and figures once all of it is; the exit code.

    Args:
        given: options of the study as on the command line; text where it is a list.
        command: how all this was asked for, for the summary's footnote.
    """
    kind = study_class(name)
    out = out or Path("results") / (name + ("-quick" if quick and kind.quick else ""))
    for option in given:
        if option not in [field.name for field in fields(kind)]:
            raise InputError(f"--{option}: {name} has no such option")
    study = make_study(name, out, {**(kind.quick if quick else {}), **parse_options(given)})
    for module in missing(("matplotlib", *study.needs())):
        raise MissingExtraError(f"this needs {module}, which is not installed: pip install {module}")
    workers = _cores() if workers is None else workers
    if workers < 1:
        raise InputError(f"--workers: expected at least 1, got {workers}")
    started = time.perf_counter()
    result = _run(study, out, workers)
    minutes = (time.perf_counter() - started) / 60
    for cell, cause in result.failures:
        complain(f"{' '.join(str(part) for part in cell.values())}: {cause}")
    done, total = len(result.records), len(study.cells())
    spent = sum(record["seconds"] for record in result.records) / 60
    footnote = f"`{command}`: {done} cells, {spent:.1f} minutes of one core; this start took {minutes:.1f} minutes."
    if not result.complete:
        if study.reports_unfinished and result.records:
            study.write(result.records, out, footnote)
        say(f"Stopped with {done} of {total} cells in {out}; the same command continues.")
        return 1 if result.failures else 130
    text = study.write(result.records, out, footnote)
    say(f"{text}\nData, table and {len(draw(out))} figures: {out}")
    return 0


def draw(folder: Path) -> list[Path]:
    """Draw the figures of the study in a folder again, from its saved data alone."""
    name = read_definition(folder).get("name")
    if not isinstance(name, str) or name not in STUDIES:
        raise InputError(f"{folder / 'study.json'}: expected the name of one of {', '.join(STUDIES)}, got {name!r}")
    paths: list[Path] = study_class(name).figures(folder)
    return paths


def study_class(name: str) -> Any:
    place = STUDIES[name]
    if not isinstance(place, str):
        return place
    module, kind = place.split(":")
    return getattr(importlib.import_module(module), kind)


def make_study(name: str, out: Path, options: Mapping[str, Any]) -> Any:
    kind, given = study_class(name), {"name": name, "folder": out, **options}
    return kind(**{field.name: given[field.name] for field in fields(kind) if field.name in given})


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


def _run(study: Study, out: Path, workers: int) -> StudyResult:
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        with Bar(len(study.cells()), unit="cells") as bar:
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
