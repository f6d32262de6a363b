"""An objective that asks for it is told what a query is for."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest

import gibo

SETTINGS = gibo.Settings(lengthscale=1.0, variance=1.0, noise=0.01, M=2, N_m=12)


def hill(x, kind, seed):
    return gibo.Outcome(-float(x @ x), info={"kind": kind, "seed": seed})


@pytest.mark.parametrize("where", ["here", "workers", "executor"])
def test_an_objective_can_ask_for_the_kind(where, tmp_path):
    with ThreadPoolExecutor(2) if where == "executor" else nullcontext() as executor:
        options = {"here": {}, "workers": {"workers": 2}, "executor": {"executor": executor}}[where]
        gibo.maximize(hill, [1.0, 1.0], budget=6, settings=SETTINGS, journal=tmp_path / "run", **options)
    with gibo.Journal.read(tmp_path / "run") as journal:
        told = [evaluation for evaluation, _ in journal.evaluations()]
    assert sorted(each.query.kind for each in told) == ["iterate"] * 2 + ["query"] * 4
    assert all(each.outcome.info == {"kind": each.query.kind, "seed": each.query.seed} for each in told)


def test_an_objective_that_does_not_ask_gets_nothing():
    seen = []

    def anything(x, **options):
        seen.append(options)
        return 0.0

    gibo.maximize(anything, [0.0], budget=1)
    assert seen == [{}]
    with pytest.raises(gibo.InputError, match="kind"):  # it asks for none by name
        gibo.maximize(lambda x, kind, /: 0.0, [0.0], budget=1)
