"""Public functions with wrong arguments raise an error of gibo's own, in one line, or return no NaN without a warning.

`make test` makes 100 such calls, `make nightly` 20,000.
"""

import inspect
import os

from hostile_calls import attacked, judged
from hostile_targets import TARGETS

import gibo
import gibo.parameters
import gibo.policies
from gibo import InputError

CALLS = int(os.environ.get("GIBO_HOSTILE_CALLS", "100"))
# Nothing to pass in that is not somebody's own; or what comes out of others, and is checked where they are called.
RECORDS = {"Evaluation", "Journal", "Kernel", "Optimizer", "Prediction", "Query", "Result", "Status"}
RECORDS |= {"Architecture", "Box", "Episode", "Jacobian", "Reexpression"}


def test_hostile_arguments_are_refused_in_one_line_or_give_numbers(tmp_path):
    findings, made, refused = attacked(TARGETS, CALLS, tmp_path)
    assert not findings, f"{len(findings)} of {made} calls\n\n" + "\n\n".join(findings[:5])
    assert made == CALLS
    assert made / 2 < refused < made


def test_with_right_arguments_every_call_succeeds_and_every_public_name_has_one(tmp_path, recwarn):
    """Otherwise a call with a wrong argument would be refused for another reason."""
    known = {"rollout"}
    for make in TARGETS:
        call = make(tmp_path)
        assert judged(call, call.arguments) == (None, False), call.name
        known |= set(call.name.split("."))
    public = [getattr(room, name) for room in (gibo, gibo.parameters, gibo.policies) for name in room.__all__]
    called = [item for item in public if inspect.isfunction(item) or inspect.isclass(item)]
    names = {item.__name__ for item in called if not (inspect.isclass(item) and issubclass(item, Exception))}
    assert sorted(names - known - RECORDS) == []


def test_an_error_of_ours_is_one_line_whatever_it_repeats():
    error = InputError("a\nb\x1b[2J\ud800" + "x" * 5000)
    assert str(error).startswith("a\\nb\\x1b[2J\\ud800xxx")
    assert len(str(error)) <= 1000
