"""The records of the study of the linear quadratic regulator as tidy data, a table, and what its figure is drawn from.

costs.csv    one row per method, trial and gain: the steps spent on it and its relative cost, empty if it is unstable
curves.csv   per method and steps: the share of stable gains, and median, 2nd and 98th percentile of their relative cost
summary.md   the same at a few marks, as a table
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gibo._linalg import Array
from gibo.studies.engine import Record
from gibo.studies.lqr import STEPS, LQRStudy
from gibo.studies.report import read_csv, write_csv

MARKS = (3000, 6000, 9000, 12000, 18000, 27000, 39000)


class CostCurve(NamedTuple):
    """Over the steps: the share of stable gains; median, 2nd and 98th percentile of their cost, NaN if none is."""

    steps: Array
    stable: Array
    median: Array
    low: Array
    high: Array


def write_lqr_report(study: LQRStudy, records: Sequence[Record], out: Path, footnote: str) -> str:
    """Write all files of the module's text and return the summary table."""
    grouped: dict[str, list[list[tuple[int, float]]]] = {method: [] for method in study.methods}
    for record in sorted(records, key=lambda record: record["cell"]["trial"]):
        curve = [(int(steps), math.inf if cost is None else float(cost)) for steps, cost in record["curve"]]
        grouped[record["cell"]["method"]].append(curve)
    write_csv(
        out / "costs.csv",
        ("method", "trial", "steps", "relative_cost"),
        (
            (method, trial, steps, f"{cost:.6g}" if math.isfinite(cost) else "")
            for method, curves in grouped.items()
            for trial, curve in enumerate(curves)
            for steps, cost in curve
        ),
    )
    grid = range(0, STEPS * study.budget + 1, STEPS)
    rows = []
    for method, curves in grouped.items():
        for steps in grid:
            statistics = (f"{value:.4g}" if math.isfinite(value) else "" for value in _statistics(curves, steps))
            rows.append((method, steps, *statistics))
    write_csv(out / "curves.csv", ("method", "steps", "stable", "median", "p2", "p98"), rows)
    text = _summary(study, grouped) + f"\n{footnote}\n"
    (out / "summary.md").write_text(text, encoding="utf-8")
    return text


def _statistics(curves: list[list[tuple[int, float]]], steps: int) -> tuple[float, float, float, float]:
    """Share of stable gains after so many steps; median, 2nd and 98th percentile of their cost."""
    costs = np.array([[cost for n, cost in curve if n <= steps][-1] for curve in curves])
    stable = costs[np.isfinite(costs)]
    if not len(stable):
        return 0.0, math.nan, math.nan, math.nan
    low, median, high = np.percentile(stable, [2, 50, 98])
    return len(stable) / len(costs), float(median), float(low), float(high)


def _summary(study: LQRStudy, grouped: dict[str, list[list[tuple[int, float]]]]) -> str:
    most = STEPS * study.budget
    marks = [mark for mark in MARKS if mark <= most] or [most]
    lines = [
        f"Share of stable controllers, and median (2nd to 98th percentile) of the stable ones' relative cost "
        f"(J − J*)/J*, after so many steps of the environment; {study.trials} trials.",
        "",
        "| method | " + " | ".join(map(str, marks)) + " |",
        "|---|" + "---|" * len(marks),
    ]
    for method, curves in grouped.items():
        cells = []
        for mark in marks:
            stable, median, low, high = _statistics(curves, mark)
            cost = f"; {median:.3g} ({low:.2g} to {high:.2g})" if stable else ""
            cells.append(f"{100 * stable:.0f} %{cost}")
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def read_lqr_report(out: Path) -> dict[str, CostCurve]:
    """The curves by method, from curves.csv alone."""
    columns: dict[str, list[list[float]]] = {}
    for row in read_csv(out / "curves.csv"):
        values = [float(row[name] or "nan") for name in ("steps", "stable", "median", "p2", "p98")]
        columns.setdefault(row["method"], []).append(values)
    return {method: CostCurve(*np.array(rows).T) for method, rows in columns.items()}
