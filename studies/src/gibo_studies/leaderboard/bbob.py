"""Functions of the noisy BBOB suite (Hansen et al. 2009), as the package `cma` has them; with their own noise.

The package draws from NumPy's global generator. Here its two functions that do so are replaced while a value is drawn,
so that a value depends on its seed alone and the global generator is left alone.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibo._linalg import Array
from gibo_studies.leaderboard.task import Problem, generator


@dataclass(frozen=True)
class Bbob:
    """Function `number` of the suite in d dimensions, its sign turned; the instance's number is BBOB's own, from 1."""

    number: int
    d: int

    def __call__(self, number: int) -> Problem:
        suite = importlib.import_module("cma.bbobbenchmarks")
        function, lowest = suite.instantiate(self.number, number + 1)
        function._evalfull(np.zeros(self.d))  # it is made for its dimension by its first value

        def truth(x: Array) -> float:
            with _drawing_from(suite, generator("bbob", 0)):
                return -float(function._evalfull(np.array(x))[1])

        def evaluate(x: Array, seed: int) -> float:
            with _drawing_from(suite, generator("bbob", seed, 1)):
                return -float(function._evalfull(np.array(x))[0])

        optimum = getattr(function, "xopt", None)
        return Problem(evaluate, truth, -float(lowest), None if optimum is None else np.array(optimum, dtype=float))


@contextmanager
def _drawing_from(suite: Any, rng: np.random.Generator) -> Iterator[None]:
    before = suite._rand, suite._randn
    suite._rand = lambda size=None: rng.random(size or None)
    suite._randn = lambda size=None: rng.standard_normal(size or None)
    try:
        yield
    finally:
        suite._rand, suite._randn = before
