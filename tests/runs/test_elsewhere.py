"""Values of points that nobody asked for: earlier data, and a file of them."""

import numpy as np
import pytest

import gibo
from gibo.cli import main
from gibo.errors import InputError
from gibo.parameters import Parameters, integer, log
from gibo.runs.manual import status

DATA = [([1.0, 1.0], -1.0), (np.array([2.0, 1.5]), -0.3), ([0.5, 0.1], gibo.Outcome(-4.0))]


def hill(x):
    return -float(((x - 2.0) ** 2).sum())


def test_earlier_data_are_told_first_kept_and_not_counted(tmp_path):
    result = gibo.maximize(hill, [0.0, 0.0], data=DATA, budget=6, journal=tmp_path)
    assert result.evaluations == 9
    assert result.history.value[:3].tolist() == [-1.0, -0.3, -4.0]
    whole = gibo.maximize(hill, [0.0, 0.0], data=DATA, budget=10, journal=tmp_path)  # the same call goes on
    straight = gibo.maximize(hill, [0.0, 0.0], data=DATA, budget=10)
    assert whole.history.x.tolist() == straight.history.x.tolist()
    assert whole.history.x[3:].tolist() != gibo.maximize(hill, [0.0, 0.0], budget=10).history.x.tolist()


def test_minimising_the_data_have_the_objectives_own_sign():
    result = gibo.minimize(lambda x: -hill(x), [0.0, 0.0], data=[([1.9, 1.9], 0.02)], budget=2)
    assert result.best_seen.value == 0.02


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ([([1.0], 2.0)], r"data\[0\]: x: expected a vector of 2"),
        ([([1.0, 2.0], None)], r"data\[0\]: value: expected a number, got None"),
        ([([1.0, 2.0], 1.0), 3.0], r"data\[1\]: expected a point and its value"),
        ([({"gain": 1.0}, 1.0)], r"data\[0\]: 'gain': expected a value for each of x0, x1"),
    ],
)
def test_data_that_are_none_are_refused_before_anything_is_told(data, text, tmp_path):
    with pytest.raises(InputError, match=text):
        gibo.maximize(hill, [0.0, 0.0], data=data, budget=3)


def test_points_from_elsewhere_by_hand_and_from_a_file(tmp_path, capsys):
    run, file, other = tmp_path / "run", tmp_path / "values.csv", tmp_path / "other"
    for folder in (run, other):
        main(["init", str(folder), "--dim", "2", "--scale", "0.5"])
    assert main(["tell", str(run), "--at", "x0=1,x1=-2.5", "-0.75"]) == 0
    assert main(["export", str(run), "--out", str(file)]) == 0
    assert main(["import", str(other), str(file)]) == 0
    for folder in (run, other):
        best = status(folder).result.best_seen
        assert (best.x.tolist(), best.value) == ([1.0, -2.5], -0.75)
    capsys.readouterr()
    for words, text in (
        (["tell", str(run), "--at", "x0=1", "2"], "'x1': expected a value for each of x0, x1"),
        (["tell", str(run), "--at", "x0", "2"], "--at: expected NAME=X"),
        (["tell", str(run), "--at", "x0=1,x1=2", "a"], "VALUE: expected a number, got 'a'"),
        (["import", str(run), str(tmp_path / "no.csv")], "there is no such file"),
    ):
        assert main(words) == 2
        assert text in capsys.readouterr().err
    file.write_text("x0,value\n1,2\n")
    assert main(["import", str(run), str(file)]) == 2
    assert "no x1" in capsys.readouterr().err


def test_by_name_they_are_on_the_persons_scale():
    parameters = Parameters(gain=log(0.1, 100), delay=integer(1, 9))
    result = gibo.maximize(
        lambda gain, delay: -delay, parameters=parameters, data=[({"gain": 10.0, "delay": 2}, 5.0)], budget=2
    )
    assert result.columns()["gain"][0] == pytest.approx(10.0)
    with pytest.raises(InputError, match="delay: value: expected one within"):
        gibo.maximize(lambda gain, delay: 1, parameters=parameters, data=[({"gain": 10.0, "delay": 20}, 5.0)], budget=2)
