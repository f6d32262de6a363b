"""A run as a table, a row for each query: for data frames and files."""

from __future__ import annotations

import csv
import importlib
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gibo._checks import one_of
from gibo.errors import MissingExtraError, missing_extra, printable
from gibo.outcome import Outcome, Query
from gibo.runs.spec import Naming

Columns = dict[str, list[Any]]

FORMATS = ("csv", "json", "parquet")
FRAMES = ("pandas", "polars")
BEFORE, AFTER = ("id", "iteration", "kind"), ("value", "failure", "seconds", "asked", "told", "seed")


class Line(NamedTuple):
    """A query, what became of it (None: it is pending), and when it was asked and told, in seconds since 1970."""

    query: Query
    outcome: Outcome | None
    asked: float | None = None
    told: float | None = None


def columns_of(lines: Sequence[Line], naming: Naming) -> Columns:
    """The parameters by their names, values as the lines have them; what is not known is None.

    Numbers in the info of the evaluations, such as a return, come last.
    """
    named = [f"parameter {name}" if name in (*BEFORE, *AFTER) else name for name in naming.names]
    columns: Columns = {name: [] for name in (*BEFORE, *named, *AFTER)}
    infos: list[dict[str, float]] = []
    for query, outcome, asked, told in lines:
        known = (None, None, None) if outcome is None else (outcome.value, outcome.failure, outcome.seconds)
        point = naming(query.x).values()
        cells = [query.id, query.iteration, query.kind, *point, *known, asked, told, query.seed]
        for column, cell in zip(columns.values(), cells, strict=True):
            column.append(cell)
        info = {} if outcome is None else outcome.info
        infos.append({key: value for key, value in info.items() if type(value) in (int, float)})
    for key in dict.fromkeys(key for info in infos for key in info):
        columns[f"info.{key}"] = [info.get(key) for info in infos]
    return columns


def rows_of(columns: Columns) -> list[list[Any]]:
    """As rows; the first one holds the columns' names, and what is not known is an empty text."""
    cells = zip(*columns.values(), strict=True)
    return [list(columns), *(["" if cell is None else cell for cell in row] for row in cells)]


def data_frame(columns: Columns, library: str | None = None) -> Any:
    """A data frame of pandas, or of polars where only that is installed; or of the one that is named."""
    if library is not None:
        one_of("library", library, FRAMES)
    for name in FRAMES if library is None else (library,):
        try:
            return importlib.import_module(name).DataFrame(columns)
        except ImportError:
            pass
    raise missing_extra(f"a data frame needs {library or 'pandas or polars'}", "data")


def encoded(columns: Columns, format: str) -> bytes:
    """As the content of a file. Texts of a CSV file are shown by a terminal and not obeyed."""
    one_of("format", format, FORMATS)
    if format == "json":
        records = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return json.dumps(records, indent=1).encode() + b"\n"
    if format == "csv":
        text = io.StringIO()
        rows = ([printable(c, lines=True) if isinstance(c, str) else c for c in row] for row in rows_of(columns))
        csv.writer(text, lineterminator="\n").writerows(rows)
        return text.getvalue().encode()
    file = io.BytesIO()
    try:
        data_frame(columns, "polars").write_parquet(file)
    except MissingExtraError:
        try:
            file.write(data_frame(columns, "pandas").to_parquet(index=False))
        except ImportError:  # pandas leaves it to another library
            raise missing_extra("a parquet file needs polars, or pandas with pyarrow", "data") from None
    return file.getvalue()


def format_of(path: Path | None) -> str:
    """By the ending of a file's name; csv if it says nothing."""
    ending = "" if path is None else path.suffix.lower().removeprefix(".")
    return ending if ending in FORMATS else "csv"
