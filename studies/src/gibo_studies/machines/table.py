"""The rows of a small study as a CSV file and as means."""

from __future__ import annotations

import argparse
import csv
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np


def options(description: str) -> argparse.Namespace:
    """Seeds, dimensions and the file, from the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--dims", type=int, nargs="+", default=[6, 12, 24])
    parser.add_argument("--out", type=Path, required=True, help="a CSV file")
    return parser.parse_args()


def write(path: Path, rows: Iterable[dict[str, Any]], keys: int) -> None:
    """Write rows as they come, then print the means by the first so many columns, without the seed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = None
        for row in rows:
            writer = writer or csv.DictWriter(file, list(row), lineterminator="\n")
            if not file.tell():
                writer.writeheader()
            writer.writerow({name: f"{part:.5g}" if isinstance(part, float) else part for name, part in row.items()})
            file.flush()
            groups[tuple(list(row.values())[:keys])].append(row)
    for key, group in groups.items():
        names = [name for name in list(group[0])[keys:] if name != "seed"]
        means = "  ".join(f"{name} {np.mean([row[name] for row in group]):.3f}" for name in names)
        sys.stdout.write("  ".join([*map(str, key), means]) + "\n")
