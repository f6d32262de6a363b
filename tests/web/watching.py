"""What the tests of the page share."""

import time

import numpy as np

HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script> & 'joint limit'"


def noisy(x, seed):
    if seed % 9 == 0:
        raise RuntimeError(HOSTILE)
    return float(3.0 - ((x - 1.0) ** 2).sum() + 0.05 * np.random.default_rng(seed).normal())


class Deeds:
    """A control that remembers what it was asked for."""

    actions = frozenset({"pause", "continue", "stop", "mark_failed", "tell", "remark"})

    def __init__(self):
        self.done = []

    def pause(self):
        self.done.append("pause")

    def continue_(self):
        self.done.append("continue")

    def stop(self):
        self.done.append("stop")

    def mark_failed(self, query, reason):
        self.done.append(("mark_failed", query, reason))

    def tell(self, query, value):
        self.done.append(("tell", query, value))

    def remark(self, text):
        self.done.append(("remark", text))


def until(tab, expression):
    """Wait for an expression to become true in the page; its policy forbids the browser's driver to do so itself."""
    deadline = time.monotonic() + 10.0
    while not tab.evaluate(expression):
        assert time.monotonic() < deadline, f"never true: {expression}"
        tab.wait_for_timeout(20)
