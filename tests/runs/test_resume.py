"""Continuing a run: the same call or `gibo.resume`, after whatever ended it, a full disk included."""

import functools
import itertools

import numpy as np
import pytest
from run_helpers import SETTINGS, as_data, as_plain, rows, state_of

import gibo
from gibo import ARS, CMAES, GIBO, InputError, Journal, Outcome, RandomSearch, Settings, VanillaBO
from gibo.runs.store import FILE

X0 = [0.0, 0.1]


def hill(x, seed):
    return 5.0 - float(((x - 1.0) ** 2).sum()) + 0.1 * float(np.random.default_rng(seed).standard_normal())


def climb(folder=None, objective=hill, budget=12, **options):
    return gibo.maximize(objective, X0, **{"budget": budget, "settings": SETTINGS, "journal": folder, **options})


def everything(result):
    """A result as a text that distinguishes floats to the last bit."""
    history = {name: array.tolist() for name, array in vars(result.history).items()}
    failures = [(e.id, e.failure) for e in result.failures]
    return repr((result.x.tolist(), result.value, result.iterate.tolist(), history, result.reason, failures))


@functools.cache
def undisturbed(budget, **options):
    return everything(climb(budget=budget, **options))


def recorded(folder):
    """Everything in a journal but its starts."""
    with Journal.read(folder) as journal:
        told = [(as_data(e.query), as_plain(e.outcome), at) for e, at in journal.evaluations()]
        return repr((journal.spec(), rows(folder, "batches"), rows(folder, "iterations"), told))


def never(x):
    pytest.fail("there was nothing to evaluate")


pytestmark = pytest.mark.usefixtures("known_versions")


# -- going on ---------------------------------------------------------------------------------------------------------

OPTIMIZERS = {
    "GIBO": lambda: GIBO(X0, scale=0.3, seed=2),
    "GIBO-iterate-first": lambda: GIBO(X0, scale=0.3, seed=2, settings=Settings(fit_at="iterate")),
    "ARS": lambda: ARS(X0, scale=0.3, seed=2, directions=2),
    "CMAES": lambda: CMAES(X0, scale=0.3, seed=2),
    "VanillaBO": lambda: VanillaBO(X0, scale=0.3, seed=2, bounds=(-1.0, 1.0)),
    "RandomSearch": lambda: RandomSearch(X0, scale=0.3, seed=2, batch=4),
}


def fragile(x, seed):
    if seed % 5 == 0:
        raise RuntimeError("it broke")
    if seed % 5 == 1:
        return Outcome(hill(x, seed), gradient=2.0 - 2.0 * x, gradient_noise=[0.1, 0.2], info={"seed": seed})
    return hill(x, seed)


@pytest.mark.filterwarnings("ignore::gibo.FailedEvaluationWarning")
@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS.keys())
def test_a_run_in_many_pieces_is_the_same_as_one(make, tmp_path):
    whole, budget = make(), 22
    once = gibo.run(whole, fragile, budget=budget)
    for part in (1, 2, 5, 12, 13, budget):
        optimizer = make()
        result = gibo.run(optimizer, fragile, budget=part, journal=tmp_path)
        assert result.evaluations == part
        assert result.reason == f"the budget of {part} evaluation{'s' if part > 1 else ''} is spent"
        assert state_of(tmp_path) == optimizer.state()
    assert everything(result) == everything(once)
    assert optimizer.state() == whole.state()
    with Journal.read(tmp_path) as journal:
        assert [start.options["budget"] for start in journal.starts()] == [1, 2, 5, 12, 13, budget]


@pytest.mark.parametrize("call", [0, 4])
def test_a_run_that_was_interrupted_goes_on_without_its_budget_being_said_again(call, tmp_path):
    count = itertools.count()

    def interrupted(x, seed):
        if next(count) == call:
            raise KeyboardInterrupt
        return hill(x, seed)

    first = climb(tmp_path, interrupted)
    assert first.reason == f"interrupted after {call} of 12 evaluations"
    again = gibo.resume(tmp_path, hill)
    assert everything(again) == undisturbed(12)
    with Journal.read(tmp_path) as journal:
        assert [start.reason for start in journal.starts()] == [first.reason, again.reason]


def test_a_finished_run_is_there_at_once_and_nothing_is_evaluated(tmp_path):
    first = climb(tmp_path)
    before = recorded(tmp_path)
    for again in (lambda: climb(tmp_path, never), lambda: gibo.resume(tmp_path, never), lambda: more_workers(tmp_path)):
        assert everything(again()) == everything(first)
    assert climb(tmp_path, never, budget=5).evaluations == 12
    assert recorded(tmp_path) == before


def more_workers(folder):
    return gibo.resume(folder, never, workers=2)


def test_a_reached_target_stays_reached(tmp_path):
    first = climb(tmp_path, budget=300, target=4.5)
    assert first.reason.startswith("the target of 4.5 is reached")
    for again in (climb(tmp_path, never, budget=300, target=4.5), gibo.resume(tmp_path, never)):
        assert everything(again) == everything(first)
    further = gibo.resume(tmp_path, hill, target=None, budget=first.evaluations + 4)
    assert everything(further) == everything(climb(budget=first.evaluations + 4))


def test_what_a_start_was_given_is_what_the_next_one_gets_unless_told_otherwise(tmp_path):
    given = {"budget": 9, "target": 400.0, "least_certainty": 0.01, "time_limit": 50.0, "retries": 2, "max_failures": 4}
    climb(tmp_path, **given)
    gibo.resume(tmp_path, hill)
    gibo.resume(tmp_path, hill, budget=np.int64(10), retries=0, target=None, time_limit=None)
    gibo.resume(tmp_path, hill, workers=2)
    with Journal.read(tmp_path) as journal:
        options = [start.options for start in journal.starts()]
    assert options[0] == options[1] == {**given, "workers": None}
    assert options[2] == {**options[0], "budget": 10, "retries": 0, "target": None, "time_limit": None}
    assert options[3] == {**options[2], "workers": 2}


@pytest.mark.parametrize("name", ["a/b/ünïcode 🤖", "question?mode=ro&hash#tag, per%20cent"])
def test_any_folder_will_do(name, tmp_path):
    climb(tmp_path / name, budget=3)
    assert (tmp_path / name / FILE).exists()
    assert gibo.resume(tmp_path / name, hill, budget=6).evaluations == 6


# -- another run ------------------------------------------------------------------------------------------------------

OTHERS = {
    "x0": ({"x0": [0.0, 0.2]}, r"x0\[1\] was 0.1, now 0.2"),
    "seed": ({"seed": 4}, "seed was 3, now 4"),
    "settings": ({"settings": Settings(**{**vars(SETTINGS), "M": 3})}, "M was 2, now 3"),
    "penalty": ({"penalty": -1.0}, "penalty was None, now -1.0"),
    "quorum": ({"quorum": 0.5}, "quorum was 1.0, now 0.5"),
}


@pytest.mark.parametrize(("options", "words"), OTHERS.values(), ids=OTHERS.keys())
def test_another_run_is_refused_with_the_difference_and_nothing_changes(options, words, tmp_path):
    climb(tmp_path, seed=3, budget=7)
    before = (tmp_path / FILE).read_bytes()
    arguments = {"x0": X0, "budget": 20, "seed": 3, "settings": SETTINGS, **options}
    with pytest.raises(InputError, match=f"holds another run: (.*; )?{words}.*Name another folder, or use the old"):
        gibo.maximize(never, journal=tmp_path, **arguments)
    with pytest.raises(InputError, match="optimizer was 'GIBO', now 'ARS'"):
        gibo.run(ARS(X0), never, budget=20, journal=tmp_path)
    assert (tmp_path / FILE).read_bytes() == before
    assert everything(climb(tmp_path, seed=3, budget=20)) == undisturbed(20, seed=3)


def test_an_optimizer_that_was_told_something_is_refused_before_anything_is_made(tmp_path):
    optimizer = RandomSearch(X0)
    optimizer.tell([0.3, 0.3], 1.0)
    with pytest.raises(InputError, match="optimizer: it already has 1 values; a journal needs a new one"):
        gibo.run(optimizer, never, budget=5, journal=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_defaults_that_are_spelt_out_are_the_same_run(tmp_path):
    gibo.maximize(hill, X0, budget=3, journal=tmp_path)
    spelt = {"scale": [1, 1], "seed": np.int64(0), "settings": Settings(), "bounds": None}
    result = gibo.maximize(hill, np.array(X0), budget=4, journal=tmp_path, **spelt)
    assert result.evaluations == 4
