"""What a long history costs: time per evaluation early and late in a run, and to read or continue its journal.

    python benchmarks/history.py             # a few minutes; --evaluations 4000 for less

The run is cheap in all but the optimiser: a noisy quadratic of 8 parameters, one evaluation after the other, with a
journal. What is counted is this process's own CPU time. The commands are processes of their own, Python's start
included, and are compared with the same ones on a journal of 200 evaluations.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import gibo

D, SHORT, BLOCK = 8, 200, 1000
# Of the last thousand to the second; seconds more than for the short journal; seconds.
RATIO, MORE, RESUMED = 1.3, 2.0, 10.0


class Objective:
    """A noisy quadratic that looks at the clock."""

    def __init__(self) -> None:
        self.clock = [time.process_time()]
        self.calls = 0

    def __call__(self, x: np.ndarray, seed: int) -> float:
        self.calls += 1
        value = -float(((x - 0.5) ** 2).sum()) + 0.1 * float(np.random.default_rng(seed).standard_normal())
        if self.calls % BLOCK == 0:
            self.clock.append(time.process_time())
        return value


def seconds(command: str, folder: Path) -> float:
    words = [sys.executable, "-c", "import gibo.cli; gibo.cli.entry()", command, str(folder)]
    began = time.perf_counter()
    subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--evaluations", type=int, default=20_000, metavar="N")
    n = parser.parse_args().evaluations
    with tempfile.TemporaryDirectory() as name:
        long, short = Path(name) / "long", Path(name) / "short"
        gibo.maximize(Objective(), np.zeros(D), budget=SHORT, scale=0.1, journal=short)
        objective = Objective()
        gibo.maximize(objective, np.zeros(D), budget=n, scale=0.1, journal=long)
        taken = np.diff(objective.clock)
        print("CPU seconds per 1000 evaluations: " + ", ".join(f"{each:.2f}" for each in taken))
        print(f"the last thousand to the second: {taken[-1] / taken[1]:.2f} (at most {RATIO})")
        for command in ("status", "best", "export"):
            few, many = (min(seconds(command, folder) for _ in range(2)) for folder in (short, long))
            print(f"gibo {command}: {few:.2f} s after {SHORT}, {many:.2f} s after {n} (at most {few + MORE:.2f})")
        began = time.perf_counter()
        gibo.resume(long, Objective(), budget=n + 1)
        print(f"to continue after {n}: {time.perf_counter() - began:.2f} s (at most {RESUMED:.0f})")


if __name__ == "__main__":
    main()
