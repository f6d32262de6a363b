"""Another objective on an old journal is noticed, and the same one is not taken for another."""

import contextlib
import dataclasses
import functools
import importlib.util
import operator
import warnings

import numpy as np
import pytest

import gibo
from gibo import InputError, Journal
from gibo.cli import main
from gibo.runs.fingerprint import differences, fingerprint


@pytest.fixture(scope="module")
def any_objective():
    """Not any one, here."""


def cost_of(path, text):
    """The function `cost` of a module with this text."""
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("bench", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.cost


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
    ("text", "what"),
    [
        ("\n\n\n# moved down\n" + BENCH, ""),
        (BENCH.replace("return gain", "# the gain\n    return  gain"), ""),
        (BENCH.replace("def cost(x, gain=2.0):", 'def cost(x, gain=2.0):\n    """What it costs."""'), ""),
        (BENCH.replace("math.cos", "math.sin"), ""),
        (BENCH.replace("gain * helper", "-gain * helper"), "its code has changed"),
        (BENCH.replace("gain=2.0", "gain=2.5"), "gain was 2.0, now 2.5"),
    ],
)
def test_code_and_defaults_count_and_comments_layout_and_helpers_do_not(text, what, tmp_path):
    old = fingerprint(cost_of(tmp_path / "old.py", BENCH))
    assert differences(old, fingerprint(cost_of(tmp_path / "new.py", text))) == what


def make(noise):
    def objective(x):
        return noise * hill(x)

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
        (functools.partial(hill, height=np.eye(2)), functools.partial(hill, height=np.ones(2)), ""),
        (Robot(), Robot(2.0), "gain was 1.0, now 2.0"),
        (hill, make(0.1), "its name was 'hill', now 'objective'; height was 1.0, now None"),
        (operator.itemgetter(0), operator.itemgetter(1), ""),
        (Everything(), Everything(), ""),
    ],
)
def test_names_and_options_count_and_states_do_not(old, new, what):
    assert differences(fingerprint(old), fingerprint(new)) == what
    before = fingerprint(new)
    with contextlib.suppress(Exception):
        new(np.zeros(2))
    assert fingerprint(new) == before
    assert differences(None, before) == ""  # a run without a record of its objective


def climb(objective, folder, budget, **options):
    return gibo.maximize(objective, [0.0, 0.0], budget=budget, scale=0.3, journal=folder, **options)


def remarks(folder):
    with Journal.read(folder) as journal:
        return [each.body["text"] for each in journal.actions()]


def test_a_run_asks_for_force_and_says_so_in_its_journal(tmp_path):
    climb(hill, tmp_path, 4)
    climb(hill, tmp_path, 5)
    other = functools.partial(hill, height=9.0)
    for go_on in (lambda: climb(other, tmp_path, 6), lambda: gibo.resume(tmp_path, other, budget=6)):
        with pytest.raises(InputError, match=r"objective: not the one whose.*height was 1.0, now 9.0.*force=True"):
            go_on()
    assert climb(other, tmp_path, 6, force=True).evaluations == 6
    assert gibo.resume(tmp_path, other, budget=7).evaluations == 7  # from now on it is this one
    assert remarks(tmp_path) == ["continued with another objective: height was 1.0, now 9.0"]
    with pytest.raises(InputError, match=r"scale\[0\] was 0.3, now 0.5"):  # that is not the objective's
        gibo.maximize(other, [0.0, 0.0], budget=8, scale=0.5, journal=tmp_path, force=True)


def test_one_that_never_gave_a_value_may_be_mended(tmp_path):
    def hill(x):
        raise RuntimeError("not yet")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gibo.FailedEvaluationWarning)
        assert len(climb(hill, tmp_path, 4).failures) == 4
    assert climb(globals()["hill"], tmp_path, 6).evaluations == 6


def test_gibo_train_with_another_objective(tmp_path, capsys):
    words = ["train", "CartPole-v1", "--out", str(tmp_path), "--budget"]
    assert main([*words, "5"]) == 0
    capsys.readouterr()
    for options, forceable in ((["--max-steps", "50"], True), (["--scale", "0.5", "--force"], False)):
        assert main([*words, "5", *options]) == 2
        assert ("--force" in capsys.readouterr().err) == forceable
    assert main([*words, "7", "--max-steps", "50", "--force"]) == 0
    assert main([*words, "8", "--max-steps", "50"]) == 0
    with Journal.read(tmp_path / "trial-00") as journal:
        assert journal.spec().training["max_steps"] == 50
    assert remarks(tmp_path / "trial-00") == ["continued with another objective: max_steps was None, now 50"]
