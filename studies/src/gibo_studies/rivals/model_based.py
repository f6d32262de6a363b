"""Searches with local quadratic models or a Gaussian process that call the objective: COBYQA, Py-BOBYQA, PyBADS."""

from __future__ import annotations

import importlib
import logging
import warnings
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from gibo._linalg import Array
from gibo_studies.rivals.foreign import Box, Calling, Cost

REACH = 5.0  # scales


def _radius(box: Box) -> float:
    """The first trust region: one scale, where it fits into the box."""
    return 1.0 if box is None else min(1.0, 0.49 * float((box[1] - box[0]).min()))


class COBYQA(Calling):
    """SciPy's COBYQA, a trust region method on quadratic models.

    SciPy runs one such search at a time in a process: a new one ends the one before.
    """

    _running: ClassVar[list[Any]] = []  # what the last one's thread waits for

    def __init__(
        self, x0: npt.ArrayLike, *, scale: npt.ArrayLike = 1.0, bounds: npt.ArrayLike | None = None, seed: int = 0
    ) -> None:
        super().__init__(x0, scale=scale, bounds=bounds, seed=seed)
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
        solver = importlib.import_module("pybobyqa")
        logging.getLogger("pybobyqa").setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of starts close to a bound, which it moves
            solver.solve(
                cost, shared["start"], bounds=box, rhobeg=_radius(box), objfun_has_noise=True, do_logging=False,
                maxfun=10_000,
            )  # fmt: skip


class PyBADS(Calling):
    """PyBADS (Singh and Acerbi 2024); recommended is its incumbent.

    Whether values are noisy it finds out itself, as it does by default: it evaluates the start twice. While it
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

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            solver = importlib.import_module("pybads").BADS(noting, start, lower, upper, *plausible, options=options)
            logging.getLogger("BADS").setLevel(logging.ERROR)
            solver.optimize()
