"""A run as a table with a row per query, for data frames and files; and values from a CSV file.

`gibo export`, `gibo serve` and the page write the same CSV format, and `gibo import` reads it: a first line with the
columns' names, cells separated by commas. A text that a spreadsheet would execute gets a leading apostrophe.
"""

from __future__ import annotations

import csv
import importlib
import io
import json
import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from gibo._checks import one_of, shown
from gibo.errors import InputError, MissingExtraError, missing_extra, printable
from gibo.outcome import Outcome, Query
from gibo.runs.spec import Naming

Columns = dict[str, list[Any]]

FORMATS = ("csv", "json", "parquet")
FRAMES = ("pandas", "polars")
BEFOREHAND, AFTERWARDS = ("id", "iteration", "kind"), ("value", "failure", "seconds", "asked", "told", "seed")
# Columns that are written if an evaluation has them, and read.
KNOWN = ("noise", "repeats", "block", "source")
SEPARATORS = (",", ";", "\t")
EXECUTED = ("=", "+", "-", "@", "\t", "\r")  # first characters of a text that a spreadsheet executes


class Line(NamedTuple):
    """A query, its outcome (None: pending), and the times of ask and tell in seconds since 1970."""

    query: Query
    outcome: Outcome | None
    asked: float | None = None
    told: float | None = None


def columns_of(lines: Sequence[Line], naming: Naming) -> Columns:
    """The columns of the lines by name, parameters first; unknown cells are None.

    Noise, repeats, block and source follow if an evaluation has them, and then numbers of the info, such as a return.
    """
    fixed = [*BEFOREHAND, *map(column_of, naming.names), *AFTERWARDS]
    rows: list[dict[str, Any]] = []
    for query, outcome, asked, told in lines:
        known = (None, None, None) if outcome is None else (outcome.value, outcome.failure, outcome.seconds)
        cells = (query.id, query.iteration, query.kind, *naming(query.x).values(), *known, asked, told, query.seed)
        details, info = ({}, {}) if outcome is None else (outcome.details(), outcome.info)
        numbers = {f"info.{key}": value for key, value in info.items() if type(value) in (int, float)}
        planned = {name: part for name in ("block", "source") if (part := getattr(query, name)) is not None}
        rows.append({**numbers, **planned, **details, **dict(zip(fixed, cells, strict=True))})
    names = fixed + [name for name in KNOWN if any(name in row for row in rows)]
    names += [name for row in rows for name in row if name.startswith("info.")]
    return {name: [row.get(name) for row in rows] for name in names}


def column_of(parameter: str) -> str:
    """The name of a parameter's column."""
    return f"parameter {parameter}" if parameter in (*BEFOREHAND, *AFTERWARDS, *KNOWN) else parameter


def rows_of(columns: Columns) -> list[list[Any]]:
    """The columns as rows; the first one has the names, and unknown cells are empty."""
    cells = zip(*columns.values(), strict=True)
    return [list(columns), *(["" if cell is None else cell for cell in row] for row in cells)]


def data_frame(columns: Columns, library: str | None = None) -> Any:
    """A data frame of pandas, or of polars if only polars is installed; `library` chooses one."""
    if library is not None:
        one_of("library", library, FRAMES)
    for name in FRAMES if library is None else (library,):
        try:
            return importlib.import_module(name).DataFrame(columns)
        except ImportError:
            pass
    raise missing_extra(f"a data frame needs {library or 'pandas or polars'}", "data")


def encoded(columns: Columns, format: str) -> bytes:
    """The content of a file. Texts in a CSV file are safe for a terminal and a spreadsheet."""
    one_of("format", format, FORMATS)
    if format == "json":
        records = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return json.dumps(records, indent=1).encode() + b"\n"
    if format == "csv":
        text = io.StringIO()
        rows = ([_harmless(c) if isinstance(c, str) else c for c in row] for row in rows_of(columns))
        csv.writer(text, lineterminator="\n").writerows(rows)
        return text.getvalue().encode()
    file = io.BytesIO()
    try:
        data_frame(columns, "polars").write_parquet(file)
    except MissingExtraError:
        try:
            file.write(data_frame(columns, "pandas").to_parquet(index=False))
        except ImportError:  # pandas needs another library for it
            raise missing_extra("a parquet file needs polars, or pandas with pyarrow", "data") from None
    return file.getvalue()


def format_of(path: Path | None) -> str:
    """The format by the ending of a file's name; csv without one."""
    ending = "" if path is None else path.suffix.lower().removeprefix(".")
    if ending not in ("", *FORMATS):
        raise InputError(f"--out: expected a name that ends in .{', .'.join(FORMATS)}, got {shown(path and path.name)}")
    return ending or "csv"


def _harmless(text: str) -> str:
    return printable(f"'{text}" if text.startswith(EXECUTED) else text, lines=True)


def read_values(path: Path, names: Sequence[str]) -> list[tuple[dict[str, float], float | Outcome]]:
    """Points by the names of their parameters, and their values, from a CSV file; rows without a value are skipped.

    A row with a noise, repeats or a block gives an `Outcome`.

    Cells may also be separated by semicolons or tabs, and numbers may then have a decimal comma.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not readable as CSV: {error}") from None
    wanted = {name: _harmless(column_of(name)) for name in names}
    heads = {separator: next(csv.reader(lines[:1], delimiter=separator), []) for separator in SEPARATORS}
    separator = max(SEPARATORS, key=lambda each: len(heads[each]))
    missing = [column for column in (*wanted.values(), "value") if column not in heads[separator]]
    if missing:
        raise InputError(
            f"{path}: expected a head with {', '.join([*wanted.values(), 'value'])}, separated by commas, semicolons "
            f"or tabs; there is no {missing[0]}"
        )
    found: list[tuple[dict[str, float], float | Outcome]] = []
    rows = csv.DictReader(lines, delimiter=separator)
    try:
        for row in rows:
            if row["value"]:
                where = f"{path}, line {rows.line_num}"
                point = {name: _cell(where, column, row[column], separator) for name, column in wanted.items()}
                value = _cell(where, "value", row["value"], separator)
                details = _details(where, row, separator)
                found.append((point, Outcome(value, **details) if details else value))
    except csv.Error as error:
        raise InputError(f"{path}: not readable as CSV: {error}") from None
    return found


def _details(where: str, row: dict[str, str], separator: str) -> dict[str, Any]:
    """Noise, repeats, block and source of a row, if any."""
    found: dict[str, Any] = {name: row[name] for name in KNOWN if row.get(name)}
    for name in found.keys() & {"noise", "repeats"}:
        found[name] = _cell(where, name, found[name], separator)
    if "block" in found:
        found["block"] = block_of(found["block"])
    if "repeats" in found and found["repeats"].is_integer():
        found["repeats"] = int(found["repeats"])
    return found


def block_of(text: str) -> str | float:
    """A block, which is a number if it can be read as one."""
    with suppress(ValueError):
        return float(text)
    return text


def _cell(where: str, column: str, text: str | None, separator: str) -> float:
    try:
        number = float((text or "") if separator == "," else (text or "").replace(",", "."))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{where}: {column}: expected a finite number, got {shown(text)}")
    return number
