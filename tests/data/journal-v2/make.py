"""How journal.sqlite and expected.json beside this file were made, once, by gibo 0.1.0 with journals of version 2.

They are not to be made again: a run with named parameters, minimised, with the default settings, what was known before,
failures, and what people did to it on the page; it ended in the middle of an iteration. They stand for all journals of
version 2 that are out there: what reads journals must go on to read these.
"""

import json
import shutil
import tempfile
import warnings
from pathlib import Path

import numpy as np
from gibo.runs.mailbox import post

import gibo
from gibo.parameters import Parameters, free, integer, linear, log
from gibo.runs.manual import status

HERE = Path(__file__).parent
BUDGET = 33  # in the middle of an iteration
PARAMETERS = Parameters(
    gain=linear(0.0, 5.0, start=1.0, scale=0.3),
    cutoff=log(1.0, 1000.0, start=20.0, scale=2.0),
    taps=integer(1, 40, start=8),
    offset=free(0.0, 0.5),
)


def objective(gain, cutoff, taps, offset, seed):
    if seed % 11 == 0:
        raise RuntimeError("the robot fell")
    x = np.array([gain - 2.0, np.log(cutoff / 60.0), (taps - 20) / 10.0, offset + 0.4])
    return float((x**2).sum()) + 0.05 * float(np.random.default_rng(seed).standard_normal())


def main():
    calls = []
    with tempfile.TemporaryDirectory() as base:
        folder = Path(base) / "run"

        def watched(gain, cutoff, taps, offset, seed):
            calls.append(seed)
            if len(calls) == 4:
                post(folder, "remark", {"text": "the oil is warm: 60 °C"})
            if len(calls) == 6:
                post(folder, "paused", {})
                post(folder, "continued", {})
            if len(calls) == 9:
                with gibo.Journal.read(folder) as journal:
                    post(folder, "failed", {"id": max(journal.queries()), "reason": "the belt slipped"})
            return objective(gain, cutoff, taps, offset, seed)

        known = [({"gain": 0.8, "cutoff": 25.0, "taps": 9, "offset": 0.1}, 3.0)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", gibo.FailedEvaluationWarning)
            gibo.minimize(watched, parameters=PARAMETERS, data=known, budget=BUDGET, seed=3, journal=folder)
        assert not (folder / "journal.sqlite-wal").exists()  # closed cleanly: all of it is in the one file
        shutil.copy(folder / "journal.sqlite", HERE / "journal.sqlite")
        with gibo.Journal.read(folder) as journal:
            told = sorted((e for e, _ in journal.evaluations()), key=lambda e: e.id)
            pending = [query for i, (query, *_) in journal.queries().items() if i not in {e.id for e in told}]
            actions = [[each.after, each.kind, each.body] for each in journal.actions()]
        best = status(folder).result.best
        expected = {
            "values": [e.value for e in told],
            "kinds": [e.kind for e in told],
            "failures": {str(e.id): e.failure for e in told if e.failure is not None},
            "pending": {str(query.id): query.x.tolist() for query in pending},
            "actions": actions,
            "best": {"x": best.x.tolist(), "value": best.value},
        }
    (HERE / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
