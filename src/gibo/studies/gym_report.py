"""A policy-search study's records as tidy data, tables and what its figure is drawn from.

returns.csv   one row per environment, method, trial and look at the iterate
curves.csv    mean, standard deviation and median over the trials, per environment, method and episodes
summary.md    the same at a few marks, as a table
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gibo._linalg import Array
from gibo.studies.engine import Record
from gibo.studies.gym import LOOKS, STUDIES, GymStudy, at
from gibo.studies.report import read_csv, write_csv


class ReturnCurve(NamedTuple):
    """Over the episodes: mean, standard deviation and median of the iterate's return."""

    episodes: Array
    mean: Array
    sd: Array
    median: Array


def write_gym_report(study: GymStudy, records: Sequence[Record], out: Path, footnote: str) -> str:
    """Write all files of the module's text and return the summary table."""
    grouped: dict[tuple[str, str], list[list[tuple[int, float]]]] = {}
    for record in sorted(records, key=lambda record: record["cell"]["trial"]):
        cell = record["cell"]
        grouped.setdefault((cell["environment"], cell["method"]), []).append([(n, r) for n, r in record["curve"]])
    order = [(e, m) for e, each in STUDIES[study.name].items() for m in each.methods if (e, m) in grouped]
    write_csv(
        out / "returns.csv",
        ("environment", "method", "trial", "episodes", "return"),
        ((e, m, i, n, f"{r:.6g}") for e, m in order for i, curve in enumerate(grouped[e, m]) for n, r in curve),
    )
    rows = []
    for e, m in order:
        budget = study.budget_of(e)
        for spent in range(0, budget + 1, max(1, budget // LOOKS)):
            values = np.array([at(curve, spent) for curve in grouped[e, m]])
            statistics = (values.mean(), values.std(), np.median(values))
            rows.append((e, m, spent, *(f"{value:.4g}" for value in statistics)))
    write_csv(out / "curves.csv", ("environment", "method", "episodes", "mean", "sd", "median"), rows)
    text = _summary(study, order, grouped) + f"\n{footnote}\n"
    (out / "summary.md").write_text(text, encoding="utf-8")
    return text


def _summary(
    study: GymStudy, order: list[tuple[str, str]], grouped: dict[tuple[str, str], list[list[tuple[int, float]]]]
) -> str:
    lines = [
        "Return of one episode of the iterate after so many episodes of training, "
        f"{study.trials} trials: mean ± standard deviation (median).",
    ]
    for environment in dict.fromkeys(e for e, _ in order):
        budget = study.budget_of(environment)
        marks = [mark for mark in STUDIES[study.name][environment].marks if mark <= budget] or [budget]
        lines += ["", f"| {environment} | " + " | ".join(f"after {mark}" for mark in marks) + " |"]
        lines.append("|---|" + "---|" * len(marks))
        for method in [m for e, m in order if e == environment]:
            cells = []
            for mark in marks:
                values = np.array([at(curve, mark) for curve in grouped[environment, method]])
                cells.append(f"{values.mean():.0f} ± {values.std():.0f} ({np.median(values):.0f})")
            lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def read_gym_report(out: Path) -> dict[str, dict[str, ReturnCurve]]:
    """The curves by environment and method, from curves.csv alone."""
    columns: dict[str, dict[str, list[list[float]]]] = {}
    for row in read_csv(out / "curves.csv"):
        values = [float(row[name]) for name in ("episodes", "mean", "sd", "median")]
        columns.setdefault(row["environment"], {}).setdefault(row["method"], []).append(values)
    return {e: {m: ReturnCurve(*np.array(rows).T) for m, rows in each.items()} for e, each in columns.items()}
