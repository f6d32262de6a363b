"""Runs over parameters with names, ranges, log scales and whole numbers."""

import math

import pytest

import gibo
from gibo.errors import InputError
from gibo.parameters import Parameters, integer, linear, log

PARAMETERS = Parameters(gain=log(0.1, 100), delay=integer(1, 9), angle=linear(-1, 1, start=0.2))


def loss(gain, delay, angle):
    assert isinstance(delay, int)
    return math.log(gain / 5.0) ** 2 + 0.3 * (delay - 3) ** 2 + (angle + 0.4) ** 2


def test_the_objective_is_called_by_keyword_and_the_result_has_names():
    result = gibo.minimize(loss, parameters=PARAMETERS, budget=60)
    assert result.parameters["delay"] in (3, 4)
    assert result.parameters["gain"] == pytest.approx(5.0, rel=0.3)
    assert f"delay = {result.parameters['delay']}" in str(result)
    assert list(result.columns())[3:6] == ["gain", "delay", "angle"]
    assert result.columns()["gain"][0] == PARAMETERS["gain"].start  # not its logarithm


def test_whole_numbers_are_modelled_where_they_are_evaluated(tmp_path):
    result = gibo.minimize(loss, parameters=PARAMETERS, budget=30, journal=tmp_path)
    assert set(result.history.x[:, 1]) <= set(range(1, 10))
    assert not (result.iterate[1]).is_integer()  # between them the search moves freely
    again = gibo.resume(tmp_path, loss, budget=40)
    straight = gibo.minimize(loss, parameters=PARAMETERS, budget=40)
    assert again.history.x.tolist() == straight.history.x.tolist()
    assert again.parameters == straight.parameters


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: gibo.maximize(lambda gain: 1.0, parameters=PARAMETERS, budget=3), "keywords gain, delay, angle"),
        (lambda: gibo.maximize(loss, [0.0], parameters=PARAMETERS, budget=3), "omit x0, scale and bounds"),
        (lambda: gibo.maximize(lambda x, y: 1.0, [0.0], budget=3), "missing a required argument: 'y'"),
        (lambda: gibo.maximize(lambda x: None, [0.0], budget=3), "expected a number, got None"),
        (lambda: gibo.maximize(lambda x: "12", [0.0], budget=3, workers=1), "expected a number, got str '12'"),
    ],
    ids=range(5),
)
def test_a_slip_in_the_program_is_an_error_before_anything_is_spent(call, text):
    with pytest.raises(InputError, match=text):
        call()


def test_a_second_start_with_other_parameters_says_so_in_the_users_units(tmp_path):
    def start(upper):
        gibo.maximize(lambda gain: gain, parameters=Parameters(gain=log(0.1, upper)), budget=1, journal=tmp_path)

    start(100)
    with pytest.raises(InputError, match=r"run: gain was .*upper=100.0.*now .*upper=50.0") as refused:
        start(50)
    assert "x0" not in str(refused.value)
    start(100)
