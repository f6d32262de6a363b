"""Where evaluations run makes no difference to a run, and whatever happens there does not end it."""

import faulthandler
import functools
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest

import gibo
import gibo.runs.journal
from gibo import GIBO, FailedEvaluationWarning, InputError, Journal, Outcome, RandomSearch, Settings
from gibo.runs.pools import Workers

# Cheap, and with four queries after each iterate.
SETTINGS = Settings(lengthscale=1.0, variance=1.0, noise=0.01, M=4, N_m=20)
X0 = [0.0, 0.2, -0.1]


def hill(x, seed):
    return 5.0 - float(((x - 1.0) ** 2).sum()) + 0.1 * float(np.random.default_rng(seed).standard_normal())


def delayed(x, seed):
    """Answers arrive in any order."""
    time.sleep(random.Random(seed).choice([0.0, 0.0, 0.003, 0.01]))
    return hill(x, seed)


def uneven(x, seed):
    """All that an evaluation may give, by the seed."""
    time.sleep(random.Random(seed).choice([0.0, 0.0, 0.005]))
    kind = seed % 7
    if kind == 0:
        raise RuntimeError(f"seed {seed} is no good")
    if kind == 1:
        return float("nan")
    value = hill(x, seed)
    if kind == 2:
        return Outcome(value, gradient=2.0 - 2.0 * x, gradient_noise=0.1, info={"seed": seed})
    return value


@contextmanager
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FailedEvaluationWarning)
        yield


def climb(objective=hill, x0=X0, budget=20, **options):
    return gibo.maximize(objective, x0, **{"budget": budget, "settings": SETTINGS, "seed": 1, **options})


def fork():
    return multiprocessing.get_context("fork")


# Each is a function that gives the options of a run, as a context: an executor is its owner's to close.
POOLS = {
    "in-process": lambda: nullcontext({}),
    "workers-1": lambda: nullcontext({"time_limit": 60.0}),  # which means one worker
    "workers-2": lambda: nullcontext({"workers": 2}),
    "workers-4": lambda: nullcontext({"workers": 4}),
    "threads": lambda: executing(ThreadPoolExecutor(3)),
    "processes": lambda: executing(ProcessPoolExecutor(2, mp_context=fork())),
}
every_pool = pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS.keys())
every_worker = pytest.mark.parametrize("workers", [1, 3])


@contextmanager
def executing(executor):
    with executor:
        yield {"executor": executor}


def everything(result):
    """A result as a text that distinguishes floats to the last bit."""
    history = {name: array.tolist() for name, array in vars(result.history).items()}
    seen = None if result.best_seen is None else (result.best_seen.x.tolist(), result.best_seen.value)
    failures = sorted((failure.id, failure.reason) for failure in result.failures)
    return repr((result.x.tolist(), result.value, seen, result.iterate.tolist(), history, result.reason, failures))


def is_gone(pid):
    """Whether a process has ended; one that nobody has asked about since counts."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def wait_until(condition, what):
    """The limit is for when it never happens."""
    deadline = time.monotonic() + 30.0
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.002)


VERSIONS = gibo.runs.journal.versions()


@pytest.fixture(autouse=True)
def known_versions(monkeypatch):
    """To look them up takes longer than all else that a start does; the tests of the journal do."""
    monkeypatch.setattr(gibo.runs.journal, "versions", lambda: VERSIONS)


# -- the same everywhere ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def expected():
    """Runs in this process, one evaluation after the other."""
    with quiet():
        return {
            "hill": everything(climb()),
            "uneven": everything(climb(uneven, budget=30, penalty=-3.0)),
            "minimised": everything(gibo.minimize(hill, X0, budget=20, settings=SETTINGS, seed=1)),
        }


@every_pool
def test_a_run_does_not_depend_on_where_it_is_evaluated(pool, expected):
    with pool() as options:
        assert everything(climb(delayed, **options)) == expected["hill"]


@every_pool
def test_nor_does_one_with_failures_gradients_and_a_journal(pool, expected, tmp_path):
    with pool() as options, quiet():
        result = climb(uneven, budget=30, penalty=-3.0, journal=tmp_path, **options)
    assert everything(result) == expected["uneven"]
    with Journal.read(tmp_path) as journal:
        told = sorted(journal.evaluations(), key=lambda t: t.query.id)
    for t in told:
        assert (t.answer.failure is not None) == (t.query.seed % 7 < 2)
        assert t.answer.info == ({"seed": t.query.seed} if t.query.seed % 7 == 2 else None)
        assert t.answer.gradient == ((2.0 - 2.0 * t.query.x).tolist() if t.query.seed % 7 == 2 else None)
    assert {t.query.seed % 7 for t in told} >= {0, 1, 2}


def test_minimising_with_workers_is_the_same_too(expected):
    result = gibo.minimize(delayed, X0, budget=20, settings=SETTINGS, seed=1, workers=3)
    assert everything(result) == expected["minimised"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: GIBO(X0, scale=0.3, seed=2),
        lambda: gibo.ARS(X0, scale=0.3, seed=2, directions=3),
        lambda: gibo.CMAES(X0, scale=0.3, seed=2),
        lambda: gibo.VanillaBO(X0, scale=0.3, seed=2, bounds=(-1.0, 1.0)),
        lambda: RandomSearch(X0, scale=0.3, seed=2, batch=5),
    ],
    ids=["GIBO", "ARS", "CMAES", "VanillaBO", "RandomSearch"],
)
def test_every_optimizer_ends_in_the_same_state_with_workers(make):
    one, two = make(), make()
    gibo.run(one, hill, budget=17)
    gibo.run(two, delayed, budget=17, workers=3)
    assert two.state() == one.state()


@every_pool
def test_the_objective_gets_the_querys_seed_everywhere(pool, tmp_path):
    with pool() as options:
        climb(tell_seed, budget=11, journal=tmp_path, **options)
    with Journal.read(tmp_path) as journal:
        told = {t.query.id: t.answer.info["seed"] for t in journal.evaluations()}
    assert [told[number] for number in range(11)] == seeds_of(*range(11))


def tell_seed(x, seed):
    return Outcome(hill(x, seed), info={"seed": seed, "process": os.getpid()})


class Callable:
    def __call__(self, x, *, seed):
        return hill(x, seed)

    def method(self, x, seed=None):
        return hill(x, seed)

    @classmethod
    def of_class(cls, x, other=3, seed=0):
        return hill(x, seed)


@pytest.mark.parametrize(
    "objective",
    [Callable(), Callable().method, Callable.of_class, functools.partial(Callable.of_class, other=2)],
    ids=["object", "method", "classmethod", "partial"],
)
@pytest.mark.parametrize("options", [{}, {"workers": 2}], ids=str)
def test_a_parameter_named_seed_is_found_in_anything_that_can_be_called(objective, options, expected):
    assert everything(climb(objective, **options)) == expected["hill"]


def test_an_objective_without_a_seed_gets_none():
    seen = []
    climb(lambda x, **others: seen.append(others) or 0.0, budget=3)
    climb(lambda x, /: seen.append({}) or 0.0, budget=3)
    assert seen == [{}] * 6


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_workers_are_as_many_other_processes(workers, tmp_path):
    climb(tell_seed, budget=20, workers=workers, journal=tmp_path)
    with Journal.read(tmp_path) as journal:
        processes = {t.answer.info["process"] for t in journal.evaluations()}
    assert os.getpid() not in processes
    assert 1 <= len(processes) <= workers
    assert all(is_gone(pid) for pid in processes)


def test_workers_run_at_the_same_time():
    barrier = fork().Barrier(3)

    def together(x):
        barrier.wait(timeout=60.0)  # passes only if three evaluations are at it
        return float(x.sum())

    optimizer = RandomSearch(X0, batch=3)
    assert gibo.run(optimizer, together, budget=6, workers=3).failures == ()


def test_any_function_can_be_sent_to_workers():
    shift = np.array([1.0, 2.0, 3.0])
    result = climb(lambda x: -float(((x - shift) ** 2).sum()), workers=2)
    assert result.failures == ()


def test_what_an_objective_does_to_its_process_stays_there():
    seen = []

    def objective(x):
        seen.append(1)
        os.environ["GIBO_TEST"] = "changed"
        x[:] = 99.0
        return 0.0

    result = climb(objective, workers=2)
    assert not seen
    assert "GIBO_TEST" not in os.environ
    assert (result.history.x < 50.0).all()


def test_an_objective_may_start_processes_of_its_own():
    def objective(x):
        return float(subprocess.run(["echo", "2.5"], capture_output=True, check=True, text=True).stdout)

    assert climb(objective, budget=4, workers=2).history.value.tolist() == [2.5] * 4

    def with_a_child(x):
        child = fork().Process(target=os._exit, args=(7,))
        child.start()
        child.join()
        return float(child.exitcode)

    assert climb(with_a_child, budget=4, workers=2).history.value.tolist() == [7.0] * 4


def test_an_answer_may_be_large(tmp_path):
    """Larger than what fits into a pipe at once."""
    climb(lambda x: Outcome(1.0, info={"log": "x" * 300_000}), budget=5, workers=2, journal=tmp_path)
    with Journal.read(tmp_path) as journal:
        assert [len(t.answer.info["log"]) for t in journal.evaluations()] == [300_000] * 5


# -- failures ---------------------------------------------------------------------------------------------------------


def broken(x):
    raise ZeroDivisionError("the robot fell")


def cyclic():
    info = {}
    info["self"] = info
    return info


FAILURES = {
    "exception": (broken, "ZeroDivisionError: the robot fell"),
    "exit": (lambda x: sys.exit(3), "SystemExit: 3"),
    "nan": (lambda x: np.nan, "expected a finite number, got nan"),
    "inf": (lambda x: np.inf, "expected a finite number, got inf"),
    "minus-inf": (lambda x: -np.inf, "expected a finite number, got -inf"),
    "text": (lambda x: "3.0", "expected a number, got str '3.0'"),
    "none": (lambda x: None, "expected a number, got None"),
    "vector": (lambda x: x, "expected a number, got an array of shape (3,)"),
    "complex": (lambda x: 1j, "expected a number, got complex"),
    "outcome-of-nan": (lambda x: Outcome(np.nan), "expected a finite number, got nan"),
    "gradient-of-two": (lambda x: Outcome(1.0, [1.0, 2.0], 0.1), "gradient: expected a vector of 3 numbers, got 2"),
    "gradient-of-nan": (lambda x: Outcome(1.0, [np.nan] * 3, 0.1), "gradient: expected finite"),
    "gradient-alone": (lambda x: Outcome(1.0, [1.0] * 3), "give gradient_noise too"),
    "gradient-noise": (lambda x: Outcome(1.0, [1.0] * 3, -0.1), "gradient_noise: expected non-negative"),
    "info": (lambda x: Outcome(1.0, info={"a": object()}), "info: expected data that JSON can hold"),
    "gradient-noise-of-4": (lambda x: Outcome(1.0, [1.0] * 3, [1.0] * 4), "the objective's outcome: ValueError"),
    "ragged-gradient-noise": (lambda x: Outcome(1.0, [1.0] * 3, [[1.0], [1.0, 2.0]]), "the objective's outcome: "),
    "info-array": (lambda x: Outcome(1.0, info=np.ones(2)), "the objective's outcome: ValueError"),
    "info-in-itself": (lambda x: Outcome(1.0, info=cyclic()), "the objective's outcome: RecursionError"),
    "info-list": (lambda x: Outcome(1.0, info=[1, 2]), "info: expected data that JSON can hold"),
}


def failing_for(seeds, how):
    def objective(x, seed):
        return how(x) if seed in seeds else hill(x, seed)

    return objective


def seeds_of(*ids):
    """Those of the queries with these ids, in a run with seed 1."""
    optimizer = RandomSearch(X0, seed=1, batch=max(ids) + 1)
    return [query.seed for query in optimizer.ask() if query.id in ids]


@pytest.mark.parametrize(("how", "words"), FAILURES.values(), ids=FAILURES.keys())
def test_a_failure_in_a_worker_is_passed_over_and_recorded(how, words, tmp_path):
    with pytest.warns(FailedEvaluationWarning, match="evaluation 2 failed and is passed over"):
        result = climb(failing_for(seeds_of(2), how), budget=7, workers=2, journal=tmp_path)
    assert result.evaluations == 7
    (failure,) = result.failures
    assert failure.id == 2
    assert words in failure.reason
    assert np.flatnonzero(np.isnan(result.history.value)).tolist() == [2]
    with Journal.read(tmp_path) as journal:
        assert [t.answer.failure for t in journal.evaluations() if t.query.id == 2] == [failure.reason]


@pytest.mark.parametrize("options", [{}, {"workers": 2}], ids=str)
def test_the_warning_shows_the_traceback(options):
    with pytest.warns(FailedEvaluationWarning) as caught:
        result = climb(failing_for(seeds_of(1, 2, 3), broken), **options)
    (warning,) = caught  # of the first one only
    text = str(warning.message)
    assert "Traceback (most recent call last)" in text
    assert 'raise ZeroDivisionError("the robot fell")' in text
    assert "in broken" in text
    assert [failure.id for failure in sorted(result.failures, key=lambda f: f.id)] == [1, 2, 3]
    assert all("in broken" in failure.traceback for failure in result.failures)


def crash(number):
    def how(x):
        faulthandler.disable()  # or it would fill the tests' output
        os.kill(os.getpid(), number)

    return how


DEATHS = {
    "exit": (lambda x: os._exit(3), "the worker process ended with exit code 3 during the evaluation"),
    "segfault": (crash(signal.SIGSEGV), "the worker process died of SIGSEGV during the evaluation"),
    "abort": (crash(signal.SIGABRT), "the worker process died of SIGABRT during the evaluation"),
    "kill": (crash(signal.SIGKILL), "died of SIGKILL during the evaluation, perhaps for lack of memory"),
}


@pytest.mark.parametrize(("how", "words"), DEATHS.values(), ids=DEATHS.keys())
def test_a_worker_that_dies_is_replaced_and_its_evaluation_counts_as_failed(how, words, tmp_path):
    with pytest.warns(FailedEvaluationWarning, match="evaluation 2 failed and is passed over"):
        result = climb(failing_for(seeds_of(2), how), budget=9, workers=2, journal=tmp_path)
    assert result.evaluations == 9
    (failure,) = result.failures
    assert failure.id == 2
    assert words in failure.reason
    with Journal.read(tmp_path) as journal:
        assert [t.answer.failure for t in journal.evaluations() if t.query.id == 2] == [failure.reason]


def test_all_workers_may_die_at_once_and_be_tried_again(tmp_path, expected):
    def objective(x, seed):
        if seed in seeds_of(*range(4)) and not (tmp_path / str(seed)).exists():
            (tmp_path / str(seed)).touch()
            os._exit(3)
        return hill(x, seed)

    with pytest.warns(FailedEvaluationWarning, match="tried again: the worker process ended with exit code 3"):
        result = climb(objective, workers=4, retries=1)
    assert everything(result) == expected["hill"]


def test_a_worker_killed_from_outside_is_replaced():
    ours, theirs = multiprocessing.Pipe()

    def objective(x, seed):
        if seed in seeds_of(1):
            theirs.send(os.getpid())
            time.sleep(1000.0)
        return hill(x, seed)

    killer = threading.Thread(target=lambda: os.kill(ours.recv(), signal.SIGKILL))
    killer.start()
    with pytest.warns(FailedEvaluationWarning, match="died of SIGKILL during the evaluation"):
        result = climb(objective, budget=7, workers=2)
    killer.join()
    assert result.evaluations == 7


@pytest.mark.parametrize("holding", [False, True])
def test_what_a_dead_worker_left_behind_is_ended_too(holding):
    """Also if that holds the connection to the worker open, as the child of a fork does."""
    ours, theirs = multiprocessing.Pipe()

    def objective(x, seed):
        if seed in seeds_of(1):
            if holding:
                child = fork().Process(target=time.sleep, args=(1000.0,))
                child.start()
            else:
                child = subprocess.Popen(["sleep", "1000"])
            theirs.send(child.pid)
            os._exit(3)
        return hill(x, seed)

    with pytest.warns(FailedEvaluationWarning, match="exit code 3"):
        climb(objective, budget=7, workers=2)
    left = ours.recv()
    wait_until(lambda: is_gone(left), "it is gone")


def test_a_worker_that_dies_while_idle_is_replaced(expected):
    def callback(result):
        children = [child for child in multiprocessing.active_children() if child.pid not in before]
        assert len(children) == 2
        for child in children:
            os.kill(child.pid, signal.SIGKILL)
            child.join()

    before = {child.pid for child in multiprocessing.active_children()}
    assert everything(climb(workers=2, callback=callback)) == expected["hill"]


def slow_with_a_child(pids):
    def how(x):
        child = subprocess.Popen(["sleep", "1000"])
        pids.send([os.getpid(), child.pid])
        time.sleep(1000.0)

    return how


def test_the_time_limit_ends_the_process_and_what_it_started(tmp_path):
    ours, theirs = multiprocessing.Pipe()
    objective = failing_for(seeds_of(1), slow_with_a_child(theirs))
    with pytest.warns(FailedEvaluationWarning, match=r"evaluation 1 failed .*the time limit of 0\.5 s"):
        result = climb(objective, budget=7, workers=2, time_limit=0.5, journal=tmp_path)
    worker, grandchild = ours.recv()
    wait_until(lambda: is_gone(worker), "the worker is gone")
    wait_until(lambda: is_gone(grandchild), "what it started is gone")
    assert not ours.poll()
    assert result.evaluations == 7
    (failure,) = result.failures
    assert failure.reason == "the time limit of 0.5 s per evaluation was over, and its process was ended"
    with Journal.read(tmp_path) as journal:
        (told,) = [t for t in journal.evaluations() if t.query.id == 1]
    assert told.answer.seconds >= 0.5


def test_a_time_limit_alone_means_one_worker():
    def objective(x, seed):
        if seed in seeds_of(1):
            while True:  # cannot be ended from within
                pass
        return float(os.getpid())

    with pytest.warns(FailedEvaluationWarning, match="time limit"):
        values = climb(objective, budget=4, time_limit=0.5).history.value
    assert values[0] != os.getpid()
    assert np.isnan(values[1])
    assert values[2] == values[3] != values[0]  # another process


def test_evaluations_that_wait_for_a_worker_are_not_charged_for_the_time(tmp_path):
    def objective(x):
        time.sleep(0.1)
        return 0.0

    result = gibo.run(RandomSearch(X0, batch=8), objective, budget=8, workers=1, time_limit=0.6)
    assert result.failures == ()


@pytest.mark.parametrize("options", [{}, {"workers": 2}], ids=str)
def test_a_transient_failure_recovers(options, tmp_path, expected):
    def transient(x, seed):
        marker = tmp_path / f"{seed}"
        attempts = len(marker.read_text()) if marker.exists() else 0
        if seed % 3 == 0 and attempts < 2:
            marker.write_text("x" * (attempts + 1))
            raise ConnectionError("try again")
        return hill(x, seed)

    with pytest.warns(FailedEvaluationWarning, match="failed and is tried again: ConnectionError"):
        result = climb(transient, retries=2, journal=tmp_path / "run", **options)
    assert everything(result) == expected["hill"]
    with Journal.read(tmp_path / "run") as journal:
        attempts, queries = journal.attempts(), journal.queries()
        rows = journal.rows("attempts")
    assert attempts == {query.id: 2 for query in queries if query.seed % 3 == 0}
    assert len(rows) == sum(attempts.values()) > 2
    assert all(row[4] == "ConnectionError: try again" and "transient" in row[5] for row in rows)


@every_worker
def test_retries_come_to_an_end(workers, tmp_path):
    with pytest.warns(FailedEvaluationWarning):
        result = climb(
            failing_for(seeds_of(2), broken), budget=10, retries=3, workers=workers, journal=tmp_path, penalty=-9.0
        )
    assert [failure.id for failure in result.failures] == [2]
    assert result.history.value[2] == -9.0
    with Journal.read(tmp_path) as journal:
        assert journal.attempts() == {2: 3}
        assert len(journal.evaluations()) == 10


def test_a_time_limit_is_retried_like_any_failure(tmp_path):
    def objective(x, seed):
        if seed in seeds_of(1) and not (tmp_path / "tried").exists():
            (tmp_path / "tried").touch()
            time.sleep(1000.0)
        return hill(x, seed)

    with pytest.warns(FailedEvaluationWarning, match=r"tried again: the time limit of 0\.5 s"):
        result = climb(objective, budget=5, retries=1, time_limit=0.5, journal=tmp_path / "run")
    assert result.failures == ()
    with Journal.read(tmp_path / "run") as journal:
        assert journal.attempts() == {1: 1}


@pytest.mark.parametrize("options", [{}, {"workers": 2}, {"workers": 5}], ids=str)
def test_the_penalty_is_what_the_optimizer_sees(options):
    def penalised(x, seed):
        return -2.5 if seed % 3 == 0 else hill(x, seed)

    def failing(x, seed):
        return np.nan if seed % 3 == 0 else hill(x, seed)

    with pytest.warns(FailedEvaluationWarning, match="failed and is given the penalty"):
        result = climb(failing, penalty=-2.5, **options)
    plain = climb(penalised)
    assert result.history.x.tolist() == plain.history.x.tolist()
    assert result.history.value.tolist() == plain.history.value.tolist()
    assert len(result.failures) == (plain.history.value == -2.5).sum() > 2


def test_the_penalty_of_a_minimised_objective_is_in_its_own_sign():
    with pytest.warns(FailedEvaluationWarning):
        result = gibo.minimize(lambda x: np.nan, X0, budget=3, settings=SETTINGS, penalty=7.0)
    assert result.history.value.tolist() == [7.0] * 3


@every_worker
def test_too_many_failures_in_a_row_stop_the_run_with_workers(workers):
    with pytest.warns(FailedEvaluationWarning):
        result = climb(broken, budget=100, max_failures=6, workers=workers)
    assert result.reason.startswith("stopped: ")
    assert result.reason.endswith(" evaluations in a row failed, the last one with ZeroDivisionError: the robot fell")
    assert 6 <= result.evaluations < 6 + 2 * workers  # what arrived at once, and what was running
    assert np.isnan(result.value)


# -- executors --------------------------------------------------------------------------------------------------------


def test_an_executor_stays_open():
    with ThreadPoolExecutor(2) as executor:
        climb(executor=executor, budget=5)
        assert executor.submit(int, "3").result() == 3


def test_an_executor_that_is_shut_down_stops_the_run_and_it_can_be_resumed(tmp_path, expected):
    executor = ThreadPoolExecutor(2)
    result = climb(journal=tmp_path, executor=executor, callback=lambda so_far: executor.shutdown(), budget=20)
    assert result.reason.startswith("stopped: the executor takes no more evaluations: RuntimeError: ")
    assert result.evaluations == 5
    with Journal.read(tmp_path) as journal:
        assert journal.starts()[-1].reason == result.reason
    with ThreadPoolExecutor(2) as another:
        assert everything(gibo.resume(tmp_path, hill, executor=another)) == expected["hill"]


def die_of_a_seed(x, seed):
    if seed in seeds_of(8):
        os._exit(3)
    return hill(x, seed)


def test_a_broken_process_pool_stops_the_run_and_it_can_be_resumed(tmp_path, expected):
    with ProcessPoolExecutor(2, mp_context=fork()) as executor:
        result = climb(die_of_a_seed, journal=tmp_path, executor=executor)
        assert result.reason.startswith("stopped: the executor lost evaluation ")
        assert "BrokenProcessPool" in result.reason
        assert 5 <= result.evaluations <= 9
        with pytest.raises(BrokenProcessPool):
            executor.submit(int, "3")
        again = climb(journal=tmp_path, executor=executor)  # and once more with the broken one
        assert again.reason.startswith("stopped: the executor takes no more evaluations: BrokenProcessPool")
        assert again.evaluations == result.evaluations
    with ProcessPoolExecutor(2, mp_context=fork()) as another:
        assert everything(climb(journal=tmp_path, executor=another)) == expected["hill"]


def test_an_objective_that_cannot_be_sent_stops_the_run_with_a_reason():
    with ProcessPoolExecutor(1, mp_context=fork()) as executor:
        result = climb(lambda x: 0.0, executor=executor)
    assert result.reason.startswith("stopped: the executor lost evaluation ")
    assert "pickle" in result.reason
    assert result.evaluations == 0


class Lossy(Executor):
    """Evaluates at once; the second evaluation is lost on the way."""

    submitted = 0

    def submit(self, function, *arguments):
        future = Future()
        self.submitted += 1
        if self.submitted == 2:
            future.set_exception(OSError("node lost"))
        else:
            future.set_result(function(*arguments))
        return future


def test_what_an_executor_did_evaluate_is_kept_when_it_loses_something(tmp_path):
    calls = []
    result = gibo.run(
        RandomSearch(X0, batch=4), lambda x: calls.append(1) or 1.0, budget=8, executor=Lossy(), journal=tmp_path
    )
    assert result.reason == "stopped: the executor lost evaluation 1: OSError: node lost"
    assert len(calls) == result.evaluations == 3
    gibo.resume(tmp_path, lambda x: calls.append(1) or 1.0)
    assert len(calls) == 8


class Counting(ThreadPoolExecutor):
    """Knows when so many evaluations have been submitted."""

    def __init__(self, threads, goal):
        super().__init__(threads)
        self.left, self.all_there = goal, threading.Event()

    def submit(self, *arguments):
        future = super().submit(*arguments)
        self.left -= 1
        if not self.left:
            self.all_there.set()
        return future


def test_evaluations_that_are_cancelled_stop_the_run(tmp_path):
    executor = Counting(1, 4)

    def objective(x):
        assert executor.all_there.wait(timeout=60.0)
        executor.shutdown(wait=False, cancel_futures=True)
        return 1.0

    result = gibo.run(RandomSearch(X0, batch=4), objective, budget=8, executor=executor, journal=tmp_path)
    assert result.reason.startswith("stopped: the executor lost evaluation ")
    assert "CancelledError" in result.reason
    assert gibo.resume(tmp_path, lambda x: 1.0).evaluations == 8


def test_futures_that_know_that_they_are_cancelled_stop_the_run():
    class Cancelling(Executor):
        def submit(self, function, *arguments):
            future = Future()
            future.cancel()
            future.set_running_or_notify_cancel()
            return future

    result = gibo.run(RandomSearch(X0), hill, budget=8, executor=Cancelling())
    assert result.reason.startswith("stopped: the executor lost evaluation 0: CancelledError")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"workers": 0}, "workers: expected a whole number of at least 1, got 0"),
        ({"workers": -2}, "workers: expected a whole number of at least 1, got -2"),
        ({"workers": 1.5}, "workers: expected a whole number of at least 1, got 1.5"),
        ({"workers": True}, "workers: expected a whole number of at least 1, got True"),
        ({"workers": "all"}, "workers: expected a whole number of at least 1, got 'all'"),
        ({"time_limit": 0.0}, "time_limit: expected a positive finite number, got 0.0"),
        ({"time_limit": -1.0}, "time_limit: expected a positive finite number, got -1.0"),
        ({"time_limit": np.nan}, "time_limit: expected a positive finite number, got nan"),
        ({"time_limit": "long"}, "time_limit: expected a number, got str 'long'"),
        ({"executor": Executor(), "workers": 2}, "workers, executor: give one of them"),
        ({"executor": Executor(), "time_limit": 2.0}, "time_limit: an executor's evaluations cannot be ended"),
        ({"executor": "threads"}, "executor: expected a concurrent.futures.Executor, got str 'threads'"),
        ({"retries": -1}, "retries: expected a whole number of at least 0, got -1"),
        ({"retries": 1.0}, "retries: expected a whole number of at least 0, got 1.0"),
        ({"retries": True}, "retries: expected a whole number of at least 0, got True"),
        ({"penalty": np.inf}, "penalty: expected a finite number, got inf"),
        ({"penalty": "low"}, "penalty: expected a number, got str 'low'"),
        ({"share": 0.0}, "share: expected a number above 0 and at most 1, got 0.0"),
        ({"share": 1.1}, "share: expected a number above 0 and at most 1, got 1.1"),
        ({"share": "half"}, "share: expected a number, got str 'half'"),
        ({"max_failures": 0}, "max_failures: expected a whole number of at least 1, got 0"),
    ],
    ids=lambda part: part if isinstance(part, str) else "-".join(part),
)
def test_mistakes_are_named_before_anything_is_evaluated(options, words):
    calls = []
    with pytest.raises(InputError, match=words):
        climb(lambda x: calls.append(x) or 0.0, **options)
    assert not calls


# -- the next iteration starts before all of one is there -------------------------------------------------------------


class Late:
    """The first query takes until one of the next iteration has begun."""

    def __init__(self, batch):
        self.batch, self.lock, self.calls, self.next_one = batch, threading.Lock(), 0, threading.Event()
        self.waited_in_vain = False

    def __call__(self, x, seed):
        with self.lock:
            number = self.calls
            self.calls += 1
        if number == self.batch:
            self.next_one.set()
        if number == 0 and not self.next_one.wait(timeout=30.0):
            self.waited_in_vain = True
        return hill(x, seed)


@pytest.mark.parametrize(
    "make", [lambda: GIBO(X0, seed=1, settings=SETTINGS), lambda: RandomSearch(X0, seed=1, batch=5)], ids=["GIBO", "RS"]
)
def test_with_a_share_the_next_iteration_starts_before_a_late_value_and_the_journal_gives_the_same_state(
    make, tmp_path
):
    optimizer, objective = make(), Late(5)
    with ThreadPoolExecutor(6) as executor:
        result = gibo.run(optimizer, objective, budget=22, executor=executor, share=0.8, journal=tmp_path)
    assert not objective.waited_in_vain
    assert result.reason == "the budget of 22 evaluations is spent"
    assert result.evaluations == 22
    with Journal.read(tmp_path) as journal:
        assert len(journal.rows("moves")) >= 1
        order = [t.query.id for t in journal.evaluations()]
        assert order.index(0) >= 4
        assert journal.optimizer().state() == optimizer.state()
    more = gibo.resume(tmp_path, hill, budget=30)
    assert more.evaluations == 30
    with Journal.read(tmp_path) as journal:
        assert journal.facts().share == 0.8
        assert sorted(t.query.id for t in journal.evaluations()) == list(range(30))


def test_with_a_share_and_workers_every_journal_replays_to_where_the_run_was(tmp_path):
    def objective(x, seed):
        time.sleep(0.02 if seed % 5 == 0 else 0.0)
        if seed % 7 == 1:
            raise RuntimeError("it broke")
        return hill(x, seed)

    moves = 0
    for seed in range(2):
        optimizer = GIBO(X0, seed=seed, settings=SETTINGS)
        with quiet():
            gibo.run(optimizer, objective, budget=33, workers=3, share=0.5, journal=tmp_path / f"{seed}")
        with Journal.read(tmp_path / f"{seed}") as journal:
            assert journal.optimizer().state() == optimizer.state()
            moves += len(journal.rows("moves"))
    assert moves >= 2


def test_a_share_of_one_by_one_evaluations_in_this_process_is_no_trouble():
    result = climb(share=0.5)
    assert result.evaluations == 20


@pytest.mark.parametrize("kind", [gibo.ARS, gibo.CMAES, gibo.VanillaBO])
def test_a_share_is_refused_by_those_that_need_all_values(kind):
    with pytest.raises(InputError, match=f"share: {kind.__name__} needs all values of an iteration; leave it at 1"):
        gibo.run(kind(X0, bounds=(-1.0, 1.0)), hill, budget=10, share=0.5)


# -- the end of the parent --------------------------------------------------------------------------------------------


def started(target, *arguments):
    process = fork().Process(target=target, args=arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forking beside threads
        process.start()
    return process


def run_to_be_interrupted(folder, connection, seconds, options):
    """A run whose evaluations from the sixth on say that they have begun and then take their time."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stderr = open(folder / "stderr", "w", buffering=1, encoding="utf-8")  # noqa: SIM115
    quick = seeds_of(*range(5))

    def objective(x, seed):
        if seed not in quick:
            child = subprocess.Popen(["sleep", "1000"])
            connection.send([os.getpid(), child.pid])
            time.sleep(seconds)
            child.kill()
            child.wait()
        return hill(x, seed)

    result = climb(objective, journal=folder / "run", **options)
    connection.send(result.reason)


def interrupted_run(folder, seconds, options):
    """Returns the process and, once two evaluations are running, the processes that work on them."""
    ours, theirs = multiprocessing.Pipe()
    process = started(run_to_be_interrupted, folder, theirs, seconds, options)
    theirs.close()
    pids = [ours.recv() for _ in range(options.get("workers", 1))]
    return process, ours, pids


def test_the_first_ctrl_c_lets_the_running_evaluations_finish_and_records_them(tmp_path, expected):
    process, connection, pids = interrupted_run(tmp_path, 0.3, {"workers": 2})
    os.kill(process.pid, signal.SIGINT)
    assert connection.recv() == "interrupted after 7 of 20 evaluations"
    process.join()
    assert process.exitcode == 0
    assert all(is_gone(pid) for pair in pids for pid in pair)
    text = (tmp_path / "stderr").read_text()
    assert "waiting for 2 running evaluations; Ctrl-C again ends them" in text
    with Journal.read(tmp_path / "run") as journal:
        told = journal.evaluations()
        assert journal.starts()[-1].reason == "interrupted after 7 of 20 evaluations"
    assert sorted(t.query.id for t in told) == list(range(7))
    assert all(t.answer.failure is None for t in told)
    assert everything(climb(journal=tmp_path / "run")) == expected["hill"]


def test_a_second_ctrl_c_ends_at_once(tmp_path, expected):
    process, connection, pids = interrupted_run(tmp_path, 1000.0, {"workers": 2})
    os.kill(process.pid, signal.SIGINT)
    wait_until(lambda: "Ctrl-C again" in (tmp_path / "stderr").read_text(), "the first one is noticed")
    os.kill(process.pid, signal.SIGINT)
    assert connection.recv() == "interrupted after 5 of 20 evaluations"
    process.join()
    assert process.exitcode == 0
    for pid in (pid for pair in pids for pid in pair):
        wait_until(lambda pid=pid: is_gone(pid), f"process {pid} is gone")
    assert everything(climb(journal=tmp_path / "run")) == expected["hill"]


def test_ctrl_c_in_the_terminal_reaches_the_parent_only(tmp_path, expected):
    """A terminal sends it to the whole group of processes."""
    process, connection, _ = interrupted_run(tmp_path, 0.2, {"workers": 2})
    group = {int(pid) for pid in os.listdir("/proc") if pid.isdigit() and group_of(int(pid)) == group_of(process.pid)}
    mine = [pid for pid in group if ancestor(pid, process.pid)]
    for pid in mine:
        os.kill(pid, signal.SIGINT)
    assert mine == [process.pid]
    assert connection.recv() == "interrupted after 7 of 20 evaluations"
    process.join()
    assert everything(climb(journal=tmp_path / "run")) == expected["hill"]


def slow(x):
    time.sleep(0.4)
    return 1.0


def run_with_a_process_pool(folder, connection):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.setpgid(0, 0)
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    with ProcessPoolExecutor(2, mp_context=fork()) as executor:
        executor.submit(int, "3").result()
        connection.send("begun")
        try:
            connection.send(
                gibo.run(RandomSearch(X0, batch=4), slow, budget=8, executor=executor, journal=folder).reason
            )
        except BaseException as error:
            connection.send(repr(error))


def test_ctrl_c_in_the_terminal_with_a_process_pool_whose_workers_get_it_too_returns_a_result(tmp_path):
    ours, theirs = multiprocessing.Pipe()
    process = started(run_with_a_process_pool, tmp_path, theirs)
    assert ours.recv() == "begun"
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    assert ours.recv().startswith(("interrupted after ", "stopped: "))
    process.join()
    assert gibo.resume(tmp_path, lambda x: 1.0).evaluations == 8


def test_an_answer_that_has_arrived_survives_ctrl_c(tmp_path, monkeypatch):
    """Between its arrival and its record."""
    ours, theirs = multiprocessing.Pipe()
    replacing, sent = Workers._hand_out, []

    def interrupted(self):
        if sys._getframe(1).f_locals.get("arrivals") and not sent:
            sent.append(os.kill(os.getpid(), signal.SIGINT))
        return replacing(self)

    monkeypatch.setattr(Workers, "_hand_out", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        result = gibo.run(
            RandomSearch(X0, batch=2), lambda x: theirs.send(1) or 1.0, budget=8, workers=1, journal=tmp_path
        )
    finally:
        signal.signal(signal.SIGINT, before)
    assert sent
    assert result.reason.startswith("interrupted after ")
    evaluated = 0
    while ours.poll():
        evaluated += ours.recv()
    assert result.evaluations == evaluated >= 1


def group_of(pid):
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


def ancestor(pid, of):
    """Whether a process is another one or comes from it."""
    while pid > 1:
        if pid == of:
            return True
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                pid = int(file.read().rpartition(")")[2].split()[1])
        except FileNotFoundError:
            return False
    return False


@pytest.mark.parametrize("workers", [1, 3])
def test_no_worker_outlives_a_killed_parent(tmp_path, workers, expected):
    process, _, pids = interrupted_run(tmp_path, 1000.0, {"workers": workers})
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    for pid in (pid for pair in pids for pid in pair):
        wait_until(lambda pid=pid: is_gone(pid), f"process {pid} is gone")
    assert everything(climb(journal=tmp_path / "run")) == expected["hill"]
