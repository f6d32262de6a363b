"""Calls of everything public with arguments that nobody should pass, and what may come out of them.

Only errors of gibo's own may, in one line of bounded length, and no NaN without a word. The calls are made in a process
of their own, which may use so much memory and, for each call, so much time.
"""

import dataclasses
import multiprocessing
import numbers
import os
import resource
import signal
import traceback
import warnings
from contextlib import suppress

import numpy as np
from hostile_values import bent

from gibo import GiboError
from gibo.map_fit import Fit
from gibo.runs.result import Result

LONGEST = 2000
MEMORY = 3 << 30
PROCESSOR, CLOCK = 20.0, 120.0  # seconds of a call, for when it never ends
# Arguments of which a large one is right, and takes as long as it takes.
SIZES = {"budget", "workers", "max_failures", "retries", "M", "batch", "initial", "directions", "population", "d"}
SIZES |= {"episodes", "patience", "most_steps", "maxfev"}


class Hung(BaseException):
    pass


def nan_in(value, depth=0):
    """Where there is a NaN that nobody speaks of, or None."""
    if isinstance(value, float):
        return "a NaN" if np.isnan(value) else None
    if isinstance(value, np.ndarray):
        return "a NaN" if value.dtype.kind == "f" and np.isnan(value).any() else None
    if isinstance(value, Result):
        said = not np.isnan(value.value) or any("value" in line for line in value.warnings)
        return nan_in([value.x, value.iterate, value.jacobian], depth) if said else "a NaN without a warning"
    if isinstance(value, Fit):
        return None if value.warning is not None else nan_in(value.log_posterior)
    if depth > 5:
        return None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = [getattr(value, field.name, None) for field in dataclasses.fields(value)]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return next(filter(None, (nan_in(part, depth + 1) for part in parts)), None)


def judged(call, arguments):
    """What is wrong with how it answers, or None; and whether it refused."""
    try:
        return nan_in(call.use(call.function(**arguments))), False
    except GiboError as error:
        text = str(error)
        if "\n" in text or len(text) > LONGEST:
            return f"{type(error).__name__} of {len(text)} characters: {text[:200]!r}", True
        with suppress(UnicodeEncodeError):
            text.encode()
            return None, True
        return f"{type(error).__name__} that cannot be written: {text[:200]!r}", True
    except Hung:
        return "it did not end", True
    except BaseException:
        return traceback.format_exc(limit=-4), True


def spoilt(arguments, rng):
    """One to three of the arguments, wrong."""
    names = list(arguments)
    count = min(len(names), 1 + int(rng.random() < 0.3) + int(rng.random() < 0.1))
    chosen = [names[i] for i in rng.choice(len(names), size=count, replace=False)] if names else []
    wrong = {name: bent(arguments[name], rng) for name in chosen}
    for name in SIZES & set(wrong):
        if isinstance(wrong[name], numbers.Integral) and wrong[name] > 4:
            wrong[name] = 4
    return wrong


def described(name, wrong):
    with suppress(BaseException):
        return f"{name}({', '.join(f'{key}={value!r:.120}' for key, value in wrong.items())})"
    return f"{name}({', '.join(f'{key}: {type(value).__name__}' for key, value in wrong.items())})"


def _hang(*_):
    raise Hung


def attack(targets, count, folder, connection):
    """Make so many calls and tell of each, in a process of its own."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    os.chdir(folder)
    signal.signal(signal.SIGPROF, _hang)
    signal.signal(signal.SIGALRM, _hang)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    for number in range(count):
        rng = np.random.default_rng(number)
        call = targets[number % len(targets)](folder)
        connection.send((number, call.name))
        wrong = spoilt(call.arguments, rng)
        signal.setitimer(signal.ITIMER_PROF, PROCESSOR)
        signal.setitimer(signal.ITIMER_REAL, CLOCK)
        finding, refused = judged(call, {**call.arguments, **wrong})
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        connection.send((finding and f"{number}: {described(call.name, wrong)}\n{finding}", refused))


def attacked(targets, count, folder):
    """What was wrong, and how many calls were made and refused."""
    findings, made, refused, begun = [], 0, 0, None
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=attack, args=(targets, count, folder, theirs))
    process.start()
    theirs.close()
    with suppress(EOFError):
        for _ in range(count):
            begun = ours.recv()
            finding, was_refused = ours.recv()
            made, refused = made + 1, refused + was_refused
            findings += [finding] if finding else []
    process.join()
    ours.close()
    if made < count:
        findings.append(f"{begun}: the process ended with {process.exitcode}")
    return findings, made, refused
