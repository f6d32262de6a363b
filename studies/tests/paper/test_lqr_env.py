import warnings

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

from gibo_studies.paper.control import LQR
from gibo_studies.paper.control.lqr_env import LQREnv

PAPER = LQR.paper()


def test_gymnasiums_own_check():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(Box|action space|infinity|spec).*")  # that spaces are unbounded
        check_env(LQREnv(), skip_render_check=True)


def episode(environment, K, seed):
    x, _ = environment.reset(seed=seed)
    total, steps, done = 0.0, 0, False
    while not done:
        x, reward, terminated, truncated, _ = environment.step(K @ x)
        total, steps, done = total + reward, steps + 1, terminated or truncated
    return total, steps


@pytest.mark.parametrize("factor", [1.0, 0.0, -50.0])  # the last one at the limit
def test_an_episode_has_the_return_of_the_fast_path(factor):
    environment = gymnasium.make("gibo/LQR-v0")
    K = factor * PAPER.optimal_gain
    for seed in (0, 7):
        total, steps = episode(environment, K, seed)
        assert steps == 300
        assert total == pytest.approx(PAPER.episode_return(K, seed=seed), rel=1e-9)
