"""Only errors of gibo's own come out of what is public, in one line, and no NaN without a word.

`make nightly` makes 20,000 of these calls.
"""

import dataclasses
import inspect
import os

import numpy as np
import pytest
from hostile_calls import Call, attacked, judged
from hostile_targets import TARGETS
from hostile_values import Raised

import gibo
import gibo.parameters
import gibo.policies
from gibo import InputError

CALLS = int(os.environ.get("GIBO_HOSTILE_CALLS", "500"))


def test_hostile_arguments_are_refused_in_one_line_or_give_numbers(tmp_path):
    findings, made, refused = attacked(TARGETS, range(CALLS), tmp_path)
    assert not findings, f"{len(findings)} of {made} calls\n\n" + "\n\n".join(findings[:5])
    assert made == CALLS
    assert made / 2 < refused < made  # arguments were wrong, and some were not


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_the_calls_that_are_spoilt_are_right_ones(name, tmp_path, recwarn):
    call = TARGETS[name](tmp_path)
    assert judged(call, call.arguments) == (None, False)


# Nothing to pass in that is not somebody's own; or what comes out of others, and is checked where they are called.
RECORDS = {"Evaluation", "Jacobian", "Journal", "Kernel", "Optimizer", "Prediction", "Query", "Result", "Status"}
RECORDS |= {"Architecture", "Box", "Episode", "Reexpression"}


@pytest.mark.parametrize("room", [gibo, gibo.parameters, gibo.policies], ids=lambda room: room.__name__)
def test_every_public_name_has_a_target(room):
    public = [getattr(room, name) for name in room.__all__]
    called = [item for item in public if inspect.isfunction(item) or inspect.isclass(item)]
    names = {item.__name__ for item in called if not (inspect.isclass(item) and issubclass(item, Exception))}
    known = {part for name in TARGETS for part in name.partition("-")[0].split(".")}
    assert sorted(names - known - RECORDS) == []


def says(what):
    def function(x):
        if isinstance(what, BaseException):
            raise what
        return what

    return Call(function, {"x": 1})


def endless(x):
    while True:
        pass


WRONG = {
    "a stranger's error": (says(Raised("two\nlines")), "Raised"),
    "an error of Python's own": (says(TypeError("unsupported")), "TypeError"),
    "a NaN": (says({"a": [np.array([1.0, np.nan])]}), "a NaN"),
    "a NaN in a record": (says(gibo.Jacobian(np.array([np.nan]), np.eye(1))), "a NaN"),
    "an exit": (says(SystemExit(3)), "SystemExit"),
}


@pytest.mark.parametrize(("call", "words"), WRONG.values(), ids=WRONG.keys())
def test_what_must_not_come_out_is_seen(call, words):
    wrong, _ = judged(call, call.arguments)
    assert words in wrong


def test_an_error_of_ours_is_one_line_whatever_it_repeats():
    error = InputError("a\nb\x1b[2J\ud800" + "x" * 5000)
    assert str(error).startswith("a\\nb\\x1b[2J\\ud800xxx")
    assert len(str(error)) <= 1000
    assert judged(says(error), {"x": 1}) == (None, True)


def test_a_call_that_never_ends_and_one_that_ends_the_process_are_seen(tmp_path, monkeypatch):
    monkeypatch.setattr("hostile_calls.PROCESSOR", 0.2)
    targets = {"a": lambda folder: Call(endless, {"x": 1}), "b": lambda folder: Call(os._exit, {"status": 3})}
    findings, made, _ = attacked({name: spoilt_by_nothing(make) for name, make in targets.items()}, range(3), tmp_path)
    assert made == 3
    assert ["it did not end" in findings[0], "ended with 3" in findings[1], "it did not end" in findings[2]] == [
        True
    ] * 3


def spoilt_by_nothing(make):
    def call(folder):
        found = make(folder)
        return Call(lambda: found.function(*found.arguments.values()), {})

    return call


def test_a_field_of_a_record_is_looked_into():
    @dataclasses.dataclass
    class Record:
        value: float

    assert judged(says(Record(float("nan"))), {"x": 1})[0] == "a NaN"
    assert judged(says(Record(1.0)), {"x": 1})[0] is None
