"""GIBO with a full matrix of lengthscales, given or learnt."""

import json

import numpy as np
import pytest

import gibo
from gibo import GIBO, InputError, Settings
from gibo.priors import LKJ

C = np.array([[1.0, 0.8, 0.0], [0.8, 1.0, 0.0], [0.0, 0.0, 1.0]])


def value(x):
    """A valley along x0 = x1."""
    return -float(10.0 * (x[0] - x[1]) ** 2 + (x[0] + x[1] - 2.0) ** 2 + x[2] ** 2)


def told(opt, iterations):
    for _ in range(iterations):
        for query in opt.ask():
            opt.tell(query, value(query.x))
    return opt


@pytest.fixture(params=[C, LKJ(2.0)], ids=["given", "learnt"])
def settings(request):
    return Settings(correlation=request.param, fit_from=4)


def test_saved_and_loaded_it_goes_on_bit_for_bit(settings):
    whole = told(GIBO(np.zeros(3), scale=0.3, settings=settings), 6)
    half = told(GIBO(np.zeros(3), scale=0.3, settings=settings), 3)
    loaded = told(GIBO.from_state(json.loads(json.dumps(half.state()))), 3)
    assert loaded.best.x.tolist() == whole.best.x.tolist()
    assert loaded.jacobian().mean.tolist() == whole.jacobian().mean.tolist()


def test_a_run_is_resumed(settings, tmp_path):
    whole = gibo.maximize(value, np.zeros(3), budget=16, scale=0.3, settings=settings)
    gibo.maximize(value, np.zeros(3), budget=8, scale=0.3, settings=settings, journal=tmp_path / "run")
    assert gibo.resume(tmp_path / "run", value, budget=16).x.tolist() == whole.x.tolist()


def test_what_is_learnt_is_the_valley():
    opt = told(GIBO(np.zeros(3), scale=0.3, settings=Settings(correlation=LKJ(1.5), M=6, N_m=60)), 7)
    correlation = opt._surrogate.hyperparameters.correlation
    assert correlation[0, 1] > 0.3
    assert correlation[0, 1] > abs(correlation[0, 2]) + 0.2


def test_a_correlation_of_none_is_the_diagonal_one_step_for_step():
    plain, same = (
        told(GIBO(np.zeros(3), scale=0.3, settings=s), 3) for s in (Settings(), Settings(correlation=np.eye(3)))
    )
    np.testing.assert_allclose(same.iterate, plain.iterate, rtol=1e-4)


def test_a_correlation_of_other_parameters():
    with pytest.raises(
        InputError, match="correlation: expected a symmetric matrix with ones on its diagonal of 2 param"
    ):
        GIBO(np.zeros(2), settings=Settings(correlation=C))
    with pytest.raises(InputError, match="correlation: expected"):
        Settings(correlation="full")


@pytest.mark.parametrize("change", [lambda h: h[:3], lambda h: [*h[:3], np.ones((3, 3)).tolist()]])
def test_a_memo_that_does_not_fit(settings, change):
    state = told(GIBO(np.zeros(3), scale=0.3, settings=settings), 2).state()
    asked = [event["memo"] for kind, event in state["events"] if kind == "asked"]
    memos = [memo for memo in asked if memo and memo["hyperparameters"]]
    assert memos
    for memo in memos:
        memo["hyperparameters"] = change(memo["hyperparameters"])
    with pytest.raises(InputError, match="correlation"):
        GIBO.from_state(state).ask()
