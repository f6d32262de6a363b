"""What all studies' options have in common."""

import json

import pytest

from gibo_studies.command import make_study

SMALL = {
    "within-model": {"dimensions": (2,), "functions": 2, "budget": 8, "methods": ("Random search",)},
    "lqr": {"trials": 2, "budget": 10, "methods": ("LSPI",)},
    "gradients": {"trials": 1, "functions": 2, "budget": 12},
    "cartpole": {"trials": 2, "budget": 32, "methods": ("ARS",)},
}


@pytest.mark.parametrize("name", SMALL)
def test_trials_of_one_seed_are_not_those_of_the_next(name, tmp_path):
    def numbers(seed, trial):
        study = make_study(name, tmp_path / f"{seed}", {**SMALL[name], "seed": seed})
        repeat = study.columns.repeat
        record = study.run_cell([cell for cell in study.cells() if cell[repeat] == trial][-1])
        return json.dumps({key: value for key, value in record.items() if key in ("regret", "curve")})

    assert len({numbers(7, 0), numbers(7, 1), numbers(8, 0)}) == 3
