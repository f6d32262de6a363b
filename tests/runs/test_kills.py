"""A run that is killed, whenever and however often, ends as one that was not."""

import gc
import json
import multiprocessing
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import time
import warnings
from collections import Counter
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path

import numpy as np
import pytest

import gibo
import gibo.runs.journal
from gibo import ARS, CMAES, GIBO, Journal, RandomSearch, Settings, VanillaBO

FORK = multiprocessing.get_context("fork")
X0 = [0.0, 0.1]
BUDGET = 45
SETTINGS = Settings(lengthscale=1.0, variance=1.0, noise=0.01, M=2, N_m=12)
PACE = 0.002  # seconds per evaluation, so that a run dies all over its length


def noisy(x, seed):
    if seed % 13 == 0:
        raise RuntimeError("it broke")
    return -float(((x - 0.5) ** 2).sum()) + 0.1 * float(np.random.default_rng(seed).standard_normal())


OPTIMIZERS = {
    "GIBO": lambda seed: GIBO(X0, scale=0.3, seed=seed),
    "ARS": lambda seed: ARS(X0, scale=0.3, seed=seed, directions=3),
    "CMAES": lambda seed: CMAES(X0, scale=0.3, seed=seed),
    "VanillaBO": lambda seed: VanillaBO(X0, scale=0.3, seed=seed, bounds=(-1.0, 1.0)),
    "RandomSearch": lambda seed: RandomSearch(X0, scale=0.3, seed=seed, batch=4),
}


def quietly_run(optimizer, objective, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gibo.FailedEvaluationWarning)
        return gibo.run(optimizer, objective, **options)


def undisturbed(optimizer, objective=noisy, budget=BUDGET):
    quietly_run(optimizer, objective, budget=budget)
    return optimizer.state()


def started(target, *arguments):
    process = FORK.Process(target=target, args=arguments)
    gc.freeze()  # or the child would look through, and so copy, all that the tests have in memory
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forking beside threads
        process.start()
    gc.unfreeze()
    return process


def assert_same_as(folder, state, budget=BUDGET):
    with Journal.read(folder) as journal:
        numbers = sorted(t.query.id for t in journal.evaluations())
        assert numbers == list(range(budget))  # each once
        assert journal.optimizer().state() == state


@pytest.fixture
def base():
    """In memory where possible: what a kill leaves behind is the same there, and many small records are faster."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as path:
        yield Path(path)


VERSIONS = gibo.runs.journal.versions()


@pytest.fixture(autouse=True)
def known_versions(monkeypatch):
    """To look them up takes longer than all else that a start does; the tests of the journal do."""
    monkeypatch.setattr(gibo.runs.journal, "versions", lambda: VERSIONS)


# -- at random --------------------------------------------------------------------------------------------------------


def work(make, seed, folder, connection, options):
    """Says how much was recorded before, once it is where the run was."""
    optimizer = make(seed)
    ask = optimizer.ask

    def first_ask():
        optimizer.ask = ask
        connection.send(len(optimizer.evaluations))
        return ask()

    def objective(x, seed):
        time.sleep(PACE)
        return noisy(x, seed)

    optimizer.ask = first_ask
    quietly_run(optimizer, objective, budget=BUDGET, journal=folder, **options)


def killed_at_random(make, seed, folder, kills, options):
    """Start a run over and over until it has come to its end; kills it so often. Returns what was recorded by then."""
    rng, recorded, killed = random.Random(seed), [], 0
    reach = 3.0 * PACE
    while True:
        ours, theirs = FORK.Pipe()
        process = started(work, make, seed, folder, theirs, options)
        theirs.close()
        if killed < kills:
            early = rng.random() < 0.2
            if not early:
                wait([ours, process.sentinel], timeout=60.0)
            time.sleep(rng.uniform(0.0, 0.03 if early else reach))
            process.kill()
            # The kills are to be spread over the run, on a slow machine too.
            reach *= 1.0 + 8.0 / kills if recorded and recorded[-1] < BUDGET * killed / kills else 0.6
        process.join()
        with suppress(EOFError):  # it died before it said anything
            recorded.append(ours.recv())
        ours.close()
        if process.exitcode == 0:
            return killed, recorded
        assert process.exitcode == -signal.SIGKILL
        killed += 1


@pytest.mark.parametrize(
    ("make", "options", "kills"),
    [*((make, {}, 50) for make in OPTIMIZERS.values()), (OPTIMIZERS["GIBO"], {"workers": 2}, 10)],
    ids=[*OPTIMIZERS, "GIBO-workers"],
)
def test_a_run_that_is_killed_at_random_ends_as_one_that_was_not(make, options, kills, base):
    killed, recorded, seed = 0, [], 0
    while killed < kills:
        folder = base / f"{seed}"
        expected = undisturbed(make(seed))  # first, so that the modules it needs are loaded before the forks
        more, seen = killed_at_random(make, seed, folder, kills - killed, options)
        assert_same_as(folder, expected)
        killed, recorded, seed = killed + more, recorded + seen, seed + 1
    assert killed == kills
    assert len(set(recorded)) >= kills // 5  # not always at the same place
    assert max(recorded) - min(recorded) >= BUDGET // 3 or kills < 50


def work_with_a_share(folder, connection):
    optimizer = GIBO(X0, seed=1, settings=SETTINGS)

    def objective(x, seed):
        connection.send("begun")
        time.sleep(4 * PACE if seed % 3 == 0 else 0.0)
        return noisy(x, seed)

    quietly_run(optimizer, objective, budget=BUDGET, journal=folder, workers=2, share=0.5)
    connection.send(json.dumps(optimizer.state()))


def test_a_killed_run_that_does_not_wait_for_late_values_uses_each_of_them_once(base):
    """Here the result depends on what arrives when; but what was recorded leads to where the last process was."""
    rng, kills, said = random.Random(1), 0, []
    while not said or said[-1] == "begun":
        ours, theirs = FORK.Pipe()
        process = started(work_with_a_share, base, theirs)
        theirs.close()
        if kills < 10:
            wait([ours, process.sentinel], timeout=60.0)
            time.sleep(rng.uniform(0.0, 10 * PACE))
            process.kill()
            kills += 1
        with suppress(EOFError):
            while True:
                said.append(ours.recv())
        process.join()
        ours.close()
    assert kills == 10
    with Journal.read(base) as journal:
        assert sorted(t.query.id for t in journal.evaluations()) == list(range(BUDGET))
        assert len(journal.rows("moves")) >= 3
        assert journal.optimizer().state() == json.loads(said[-1])


# -- at the worst moments ---------------------------------------------------------------------------------------------


def restarted_until_done(target, *arguments):
    """Returns how often it was killed; a start that is not must come to the end."""
    kills = 0
    while True:
        process = started(target, *arguments, kills)
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


@pytest.mark.parametrize("make", [lambda seed: GIBO(X0, seed=seed, settings=SETTINGS), OPTIMIZERS["CMAES"]])
def test_a_value_that_was_not_recorded_is_asked_for_again_as_it_was(make, base):
    budget = 10
    assert restarted_until_done(die_after_each_value, make, base, budget) == budget
    assert_same_as(base / "run", undisturbed(make(3), lambda x: noisy(x, 1), budget), budget)
    calls = Counter((base / "calls").read_text().splitlines())
    with Journal.read(base / "run") as journal:
        told = {json.dumps([t.query.seed, t.query.x.tolist()]) for t in journal.evaluations()}
    assert set(calls) == told  # nothing else was ever asked
    assert set(calls.values()) == {2}


def die_at_a_statement(make, folder, budget, number):
    """The n-th start dies before SQLite's n-th statement that changes anything, whatever that is."""
    count = 0

    def trace(statement):
        nonlocal count
        count += not statement.startswith(("SELECT", "PRAGMA quick_check", "PRAGMA synchronous"))
        if count == number + 1:
            with open(folder / "died", "a", encoding="utf-8") as file:
                file.write(" ".join(statement.split()[:3]) + "\n")
            os.kill(os.getpid(), signal.SIGKILL)

    connect = gibo.runs.journal._connect

    def traced(*arguments):
        connection = connect(*arguments)
        connection.set_trace_callback(trace)
        return connection

    gibo.runs.journal._connect = traced
    gibo.run(make(3), lambda x: noisy(x, 1), budget=budget, journal=folder / "run")


def test_a_run_survives_being_killed_at_any_statement_of_the_journal(base):
    def make(seed):
        return GIBO(X0, seed=seed, settings=SETTINGS)

    budget = 500
    kills = 0
    while kills < 40:
        process = started(die_at_a_statement, make, base, budget, kills)
        process.join()
        assert process.exitcode == -signal.SIGKILL
        kills += 1
    died = Counter((base / "died").read_text().splitlines())
    assert {"CREATE TABLE evaluations", "INSERT INTO facts", "PRAGMA user_version =", "BEGIN IMMEDIATE"} <= set(died)
    assert {"INSERT INTO batches", "INSERT INTO queries", "INSERT INTO evaluations", "COMMIT"} <= set(died)
    with Journal.read(base / "run") as journal:
        recorded = len(journal.evaluations())
        assert recorded > 20
        optimizer = journal.optimizer()
    state = undisturbed(make(3), lambda x: noisy(x, 1), recorded)
    if not optimizer.waiting:
        optimizer.ask()
    again = gibo.Optimizer.from_state(state)
    again.ask()
    assert optimizer.state() == again.state()


def test_a_transaction_that_was_not_finished_leaves_nothing(base):
    """Killed within the transaction that begins the journal: the next start begins anew."""

    def die_in_the_middle(folder):
        insert = Journal._insert

        def dying(self, table, *values):
            insert(self, table, *values)
            if table == "facts" and values[0] == "sign":
                os.kill(os.getpid(), signal.SIGKILL)

        Journal._insert = dying
        quietly_run(OPTIMIZERS["ARS"](1), noisy, budget=9, journal=folder)

    process = started(die_in_the_middle, base)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    with pytest.raises(gibo.InputError, match="there is no run"):
        Journal.read(base)
    quietly_run(OPTIMIZERS["ARS"](2), noisy, budget=9, journal=base)  # another run may begin there
    assert_same_as(base, undisturbed(OPTIMIZERS["ARS"](2), budget=9), 9)


def test_a_half_recorded_batch_is_not_there(base):
    def die_in_the_second_batch(folder):
        insert = Journal._insert

        def dying(self, table, *values):
            insert(self, table, *values)
            if table == "queries" and values[0] == 6:
                os.kill(os.getpid(), signal.SIGKILL)

        Journal._insert = dying
        quietly_run(RandomSearch(X0, batch=4), noisy, budget=12, journal=folder)

    process = started(die_in_the_second_batch, base)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert (base / "journal.sqlite-wal").exists()
    with Journal.read(base) as journal:
        assert [query.id for query in journal.queries()] == [0, 1, 2, 3]
        assert len(journal.rows("batches")) == 1
        assert len(journal.evaluations()) == 4
        assert journal.starts()[0].ended is None
    quietly_run(RandomSearch(X0, batch=4), noisy, budget=12, journal=base)
    assert_same_as(base, undisturbed(RandomSearch(X0, batch=4), budget=12), 12)


def test_what_a_killed_process_left_can_be_read_by_anything_that_reads_sqlite(base):
    def die_at_the_tenth(folder):
        calls = []

        def objective(x, seed):
            calls.append(x)
            if len(calls) == 10:
                os.kill(os.getpid(), signal.SIGKILL)
            return noisy(x, 1)

        gibo.run(RandomSearch(X0, batch=4), objective, budget=12, journal=folder)

    started(die_at_the_tenth, base).join()
    connection = sqlite3.connect(base / "journal.sqlite")
    assert connection.execute("SELECT count(*) FROM evaluations WHERE value IS NOT NULL").fetchone() == (9,)
    assert connection.execute("SELECT query FROM evaluations ORDER BY number").fetchall() == [(i,) for i in range(9)]
    connection.close()


# -- a program of its own ---------------------------------------------------------------------------------------------

PROGRAM = """
    import json, sys
    import numpy as np
    import gibo

    def objective(x, seed):
        value = -float(((x - 0.5) ** 2).sum()) + 0.1 * float(np.random.default_rng(seed).standard_normal())
        print(value, flush=True)
        return value

    result = gibo.maximize(objective, [0.0, 0.1], budget=24, scale=0.3, seed=5, journal=sys.argv[1])
    print(json.dumps([result.x.tolist(), result.history.x.tolist(), result.history.value.tolist()]))
"""


def test_a_program_that_is_killed_and_started_again_prints_the_same_result(base):
    (base / "program.py").write_text(textwrap.dedent(PROGRAM))
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}

    def program():
        command = [sys.executable, str(base / "program.py"), str(base / "run")]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)

    printed = 0
    for lines in (1, 6, 3):
        with program() as process:
            for _ in range(lines):
                process.stdout.readline()
                printed += 1
            process.kill()
        assert process.returncode == -signal.SIGKILL
    with program() as process:
        *values, text = process.stdout.read().splitlines()
    assert process.returncode == 0
    assert printed + len(values) <= 24 + 3  # what was recorded was not evaluated again

    def objective(x, seed):
        return -float(((x - 0.5) ** 2).sum()) + 0.1 * float(np.random.default_rng(seed).standard_normal())

    expected = gibo.maximize(objective, [0.0, 0.1], budget=24, scale=0.3, seed=5)
    x, points, found = json.loads(text)
    assert (x, points, found) == (
        expected.x.tolist(),
        expected.history.x.tolist(),
        expected.history.value.tolist(),
    )
