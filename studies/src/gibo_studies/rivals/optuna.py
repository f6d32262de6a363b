"""Optuna's samplers."""

from __future__ import annotations

import importlib
import logging
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from gibo._linalg import Array
from gibo.outcome import QUERY
from gibo_studies.rivals.foreign import Foreign


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
