"""Every optimiser: saving and loading; stopping and continuing is the same as not stopping."""

import json

import numpy as np
import pytest
from every_optimizer import X0, D, every_optimizer

from gibo import Optimizer
from optimizer_helpers import advance, as_data, noisy, snapshot


def nothing(optimizer):
    return optimizer


def asked_once(optimizer):
    optimizer.ask()


def in_the_first_batch(optimizer):
    optimizer.tell(optimizer.ask()[-1], 0.3)


def in_a_later_batch(optimizer):
    advance(optimizer, 2)
    optimizer.tell(optimizer.ask()[-1], 0.3)


def after_iterations(optimizer):
    advance(optimizer, 3)


def with_failures_gradients_and_points_from_elsewhere(optimizer):
    optimizer.tell([0.2] * D, 0.4)
    for query in optimizer.ask():
        optimizer.tell(query, noisy(query), gradient=[0.5] * D, gradient_noise=[0.1] * D)
    for query in optimizer.ask():
        optimizer.tell(query, failed="it broke")
    advance(optimizer, 1)
    optimizer.ask()


@every_optimizer
@pytest.mark.parametrize("bounds", [None, ([-1.0, -1.0, 0.3, -0.3], [1.0, np.inf, 0.9, 0.3])], ids=str)
@pytest.mark.parametrize(
    "history",
    [
        nothing,
        asked_once,
        in_the_first_batch,
        in_a_later_batch,
        after_iterations,
        with_failures_gradients_and_points_from_elsewhere,
    ],
)
def test_stopping_and_continuing_is_the_same_as_not_stopping(make, history, bounds):
    optimizer = make(X0, bounds, seed=4)
    history(optimizer)
    text = snapshot(optimizer)
    again = Optimizer.from_state(json.loads(text))
    assert type(again) is type(optimizer)
    assert snapshot(again) == text
    assert as_data(advance(optimizer, 3)) == as_data(advance(again, 3))
    assert optimizer.iterate.tolist() == again.iterate.tolist()
    assert optimizer.best.x.tolist() == again.best.x.tolist()
    assert optimizer.best.value == again.best.value
    assert optimizer.evaluations[-1].value == again.evaluations[-1].value
    assert snapshot(optimizer) == snapshot(again)


@every_optimizer
def test_a_state_does_not_change_when_the_optimiser_goes_on(make):
    optimizer = make(X0)
    advance(optimizer, 1)
    state = optimizer.state()
    before = json.dumps(state)
    advance(optimizer, 2)
    assert json.dumps(state) == before


@every_optimizer
def test_a_state_comes_back_through_its_own_class_and_from_text(make):
    optimizer = make(X0)
    advance(optimizer, 1)
    text = snapshot(optimizer)
    for again in (type(optimizer).from_state(text), Optimizer.from_state(text)):
        assert type(again) is type(optimizer)
        assert as_data(again.ask()) == as_data(Optimizer.from_state(text).ask())


@every_optimizer
@pytest.mark.parametrize(
    ("lower", "upper"), [([0.0, 2.0], [1.0, 3.0]), ([0.0, 0.0], [1.0, 2.0]), ([-1.0, -2.0], [3.0, 4.0])]
)
def test_a_state_keeps_the_bounds_of_two_parameters(make, lower, upper):
    from scipy.optimize import Bounds

    optimizer = make([0.5 * (low + high) for low, high in zip(lower, upper, strict=True)], Bounds(lower, upper))
    again = Optimizer.from_state(snapshot(optimizer))
    assert again.bounds[0].tolist() == lower
    assert again.bounds[1].tolist() == upper
