"""Studies whose cells give curves: as tidy data, as what their figures are drawn from, and as a summary.

DATA.csv     every cell's curve, a row per point; the study names the file and its columns
curves.csv   statistics over the repetitions, along what was spent
marks.csv    each repetition's value at a few marks, where a study wants it
summary.md   the study's tables, and how they were made

All but the first are small; figures are drawn from them alone.
"""

from __future__ import annotations

import csv
import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from gibo._linalg import Array
from gibo.errors import InputError
from gibo_studies.study import Record, Study

CHECKPOINTS = 100

Curve: TypeAlias = Sequence[tuple[int, float]]  # what was spent, and what the method had then; infinite: nothing of use
Arm: TypeAlias = tuple[Any, ...]  # what is compared
Curves: TypeAlias = Mapping[Arm, Sequence[Curve]]  # of each arm's repetitions, in their order


class Columns(NamedTuple):
    """Names in a study's files: entries of its cells that tell the arm, and the one that counts its repetitions."""

    arm: tuple[str, ...]
    repeat: str
    spent: str
    value: str


class CurveStudy(Study):
    """Base of studies whose cells give curves."""

    data: ClassVar[str]  # the name of the file of all curves
    columns: ClassVar[Columns]  # of all files

    @abstractmethod
    def arms(self) -> list[Arm]:
        """What is compared: entries of cells by the names in `columns`."""

    def count(self, arm: Arm) -> int:
        """Repetitions; the option ``trials``."""
        return int(vars(self)["trials"])

    @abstractmethod
    def grid(self, arm: Arm) -> Sequence[int]:
        """Where along an arm's curves the statistics are taken."""

    @abstractmethod
    def summary(self, curves: Curves) -> str:
        """Markdown of all curves."""

    def marks(self) -> Sequence[int]:
        """Where each repetition's value is kept for the figures."""
        return ()

    @staticmethod
    def statistics(values: Array) -> dict[str, float]:
        """Of the repetitions' values (n,), by the names of their columns."""
        return spread(values)

    @staticmethod
    def curve(record: Record) -> Curve:
        """The curve of a record; JSON has null for infinity."""
        return [(int(n), math.inf if value is None else float(value)) for n, value in record["curve"]]

    def cells(self) -> list[dict[str, Any]]:
        """Repetition by repetition, so that the time left can be told from the first ones."""
        names, arms = (*self.columns.arm, self.columns.repeat), self.arms()
        repetitions = range(max(map(self.count, arms)))
        return [dict(zip(names, (*arm, i), strict=True)) for i in repetitions for arm in arms if i < self.count(arm)]

    def collect(self, records: Iterable[Record]) -> dict[Arm, list[Curve]]:
        """The records' curves by arm."""
        columns = self.columns
        curves: dict[Arm, list[Curve]] = {arm: [] for arm in self.arms()}
        for record in sorted(records, key=lambda record: int(record["cell"][columns.repeat])):
            curves[tuple(record["cell"][name] for name in columns.arm)].append(self.curve(record))
        return {arm: each for arm, each in curves.items() if each}

    def write(self, records: Sequence[Record], out: Path, footnote: str) -> str:
        columns, curves = self.columns, self.collect(records)
        points = [
            (*arm, i, n, _number(value, 6))
            for arm, each in curves.items()
            for i, curve in enumerate(each)
            for n, value in curve
        ]
        write_csv(out / self.data, (*columns.arm, columns.repeat, columns.spent, columns.value), points)
        statistics = [
            (arm, n, self.statistics(values))
            for arm, each in curves.items()
            for n, values in zip(self.grid(arm), sample(each, self.grid(arm)), strict=True)
        ]
        write_csv(
            out / "curves.csv",
            (*columns.arm, columns.spent, *statistics[0][2]),
            ((*arm, n, *(_number(value, 4) for value in each.values())) for arm, n, each in statistics),
        )
        if self.marks():
            at_marks = [
                (*arm, mark, i, _number(value, 4))
                for arm, each in curves.items()
                for mark, values in zip(self.marks(), sample(each, self.marks()), strict=True)
                for i, value in enumerate(values)
            ]
            write_csv(out / "marks.csv", (*columns.arm, columns.spent, columns.repeat, columns.value), at_marks)
        text = f"{self.summary(curves)}\n{footnote}\n"
        (out / "summary.md").write_text(text, encoding="utf-8")
        return text


def record_of(cell: Mapping[str, Any], curve: Curve) -> Record:
    """A cell's curve, to 6 digits after the point."""
    return {"cell": dict(cell), "curve": [(n, round(v, 6) if math.isfinite(v) else None) for n, v in curve]}


# -- for summaries ----------------------------------------------------------------------------------------------------


def spread(values: Array) -> dict[str, float]:
    with np.errstate(invalid="ignore"):  # of infinite values there is no standard deviation
        return {"mean": float(values.mean()), "sd": float(values.std()), "median": float(np.median(values))}


def spread_text(values: Array, digits: int) -> str:
    mean, sd, median = (f"{value:.{digits}f}" for value in spread(values).values())
    return f"{mean} ± {sd} ({median})"


def sample(curves: Sequence[Curve], spent: Sequence[int]) -> Array:
    """(spent, curves) what each had after so much; NaN before its first point."""
    rows = []
    for curve in curves:
        n, values = np.array(curve, dtype=np.float64).T
        i = np.searchsorted(n, spent, side="right") - 1
        rows.append(np.where(i >= 0, values[i], np.nan))
    return np.array(rows).T


def checkpoints(most: int) -> range:
    """Where to look along a curve: about `CHECKPOINTS` times, first at its start."""
    return range(0, most + 1, max(1, most // CHECKPOINTS))


def reached(marks: Sequence[int], most: int) -> list[int]:
    """The marks that a budget reaches, or the budget itself if it is below the first."""
    return [mark for mark in marks if mark <= most] or [most]


def after(marks: Iterable[int]) -> list[str]:
    """How columns at the marks are headed."""
    return [f"after {mark}" for mark in marks]


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in (header, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(header), *lines[1:]]) + "\n"


# -- files ------------------------------------------------------------------------------------------------------------


def read_points(path: Path, columns: Columns) -> Curves:
    """The curves in a file that has a row per point."""
    curves: dict[Arm, dict[str, list[tuple[int, float]]]] = {}
    for row in read_csv(path):
        point = (int(row[columns.spent]), float(row[columns.value] or "inf"))
        curves.setdefault(_arm(row, columns), {}).setdefault(row[columns.repeat], []).append(point)
    return {arm: list(each.values()) for arm, each in curves.items()}


def read_curves(out: Path, columns: Columns) -> dict[Arm, dict[str, Array]]:
    """By arm: what was spent and the statistics then, by the names of their columns; NaN where there is none."""
    rows: dict[Arm, list[dict[str, float]]] = {}
    for row in read_csv(out / "curves.csv"):
        numbers = {name: float(text or "nan") for name, text in row.items() if name not in columns.arm}
        rows.setdefault(_arm(row, columns), []).append(numbers)
    return {arm: {name: np.array([row[name] for row in each]) for name in each[0]} for arm, each in rows.items()}


def _arm(row: Mapping[str, str], columns: Columns) -> Arm:
    return tuple(int(row[name]) if row[name].isdigit() else row[name] for name in columns.arm)


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}g}" if math.isfinite(value) else ""


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a table, by the names of its columns."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    except FileNotFoundError:
        raise InputError(f"{path}: not there; run the study first") from None
