"""Optimisers of other packages behind the face that every optimiser has; for comparison only.

Each package is imported when its optimiser is made. A replay asks and tells afresh, as for CMA-ES. Optimisers without
a model of their own for noise recommend the best value that they saw, as their packages do.
"""

from __future__ import annotations

import importlib
import logging
import queue
import threading
import warnings
import weakref
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from gibo._linalg import Array
from gibo.errors import RunError
from gibo.optimizers.base import Optimizer
from gibo.outcome import QUERY, Best, Evaluation


class Foreign(Optimizer):
    """Base of optimisers that ask for one point after the other and recommend the best one they saw."""

    changes_in_place = True

    @property
    def best(self) -> Best | None:
        """The highest value told, as it was told."""
        return self.best_seen

    def _update(self, batch: list[Evaluation]) -> None:
        self._iteration += 1
        value = batch[0].value
        self._told(batch[0].x, self._worst() if value is None else value)
        seen = self.best_seen
        self._iterate = self.x0.copy() if seen is None else self.clip(seen.x)

    def _worst(self) -> float:
        """For a failure."""
        return min((e.value for e in self._log.valued if e.value is not None), default=0.0)

    def _told(self, x: Array, value: float) -> None:
        raise NotImplementedError


class OptunaTPE(Foreign):
    """Optuna's tree-structured Parzen estimator over a finite box; x0 is its first trial."""

    title = "Optuna TPE"
    sampler = "TPESampler"

    def __init__(self, x0: npt.ArrayLike, *, bounds: npt.ArrayLike, scale: npt.ArrayLike = 1.0, seed: int = 0) -> None:
        super().__init__(x0, scale=scale, bounds=bounds, seed=seed)
        optuna = importlib.import_module("optuna")
        optuna.logging.set_verbosity(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of experimental samplers
            sampler = getattr(optuna.samplers, self.sampler)(seed=self.seed % 2**32)
        assert self.bounds is not None
        self._study = optuna.create_study(direction="maximize", sampler=sampler)
        self._space = {
            f"x{j}": optuna.distributions.FloatDistribution(low, high)
            for j, (low, high) in enumerate(np.transpose(self.bounds).tolist())
        }
        self._study.enqueue_trial({name: float(v) for name, v in zip(self._space, self.x0, strict=True)})
        self._trial: Any = None

    def _propose(self) -> list[tuple[Array, str]]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._trial = self._study.ask(self._space)
        return [(np.array([self._trial.params[name] for name in self._space]), QUERY)]

    def _told(self, x: Array, value: float) -> None:
        self._study.tell(self._trial, value)


class OptunaGP(OptunaTPE):
    """Optuna's Gaussian process sampler."""

    title = "Optuna GP"
    sampler = "GPSampler"


class Nevergrad(Foreign):
    """nevergrad's default wizard, NGOpt, told that values are noisy; it recommends by its own rule."""

    title = "nevergrad"

    def __init__(
        self,
        x0: npt.ArrayLike,
        *,
        scale: npt.ArrayLike = 1.0,
        bounds: npt.ArrayLike | None = None,
        seed: int = 0,
        budget: int = 1000,
    ) -> None:
        super().__init__(x0, scale=scale, bounds=bounds, seed=seed)
        self.budget = budget
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ng = importlib.import_module("nevergrad")
            parameter = ng.p.Array(init=self.x0 / self.scale).set_mutation(sigma=1.0)
            if self.bounds is not None:
                parameter = parameter.set_bounds(*(bound / self.scale for bound in self.bounds))
            parameter.function.deterministic = False
            parameter.random_state.seed(self.seed % 2**32)
            self._wizard = ng.optimizers.NGOpt(parametrization=parameter, budget=budget)
        self._candidate: Any = None

    @property
    def best(self) -> Best | None:
        """Its recommendation, with the highest value seen, because it says none."""
        seen = self.best_seen
        if seen is None:
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x = np.asarray(self._wizard.provide_recommendation().value) * self.scale
        return Best(self.clip(x), seen.value)

    def _propose(self) -> list[tuple[Array, str]]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._candidate = self._wizard.ask()
        return [(np.asarray(self._candidate.value) * self.scale, QUERY)]

    def _told(self, x: Array, value: float) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._wizard.tell(self._candidate, -value)


class COBYQA(Foreign):
    """SciPy's COBYQA, a trust region method on quadratic models; once it ends it starts again from the best point.

    SciPy calls the objective; so it runs in a thread that waits for each value. SciPy runs one such search at a time in
    a process: a new one ends the one before.
    """

    _running: ClassVar[list[Any]] = []  # what the last one's thread waits for

    def __init__(
        self, x0: npt.ArrayLike, *, scale: npt.ArrayLike = 1.0, bounds: npt.ArrayLike | None = None, seed: int = 0
    ) -> None:
        super().__init__(x0, scale=scale, bounds=bounds, seed=seed)
        self._points: queue.SimpleQueue[Array | Exception] = queue.SimpleQueue()
        self._costs: queue.SimpleQueue[float | None] = queue.SimpleQueue()
        self._restart = [self.x0 / self.scale]  # the one entry is replaced as better points are seen
        box = None if self.bounds is None else (self.bounds[0] / self.scale, self.bounds[1] / self.scale)
        arguments = (self._points, self._costs, self._restart, box)
        threading.Thread(target=_search, args=arguments, daemon=True).start()
        weakref.finalize(self, self._costs.put, None)  # the thread holds no reference to this object, and ends with it
        for costs in self._running:
            costs.put(None)
        self._running[:] = [self._costs]

    def _propose(self) -> list[tuple[Array, str]]:
        point = self._points.get()
        if isinstance(point, Exception):
            raise RunError(f"COBYQA ended: {point!r:.200}")
        return [(point * self.scale, QUERY)]

    def _told(self, x: Array, value: float) -> None:
        seen = self.best_seen
        if seen is not None:
            self._restart[0] = self.clip(seen.x) / self.scale
        self._costs.put(-value)


class _EndedError(Exception):
    """Nobody answers any more, or another search has begun."""


def _search(points: Any, costs: Any, restart: list[Array], box: tuple[Array, Array] | None) -> None:
    from scipy.optimize import Bounds, minimize

    def cost(z: Array) -> float:
        points.put(z.copy())
        answer = costs.get()
        if answer is None:
            raise _EndedError
        return float(answer)

    radius = 1.0 if box is None else min(1.0, 0.49 * float((box[1] - box[0]).min()))
    bounds = None if box is None else Bounds(*box)
    try:
        while True:
            minimize(cost, restart[0], method="COBYQA", bounds=bounds, options={"initial_tr_radius": radius})
    except Exception as error:  # who waits for the next point must hear of it
        points.put(error)
