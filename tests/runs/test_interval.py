"""What a run says of the value of the point that it recommends."""

import numpy as np
import pytest

import gibo


def sphere(x: np.ndarray) -> float:
    return -float(((x - 1.0) ** 2).sum())


def test_the_interval_is_the_models_at_the_recommended_point() -> None:
    opt = gibo.GIBO([0.0] * 3, scale=0.5, seed=3, settings=gibo.Settings())
    rng = np.random.default_rng(0)
    for _ in range(6):
        for query in opt.ask():
            opt.tell(query, sphere(query.x) + 0.1 * rng.standard_normal())
    best = opt.best
    assert best is not None
    assert best.interval is not None
    model = opt._model()
    _, variance = model.gp.predict(best.x / opt.scale)
    sd = model.units.spread * np.sqrt(variance)
    assert best.interval == pytest.approx((best.value - 3.7897072 * sd, best.value + 2.7897072 * sd), rel=1e-6)


def test_minimising_turns_the_interval_round() -> None:
    up = gibo.maximize(sphere, [0.0] * 3, budget=20, scale=0.5, seed=1)
    down = gibo.minimize(lambda x: -sphere(x), [0.0] * 3, budget=20, scale=0.5, seed=1)
    assert up.interval is not None
    assert up.interval[0] <= up.value <= up.interval[1]
    assert down.interval == (-up.interval[1], -up.interval[0])


def test_without_a_model_there_is_none() -> None:
    assert gibo.run(gibo.RandomSearch([0.0] * 2), sphere, budget=5).interval is None
