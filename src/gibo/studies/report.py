"""A synthetic study's records as tidy data, tables and what its figures are drawn from.

regret.csv    one row per method, dimension, function and evaluation
curves.csv    mean, standard deviation and median over the functions, per method, dimension and evaluation
marks.csv     regret after 100, 200, 300 values (what the budget allows), per method, dimension and function
summary.md    the marks' mean, standard deviation and median as a table
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gibo._linalg import Array
from gibo.errors import InputError
from gibo.studies.engine import Record
from gibo.studies.synthetic import curves

MARKS = (100, 200, 300)


class Curve(NamedTuple):
    """Over the evaluations 1, 2, …: mean, standard deviation and median of the regret, (budget,) each."""

    mean: Array
    sd: Array
    median: Array


class StudyData(NamedTuple):
    """What the figures need: a curve, and the regrets (functions,) at each mark, by method and dimension."""

    curves: dict[tuple[str, int], Curve]
    marks: dict[tuple[str, int], dict[int, Array]]

    @property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(method for method, _ in self.curves))

    @property
    def dimensions(self) -> list[int]:
        return sorted({d for _, d in self.curves})


def write_report(records: Sequence[Record], methods: Sequence[str], out: Path, footnote: str) -> str:
    """Write all files of the module's text and return the summary table."""
    regrets = dict(sorted(curves(records).items(), key=lambda item: (item[0][1], methods.index(item[0][0]))))
    write_csv(
        out / "regret.csv",
        ("method", "d", "function", "evaluation", "regret"),
        (
            (method, d, i, n, f"{regret:.6g}")
            for (method, d), rows in regrets.items()
            for i, row in enumerate(rows)
            for n, regret in enumerate(row, start=1)
        ),
    )
    write_csv(
        out / "curves.csv",
        ("method", "d", "evaluation", "mean", "sd", "median"),
        (
            (method, d, n + 1, f"{mean:.4g}", f"{sd:.4g}", f"{median:.4g}")
            for (method, d), rows in regrets.items()
            for n, (mean, sd, median) in enumerate(
                zip(rows.mean(axis=0), rows.std(axis=0), np.median(rows, axis=0), strict=True)
            )
        ),
    )
    write_csv(
        out / "marks.csv",
        ("method", "d", "evaluation", "function", "regret"),
        (
            (method, d, mark, i, f"{row[mark - 1]:.4g}")
            for (method, d), rows in regrets.items()
            for mark in marks_within(rows.shape[1])
            for i, row in enumerate(rows)
        ),
    )
    text = summary(regrets) + f"\n{footnote}\n"
    (out / "summary.md").write_text(text, encoding="utf-8")
    return text


def marks_within(budget: int) -> list[int]:
    """The marks that the budget reaches, or the budget itself if it is below the first."""
    return [mark for mark in MARKS if mark <= budget] or [budget]


def summary(regrets: Mapping[tuple[str, int], Any]) -> str:
    """Mean ± standard deviation (median) of the regret at the marks, as a Markdown table."""
    budget = next(iter(regrets.values())).shape[1]
    marks = marks_within(budget)
    lines = [
        "| d | method | " + " | ".join(f"after {mark}" for mark in marks) + " |",
        "|---|---|" + "---|" * len(marks),
    ]
    for (method, d), rows in regrets.items():
        cells = [
            f"{at.mean():.3f} ± {at.std():.3f} ({np.median(at):.3f})" for at in (rows[:, mark - 1] for mark in marks)
        ]
        lines.append(f"| {d} | {method} | " + " | ".join(cells) + " |")
    functions = next(iter(regrets.values())).shape[0]
    head = (
        f"Normalised regret (f* − f)/f*, {functions} functions per dimension: mean ± standard deviation (median).\n\n"
    )
    return head + "\n".join(lines) + "\n"


def read_report(out: Path) -> StudyData:
    """What the figures need, from curves.csv and marks.csv alone."""
    columns: dict[tuple[str, int], list[tuple[float, float, float]]] = {}
    for row in read_csv(out / "curves.csv"):
        values = (float(row["mean"]), float(row["sd"]), float(row["median"]))
        columns.setdefault((row["method"], int(row["d"])), []).append(values)
    marks: dict[tuple[str, int], dict[int, list[float]]] = {}
    for row in read_csv(out / "marks.csv"):
        at = marks.setdefault((row["method"], int(row["d"])), {})
        at.setdefault(int(row["evaluation"]), []).append(float(row["regret"]))
    return StudyData(
        {key: Curve(*np.array(rows).T) for key, rows in columns.items()},
        {key: {mark: np.array(values) for mark, values in at.items()} for key, at in marks.items()},
    )


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table as a file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a file that `write_csv` made."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    except FileNotFoundError:
        raise InputError(f"{path}: not there; run the study first") from None
