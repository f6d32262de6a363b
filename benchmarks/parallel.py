"""What journal, dispatch and clusters cost: a sleep as objective, against the time that the sleeps alone would take.

    python benchmarks/parallel.py            # about 40 seconds

Ratios within one run; each line says what it compares.
"""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gibo
from gibo._linalg import Array

SLEEP = 0.05
M = 16
ITERATIONS = 4
WORKERS = 2
# Each iteration evaluates the iterate and M queries.
BUDGET = ITERATIONS * (M + 1)
IDEAL = ITERATIONS * math.ceil((M + 1) / WORKERS) * SLEEP


def sleeper(x: Array) -> float:
    time.sleep(SLEEP)
    return -float(x @ x)


def quick(x: Array) -> float:
    return -float(x @ x)


def seconds(objective: Callable[[Array], float], budget: int, **options: Any) -> float:
    settings = gibo.Settings(M=M, fit="never")
    started = time.perf_counter()
    gibo.maximize(objective, np.ones(8), budget=budget, scale=0.1, settings=settings, **options)
    return time.perf_counter() - started


def main() -> None:
    seconds(quick, BUDGET)  # load what is loaded at the first use
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        optimiser = seconds(quick, BUDGET)
        print(f"{BUDGET} evaluations of {SLEEP * 1e3:.0f} ms, M = {M}, {WORKERS} workers; ideal: {IDEAL:.2f} s")
        print(f"the optimiser alone takes {optimiser:.2f} s of it")
        taken = min(seconds(sleeper, BUDGET, workers=WORKERS, journal=folder / f"workers{i}") for i in range(3))
        print(f"workers with a journal: {taken:.2f} s, {taken / IDEAL:.3f} of the ideal")

        many = 40 * (M + 1)
        alone = min(seconds(quick, many) for _ in range(3))
        kept = min(seconds(quick, many, journal=folder / f"kept{i}") for i in range(3))
        sent = min(seconds(quick, many, workers=WORKERS, journal=folder / f"sent{i}") for i in range(3))
        print(f"journal: {(kept - alone) / many * 1e3:.2f} ms per evaluation")
        print(f"journal and dispatch to workers: {(sent - alone) / many * 1e3:.2f} ms per evaluation")
        dask(folder)


def dask(folder: Path) -> None:
    """The same on a Dask cluster of two worker processes."""
    from distributed import Client

    file = folder / "scheduler.json"
    words = [sys.executable, "-m"]
    common = ["--scheduler-file", str(file), "--host", "127.0.0.1", "--no-dashboard"]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = [subprocess.Popen([*words, "distributed.cli.dask_scheduler", "--port", "0", *common], **quiet)]
    try:
        for _ in range(WORKERS):
            worker = [*words, "distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", *common]
            started.append(subprocess.Popen(worker, **quiet))
        while not file.exists():
            time.sleep(0.05)
        with Client(scheduler_file=str(file)) as client:  # type: ignore[no-untyped-call]
            client.wait_for_workers(WORKERS)
            executor = client.get_executor()
            seconds(sleeper, M, executor=executor)  # the workers load gibo
            taken = min(seconds(sleeper, BUDGET, executor=executor, journal=folder / f"dask{i}") for i in range(3))
            print(f"Dask with a journal: {taken:.2f} s, {taken / IDEAL:.3f} of the ideal")
    finally:
        for process in started:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
