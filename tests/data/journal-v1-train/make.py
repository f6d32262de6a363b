"""How journal.sqlite and expected.json beside this file were made, once, by gibo 0.1.0 before its journal was rebuilt.

They are not to be made again: a run of gibo train with normalised states that ended in the middle of an iteration.
expected.json is what that gibo gave when it continued the run. (There, `Training` and the rest were in
gibo.runs.training.)
"""

import json
import shutil
import tempfile
from pathlib import Path

from gibo.training.training import Training, read_trial, train

HERE = Path(__file__).parent
TRAINING = Training("CartPole-v1", policy="affine", normalize_states=True, scale=0.3)


def main():
    with tempfile.TemporaryDirectory() as base:
        folder = Path(base) / "run"
        train(TRAINING, folder, budget=20, seed=5)
        shutil.copy(folder / "journal.sqlite", HERE / "journal.sqlite")
        train(TRAINING, folder, budget=40, seed=5)
        trial = read_trial(folder)
    expected = {
        "returns": trial.returns,
        "iterate": trial.optimizer.iterate.tolist(),
        "policy": trial.policy.to_plain(),
    }
    (HERE / "expected.json").write_text(json.dumps(expected))


if __name__ == "__main__":
    main()
