"""What the tests of the page share."""

import time

import numpy as np

from gibo.runs.control import ANY_TIME, RUNNING_ONLY, Requests

HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script> & 'joint limit'"


def noisy(x, seed):
    if seed % 9 == 0:
        raise RuntimeError(HOSTILE)
    return float(3.0 - ((x - 1.0) ** 2).sum() + 0.05 * np.random.default_rng(seed).normal())


class Deeds(Requests):
    """A control that remembers what it was asked for."""

    actions = frozenset((*RUNNING_ONLY, *ANY_TIME))

    def __init__(self):
        self.done = []

    def _do(self, kind, body):
        name = {"paused": "pause", "continued": "continue", "told": "tell", "failed": "mark_failed"}.get(kind, kind)
        self.done.append((name, *body.values()) if body else name)
        return True


def until(tab, expression):
    """Wait for an expression to become true in the page; its policy forbids the browser's driver to do so itself."""
    deadline = time.monotonic() + 10.0
    while not tab.evaluate(expression):
        assert time.monotonic() < deadline, f"never true: {expression}"
        tab.wait_for_timeout(20)
