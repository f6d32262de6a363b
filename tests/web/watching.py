"""What the tests of the page share."""

import time

import numpy as np

import gibo
from gibo.parameters import Parameters, integer, linear, log
from gibo.runs.control import KINDS, Requests

HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script> & 'joint limit'"


PARAMETERS = Parameters(kp=log(0.1, 30, start=1), delay=integer(1, 12), angle=linear(-1, 1), damping=linear(0, 3))


def noisy(kp, delay, angle, damping, seed):
    if seed % 9 == 0:
        raise RuntimeError(HOSTILE)
    value = 3.0 + np.log(kp / 5.0) ** 2 + 0.1 * (delay - 4) ** 2 + 3.0 * (angle - 0.4) ** 2 + 0.01 * damping
    return gibo.Outcome(value + 0.05 * np.random.default_rng(seed).normal(), info={"overshoot": 2.0 * kp})


class Deeds(Requests):
    """A control that remembers what it was asked for."""

    actions = frozenset(KINDS)

    def __init__(self):
        self.done = []

    def _do(self, kind, request):
        self.done.append(dict(request))
        return True


def until(tab, expression):
    """Wait for an expression to become true in the page; its policy forbids the browser's driver to do so itself."""
    deadline = time.monotonic() + 10.0
    while not tab.evaluate(expression):
        assert time.monotonic() < deadline, f"never true: {expression}"
        tab.wait_for_timeout(20)
