"""BoTorch's Bayesian optimisation."""

from __future__ import annotations

import contextlib
import importlib
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from gibo._linalg import Array
from gibo.optimizers.log import Transform
from gibo.outcome import QUERY, Best
from gibo_studies.rivals.foreign import Foreign


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
