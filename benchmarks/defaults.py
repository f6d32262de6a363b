"""GIBO with `gibo.Settings()`, steps along the gradient, on functions of the within-model study, of unknown scale.

    python benchmarks/defaults.py [--functions 20] [--out results/defaults.md]

For d = 10 and 26, with the scale right (0.1), three times too small and three times too large: mean and median of the
normalised regret of the point that `gibo.maximize` returns after 100 and 200 noisy values.
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np

import gibo
from gibo_studies.paper.problems import gp_function

SCALES = (0.1, 0.1 / 3.0, 0.3)
DIMENSIONS = (10, 26)
BUDGETS = (100, 200)


def regrets(cell: tuple[int, float, int]) -> list[float]:
    d, scale, seed = cell
    function = gp_function(d, seed)
    out = []
    for budget in BUDGETS:
        rng = np.random.default_rng((d, seed, 1))
        result = gibo.maximize(
            lambda x, rng=rng: function.observe(x, rng),
            function.start,
            budget=budget,
            scale=scale,
            bounds=(0.0, 1.0),
            seed=seed,
            settings=gibo.Settings(),
        )
        out.append(function.regret(result.x))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--functions", type=int, default=20)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    cells = list(product(DIMENSIONS, SCALES, range(arguments.functions)))
    started = time.perf_counter()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = []
        for i, result in enumerate(pool.map(regrets, cells), start=1):
            found.append(result)
            print(f"\r{i}/{len(cells)} runs, {time.perf_counter() - started:.0f} s", end="", flush=True)
    print()
    table = np.array(found).reshape(len(DIMENSIONS), len(SCALES), arguments.functions, len(BUDGETS))
    lines = [
        f"Normalised regret of the returned point, {arguments.functions} functions each, noise 0.1: mean (median).",
        "",
        "| d | scale | after 100 values | after 200 values |",
        "|---|---|---|---|",
    ]
    for i, d in enumerate(DIMENSIONS):
        for j, scale in enumerate(SCALES):
            mean, median = table[i, j].mean(axis=0), np.median(table[i, j], axis=0)
            columns = " | ".join(f"{m:.3f} ({q:.3f})" for m, q in zip(mean, median, strict=True))
            lines.append(f"| {d} | {scale:.3f} | {columns} |")
    lines += ["", f"`python benchmarks/defaults.py --functions {arguments.functions}`"]
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.out is not None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
