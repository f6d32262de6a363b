"""Optimisers of other packages behind the face that every optimiser has; for comparison only.

Each package is imported when its optimiser is made. A replay asks and tells afresh, as for CMA-ES. Optimisers without
a model of their own for noise recommend the best value that they saw, as their packages do.

Some packages have no `ask`: they call the objective. Such a search runs in a thread that waits for each value. Its
class derives from `Calling`.
"""

from __future__ import annotations

import importlib
import logging
import queue
import threading
import warnings
import weakref
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from gibo._linalg import Array
from gibo.errors import RunError
from gibo.optimizers.base import Optimizer
from gibo.outcome import QUERY, Best, Evaluation

Cost: TypeAlias = Callable[[Array], float]  # of a point in units of the scale; lower is better
Box: TypeAlias = tuple[Array, Array] | None  # in units of the scale

REACH = 5.0  # scales, to either side of the start: PyBADS's plausible box


class Foreign(Optimizer):
    """Base of optimisers that ask for one point after the other and recommend the best one they saw."""

    changes_in_place = True

    def __init__(self, x0: npt.ArrayLike, **search: Any) -> None:
        super().__init__(x0, **search)
        self._box: Box = None if self.bounds is None else (self.bounds[0] / self.scale, self.bounds[1] / self.scale)
        self._open()

    @abstractmethod
    def _open(self) -> None:
        """Make the package's optimiser."""

    @abstractmethod
    def _told(self, x: Array, value: float) -> None:
        """Tell it a value; of a failure, the lowest value so far."""

    @property
    def best(self) -> Best | None:
        return self.best_seen

    def _update(self, batch: list[Evaluation]) -> None:
        self._iteration += 1
        value = batch[0].value
        if value is None:
            value = min((e.value for e in self.log.valued if e.value is not None), default=0.0)
        self._told(batch[0].x, value)
        seen = self.best_seen
        self._iterate = self.x0.copy() if seen is None else self.clip(seen.x)


class LRACMAES(Foreign):
    """CMA-ES with learning rate adaptation (Nomura et al. 2023) of the package `cmaes`, by the same authors.

    Sigma is the scale; recommended is the distribution's mean.
    """

    title = "LRA-CMA-ES"

    def _open(self) -> None:
        strategy, box = importlib.import_module("cmaes").CMA, None if self._box is None else np.transpose(self._box)
        self._strategy: Any = strategy(self.x0 / self.scale, 1.0, bounds=box, seed=self.seed % 2**32, lr_adapt=True)
        self._population: list[tuple[Array, float]] = []
        self._asked: Array = self.x0

    @property
    def best(self) -> Best | None:
        """The mean, with the highest value seen, because it says none."""
        seen = self.best_seen
        return None if seen is None else Best(self.clip(self._strategy.mean * self.scale), seen.value)

    def _propose(self) -> list[tuple[Array, str]]:
        self._asked = self._strategy.ask()
        return [(self._asked * self.scale, QUERY)]

    def _told(self, x: Array, value: float) -> None:
        self._population.append((self._asked, -value))
        if len(self._population) == self._strategy.population_size:
            self._strategy.tell(self._population)
            self._population = []


class OptunaTPE(Foreign):
    """Optuna's tree-structured Parzen estimator over a finite box; x0 is its first trial."""

    title = "Optuna TPE"
    sampler = "TPESampler"

    def _open(self) -> None:
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


# -- packages that call the objective ---------------------------------------------------------------------------------


class Calling(Foreign):
    """Base of searches that call the objective, in a thread; once one ends it starts again from the best point."""

    def _open(self) -> None:
        self._points: queue.SimpleQueue[Array | Exception] = queue.SimpleQueue()
        self._costs: queue.SimpleQueue[float | None] = queue.SimpleQueue()
        self._shared: dict[str, Array] = {"start": self.x0 / self.scale}
        arguments = (self.search, self._points, self._costs, self._shared, self._box, self.seed % 2**32)
        threading.Thread(target=_search, args=arguments, daemon=True).start()
        weakref.finalize(self, self._costs.put, None)  # the thread holds no reference to this object, and ends with it

    @staticmethod
    @abstractmethod
    def search(cost: Cost, shared: dict[str, Array], box: Box, seed: int) -> None:
        """Minimise the cost from ``shared["start"]``; what it puts into ``shared["favourite"]`` is recommended."""

    @property
    def best(self) -> Best | None:
        """The search's favourite, if it has one, with the highest value seen, because it says none."""
        seen, favourite = self.best_seen, self._shared.get("favourite")
        return seen if seen is None or favourite is None else Best(self.clip(favourite * self.scale), seen.value)

    def _propose(self) -> list[tuple[Array, str]]:
        point = self._points.get()
        if isinstance(point, Exception):
            raise RunError(f"{type(self).__name__} ended: {point!r:.200}")
        return [(point * self.scale, QUERY)]

    def _told(self, x: Array, value: float) -> None:
        seen = self.best_seen
        if seen is not None:
            self._shared["start"] = self.clip(seen.x) / self.scale
        self._costs.put(-value)


class _EndedError(BaseException):
    """Nobody answers any more, or another search has begun; not an error that a package may pass over."""


def _search(
    search: Callable[..., None], points: Any, costs: Any, shared: dict[str, Array], box: Box, seed: int
) -> None:
    def cost(z: Array) -> float:
        points.put(np.array(z, dtype=np.float64).ravel())
        answer = costs.get()
        if answer is None:
            raise _EndedError
        return float(answer)

    try:
        for number in range(2**31):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                search(cost, shared, box, (seed + number) % 2**31)
    except _EndedError:
        return
    except Exception as error:  # who waits for the next point must hear of it
        points.put(error)


def _radius(box: Box) -> float:
    """The first trust region: one scale, where it fits into the box."""
    return 1.0 if box is None else min(1.0, 0.49 * float((box[1] - box[0]).min()))


class LqCMAES(Calling):
    """lq-CMA-ES (Hansen 2019) of the package `cma`: a quadratic model decides how many of a population are evaluated.

    The loop is that of `cma.fmin_lq_surr2`. Sigma is the scale; recommended is the distribution's mean.
    """

    title = "lq-CMA-ES"

    @staticmethod
    def search(cost: Cost, shared: dict[str, Array], box: Box, seed: int) -> None:
        cma = importlib.import_module("cma")
        rng = np.random.default_rng(seed)
        options = {"verbose": -9, "seed": np.nan, "randn": lambda *size: rng.standard_normal(size)}
        if box is not None:
            options["bounds"] = [box[0].tolist(), box[1].tolist()]
        strategy = cma.CMAEvolutionStrategy(shared["start"], 1.0, options)
        surrogate = importlib.import_module("cma.fitness_models").SurrogatePopulation(cost)
        while not strategy.stop():
            points = strategy.ask()
            strategy.tell(points, surrogate(points))
            strategy.countevals = surrogate.evaluations
            shared["favourite"] = np.array(strategy.result.xfavorite)
            strategy.inject([surrogate.model.xopt])


class COBYQA(Calling):
    """SciPy's COBYQA, a trust region method on quadratic models.

    SciPy runs one such search at a time in a process: a new one ends the one before.
    """

    _running: ClassVar[list[Any]] = []  # what the last one's thread waits for

    def _open(self) -> None:
        super()._open()
        for costs in self._running:
            costs.put(None)
        self._running[:] = [self._costs]

    @staticmethod
    def search(cost: Cost, shared: dict[str, Array], box: Box, seed: int) -> None:
        from scipy.optimize import Bounds, minimize

        bounds = None if box is None else Bounds(*box)
        minimize(cost, shared["start"], method="COBYQA", bounds=bounds, options={"initial_tr_radius": _radius(box)})


class PyBOBYQA(Calling):
    """Py-BOBYQA (Cartis et al. 2019), told that values are noisy.

    Its licence is the GPL, so it is an optional install.
    """

    title = "Py-BOBYQA"

    @staticmethod
    def search(cost: Cost, shared: dict[str, Array], box: Box, seed: int) -> None:
        solve = importlib.import_module("pybobyqa").solve
        logging.getLogger("pybobyqa").setLevel(logging.ERROR)
        options = {"objfun_has_noise": True, "do_logging": False, "maxfun": 10_000}
        solve(cost, shared["start"], bounds=box, rhobeg=_radius(box), **options)


class PyBADS(Calling):
    """PyBADS (Singh and Acerbi 2024); recommended is its incumbent.

    It finds out itself whether values are noisy, as it does by default: it evaluates the start twice. While it
    evaluates its initial design, recommended is the best value seen: the design's best point is its first incumbent.

    Its plausible box is `REACH` scales to either side of the start, within the bounds; without bounds, it may go three
    times as far.
    """

    title = "PyBADS"

    @staticmethod
    def search(cost: Cost, shared: dict[str, Array], box: Box, seed: int) -> None:
        start = shared["start"]
        lower, upper = (start - 3.0 * REACH, start + 3.0 * REACH) if box is None else box
        plausible = np.maximum(start - REACH, lower), np.minimum(start + REACH, upper)
        options = {"display": "off", "show_tips": False, "random_seed": seed}
        solver: Any = None

        def noting(z: Array) -> float:
            if hasattr(solver, "u_best"):  # the initial design is over
                shared["favourite"] = solver.var_transf.inverse_transf(solver.u[None])[0]
            return cost(z)

        solver = importlib.import_module("pybads").BADS(noting, start, lower, upper, *plausible, options=options)
        logging.getLogger("BADS").setLevel(logging.ERROR)
        solver.optimize()
