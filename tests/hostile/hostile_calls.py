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
from typing import Any, NamedTuple

import numpy as np
from hostile_values import bent

from gibo import GiboError
from gibo.map_fit import Fit
from gibo.runs.result import Result

LONGEST = 2000
MEMORY = 3 << 30
PROCESSOR, CLOCK = 20.0, 120.0  # seconds of a call, for when it never ends


class Call(NamedTuple):
    """A right call: what is called, with which arguments; and what a user would do with what it returns."""

    function: Any
    arguments: dict[str, Any]
    use: Any = None
    sizes: tuple[str, ...] = ()  # of which a large one is right, and takes as long as it takes


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
    if isinstance(value, dict):
        return next(filter(None, (nan_in(part, depth + 1) for part in value.values())), None)
    if isinstance(value, (list, tuple)):
        return next(filter(None, (nan_in(part, depth + 1) for part in value)), None)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return nan_in([getattr(value, field.name, None) for field in dataclasses.fields(value)], depth + 1)
    return None


def judged(call, arguments):
    """What is wrong with how it answers, or None; and whether it refused."""
    try:
        result = call.function(**arguments)
        return nan_in(result if call.use is None else call.use(result)), False
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


def hostile_call(make, folder, rng):
    """A right call with one to three of its arguments wrong."""
    call = make(folder)
    names = list(call.arguments)
    count = min(len(names), 1 + int(rng.random() < 0.3) + int(rng.random() < 0.1))
    chosen = rng.choice(len(names), size=count, replace=False) if names else []
    spoilt = {names[i]: bent(call.arguments[names[i]], rng) for i in chosen}
    for name in set(call.sizes) & set(spoilt):
        if isinstance(spoilt[name], numbers.Integral) and spoilt[name] > 4:
            spoilt[name] = 4
    return call, {**call.arguments, **spoilt}, spoilt


def described(name, spoilt):
    with suppress(BaseException):
        return f"{name}({', '.join(f'{key}={value!r:.120}' for key, value in spoilt.items())})"
    return f"{name}({', '.join(f'{key}: {type(value).__name__}' for key, value in spoilt.items())})"


def _hang(*_):
    raise Hung


def attack(targets, numbers, folder, connection):
    """Make the calls of these numbers and tell of each, in a process of its own."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    os.chdir(folder)
    signal.signal(signal.SIGPROF, _hang)
    signal.signal(signal.SIGALRM, _hang)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    names = sorted(targets)
    for number in numbers:
        rng = np.random.default_rng(number)
        name = names[number % len(names)]
        connection.send((number, name))
        call, arguments, spoilt = hostile_call(targets[name], folder, rng)
        signal.setitimer(signal.ITIMER_PROF, PROCESSOR)
        signal.setitimer(signal.ITIMER_REAL, CLOCK)
        wrong, refused = judged(call, arguments)
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        connection.send((wrong and f"{number}: {described(name, spoilt)}\n{wrong}", refused))
    connection.send(None)


def attacked(targets, numbers, folder):
    """What was wrong, and how many calls were made and refused."""
    numbers, findings, made, refused = list(numbers), [], 0, 0
    while numbers:
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("fork").Process(target=attack, args=(targets, numbers, folder, theirs))
        process.start()
        theirs.close()
        while True:
            try:
                begun = ours.recv()
                if begun is None:
                    numbers = []
                    break
                wrong, was_refused = ours.recv()
            except EOFError:
                process.join()
                number, name = begun
                findings.append(f"{number}: {name}: the process ended with {process.exitcode}")
                numbers = numbers[numbers.index(number) + 1 :]
                made += 1
                break
            made += 1
            refused += was_refused
            if wrong:
                findings.append(wrong)
        process.join()
        ours.close()
    return findings, made, refused
