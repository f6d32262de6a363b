import json
import math
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from gibo import InputError, Matern52, Settings, SquaredExponential, _serialize, out_of_model, within_model
from gibo._serialize import DEEPEST, Serializable, check_serializable, from_plain, is_own, to_plain
from gibo.optimizers.moves import GradientStep
from gibo.optimizers.queries import RandomQueries
from gibo.optimizers.settings import PowerLaw
from gibo.policies import ContinuousActions, DiscreteActions
from gibo.priors import LogNormal, Normal, Prior, SharedLogNormal, Uniform
from gibo.steps import Decay, GradientAscent, Piecewise, Schedule, StepRule

PRIORS = [Uniform(0.1, 0.3), Normal(20.0, 5.0), LogNormal(1 / 3, 0.7), SharedLogNormal(1.0, 0.7, 0.3)]
RULES = [
    GradientAscent(eta=0.1, momentum=0.9),
    GradientAscent(eta=Piecewise(((0, 0.8), (3, 0.3)))),
    GradientAscent(eta=Decay(0.5, halving=10.0, power=0.7)),
    GradientAscent(eta=Piecewise(((0, 1 / 3),))),
]


def through_json(value):
    return json.loads(json.dumps(to_plain(value), allow_nan=False))


SETTINGS = [
    Settings(),
    Settings().resolve(7),
    within_model([0.1, 1 / 3]),
    out_of_model(5),
    *(Settings(lengthscale=prior, variance=prior, noise=prior) for prior in PRIORS),
    *(Settings(move=GradientStep(rule)) for rule in RULES),
    Settings.paper(queries=RandomQueries(), delta=PowerLaw(2.0, -0.5, most=1.0)),
]


@pytest.mark.parametrize("settings", SETTINGS, ids=range(len(SETTINGS)))
def test_settings_come_back(settings):
    assert Settings.from_plain(through_json(settings)) == settings


OTHERS = [SquaredExponential(), Matern52([0.1, 1 / 3], 1.7), DiscreteActions(3), ContinuousActions([-np.inf], [1.0])]


@pytest.mark.parametrize("value", OTHERS, ids=repr)
def test_kernels_and_actions_come_back(value):
    again = from_plain(through_json(value))
    assert type(again) is type(value)
    assert through_json(again) == through_json(value)


def test_every_prior_rule_and_schedule_was_tried():
    tried = {type(prior) for prior in PRIORS} | {type(rule) for rule in RULES} | {type(rule.eta) for rule in RULES}
    own = {cls for base in (Prior, StepRule, Schedule) for cls in base.__subclasses__() if is_own(cls)}
    assert own
    assert own <= tried


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


@pytest.mark.parametrize("value", [object(), {1, 2}, 1j, b"bytes", Settings], ids=lambda value: type(value).__name__)
def test_what_has_no_plain_form_is_refused(value):
    with pytest.raises(TypeError, match="no plain form for"):
        to_plain(value)


# -- what comes from elsewhere ----------------------------------------------------------------------------------------


@dataclass
class Stranger:
    x: int = 1


@dataclass(frozen=True)
class Acquaintance(Serializable):
    x: int = 1


def test_only_what_derives_from_the_base_is_built():
    with pytest.raises(InputError, match=r"unknown type 'Stranger' in saved data.*import the module.*Uniform"):
        from_plain(to_plain({"deep": [Stranger()]}))
    assert from_plain(to_plain({"deep": [Acquaintance(3)]})) == {"deep": [Acquaintance(3)]}


@pytest.mark.parametrize("name", ["Uniform", "Settings", "Prior", "Piecewise", "DiscreteActions"])
def test_no_class_takes_the_name_of_one_of_ours(name):
    before = _serialize._CLASSES[name]
    with pytest.raises(InputError, match=f"{name}' is a name of gibo's own; choose another"):
        type(name, (Serializable,), {"__module__": __name__})
    assert _serialize._CLASSES[name] is before


def test_a_class_may_be_defined_again_and_then_the_last_one_counts():
    first, second = (dataclass(frozen=True)(type("Again", (Serializable,), {"__module__": __name__})) for _ in range(2))
    assert type(from_plain({"type": "Again"})) is second
    check_serializable("it", second())
    with pytest.raises(InputError, match="it: Again was defined again since"):
        check_serializable("it", first())


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"type": "Uniform", "lower": 0.1}, "saved Uniform: .*upper"),
        ({"type": "Uniform", "lower": 0.1, "upper": 0.3, "colour": "red"}, "saved Uniform: .*colour"),
        ({"type": "Uniform", "lower": 0.3, "upper": 0.1}, "lower must be below upper"),
        (
            {"type": "Uniform", "lower": {"type": "Uniform", "lower": 0.1, "upper": 0.2}, "upper": 0.1},
            "expected a number",
        ),
        ({"type": "Uniform", 3: 0.1, "upper": 0.3}, "saved Uniform"),
        ({"type": "Piecewise", "pieces": 3}, "Piecewise: expected pairs"),
        ({"type": "Piecewise", "pieces": [[0, {"type": "Decay", "initial": 1, "halving": 1}]]}, "expected a number"),
        ({"type": "SquaredExponential", "lengthscale": {}}, "lengthscale"),
        ({"type": "SquaredExponential", "lengthscale": [[1.0], 2.0]}, "lengthscale: expected"),
        ({"type": "Decay", "initial": 10**400, "halving": 1.0}, "too large for a float"),
        ({"type": "GradientAscent", "eta": {"type": "Uniform", "lower": 0.1, "upper": 0.3}}, "eta: expected a number"),
        ({"type": "GradientStep", "step": {"type": "Decay", "initial": 1.0, "halving": 1.0}}, "step: expected"),
        ({"type": "Settings", "kernel": ["matern52"]}, "kernel: expected one of"),
        ({"type": "Prior"}, "saved Prior: .*abstract"),
        ({"type": "Serializable"}, "unknown type 'Serializable'"),
        ({"type": "dict"}, "unknown type 'dict'"),
        ({"type": "gibo.priors.Uniform"}, "unknown type"),
        ({"type": ["Uniform"]}, "unknown type"),
        ({"type": None}, "unknown type None"),
        ({"type": "x" * 10**6}, "unknown type"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_saved_data_that_do_not_fit_are_refused(data, words):
    with pytest.raises(InputError, match=words) as error:
        from_plain(data)
    assert len(str(error.value)) < 1000


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}], ids=["lists", "dictionaries"])
def test_data_that_are_nested_too_deeply_are_refused(wrap):
    def nested(depth):
        data = 1
        for _ in range(depth):
            data = wrap(data)
        return data

    assert from_plain(nested(DEEPEST)) == nested(DEEPEST)
    for depth in (DEEPEST + 1, 100_000):
        with pytest.raises(InputError, match="nested deeper than 50"):
            from_plain(nested(depth))


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["Uniform", "inf"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["lower", "upper", "eta", "step", "lengthscale", "x"]), inner, max_size=3)
        | st.builds(
            lambda name, fields: {"type": name, **fields},
            st.sampled_from(sorted(name for name, cls in _serialize._CLASSES.items() if is_own(cls))),
            st.dictionaries(
                st.sampled_from(
                    ["lower", "upper", "eta", "pieces", "step", "lengthscale", "median", "n", "low", "high"]
                ),
                inner,
                max_size=3,
            ),
        )
    ),
    max_leaves=12,
)


@given(PLAIN)
@hypothesis_settings(deadline=None, derandomize=True, max_examples=400, database=None)
def test_whatever_the_data_are_they_are_read_or_refused(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            from_plain(data)
        except InputError:
            return
    assert Uniform is from_plain({"type": "Uniform", "lower": 0.1, "upper": 0.3}).__class__  # and nothing was changed


def test_a_file_cannot_choose_what_is_imported(tmp_path, monkeypatch):
    """A kernel by its place is a user's word; in a file it is refused, and nothing is loaded."""
    (tmp_path / "hostile_kernel.py").write_text("raise SystemExit('loaded')\n")
    monkeypatch.syspath_prepend(tmp_path)
    data = to_plain(Settings(kernel="matern52"))
    with pytest.raises(InputError, match="a file must not choose what is imported"):
        from_plain({**data, "kernel": "hostile_kernel:Kernel"})
    with pytest.raises(SystemExit, match="loaded"):
        Settings(kernel="hostile_kernel:Kernel")
