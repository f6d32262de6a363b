import math

import numpy as np
import pytest

from gibo import InputError
from gibo.steps import GRADIENT_SCALINGS, Decay, GradientAscent, Piecewise, direction

G = np.array([3.0, -1.0, 0.5])
ELL = np.array([0.2, 1.5, 0.7])
NORMALIZED = [scaling for scaling in GRADIENT_SCALINGS if scaling != "off"]


# -- directions -------------------------------------------------------------------------------------------------------


def test_each_normalization_is_its_formula():
    L = np.diag(1.0 / ELL**2)
    np.testing.assert_allclose(direction(G, ELL, "paper"), G / np.sqrt(G @ L @ G), rtol=1e-14)
    np.testing.assert_allclose(direction(G, ELL, "published"), ELL * G / np.linalg.norm(G), rtol=1e-14)
    np.testing.assert_allclose(direction(G, ELL, "invariant"), ELL**2 * G / np.linalg.norm(ELL * G), rtol=1e-14)
    assert direction(G, ELL, "off").tolist() == G.tolist()


@pytest.mark.parametrize("normalization", NORMALIZED)
def test_gradients_of_any_size_are_normalized_and_zero_stays_zero(normalization):
    for size in (1e-300, 1e-200, 1e200, 1e300):
        expected = direction(G, ELL, normalization)
        np.testing.assert_allclose(direction(size * G, ELL, normalization), expected, rtol=1e-12)
    assert direction(np.zeros(3), ELL, normalization).tolist() == [0.0, 0.0, 0.0]


# -- schedules --------------------------------------------------------------------------------------------------------


def test_a_piecewise_step_size_changes_at_its_updates():
    schedule = Piecewise(((0, 0.6), (2, 0.5), (5, 0.3)))
    assert [schedule(t) for t in range(7)] == [0.6, 0.6, 0.5, 0.5, 0.5, 0.3, 0.3]
    assert schedule(10**9) == 0.3


def test_a_decay_is_its_formula():
    schedule = Decay(0.8, halving=4.0, power=0.5)
    assert [schedule(t) for t in (0, 4, 12)] == pytest.approx([0.8, 0.8 / math.sqrt(2.0), 0.4])
    assert Decay(0.8, halving=4.0)(4) == pytest.approx(0.4)


# -- step rules -------------------------------------------------------------------------------------------------------


def steps_of(rule, directions):
    state, steps = rule.init(len(directions[0])), []
    for each in directions:
        step, state = rule.update(np.asarray(each, dtype=float), state)
        steps.append(step)
    return np.array(steps)


def test_momentum_by_hand():
    steps = steps_of(GradientAscent(eta=0.1, momentum=0.5), [[1.0, 0.0], [1.0, 2.0], [0.0, -1.0]])
    # v: (1, 0), (0.5 + 1, 0 + 2), (0.75 + 0, 1 − 1)
    np.testing.assert_allclose(steps, [[0.1, 0.0], [0.15, 0.2], [0.075, 0.0]], atol=1e-15)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Piecewise(()), "rising whole update numbers that begin with 0"),
        (lambda: Piecewise(((0, 0.5), (3, 0.2), (2, 0.1))), "rising whole update numbers"),
        (lambda: Piecewise(((0, 0.0),)), "a step size: expected a positive"),
        (lambda: Decay(1.0, 1.0, -1.0), "Decay.power: expected a positive"),
        (lambda: GradientAscent(eta="x"), "eta: expected a number"),
        (lambda: GradientAscent(momentum=1.0), r"momentum: expected a number in \[0, 1\)"),
    ],
)
def test_mistakes_are_named(make, words):
    with pytest.raises(InputError, match=words):
        make()
