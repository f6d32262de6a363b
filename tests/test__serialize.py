import json
import math
from dataclasses import dataclass

import numpy as np
import pytest

from gibo import (
    Adam,
    Decay,
    Gamma,
    GradientAscent,
    InputError,
    LogNormal,
    Normal,
    Piecewise,
    Settings,
    SharedLogNormal,
    Uniform,
    out_of_model,
    within_model,
)
from gibo._serialize import from_plain, to_plain
from gibo.optimizers.settings import PLAIN_TYPES

PRIORS = [Uniform(0.1, 0.3), Normal(20.0, 5.0), LogNormal(1 / 3, 0.7), Gamma(3.0, 6.0), SharedLogNormal(1.0, 0.7, 0.3)]
RULES = [
    GradientAscent(eta=0.1, momentum=0.9),
    GradientAscent(eta=Piecewise(((0, 0.8), (3, 0.3)))),
    GradientAscent(eta=Decay(0.5, halving=10.0, power=0.7)),
    Adam(eta=0.2, beta1=0.5, beta2=0.7, epsilon=1e-6),
    Adam(eta=Piecewise(((0, 1 / 3),))),
]


def through_json(value):
    return json.loads(json.dumps(to_plain(value), allow_nan=False))


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_settings_come_back_with_every_prior(prior):
    settings = Settings(lengthscale=prior, variance=prior, noise=prior)
    assert Settings.from_plain(through_json(settings)) == settings


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_settings_come_back_with_every_step_rule(rule):
    settings = Settings(step=rule)
    again = Settings.from_plain(through_json(settings))
    assert again == settings
    assert [again.step.update(np.ones(1), again.step.init(1))[0].tolist()] == [
        rule.update(np.ones(1), rule.init(1))[0].tolist()
    ]


@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        Settings().resolve(7),
        within_model([0.1, 1 / 3]),
        out_of_model(5),
        Settings(mean=0.25, kernel="matern52", sampling="random", M=3, N_m=9, least_share=0.1, fit="full"),
        Settings(mean="estimated"),
    ],
    ids=["default", "resolved", "within-model", "out-of-model", "many", "estimated"],
)
def test_settings_come_back(settings):
    assert Settings.from_plain(through_json(settings)) == settings


def test_every_type_that_settings_may_hold_was_tried():
    tried = {type(prior) for prior in PRIORS} | {type(rule) for rule in RULES} | {type(rule.eta) for rule in RULES}
    assert set(PLAIN_TYPES) <= tried


def test_numbers_come_back_bit_for_bit():
    numbers = [0.1, 1 / 3, 1e-308, 5e-324, 1.7976931348623157e308, -0.0, 2**70]
    again = through_json(numbers)
    assert again == numbers
    assert math.copysign(1.0, again[5]) == -1.0


def test_arrays_and_numpy_numbers_become_plain():
    value = {
        "a": np.array([[1.5, 2.0]]),
        "b": np.int64(3),
        "c": np.float32(0.5),
        4: (None, True, "text"),
        "e": np.array(2),
    }
    expected = {"a": [[1.5, 2.0]], "b": 3, "c": 0.5, "4": [None, True, "text"], "e": 2}
    plain = to_plain(value)
    assert plain == expected
    assert type(plain["b"]) is int
    assert type(plain["c"]) is float
    assert plain["4"][1] is True


@pytest.mark.parametrize(("value", "text"), [(math.inf, "inf"), (-math.inf, "-inf"), (np.array([np.inf])[0], "inf")])
def test_infinities_become_text_because_json_has_none(value, text):
    assert to_plain(value) == text
    assert float(text) == value


def test_numpy_booleans_are_plain_too():
    assert through_json({"yes": np.bool_(True)}) == {"yes": True}


@pytest.mark.parametrize("value", [object(), {1, 2}, 1j, b"bytes", Settings], ids=lambda value: type(value).__name__)
def test_what_has_no_plain_form_is_refused(value):
    with pytest.raises(TypeError, match="no plain form for"):
        to_plain(value)


@dataclass
class Stranger:
    x: int = 1


def test_unknown_types_are_refused():
    with pytest.raises(InputError, match=r"unknown type 'Stranger' in saved data; expected one of .*'Uniform'"):
        from_plain(to_plain({"deep": [Stranger()]}), PLAIN_TYPES)
    assert from_plain(to_plain(Stranger(3)), [Stranger]) == Stranger(3)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"type": "Uniform", "lower": 0.1}, "saved Uniform: .*upper"),
        ({"type": "Uniform", "lower": 0.1, "upper": 0.3, "colour": "red"}, "saved Uniform: .*colour"),
        ({"type": "Uniform", "lower": 0.3, "upper": 0.1}, "lower must be below upper"),
        ({"type": ["Uniform"]}, "unknown type"),
        ({"type": None}, "unknown type None"),
    ],
)
def test_saved_data_that_do_not_fit_are_refused(data, words):
    with pytest.raises(InputError, match=words):
        from_plain(data, PLAIN_TYPES)


@pytest.mark.parametrize("data", [{}, [], 3, None, {"M": 3}, {"type": "Uniform", "lower": 0.1, "upper": 0.3}], ids=repr)
def test_what_are_no_settings_is_refused(data):
    with pytest.raises(InputError, match="not what to_plain gives"):
        Settings.from_plain(data)
