"""Optimisers of other packages behind the face that every optimiser has; for comparison only.

Each package is imported when its optimiser is made. A replay asks and tells afresh, as for CMA-ES. Optimisers without
a model of their own for noise recommend the best value that they saw, as their packages do.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import queue
import threading
import warnings
import weakref
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from gibo._linalg import Array
from gibo.errors import RunError
from gibo.optimizers.base import Optimizer
from gibo.optimizers.log import Transform
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
        return min((e.value for e in self.log.valued if e.value is not None), default=0.0)

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


class BoTorch(Foreign):
    """Bayesian optimisation over a finite box as BoTorch recommends it for noisy values.

    A `SingleTaskGP` with its own priors, fitted to all values before every query, and the highest log noisy expected
    improvement, by `optimize_acqf` with the numbers of its tutorials. x0 comes first, then points of a Sobol sequence;
    recommended is the point with the highest posterior mean among those evaluated.

    All it does follows from the log and the seed, so it needs nothing else to be continued.
    """

    changes_in_place = False
    title = "BoTorch"
    restarts, raw_samples = 10, 512

    def __init__(self, x0: npt.ArrayLike, *, bounds: npt.ArrayLike, scale: npt.ArrayLike = 1.0, seed: int = 0) -> None:
        super().__init__(x0, scale=scale, bounds=bounds, seed=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for module in ("acquisition.logei", "fit", "models.transforms", "optim", "utils.sampling"):
                importlib.import_module(f"botorch.{module}")
        self._fitted: tuple[int, Any] = (0, None)  # a model and how many values it has seen: a cache and nothing else

    @property
    def best(self) -> Best | None:
        """By the model; the one value itself while there is only one."""
        told = [e for e in self.evaluations if e.value is not None and (self.clip(e.x) == e.x).all()]
        if len(told) < 2:
            return self.best_seen
        model = self._model()
        with _seeded(self.seed) as torch, torch.no_grad():
            mean = model.posterior(torch.tensor(np.array([e.x for e in told]))).mean.squeeze(-1).numpy()
        i = int(mean.argmax())
        return Best(told[i].x.copy(), float(mean[i]))

    @property
    def initial(self) -> int:
        """Points before the first one that is chosen, x0 among them."""
        return 2 * (self.d + 1)

    def _propose(self) -> list[tuple[Array, str]]:
        if self._iteration == 0:
            return [(self.x0, QUERY)]
        botorch = importlib.import_module("botorch")
        with _seeded(self.seed, self._iteration) as torch:
            box = torch.tensor(np.array(self.bounds))
            if self._iteration < self.initial:
                seed = self.seed % 2**32
                x = botorch.utils.sampling.draw_sobol_samples(box, n=self.initial - 1, q=1, seed=seed)
                return [(x[self._iteration - 1, 0].numpy(), QUERY)]
            model = self._model()
            known = torch.tensor(np.array([e.x for e in self.evaluations]))
            improvement = botorch.acquisition.logei.qLogNoisyExpectedImprovement(model, X_baseline=known)
            x, _ = botorch.optim.optimize_acqf(
                improvement, box, q=1, num_restarts=self.restarts, raw_samples=self.raw_samples
            )
            return [(x[0].numpy(), QUERY)]

    def _model(self) -> Any:
        """Fitted to all that was told; a failure has the worst value."""
        told = self.evaluations
        if self._fitted[0] != len(told):
            botorch, gpytorch = importlib.import_module("botorch"), importlib.import_module("gpytorch")
            with _seeded(self.seed, len(told)) as torch:
                X = torch.tensor(np.array([e.x for e in told]))
                y = torch.tensor([[self._worst() if e.value is None else e.value] for e in told], dtype=X.dtype)
                units = botorch.models.transforms.Normalize(self.d, bounds=torch.tensor(np.array(self.bounds)))
                model = botorch.models.SingleTaskGP(X, y, input_transform=units)  # it standardises the values itself
                botorch.fit.fit_gpytorch_mll(gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model))
            self._fitted = len(told), model
        return self._fitted[1]

    def _told(self, x: Array, value: float) -> None:
        """The log has it."""

    def _memo(self) -> dict[str, Any]:
        return {}

    def reparametrize(self, transform: Transform, move_iterate: bool = False) -> None:
        """The model is of points that move."""
        self._fitted = (0, None)
        super().reparametrize(transform, move_iterate)


@contextlib.contextmanager
def _seeded(*seed: int) -> Iterator[Any]:
    """PyTorch with one thread and a seed; afterwards all is as it was."""
    torch = importlib.import_module("torch")
    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits and searches that are repeated
        torch.manual_seed(int(np.random.SeedSequence(seed).generate_state(1)[0]))
        torch.set_num_threads(1)
        try:
            yield torch
        finally:
            torch.set_num_threads(threads)


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
