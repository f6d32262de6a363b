"""An earlier run, or other values that are known, as the prior mean of a run: a simulator before the machine.

A Gaussian process is fitted to the earlier values twice, with and without a warp (`gibo.optimizers.units`), and the
likelier of the two is kept. Its mean, up to a shift and a factor that the new run's values determine, is the prior mean
of the new run (`gibo.means.Fitted`). This is the model of Kennedy and O'Hagan: Predicting the output from a complex
computer code when fast approximations are available, Biometrika 2000, ``machine = factor·simulator + another process``,
with a simulator that is known before the machine is evaluated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gibo._checks import as_list, describe, instance
from gibo._linalg import Array, single_thread
from gibo.errors import InputError
from gibo.gp import GaussianProcess
from gibo.map_fit import fit
from gibo.means import Fitted, KernelMean
from gibo.optimizers.model import Surrogate
from gibo.optimizers.settings import Settings
from gibo.outcome import EXTERNAL, Evaluation, Query, as_point, checked
from gibo.parameters import Parameters
from gibo.runs.journal import Journal
from gibo.runs.spec import Naming

# Of more values so many are used, evenly spaced over the run: time grows with the square of them, and the journal of
# the new run has them all.
MOST_VALUES = 500


def from_run(run: str | Path | Iterable[tuple[Any, Any]], parameters: Parameters | None = None) -> Fitted:
    """The values of an earlier run as a prior mean: ``gibo.Settings(mean=gibo.means.from_run("runs/simulated"))``.

    Shift and factor follow from the values of the new run, so the simulator's values need not have the same size, and
    a simulator that says nothing about the machine is ignored. The new run keeps what it needs in its own journal.

    Args:
        run: the folder of a run with a journal, finished or not; or pairs of a point (a vector or, with `parameters`,
            values by name) and its value.
        parameters: those of the new run, if it has some. Points are then matched by names, so kinds and ranges may
            differ. Without, the points of both runs are vectors in the same units.

    Example:
        >>> import gibo
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> simulated = [(x, -float(x @ x)) for x in rng.uniform(-1, 1, (40, 2))]
        >>> settings = gibo.Settings(mean=gibo.means.from_run(simulated))
        >>> machine = lambda x: 3.0 - 2.0 * float(x @ x) + 0.1 * x[0]
        >>> gibo.maximize(machine, [0.8, 0.8], budget=15, scale=0.3, settings=settings).value > 2.9
        True
    """
    if parameters is not None:
        instance("parameters", parameters, Parameters, "gibo.parameters.Parameters(...)")
    naming = None if parameters is None else Naming(list(parameters), parameters)
    return mean_of(run, naming, None if parameters is None else parameters.scale)


def mean_of(run: Any, naming: Naming | None, scale: Array | None) -> Fitted:
    """`from_run` for a run whose points have these names; its scale (d,) is needed if the earlier values have none."""
    if isinstance(run, (str, Path)):
        evaluations, of_run = _recorded(run, naming)
        scale = of_run if scale is None else scale
    else:
        evaluations = _given(run, naming)
    if len({e.value for e in evaluations}) < 2:
        raise InputError("run: expected at least two evaluations with different values")
    X = np.array([e.x for e in evaluations])
    if scale is None:
        spread = X.std(axis=0)
        scale = np.where(spread > 0.0, spread, 1.0)
    few = [evaluations[i] for i in np.linspace(0, len(evaluations) - 1, min(len(evaluations), MOST_VALUES)).astype(int)]
    with single_thread():
        gp = max((_model(few, scale, warp) for warp in (False, True)), key=lambda pair: pair[0])[1]
        kernel = gp.kernel.with_hyperparameters(gp.kernel.ell(X.shape[1]) * scale, gp.kernel.variance)
        return Fitted(KernelMean(kernel, np.array([e.x for e in few]), gp.a))


def _model(evaluations: Sequence[Evaluation], scale: Array, warp: bool) -> tuple[float, GaussianProcess]:
    """The model of earlier values with its hyperparameters, and its log-posterior as a density of the values."""
    settings = Settings(N_m=MOST_VALUES, N_g=1, warp=warp).resolve(len(scale))
    surrogate = Surrogate.initial(settings, scale)
    model, y = surrogate.given(evaluations), np.array([e.value for e in evaluations])
    found = fit(model.gp, surrogate.priors())
    return found.log_posterior + model.units.log_density(y), found.gp


def _recorded(folder: str | Path, naming: Naming | None) -> tuple[list[Evaluation], Array]:
    """The evaluations of a run that have values, high ones good, and its scale."""
    with Journal.read(folder) as journal:
        spec = journal.spec()
        if spec.training is not None and spec.training.get("normalize_states"):
            raise InputError(f"{folder}: with normalised states the meaning of its parameters changes during the run")
        told = [e for e, _ in sorted(journal.evaluations(), key=lambda pair: pair[0].id)]
    evaluations = []
    for e in told:
        if e.value is None or e.failure is not None:
            continue
        try:
            x = e.x if naming is None else naming.point(spec.naming(e.x))
        except InputError as error:
            raise InputError(f"{folder}: its points are no points of the new run: {error}") from None
        evaluations.append(Evaluation(Query(e.id, x, 0, EXTERNAL, 0), e.outcome.signed(spec.sign)))
    return evaluations, np.array(spec.fresh_optimizer().scale)


def _given(data: Any, naming: Naming | None) -> list[Evaluation]:
    evaluations: list[Evaluation] = []
    for i, item in enumerate(as_list("run", data, "a run's folder, or pairs of a point and its value")):
        try:
            point, value = item
            if naming is not None and isinstance(point, Mapping):
                x = naming.point(point)
            else:
                x = as_point(point, len(evaluations[0].x) if evaluations else np.size(point))
            outcome = checked(value, len(x))
        except InputError as error:
            raise InputError(f"run[{i}]: {error}") from None
        except Exception:  # the methods of a foreign object may raise anything
            raise InputError(f"run[{i}]: expected a point and its value, got {describe(item)}") from None
        if outcome.value is not None:
            evaluations.append(Evaluation(Query(i, x, 0, EXTERNAL, 0), outcome))
    return evaluations
