"""What these studies share: functions of random shape, and rows to a CSV file."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from gibo._linalg import Array


class Hill:
    """``10·exp(−q/(2·d))`` with ``q = Σ_j a_j·(x_j − c_j)²``: a hill of random place and widths, 10 high.

    Args:
        d: number of parameters.
        rng: for c, uniform in [−1, 1], and a, log-normal.
    """

    def __init__(self, d: int, rng: np.random.Generator) -> None:
        self.d, self.centre, self.a = d, rng.uniform(-1.0, 1.0, d), np.exp(rng.normal(0.0, 0.5, d))

    def __call__(self, x: Array, shift: Array | float = 0.0) -> float:
        """Its height at x (d,), where the hill stands at ``c + shift``."""
        return 10.0 * float(np.exp(-((x - self.centre - shift) ** 2 @ self.a) / (2.0 * self.d)))


def arguments(runs: int, d: int, budget: int) -> argparse.Namespace:
    """Those of the command line, with these defaults."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=runs)
    parser.add_argument("--d", type=int, default=d)
    parser.add_argument("--budget", type=int, default=budget)
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


def write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Rows as they come, so that a study that is stopped has written what it did."""
    with path.open("w", newline="") as file:
        writer = None
        for row in rows:
            if writer is None:
                writer = csv.DictWriter(file, list(row), lineterminator="\n")
                writer.writeheader()
            writer.writerow({name: f"{cell:.4g}" if isinstance(cell, float) else cell for name, cell in row.items()})
            file.flush()
