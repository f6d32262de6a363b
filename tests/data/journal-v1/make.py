"""How journal.sqlite and expected.json beside this file were made, once, by gibo 0.1.0. They are not to be made again.

They stand for all journals of version 1 that are out there: what reads journals must go on to read these.
"""

import json
import shutil
import tempfile
import warnings
from pathlib import Path

import numpy as np

import gibo

HERE = Path(__file__).parent


def objective(x, seed):
    if seed % 14 == 0:
        raise RuntimeError("the robot fell")
    return 3.0 - float(((x - 0.7) ** 2).sum()) + 0.05 * float(np.random.default_rng(seed).standard_normal())


def main():
    with tempfile.TemporaryDirectory() as folder:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", gibo.FailedEvaluationWarning)
            gibo.maximize(objective, [0.0, 0.0], budget=BUDGET, scale=0.3, seed=3, journal=folder)
        with gibo.Journal.read(folder) as journal:
            told, optimizer = journal.evaluations(), journal.optimizer()
        expected = {
            "evaluations": len(told),
            "values": [t.answer.value for t in told],
            "failed": [t.query.id for t in told if t.answer.failure is not None],
            "open": [query.id for query in optimizer.waiting],
            "open_x": [query.x.tolist() for query in optimizer.waiting],
            "iterate": optimizer.iterate.tolist(),
        }
        # Closed cleanly: all of it is in the one file.
        assert not (Path(folder) / "journal.sqlite-wal").exists()
        shutil.copy(Path(folder) / "journal.sqlite", HERE / "journal.sqlite")
    (HERE / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


BUDGET = 15  # in the middle of an iteration

if __name__ == "__main__":
    main()
