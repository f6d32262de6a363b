"""What a run says of the value of the point that it recommends."""

import numpy as np

import gibo


def sphere(x: np.ndarray) -> float:
    return -float(((x - 1.0) ** 2).sum())


def test_minimising_turns_the_interval_round() -> None:
    up = gibo.maximize(sphere, [0.0] * 3, budget=20, scale=0.5, seed=1)
    down = gibo.minimize(lambda x: -sphere(x), [0.0] * 3, budget=20, scale=0.5, seed=1)
    assert up.interval is not None
    assert up.interval[0] <= up.value <= up.interval[1]
    assert down.interval == (-up.interval[1], -up.interval[0])


def test_without_a_model_there_is_none() -> None:
    assert gibo.run(gibo.RandomSearch([0.0] * 2), sphere, budget=5).interval is None
