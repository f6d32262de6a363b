"""How journal.sqlite and expected.json beside this file were made, once, by gibo 0.1.0 before its journal was rebuilt.

They are not to be made again: a run with workers, minimised, ended by SIGKILL from within the evaluation of query 24,
which had been recorded ahead of its batch. expected.json is what that gibo gave when it continued the run.
"""

import json
import multiprocessing
import os
import shutil
import signal
import sqlite3
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import gibo

HERE = Path(__file__).parent
SEED_OF_QUERY_24 = int(np.random.SeedSequence((3, 24)).generate_state(1)[0])


def objective(x, seed):
    if seed % 14 == 0:
        raise RuntimeError("the robot fell")
    return -(3.0 - float(((x - 0.7) ** 2).sum()) + 0.05 * float(np.random.default_rng(seed).standard_normal()))


def deadly(x, seed):
    if seed == SEED_OF_QUERY_24:
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(5.0)
    return objective(x, seed)


def begin(folder):
    warnings.simplefilter("ignore")
    gibo.minimize(deadly, [0.0] * 6, budget=40, scale=0.3, seed=3, journal=folder, workers=2)


def main():
    with tempfile.TemporaryDirectory() as base:
        folder = Path(base) / "run"
        process = multiprocessing.get_context("fork").Process(target=begin, args=(folder,))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        # What the killed process left in the write-ahead log goes into the one file.
        sqlite3.connect(folder / "journal.sqlite").execute("PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copy(folder / "journal.sqlite", HERE / "journal.sqlite")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", gibo.FailedEvaluationWarning)
            result = gibo.resume(folder, objective, budget=50)
    expected = {
        "values": [None if np.isnan(value) else value for value in result.history.value],
        "x": result.x.tolist(),
        "value": result.value,
        "iterate": result.iterate.tolist(),
        "X": result.history.x.tolist(),
    }
    (HERE / "expected.json").write_text(json.dumps(expected))


if __name__ == "__main__":
    main()
