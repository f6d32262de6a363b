"""What an objective may return: a value, its gradient, measured quantities, noise, repeats and a block."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import gibo
from gibo import GIBO, InputError, Journal, Outcome, RandomSearch
from gibo.outcome import checked

DETAILS = {"measured": {"torque": 3.2, "over shoot": -0.04}, "noise": 0.04, "repeats": 5, "block": "monday"}


def machine(x, seed):
    """Now and then it fails, with a torque that says why."""
    if seed % 3 == 0:
        return Outcome(failure="too much torque", measured={"torque": 9.0}, block=seed % 2)
    return Outcome(-float(x @ x), **DETAILS)


def details_of(evaluations):
    return [each.outcome.details() for each in sorted(evaluations, key=lambda e: e.id)]


def test_several_values_are_their_mean_and_their_number():
    outcome = checked(Outcome(values=[1.0, 2.0, 6.0], block=np.int64(3)), 2)
    assert (outcome.value, outcome.repeats, outcome.block, outcome.values) == (3.0, 3, 3, None)
    assert type(outcome.block) is int


def holding_itself():
    info = {}
    info["self"] = info
    return info


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("3.0", "value: expected a number, got str '3.0'"),
        (-np.inf, "value: expected a finite number, got -inf"),
        (1.01e100, r"value: expected a number of at most 1e\+100 in size, got 1.01e\+100; rescale it"),
        (Outcome(1.0, [1.0, 2.0], 0.1), "gradient: expected a vector of 3 numbers, got 2"),
        (Outcome(1.0, [1.0] * 3), "gradient: give gradient_noise too"),
        (Outcome(1.0, [1.0] * 3, -0.1), "gradient_noise: expected non-negative"),
        (Outcome(1.0, [1.0] * 3, [1.0] * 4), "gradient_noise: expected a number or 3 numbers"),
        (Outcome(1.0, values=[1.0]), "values: give them without value and repeats"),
        (Outcome(values=[1.0, np.nan]), "values: expected finite numbers"),
        (Outcome(1.0, [1e101] * 3, 0.1), "gradient: expected numbers of at most 1e"),
        (Outcome(1.0, info=holding_itself()), "info: expected data that JSON can hold"),
        (Outcome(1.0, measured={"torque": np.nan}), "measured: 'torque': expected a finite number, got nan"),
        (Outcome(1.0, measured={3: 1.0}), "measured: expected a name of at most 100 printable characters, got 3"),
        (Outcome(1.0, measured={"a\x1b": 1.0}), "measured: expected a name"),
        (Outcome(1.0, noise=-1.0), "noise: expected a non-negative finite number, got -1.0"),
        (Outcome(1.0, repeats=0), "repeats: expected a whole number of at least 1, got 0"),
        (Outcome(1.0, block=True), "block: expected a text or a number, got bool True"),
    ],
    ids=repr,
)
def test_what_an_objective_must_not_return(given, words):
    optimizer = RandomSearch([1.0] * 3)
    (query,) = optimizer.ask()
    with pytest.raises(InputError, match=f"^{words}"):
        optimizer.tell(query, given)
    assert optimizer.pending == [query]


def test_details_are_in_the_evaluation_and_survive_the_state():
    optimizer = GIBO([1.0, 2.0])
    first, second, *_ = optimizer.ask()
    optimizer.tell(first, 1.0, **DETAILS)
    optimizer.tell(second, failed="it fell", measured={"torque": 9.0})
    again = GIBO.from_state(json.loads(json.dumps(optimizer.state())))
    for each in (optimizer, again):
        assert details_of(each.evaluations) == [DETAILS, {"measured": {"torque": 9.0}}]
        assert {name: getattr(each.evaluations[0], name) for name in DETAILS} == DETAILS


@pytest.mark.filterwarnings("ignore::gibo.FailedEvaluationWarning")
def test_details_survive_the_journal_workers_and_executors(tmp_path):
    options = {"budget": 12, "max_failures": 12}
    here = gibo.minimize(machine, np.ones(2), **options, journal=tmp_path)
    there = gibo.minimize(machine, np.ones(2), **options, workers=2)
    with ThreadPoolExecutor(2) as executor:
        elsewhere = gibo.minimize(machine, np.ones(2), **options, executor=executor)
    with Journal.read(tmp_path) as journal:
        recorded = details_of(e for e, _ in journal.evaluations())
    for result in (here, there, elsewhere):
        assert details_of(result._evaluations) == recorded
    assert DETAILS in recorded
    assert {"torque": 9.0} in [each["measured"] for each in recorded]
