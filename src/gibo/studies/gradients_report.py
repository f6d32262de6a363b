"""The records of the study of gradients as tidy data, tables, and what its figure is drawn from.

gradients.csv   one row per problem, M, gradients, trial and step: what was spent and the relative cost or the regret
curves.csv      per problem, M, gradients and spent: mean, standard deviation and median over the trials
summary.md      the same at a few marks, and paired differences from the runs without gradients
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from gibo._linalg import Array
from gibo.studies.engine import Record
from gibo.studies.gradients import ARMS, NONE, TARGET, D, GradientStudy, at
from gibo.studies.report import read_csv, write_csv

MARKS = {"lqr": (20, 40, 60, 90, 130), "synthetic": (100, 200, 300)}
LOOKS = 100  # along a curve

Arm: TypeAlias = tuple[str, int, str]  # problem, M, gradients


class Band(NamedTuple):
    """Over what was spent: mean, standard deviation and median, infinite where a gain is unstable."""

    spent: Array
    mean: Array
    sd: Array
    median: Array


def write_gradient_report(study: GradientStudy, records: Sequence[Record], out: Path, footnote: str) -> str:
    """Write all files of the module's text and return the summary."""
    arms: dict[Arm, list[list[tuple[int, float]]]] = {
        (problem, M, gradients): []
        for problem, each in ARMS.items()
        for M, those in each.items()
        for gradients in those
    }
    for record in sorted(records, key=lambda record: record["cell"]["trial"]):
        cell = record["cell"]
        curve = [(int(n), math.inf if value is None else float(value)) for n, value in record["curve"]]
        arms[cell["problem"], cell["M"], cell["gradients"]].append(curve)
    write_csv(
        out / "gradients.csv",
        ("problem", "M", "gradients", "trial", "spent", "value"),
        (
            (*arm, trial, n, _text(value))
            for arm, curves in arms.items()
            for trial, curve in enumerate(curves)
            for n, value in curve
        ),
    )
    rows = []
    for arm, curves in arms.items():
        most = _budget(study, arm[0])
        for spent in range(0, most + 1, max(1, most // LOOKS)):
            values = _values(curves, spent)
            with np.errstate(invalid="ignore"):  # of infinite costs there is no standard deviation
                rows.append((*arm, spent, *(_text(v, 4) for v in (values.mean(), values.std(), np.median(values)))))
    write_csv(out / "curves.csv", ("problem", "M", "gradients", "spent", "mean", "sd", "median"), rows)
    text = f"{_lqr_table(study, arms)}\n{_synthetic_tables(study, arms)}\n{footnote}\n"
    (out / "summary.md").write_text(text, encoding="utf-8")
    return text


def read_gradient_report(out: Path) -> dict[Arm, Band]:
    """The curves by arm, from curves.csv alone."""
    columns: dict[Arm, list[list[float]]] = {}
    for row in read_csv(out / "curves.csv"):
        values = [float(row[name] or "inf") for name in ("spent", "mean", "sd", "median")]
        columns.setdefault((row["problem"], int(row["M"]), row["gradients"]), []).append(values)
    return {arm: Band(*np.array(rows).T) for arm, rows in columns.items()}


def episodes_until(curves: Sequence[Sequence[tuple[int, float]]], target: float) -> int | None:
    """The fewest episodes after which the median over the trials is below the target, or None."""
    for spent in sorted({n for curve in curves for n, _ in curve}):
        if np.median(_values(curves, spent)) < target:
            return spent
    return None


def _lqr_table(study: GradientStudy, arms: dict[Arm, list[list[tuple[int, float]]]]) -> str:
    marks = _marks(study, "lqr")
    lines = [
        f"**Regulator.** Episodes until the median relative cost (J − J*)/J* over {study.trials} trials is below "
        f"{TARGET}, and the median after so many episodes. Those of a likelihood-ratio estimate are counted; the noise "
        "is the standard deviation on each entry of the exact gradient.",
        "",
        f"| M | gradients | episodes until {TARGET} | " + " | ".join(f"after {mark}" for mark in marks) + " |",
        "|---|---|---|" + "---|" * len(marks),
    ]
    for (problem, M, gradients), curves in arms.items():
        if problem == "lqr":
            until = episodes_until(curves, TARGET)
            medians = [float(np.median(_values(curves, mark))) for mark in marks]
            cells = [f"{value:.3f}" if math.isfinite(value) else "unstable" for value in medians]
            lines.append(f"| {M} | {gradients} | {'—' if until is None else until} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _synthetic_tables(study: GradientStudy, arms: dict[Arm, list[list[tuple[int, float]]]]) -> str:
    marks = _marks(study, "synthetic")
    lines = [
        f"**Synthetic functions.** Normalised regret (f* − f)/f* of {study.functions} functions of {D} dimensions "
        "after so many values: mean; and in brackets the mean difference from the run without gradients on the same "
        "function, ± its standard error. The noise is the standard deviation on each entry of the gradient.",
        "",
        "| M | gradients | " + " | ".join(f"after {mark}" for mark in marks) + " |",
        "|---|---|" + "---|" * len(marks),
    ]
    for (problem, M, gradients), curves in arms.items():
        if problem != "synthetic":
            continue
        cells = []
        for mark in marks:
            values, without = _values(curves, mark), _values(arms[problem, M, NONE], mark)
            difference, error = paired(values, without)
            cells.append(f"{values.mean():.3f}" + ("" if gradients == NONE else f" ({difference:+.3f} ± {error:.3f})"))
        lines.append(f"| {M} | {gradients} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def paired(these: Array, those: Array) -> tuple[float, float]:
    """The mean of the differences, and its standard error (0 if there is only one)."""
    differences = these - those
    error = differences.std(ddof=1) / math.sqrt(len(differences)) if len(differences) > 1 else 0.0
    return float(differences.mean()), float(error)


def _values(curves: Sequence[Sequence[tuple[int, float]]], spent: int) -> Array:
    return np.array([at(curve, spent) for curve in curves])


def _budget(study: GradientStudy, problem: str) -> int:
    return study.episodes if problem == "lqr" else study.budget


def _marks(study: GradientStudy, problem: str) -> list[int]:
    most = _budget(study, problem)
    return [mark for mark in MARKS[problem] if mark <= most] or [most]


def _text(value: float, digits: int = 6) -> str:
    return f"{value:.{digits}g}" if math.isfinite(value) else ""
