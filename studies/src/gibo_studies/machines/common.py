"""What these studies share: a hill of random shape, how a budget is spent, options, and rows to a CSV file."""

from __future__ import annotations

import argparse
import csv
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gibo._linalg import Array
from gibo.optimizers.base import Optimizer
from gibo.outcome import Query


class Hill:
    """``10·exp(−q/(2·d))`` with ``q = Σ_j a_j·(x_j − c_j)²``: a hill of random place and widths, 10 high.

    In d parameters; c is uniform in [−1, 1], a log-normal.
    """

    def __init__(self, d: int, rng: np.random.Generator) -> None:
        self.d, self.centre, self.a = d, rng.uniform(-1.0, 1.0, d), np.exp(rng.normal(0.0, 0.5, d))

    def __call__(self, x: Array, shift: Array | float = 0.0) -> float:
        """Its height at x (d,), where the hill stands at ``c + shift``."""
        return 10.0 * float(np.exp(-((x - self.centre - shift) ** 2 @ self.a) / (2.0 * self.d)))


def queries(optimizer: Optimizer, budget: int) -> Iterator[tuple[int, Query]]:
    """A budget of queries, each with the number of those before it; each must be told before the next one is taken."""
    told = 0
    while told < budget:
        for query in optimizer.ask()[: budget - told]:
            yield told, query
            told += 1


def arguments(description: str, **defaults: int | list[int] | list[str]) -> argparse.Namespace:
    """The options of a study with these defaults, a number or several numbers or words, and ``--out``, a CSV file."""
    parser = argparse.ArgumentParser(description=description)
    for name, default in defaults.items():
        several = isinstance(default, list)
        kind = type(default[0]) if isinstance(default, list) else int
        parser.add_argument(f"--{name}", type=kind, nargs="+" if several else None, default=default)
    parser.add_argument("--out", type=Path, required=True, help="a CSV file")
    return parser.parse_args()


def write(path: Path, rows: Iterable[dict[str, Any]], by: tuple[str, ...]) -> None:
    """Write rows as they come, then print means and medians of the rows that are alike in these columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = None
        for row in rows:
            if writer is None:
                writer = csv.DictWriter(file, list(row), lineterminator="\n")
                writer.writeheader()
            writer.writerow({name: f"{part:.5g}" if isinstance(part, float) else part for name, part in row.items()})
            file.flush()
            groups[tuple(row[name] for name in by)].append(row)
    for key, group in groups.items():
        names = [name for name in group[0] if name not in (*by, "seed", "run")]
        columns = [(name, np.array([row[name] for row in group], dtype=float)) for name in names]
        figures = "  ".join(f"{name} {v.mean():.4f} ({np.median(v):.4f})" for name, v in columns)
        sys.stdout.write("  ".join([*map(str, key), f"{len(group)} runs:", figures]) + "\n")
