"""What the tests of pools share: a noisy hill, every kind of pool, and results that can be compared to the last bit."""

import functools
import multiprocessing
import os
import random
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest

import gibo
from gibo import FailedEvaluationWarning, Outcome, RandomSearch, Settings

# Cheap, and with four queries after each iterate.
SETTINGS = Settings(lengthscale=1.0, variance=1.0, noise=0.01, M=4, N_m=20)
X0 = [0.0, 0.2, -0.1]


# -- objectives -------------------------------------------------------------------------------------------------------


def hill(x, seed):
    return 5.0 - float(((x - 1.0) ** 2).sum()) + 0.1 * float(np.random.default_rng(seed).standard_normal())


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


def tell_seed(x, seed, kind):
    return Outcome(hill(x, seed), info={"seed": seed, "kind": kind, "process": os.getpid()})


def broken(x):
    raise ZeroDivisionError("the robot fell")


def failing_for(seeds, how):
    def objective(x, seed):
        return how(x) if seed in seeds else hill(x, seed)

    return objective


def seeds_of(*ids):
    """Those of the queries with these ids, in a run with seed 1."""
    optimizer = RandomSearch(X0, seed=1, batch=max(ids) + 1)
    return [query.seed for query in optimizer.ask() if query.id in ids]


# -- runs -------------------------------------------------------------------------------------------------------------


def climb(objective=hill, x0=X0, budget=20, **options):
    return gibo.maximize(objective, x0, **{"budget": budget, "settings": SETTINGS, "seed": 1, **options})


@contextmanager
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FailedEvaluationWarning)
        yield


@functools.cache
def expected(name):
    """Runs in this process, one evaluation after the other."""
    with quiet():
        if name == "hill":
            return everything(climb())
        if name == "uneven":
            return everything(climb(uneven, budget=30, penalty=-3.0))
        return everything(gibo.minimize(hill, X0, budget=20, settings=SETTINGS, seed=1))


def everything(result):
    """A result as a text that distinguishes floats to the last bit."""
    history = {name: array.tolist() for name, array in vars(result.history).items()}
    seen = None if result.best_seen is None else (result.best_seen.x.tolist(), result.best_seen.value)
    failures = [(failure.id, failure.failure) for failure in result.failures]
    ended = (result.status, result.reason, result.warnings)
    return repr((result.x.tolist(), result.value, seen, result.iterate.tolist(), history, ended, failures))


def by_id(journal):
    """The evaluations of a journal."""
    return sorted((evaluation for evaluation, _ in journal.evaluations()), key=lambda evaluation: evaluation.id)


# -- pools and processes ----------------------------------------------------------------------------------------------


def fork():
    return multiprocessing.get_context("fork")


@contextmanager
def executing(executor):
    with executor:
        yield {"executor": executor}


# Each is a function that gives the options of a run, as a context: an executor is its owner's to close.
POOLS = {
    "in-process": lambda: nullcontext({}),
    "workers-1": lambda: nullcontext({"time_limit": 60.0}),  # which means one worker
    "workers-3": lambda: nullcontext({"workers": 3}),
    "threads": lambda: executing(ThreadPoolExecutor(3)),
    "processes": lambda: executing(ProcessPoolExecutor(2, mp_context=fork())),
}
every_pool = pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS.keys())


def started(target, *arguments):
    """A process that starts in milliseconds."""
    process = fork().Process(target=target, args=arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forking beside threads
        process.start()
    return process


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
        assert time.monotonic() < deadline, f"waited too long until {what}"
        time.sleep(0.002)
