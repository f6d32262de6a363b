"""An objective that asks for it is told what a query is for."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import pytest

import gibo
from gibo import Query
from gibo.runs.pools import evaluate

QUERY = Query(id=0, x=np.zeros(1), seed=3, kind="iterate", iteration=0)
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

    assert evaluate(anything, QUERY, {"a": 1}).value == 0.0
    assert evaluate(lambda x, kind, /: 0.0, QUERY, {}).failure is not None
    assert seen == [{"a": 1}]
