"""`gibo noise`: the share of the noise that is common to a seed."""

import numpy as np
import pytest

from gibo.cli import main
from gibo.cli.noise import common_share

MODULE = """
import numpy as np


def cost(x, seed, common=2.0, rest=0.5):
    own = np.random.default_rng([seed, int(1e9 * abs(x).sum())]).normal()
    return float(x @ x) + common * np.random.default_rng(seed).normal() + rest * own


def own(x, seed):
    return cost(x, seed, 0.0, 1.0)


def broken(x, seed):
    raise ValueError("no licence")
"""


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_the_share_is_that_of_the_variances(share):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(60, 1)) * 5.0 + np.sqrt(share) * rng.normal(size=4000)
    values = values + np.sqrt(1.0 - share) * rng.normal(size=values.shape)
    assert common_share(values) == (pytest.approx(share, abs=0.03), pytest.approx(1.0, abs=0.05))


def test_it_advises(tmp_path, monkeypatch, capsys):
    (tmp_path / "noisy_cost.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["noise", "noisy_cost:cost", "--x0=-0.5,1"]) == 0
    assert "worth a try" in capsys.readouterr().out
    assert main(["noise", "noisy_cost:own", "--x0=-0.5,1", "--points", "20"]) == 0
    assert "Leave the seeds" in capsys.readouterr().out
    for words, text in (
        (["noisy_cost:broken", "--x0=1"], "no licence"),
        (["noisy_cost:cost", "--x0=a"], "--x0: expected a number"),
        (["noisy_cost:cost", "--x0=1", "--seeds", "1"], "--seeds: expected 2 to 1000"),
    ):
        assert main(["noise", *words]) == 2
        assert text in capsys.readouterr().err
