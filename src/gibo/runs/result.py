"""What a run returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gibo._linalg import Array
from gibo.gp import Jacobian
from gibo.optimizers.base import Best, Optimizer
from gibo.optimizers.gibo import GIBO


@dataclass(frozen=True)
class Failure:
    """An evaluation without a value: the query's id, what went wrong, and the traceback if there was an exception."""

    id: int
    reason: str
    traceback: str | None = None


@dataclass(frozen=True, eq=False)
class History:
    """A run as arrays.

    Per evaluation, n of them: ``x`` (n, d); ``value`` (n,), NaN where it failed; ``iteration`` (n,); ``is_iterate``
    (n,), True where the optimiser's iterate itself was evaluated.

    Per iteration, t of them, empty for an optimiser without a model: ``iterate`` (t, d), from where the step was made;
    ``evaluations`` (t,), how many there were by then; ``gradient`` (t, d) and ``uncertainty`` (t,), mean and trace of
    the covariance of the gradient's posterior there; ``probability_of_ascent`` (t,) of the step; ``noise`` (t,), the
    variance that the model believed in; ``certainty`` (t,), how sure it was that the gradient is not zero.
    """

    x: Array
    value: Array
    iteration: npt.NDArray[np.int64]
    is_iterate: npt.NDArray[np.bool_]
    iterate: Array
    evaluations: npt.NDArray[np.int64]
    gradient: Array
    uncertainty: Array
    probability_of_ascent: Array
    noise: Array
    certainty: Array

    def __len__(self) -> int:
        """Number of evaluations, failures included."""
        return len(self.value)


@dataclass(frozen=True, eq=False)
class Result:
    """What a run found.

    Attributes:
        x: (d,) the point that the optimiser recommends: for GIBO the best one by its model, not the luckiest value.
        value: what it believes the objective to be there, noise taken out; NaN if no evaluation had a value.
        best_seen: the best point by its observed value, noise included; None if no evaluation had a value.
        iterate: (d,) where the optimiser stands.
        history: everything that was evaluated, as arrays.
        jacobian: posterior of the gradient at the iterate; None for an optimiser without a model.
        reason: why the run ended, for a person to read.
        failures: the evaluations that had no value, and why.
        warnings: what the model had to do to carry on, such as a fit that was passed over.
    """

    x: Array
    value: float
    best_seen: Best | None
    iterate: Array
    history: History
    jacobian: Jacobian | None
    reason: str
    failures: tuple[Failure, ...] = ()
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        """A few lines for a person; the arrays are in the attributes."""
        seen = "none" if self.best_seen is None else f"{self.best_seen.value:.6g}"
        failed = f", {len(self.failures)} of them failed" if self.failures else ""
        return (
            f"{self.reason}\n"
            f"value {self.value:.6g} by the model at x = {np.array2string(self.x, precision=4, threshold=12)}\n"
            f"best value seen {seen}; {self.evaluations} evaluations{failed}"
        )

    @property
    def evaluations(self) -> int:
        """Number of evaluations, failures included."""
        return len(self.history)


def summarise(optimizer: Optimizer, reason: str, failures: tuple[Failure, ...], sign: float) -> Result:
    """The result so far, in the user's sign: −1 where the objective is minimised."""
    best, seen, jacobian = optimizer.best, optimizer.best_seen, optimizer.jacobian()
    return Result(
        x=optimizer.iterate if best is None else best.x,
        value=np.nan if best is None else sign * best.value,
        best_seen=None if seen is None else Best(seen.x, sign * seen.value),
        iterate=optimizer.iterate,
        history=_history(optimizer, sign),
        jacobian=None if jacobian is None else Jacobian(sign * jacobian.mean, jacobian.covariance),
        reason=reason,
        failures=failures,
        warnings=_warnings(optimizer),
    )


def _history(optimizer: Optimizer, sign: float) -> History:
    evaluations, d = optimizer.evaluations, optimizer.d
    steps = optimizer.iterations if isinstance(optimizer, GIBO) else []
    return History(
        x=np.array([e.x for e in evaluations]).reshape(-1, d),
        value=sign * np.array([np.nan if e.value is None else e.value for e in evaluations]),
        iteration=np.array([e.iteration for e in evaluations], dtype=np.int64),
        is_iterate=np.array([e.kind == "iterate" for e in evaluations], dtype=np.bool_),
        iterate=np.array([step.x for step in steps]).reshape(-1, d),
        evaluations=np.array([step.evaluations for step in steps], dtype=np.int64),
        gradient=sign * np.array([step.gradient for step in steps]).reshape(-1, d),
        uncertainty=np.array([step.uncertainty for step in steps]),
        probability_of_ascent=np.array([step.probability_of_ascent for step in steps]),
        noise=np.array([step.noise for step in steps]),
        certainty=np.array([step.certainty for step in steps]),
    )


def _warnings(optimizer: Optimizer) -> tuple[str, ...]:
    if not isinstance(optimizer, GIBO):
        return ()
    lines = [f"iteration {s.number}: {s.warning}" for s in optimizer.iterations if s.warning is not None]
    lines += [f"iteration {s.number}: jitter {s.jitter:.1e} was added" for s in optimizer.iterations if s.jitter > 0.0]
    return tuple(lines)
