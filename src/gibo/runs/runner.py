"""The loop around an optimiser: ask, evaluate, tell, until something ends it."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import numpy.typing as npt

from gibo.checks import as_number, describe, describe_error, finite, positive_int
from gibo.errors import InputError
from gibo.linalg import Array
from gibo.optimizers.base import Optimizer, Query
from gibo.optimizers.gibo import GIBO
from gibo.optimizers.settings import Settings
from gibo.runs.progress import Progress, progress_bar
from gibo.runs.result import Failure, Result, summarise

Objective = Callable[[Array], Any]
Callback = Callable[[Result], bool | None]

# A single uncertain step can be bad luck; this many in a row mean that there is nothing left to see.
UNCERTAIN_STEPS = 5


class FailedEvaluationWarning(UserWarning):
    """The first evaluation of a run that had no value; the run goes on."""


def maximize(
    objective: Objective,
    x0: npt.ArrayLike,
    *,
    budget: int,
    scale: npt.ArrayLike = 1.0,
    bounds: npt.ArrayLike | None = None,
    seed: int = 0,
    settings: Settings | None = None,
    target: float | None = None,
    least_certainty: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
    max_failures: int = 10,
) -> Result:
    """Maximise a noisy, expensive objective near x0 with GIBO.

    Args:
        objective: takes a vector (d,) and returns a number. An evaluation that raises, or returns something else than a
            finite number, is recorded as failed, is not shown to the model, and the run goes on. SystemExit counts as a
            failure too.
        x0: (d,) where to start.
        budget: how many evaluations may be spent.
        scale: by how much a parameter must change to matter, roughly; a number or one per parameter.
        bounds: None, or (lower, upper) as numbers or vectors, or d pairs.
        seed: of all random choices.
        settings: `gibo.Settings`; the defaults need none.
        target: stop once the model believes that the best point's value has reached this.
        least_certainty: stop once the model's certainty that the gradient is not zero is below this (say 0.9) five
            times in a row: then the gradient is lost in its uncertainty. See `gibo.steps.certainty`.
        callback: called with the `Result` so far after each iteration; the run stops if it returns something true.
        progress: show a progress bar (needs the extra: ``pip install 'gibo[progress]'``).
        max_failures: stop after this many failed evaluations in a row.

    Returns:
        A `Result`; also after Ctrl-C, with what was found until then.

    Example:
        >>> import gibo
        >>> result = gibo.maximize(lambda x: -((x - 1.0) ** 2).sum(), [0.0, 0.0], budget=60, scale=0.3)
        >>> result.reason
        'the budget of 60 evaluations is spent'
        >>> bool(abs(result.x - 1.0).max() < 0.1)
        True
    """
    return run(
        GIBO(x0, scale=scale, bounds=bounds, seed=seed, settings=settings),
        objective,
        budget=budget,
        target=target,
        least_certainty=least_certainty,
        callback=callback,
        progress=progress,
        max_failures=max_failures,
    )


def minimize(
    objective: Objective,
    x0: npt.ArrayLike,
    *,
    budget: int,
    scale: npt.ArrayLike = 1.0,
    bounds: npt.ArrayLike | None = None,
    seed: int = 0,
    settings: Settings | None = None,
    target: float | None = None,
    least_certainty: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
    max_failures: int = 10,
) -> Result:
    """Minimise: `maximize` with the objective's sign turned, at the door and back. All values are the objective's own.

    Example:
        >>> import gibo
        >>> gibo.minimize(lambda x: ((x - 1.0) ** 2).sum(), [0.0, 0.0], budget=60, scale=0.3).value < 0.1
        True
    """
    return run(
        GIBO(x0, scale=scale, bounds=bounds, seed=seed, settings=settings),
        objective,
        budget=budget,
        target=target,
        least_certainty=least_certainty,
        callback=callback,
        progress=progress,
        max_failures=max_failures,
        sign=-1.0,
    )


def run(
    optimizer: Optimizer,
    objective: Objective,
    *,
    budget: int,
    target: float | None = None,
    least_certainty: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
    max_failures: int = 10,
    sign: float = 1.0,
) -> Result:
    """Run any optimiser on an objective; see `maximize` for the arguments. ``sign=-1`` minimises.

    Example:
        >>> import gibo
        >>> opt = gibo.GIBO([0.0], scale=0.3)
        >>> gibo.run(opt, lambda x: -(x[0] - 1.0) ** 2, budget=10).evaluations
        10
    """
    if not callable(objective):
        raise InputError(f"objective: expected a function of a vector, got {describe(objective)}")
    positive_int("budget", budget)
    positive_int("max_failures", max_failures)
    target = None if target is None else finite("target", target)
    if least_certainty is not None and not 0.0 < as_number("least_certainty", least_certainty) < 1.0:
        raise InputError(f"least_certainty: expected a probability between 0 and 1, got {least_certainty}")
    if callback is not None and not callable(callback):
        raise InputError(f"callback: expected a function of a Result, got {describe(callback)}")
    loop = _Loop(optimizer, objective, budget, target, least_certainty, callback, max_failures, sign)
    bar: AbstractContextManager[Progress | None] = progress_bar(budget) if progress else nullcontext()
    with bar as loop.bar:
        reason = loop.until_done()
    try:
        return summarise(optimizer, reason, tuple(loop.failures), sign)
    except KeyboardInterrupt:  # a second Ctrl-C while the first one's result is put together
        return summarise(optimizer, reason, tuple(loop.failures), sign)


class _Loop:
    def __init__(
        self,
        optimizer: Optimizer,
        objective: Objective,
        budget: int,
        target: float | None,
        least_certainty: float | None,
        callback: Callback | None,
        max_failures: int,
        sign: float,
    ) -> None:
        self.optimizer, self.objective, self.sign = optimizer, objective, sign
        self.budget, self.target, self.least_certainty = budget, target, least_certainty
        self.callback, self.max_failures = callback, max_failures
        self.failures: list[Failure] = []
        self.failed_in_a_row = 0
        self.spent = 0
        self.bar: Progress | None = None

    def until_done(self) -> str:
        """Run the loop and say why it ended."""
        try:
            while True:
                before = self.optimizer.iteration
                for query in self.optimizer.ask():
                    self.evaluate(query)
                    if self.failed_in_a_row >= self.max_failures:
                        last = self.failures[-1].reason
                        return f"stopped: {self.failed_in_a_row} evaluations in a row failed, the last one with {last}"
                    if self.spent >= self.budget:
                        return f"the budget of {self.budget} evaluation{'s' if self.budget > 1 else ''} is spent"
                if self.optimizer.iteration > before:
                    reason = self.after_iteration()
                    if reason is not None:
                        return reason
        except KeyboardInterrupt:
            return f"interrupted after {self.spent} of {self.budget} evaluations"

    def evaluate(self, query: Query) -> None:
        try:
            answer = self.objective(query.x.copy())
        except (Exception, SystemExit) as error:  # whatever an objective raises must not end the run
            self.spent += 1
            self.fail(query, describe_error(error), _traceback(error))
        else:
            self.spent += 1
            try:
                value = finite("the objective's value", answer)
            except InputError as error:
                self.fail(query, str(error))
            else:
                self.optimizer.tell(query, self.sign * value)
                self.failed_in_a_row = 0
        if self.bar is not None:
            best = self.optimizer.best_seen
            self.bar.update(self.spent, None if best is None else self.sign * best.value, len(self.failures))

    def fail(self, query: Query, reason: str, details: str | None = None) -> None:
        self.optimizer.tell(query, failed=reason)
        self.failures.append(Failure(query.id, reason, details))
        self.failed_in_a_row += 1
        if len(self.failures) == 1:
            text = f"evaluation {query.id} failed and is passed over: {reason}"
            with suppress(FailedEvaluationWarning):  # where warnings are errors, it must not end the run either
                warnings.warn(text + (f"\n{details}" if details else ""), FailedEvaluationWarning, stacklevel=5)

    def after_iteration(self) -> str | None:
        """Why the run should end now, or None."""
        optimizer = self.optimizer
        if self.target is not None:
            best = optimizer.best
            if best is not None and best.value >= self.sign * self.target:
                return f"the target of {self.target:g} is reached: the model believes in {self.sign * best.value:g}"
        if self.least_certainty is not None and isinstance(optimizer, GIBO):
            recent = [step.certainty for step in optimizer.iterations[-UNCERTAIN_STEPS:]]
            if len(recent) == UNCERTAIN_STEPS and max(recent) < self.least_certainty:
                return (
                    f"the gradient is lost in its uncertainty: the certainty that it is not zero was below "
                    f"{self.least_certainty:g} in the last {UNCERTAIN_STEPS} iterations"
                )
        if self.callback is not None:
            so_far = summarise(optimizer, "running", tuple(self.failures), self.sign)
            try:
                stop = bool(self.callback(so_far))
            except Exception as error:  # a mistake in a callback must not cost the results
                return f"stopped: the callback raised {describe_error(error)}"
            if stop:
                return "the callback asked to stop"
        return None


def _traceback(error: BaseException) -> str | None:
    try:
        return "".join(traceback.format_exception(error))
    except Exception:  # a stranger's __str__ may raise anything
        return None
