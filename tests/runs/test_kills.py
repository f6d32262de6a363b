"""A run that is killed, whenever and however often, ends as one that was not."""

import functools
import json
import os
import signal
import sqlite3
from collections import Counter

import pytest
from kill_helpers import OPTIMIZERS, X0, Attack, killed_runs, noisy, undisturbed
from run_helpers import SETTINGS, forked, state_of, told_in

import gibo
import gibo.runs.api
from gibo import GIBO, Journal
from gibo.runs import manual

pytestmark = pytest.mark.usefixtures("known_versions")


def assert_same_as(folder, state, budget):
    with Journal.read(folder) as journal:
        numbers = sorted(e.id for e, _ in journal.evaluations())
        assert numbers == list(range(budget))  # each once
    assert state_of(folder) == state


@pytest.mark.parametrize(
    ("name", "options", "kills"),
    [*((name, {}, 10) for name in OPTIMIZERS if name != "ARS"), ("GIBO", {"workers": 2}, 6)],
)
def test_a_run_that_is_killed_at_random_ends_as_one_that_was_not(name, options, kills, in_memory):
    attack = functools.partial(Attack, OPTIMIZERS[name], **options)
    assert killed_runs(attack, kills, in_memory) == (kills, kills, 0, 0, ())


# -- at the worst moments ---------------------------------------------------------------------------------------------


def restarted_until_done(target, *arguments):
    """Returns how often it was killed; a start that is not must come to the end."""
    kills = 0
    while True:
        process = forked(target, *arguments, kills)
        process.join()
        if process.exitcode == 0:
            return kills
        assert process.exitcode == -signal.SIGKILL
        kills += 1
        assert kills < 500


def die_after_each_value(make, folder, budget, _):
    """Each evaluation is made, and before anything is recorded all is over; the next start gets past it."""

    def objective(x, seed):
        value = noisy(x, 1)
        with open(folder / "calls", "a+", encoding="utf-8") as file:
            file.seek(0)
            before = file.read().splitlines()
            line = json.dumps([seed, x.tolist()])
            file.write(line + "\n")
        if line not in before:
            os.kill(os.getpid(), signal.SIGKILL)
        return value

    gibo.run(make(3), objective, budget=budget, journal=folder / "run")


@pytest.mark.parametrize("make", [lambda seed: GIBO(X0, seed=seed, settings=SETTINGS), OPTIMIZERS["CMA-ES"]])
def test_a_value_that_was_not_recorded_is_asked_for_again_as_it_was(make, in_memory):
    budget = 10
    assert restarted_until_done(die_after_each_value, make, in_memory, budget) == budget
    assert_same_as(in_memory / "run", undisturbed(make(3), lambda x: noisy(x, 1), budget), budget)
    calls = Counter((in_memory / "calls").read_text().splitlines())
    told = {json.dumps([e.query.seed, e.x.tolist()]) for e in told_in(in_memory / "run")}
    assert set(calls) == told  # nothing else was ever asked
    assert set(calls.values()) == {2}


def die_at_a_statement(make, folder, budget, number):
    """The n-th start dies before SQLite's n-th statement that changes anything, whatever that is."""
    count = 0

    def trace(statement):
        nonlocal count
        count += not statement.startswith(("SELECT", "PRAGMA quick_check", "PRAGMA synchronous", "PRAGMA trusted"))
        if count == number + 1:
            with open(folder / "died", "a", encoding="utf-8") as file:
                file.write(" ".join(statement.split()[:3]) + "\n")
            os.kill(os.getpid(), signal.SIGKILL)

    connect = sqlite3.connect

    def traced(*arguments, **options):
        connection = connect(*arguments, **options)
        connection.set_trace_callback(trace)
        return connection

    sqlite3.connect = traced
    gibo.run(make(3), lambda x: noisy(x, 1), budget=budget, journal=folder / "run")


def test_a_run_survives_being_killed_at_any_statement_of_the_journal(in_memory):
    def make(seed):
        return GIBO(X0, seed=seed, settings=SETTINGS)

    budget = 500
    for number in (*range(40), *range(41, 90, 2)):  # the first ones open the journal
        process = forked(die_at_a_statement, make, in_memory, budget, number)
        process.join()
        assert process.exitcode == -signal.SIGKILL
    died = Counter((in_memory / "died").read_text().splitlines())
    assert {"CREATE TABLE evaluations", "INSERT INTO facts", "PRAGMA user_version =", "BEGIN IMMEDIATE"} <= set(died)
    assert {"INSERT INTO evaluations", "COMMIT"} <= set(died)
    recorded = len(told_in(in_memory / "run"))
    assert recorded > 10
    optimizer = gibo.Optimizer.from_state(state_of(in_memory / "run"))
    state = undisturbed(make(3), lambda x: noisy(x, 1), recorded)
    if not optimizer.pending:
        optimizer.ask()
    again = gibo.Optimizer.from_state(state)
    again.ask()
    assert optimizer.state() == again.state()


def test_a_run_by_hand_that_was_killed_as_it_began_goes_on(in_memory):
    def die_in_the_middle(folder):
        Journal.begin = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        manual.create(folder, manual.Description(["a"], [0.0], [1.0], [-1.0], [1.0]))

    forked(die_in_the_middle, in_memory).join()
    queries = manual.ask(in_memory).queries
    manual.tell(in_memory, queries[0].id, 1.0)
    assert manual.status(in_memory).state == "waiting"
    with Journal.open(in_memory) as journal:
        assert manual.abort(journal) == {"a": 0.0}
        manual.go_on(journal)
    assert [query.id for query in manual.ask(in_memory).queries] == [query.id for query in queries[1:]]
