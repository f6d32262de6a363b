import json
from dataclasses import dataclass

import numpy as np
import pytest

from gibo import InputError, Matern52, Settings, out_of_model, within_model
from gibo._serialize import DEEPEST, Serializable, check_serializable, from_plain, to_plain
from gibo.optimizers.moves import GradientStep
from gibo.optimizers.queries import RandomQueries
from gibo.optimizers.settings import PowerLaw
from gibo.policies import ContinuousActions
from gibo.priors import LogNormal, Normal, SharedLogNormal, Uniform
from gibo.steps import Decay, GradientAscent, Piecewise

RULES = [
    GradientAscent(eta=Piecewise(((0, 1 / 3), (3, 0.3))), momentum=0.9),
    GradientAscent(eta=Decay(0.5, halving=10.0, power=0.7)),
]
PRIORS = [Uniform(0.1, 0.3), Normal(20.0, 5.0), LogNormal(1 / 3, 0.7), SharedLogNormal(1.0, 0.7, 0.3)]


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


@pytest.mark.parametrize("value", [Matern52([0.1, 1 / 3], 1.7), ContinuousActions([-np.inf], [1.0])], ids=repr)
def test_kernels_and_actions_come_back(value):
    assert through_json(from_plain(through_json(value))) == through_json(value)


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


def test_a_class_may_be_defined_again_unless_it_is_one_of_ours():
    first, second = (dataclass(frozen=True)(type("Again", (Serializable,), {"__module__": __name__})) for _ in range(2))
    assert type(from_plain({"type": "Again"})) is second
    check_serializable("it", second())
    with pytest.raises(InputError, match="it: Again was defined again since"):
        check_serializable("it", first())
    with pytest.raises(InputError, match="Uniform' is a name of gibo's own; choose another"):
        type("Uniform", (Serializable,), {"__module__": __name__})
    assert from_plain({"type": "Uniform", "lower": 0.1, "upper": 0.3}) == Uniform(0.1, 0.3)


def nested(depth):
    data = 1
    for i in range(depth):
        data = [data] if i % 2 else {"a": data}
    return data


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"type": "Uniform", "lower": 0.1}, "saved Uniform: .*upper"),
        ({"type": "Uniform", "lower": 0.3, "upper": 0.1}, "lower must be below upper"),
        ({"type": "Uniform", 3: 0.1, "upper": 0.3}, "saved Uniform"),
        ({"type": "Decay", "initial": 10**400, "halving": 1.0}, "too large for a float"),
        ({"type": "Prior"}, "saved Prior: .*abstract"),
        ({"type": "Serializable"}, "unknown type 'Serializable'"),
        ({"type": ["Uniform"]}, "unknown type"),
        ({"type": "x" * 10**6}, "unknown type"),
        (nested(DEEPEST + 1), "nested deeper than 50"),
        (nested(100_000), "nested deeper than 50"),
    ],
    ids=range(10),
)
def test_saved_data_that_do_not_fit_are_refused(data, words):
    with pytest.raises(InputError, match=words) as error:
        from_plain(data)
    assert len(str(error.value)) < 1000


def test_a_file_cannot_choose_what_is_imported(tmp_path, monkeypatch):
    """A kernel by its place is a user's word; in a file it is refused, and nothing is loaded."""
    (tmp_path / "hostile_kernel.py").write_text("raise SystemExit('loaded')\n")
    monkeypatch.syspath_prepend(tmp_path)
    data = to_plain(Settings(kernel="matern52"))
    with pytest.raises(InputError, match="a file must not choose what is imported"):
        from_plain({**data, "kernel": "hostile_kernel:Kernel"})
    with pytest.raises(SystemExit, match="loaded"):
        Settings(kernel="hostile_kernel:Kernel")
