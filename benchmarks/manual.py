"""How long `gibo ask` takes where it plans a new batch, at 20 parameters and 200 evaluations.

python benchmarks/manual.py            # about half a minute
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import gibo
from gibo.runs import manual
from gibo.runs.description import Description

D, EVALUATIONS, CALLS = 20, 200, 24
LIMIT = 1.5  # seconds


def objective(x: np.ndarray) -> float:
    return -float(((x - 0.3) ** 2).sum())


def main() -> None:
    command = [str(Path(sys.executable).parent / "gibo"), "ask"]
    with tempfile.TemporaryDirectory() as name:
        run, copy = Path(name) / "run", Path(name) / "copy"
        names = [f"p{i}" for i in range(D)]
        manual.create(run, Description(names, [0.5] * D, [0.1] * D, [0.0] * D, [1.0] * D))
        gibo.resume(run, objective, budget=EVALUATIONS)
        for query in manual.status(run).pending:  # of the last batch, so that the next ask has to plan
            manual.tell(run, query.id, objective(query.x))
        times = []
        for _ in range(CALLS):
            shutil.copytree(run, copy)
            os.sync()  # what was copied is not the command's to write
            began = time.perf_counter()
            subprocess.run([*command, str(copy), "--json"], stdout=subprocess.DEVNULL, check=True)
            times.append(time.perf_counter() - began)
            shutil.rmtree(copy)
    above = sum(seconds >= LIMIT for seconds in times)
    print(f"gibo ask, {CALLS} calls: {min(times):.2f} to {max(times):.2f} s, median {np.median(times):.2f} s; ", end="")
    print(f"{above} took {LIMIT} s or more")


if __name__ == "__main__":
    main()
