"""Another objective on an old journal is noticed, and the same one is not taken for another."""

import contextlib
import dataclasses
import functools
import importlib
import math
import operator
import sys
import warnings

import numpy as np
import pytest

import gibo
from gibo import InputError, Journal
from gibo.cli import main
from gibo.parameters import Parameters, linear
from gibo.runs.fingerprint import differences, fingerprint


@pytest.fixture(scope="module")
def any_objective():
    """Not any one, here."""


def module(folder, text, name="bench"):
    """A module from a file of this text, read afresh."""
    (folder / f"{name}.py").write_text(text)
    sys.modules.pop(name, None)
    importlib.invalidate_caches()
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))
        sys.dont_write_bytecode = before


BENCH = """
import math

def helper(x):
    return math.cos(x[0])

def cost(x, gain=2.0):
    return gain * helper(x)
"""


def hill(x, height=1.0):
    return height - float(((x - 1.0) ** 2).sum())


class Bench:
    """A callable with a state, and a method."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return hill(x)

    def measure(self, x):
        self.calls += 1
        return hill(x)


@dataclasses.dataclass(frozen=True)
class Robot:
    gain: float = 1.0

    def __call__(self, x):
        return self.gain * hill(x)


@pytest.mark.parametrize(
    "text",
    [
        BENCH,
        "\n\n\n# moved down\n" + BENCH,
        BENCH.replace("return gain", "# the gain\n    return  gain"),
        BENCH.replace("def cost(x, gain=2.0):", 'def cost(x, gain=2.0):\n    """What it costs."""'),
        BENCH.replace("gain * helper(x)", "(\n        gain *\n        helper(x)\n    )"),
        BENCH.replace("math.cos", "math.sin"),
    ],
)
def test_comments_layout_and_helpers_do_not_matter(text, tmp_path):
    old = fingerprint(module(tmp_path, BENCH).cost)
    (tmp_path / "elsewhere").mkdir()
    assert differences(old, fingerprint(module(tmp_path, text).cost)) == ""
    assert differences(old, fingerprint(module(tmp_path / "elsewhere", text, "renamed").cost)) == ""


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (BENCH.replace("gain * helper", "-gain * helper"), "its code has changed"),
        (BENCH.replace("gain=2.0", "gain=2.5"), "gain was 2.0, now 2.5"),
    ],
)
def test_what_it_does_and_its_defaults_do(text, what, tmp_path):
    old = fingerprint(module(tmp_path, BENCH).cost)
    assert differences(old, fingerprint(module(tmp_path, text).cost)) == what


def make(noise):
    calls = 0

    def objective(x):
        nonlocal calls
        calls += 1
        return noise * hill(x) + calls * 0.0

    return objective


class Everything:
    """Has an answer to all."""

    def __getattr__(self, name):
        return self

    def __call__(self, x):
        return 0.0


def named(cost, _budget):
    return cost


BOWL = named(lambda x: -(x[0] ** 2), 30)
BOWL_AGAIN = named(lambda x: -(x[0] ** 2), 60)
QUARTIC = named(lambda x: -(x[0] ** 4), 30)
ONE, OTHER = (lambda x: x[0]), (lambda x: x[1])  # of which no text can be told
EYE, ONES = functools.partial(hill, height=np.eye(2)), functools.partial(hill, height=np.ones(2))


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (Bench(), Bench(), ""),
        (Bench().measure, Bench().measure, ""),
        (make(0.1), make(0.2), ""),  # what it closes over is its state
        (BOWL, BOWL_AGAIN, ""),
        (BOWL, QUARTIC, "its code has changed"),
        (ONE, OTHER, ""),
        (functools.partial(hill, height=2.0), functools.partial(hill, height=3.0), "height was 2.0, now 3.0"),
        (EYE, ONES, ""),
        (functools.partial(hill, height=math.nan), functools.partial(hill, height=math.nan), ""),
        (Robot(), Robot(2.0), "gain was 1.0, now 2.0"),
        (hill, make(0.1), "its name was 'hill', now 'objective'; height was 1.0, now None"),
        (functools.lru_cache(hill), functools.lru_cache(hill), ""),
        (operator.itemgetter(0), operator.itemgetter(1), ""),
        (sum, sum, ""),
        (Everything(), Everything(), ""),
    ],
)
def test_names_code_and_options_count_and_states_do_not(old, new, what):
    assert differences(fingerprint(old), fingerprint(new)) == what
    before = fingerprint(new)
    with contextlib.suppress(Exception):
        new(np.zeros(2))
    assert fingerprint(new) == before


@pytest.mark.parametrize("nothing", [None, 3, {}, {"options": 3}, {"name": "hill"}], ids=repr)
def test_a_record_that_is_none_never_differs(nothing):
    assert differences(nothing, fingerprint(hill)) == ""


def test_code_of_another_python_is_not_compared():
    old = fingerprint(lambda x: x[0]) | {"python": "2.7"}
    assert differences(old, fingerprint(lambda x: x[1])) == ""


def climb(objective, folder, budget, **options):
    return gibo.maximize(objective, [0.0, 0.0], budget=budget, scale=0.3, journal=folder, **options)


def test_a_run_asks_for_force_and_says_so_in_its_journal(tmp_path):
    climb(hill, tmp_path, 4)
    climb(hill, tmp_path, 5)
    other = functools.partial(hill, height=9.0)
    with pytest.raises(InputError, match=r"objective: not the one whose.*height was 1.0, now 9.0.*force=True"):
        climb(other, tmp_path, 6)
    with pytest.raises(InputError, match="force=True"):
        gibo.resume(tmp_path, other, budget=6)
    with Journal.read(tmp_path) as journal:
        assert len(journal.starts()) == 2
    assert climb(other, tmp_path, 6, force=True).evaluations == 6
    assert gibo.resume(tmp_path, other, budget=7).evaluations == 7  # from now on it is this one
    with Journal.read(tmp_path) as journal:
        assert [each.body["text"] for each in journal.actions()] == [
            "continued with another objective: height was 1.0, now 9.0"
        ]
    with pytest.raises(InputError, match="force: expected True or False"):
        climb(other, tmp_path, 8, force="yes")
    with pytest.raises(InputError, match=r"scale\[0\] was 0.3, now 0.5"):  # that is not the objective's
        gibo.maximize(other, [0.0, 0.0], budget=8, scale=0.5, journal=tmp_path, force=True)


def test_one_that_never_gave_a_value_may_be_mended(tmp_path):
    def hill(x):
        raise RuntimeError("not yet")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gibo.FailedEvaluationWarning)
        assert len(climb(hill, tmp_path, 4).failures) == 4
    assert climb(globals()["hill"], tmp_path, 6).evaluations == 6


def test_with_parameters_the_persons_function_is_meant(tmp_path):
    parameters = Parameters(gain=linear(0.0, 1.0))
    options = {"parameters": parameters, "journal": tmp_path}
    gibo.maximize(lambda gain: -gain, budget=3, **options)
    assert gibo.maximize(lambda gain: -gain, budget=4, **options).evaluations == 4
    with pytest.raises(InputError, match="its code has changed"):
        gibo.maximize(lambda gain: gain, budget=5, **options)


def test_journals_without_a_fingerprint_open_as_before(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("gibo.runs.api.fingerprint", lambda objective: None)
        climb(hill, tmp_path, 4)
    assert climb(make(0.1), tmp_path, 5).evaluations == 5


def test_gibo_train_with_another_objective(tmp_path, capsys):
    words = ["train", "CartPole-v1", "--budget", "5", "--out", str(tmp_path)]
    assert main(words) == 0
    capsys.readouterr()
    assert main([*words, "--max-steps", "50"]) == 2
    assert "max_steps was None, now 50" in (error := capsys.readouterr().err)
    assert "--force" in error
    assert main([*words, "--scale", "0.5", "--force"]) == 2
    assert "--force" not in capsys.readouterr().err
    assert main([*words[:3], "7", *words[4:], "--max-steps", "50", "--force"]) == 0
    assert main([*words[:3], "8", *words[4:], "--max-steps", "50"]) == 0
    with Journal.read(tmp_path / "trial-00") as journal:
        assert journal.spec().training["max_steps"] == 50
        assert [each.body["text"] for each in journal.actions()] == [
            "continued with another objective: max_steps was None, now 50"
        ]
