"""The loop around an optimiser: ask, evaluate, tell, until something ends it.

ask      the optimiser's next queries; the journal has them before any is evaluated     `_Loop.ask`
collect  answers in any order, from this process, workers or an executor                `gibo.runs.pools`
receive  each answer is in the journal before the optimiser is told                     `_Loop.receive`
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy.typing as npt

from gibo._checks import as_number, describe, describe_error, finite, positive, positive_int
from gibo.errors import InputError, RunError
from gibo.optimizers.base import Optimizer, Query
from gibo.optimizers.gibo import GIBO
from gibo.optimizers.settings import Settings
from gibo.runs.evaluation import Answer, Objective
from gibo.runs.interrupts import held_back
from gibo.runs.journal import Facts, Journal, has_journal, tell
from gibo.runs.learner import Learner, learn
from gibo.runs.pools import Arrival, Pool, make_pool
from gibo.runs.progress import Progress, Standing, progress_bar
from gibo.runs.result import Failure, Result, summarise

Callback = Callable[[Result], bool | None]

# A single uncertain step can be bad luck; this many in a row mean that there is nothing left to see.
UNCERTAIN_STEPS = 5


class FailedEvaluationWarning(UserWarning):
    """The first evaluation of a run that had no value; the run goes on."""


class RunOptions(TypedDict, total=False):
    """The options of `run` that `maximize`, `minimize` and `resume` pass on."""

    target: float | None
    least_certainty: float | None
    callback: Callback | None
    progress: bool | Progress
    journal: str | Path | None
    workers: int | None
    executor: Executor | None
    time_limit: float | None
    retries: int
    penalty: float | None
    share: float
    max_failures: int


class ResumeOptions(TypedDict, total=False):
    """The options of `run` that may differ from start to start."""

    budget: int
    target: float | None
    least_certainty: float | None
    callback: Callback | None
    progress: bool | Progress
    workers: int | None
    executor: Executor | None
    time_limit: float | None
    retries: int
    max_failures: int


# Of these, what the journal remembers for the next start.
REMEMBERED = ("budget", "target", "least_certainty", "time_limit", "retries", "max_failures")


def maximize(
    objective: Objective,
    x0: npt.ArrayLike,
    *,
    budget: int,
    scale: npt.ArrayLike = 1.0,
    bounds: npt.ArrayLike | None = None,
    seed: int = 0,
    settings: Settings | None = None,
    **options: Unpack[RunOptions],
) -> Result:
    """Maximise a noisy, expensive objective near x0 with GIBO.

    Args:
        objective: takes a vector (d,) and returns a number, or a `gibo.Outcome`. If it has a parameter named ``seed``,
            it gets one that depends on the run's seed and the query alone; if it has one named ``kind``, it gets what
            the query is for, ``"iterate"`` (the optimiser's guess) or ``"query"`` (near it), so that it can spend more
            on an iterate. An evaluation that raises, or returns something else than a finite number, is recorded as
            failed, is not shown to the model, and the run goes on.
        x0: (d,) where to start.
        budget: how many evaluations may be spent.
        scale: by how much a parameter must change to matter, roughly; a number or one per parameter.
        bounds: None, or (lower, upper) as numbers or vectors, or d pairs.
        seed: of all random choices.
        settings: `gibo.Settings`; the defaults need none.
        options: those of `gibo.run`. The most used: ``journal="runs/robot"`` records everything in that folder, and
            the same call continues there; ``workers=4`` evaluates in as many processes; ``progress=True``.

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
    optimizer = GIBO(x0, scale=scale, bounds=bounds, seed=seed, settings=settings)
    return run(optimizer, objective, budget=budget, **options)


def minimize(
    objective: Objective,
    x0: npt.ArrayLike,
    *,
    budget: int,
    scale: npt.ArrayLike = 1.0,
    bounds: npt.ArrayLike | None = None,
    seed: int = 0,
    settings: Settings | None = None,
    **options: Unpack[RunOptions],
) -> Result:
    """Minimise: `maximize` with the objective's sign turned, at the door and back. All values are the objective's own.

    Example:
        >>> import gibo
        >>> gibo.minimize(lambda x: ((x - 1.0) ** 2).sum(), [0.0, 0.0], budget=60, scale=0.3).value < 0.1
        True
    """
    optimizer = GIBO(x0, scale=scale, bounds=bounds, seed=seed, settings=settings)
    return run(optimizer, objective, budget=budget, sign=-1.0, **options)


def resume(journal: str | Path, objective: Objective, **options: Unpack[ResumeOptions]) -> Result:
    """Continue the run in a folder: everything that was told is there, and what was out is evaluated again.

    From there on the run is what it would have been without the stop, bit for bit on the same machine.

    Args:
        journal: the run's folder.
        objective: the same as before.
        options: those of `gibo.run` that may differ from start to start, such as a larger ``budget`` or ``workers``;
            by default budget, target, limits and retries are those of the last start.

    Example:
        >>> import gibo, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> f = lambda x: -((x - 1.0) ** 2).sum()
        >>> half = gibo.maximize(f, [0.0, 0.0], budget=10, scale=0.3, journal=folder)
        >>> whole = gibo.resume(folder, f, budget=20)
        >>> whole.evaluations, bool((whole.x == gibo.maximize(f, [0.0, 0.0], budget=20, scale=0.3).x).all())
        (20, True)
    """
    with Journal.read(journal) as saved:
        facts, starts = saved.facts(), saved.starts()
    if facts.task is not None:
        raise InputError(f"{journal}: a run of gibo train; continue it with the same command, gibo train ...")
    remembered = {name: value for name, value in starts[-1].options.items() if name in REMEMBERED} if starts else {}
    given: dict[str, Any] = {**remembered, **options}
    if "budget" not in given:
        raise InputError(f"budget: {journal} has none yet; say how many evaluations may be spent, with budget=n")
    optimizer = facts.fresh_optimizer()
    return run(
        optimizer, objective, journal=journal, sign=facts.sign, penalty=facts.penalty, share=facts.share, **given
    )


def run(
    optimizer: Optimizer,
    objective: Objective,
    *,
    budget: int,
    target: float | None = None,
    least_certainty: float | None = None,
    callback: Callback | None = None,
    progress: bool | Progress = False,
    journal: str | Path | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    time_limit: float | None = None,
    retries: int = 0,
    penalty: float | None = None,
    share: float = 1.0,
    max_failures: int = 10,
    learner: Learner | None = None,
    task: dict[str, Any] | None = None,
    sign: float = 1.0,
) -> Result:
    """Run any optimiser on an objective.

    The result does not depend on how many workers there are or on the order in which values arrive, but where `share`
    says otherwise, if the objective depends on its arguments alone. (In worker processes the global generators of
    Python and NumPy are seeded for each evaluation; in this process and in executors they are left alone.)

    Args:
        optimizer: a fresh one.
        objective: see `maximize`.
        budget: how many evaluations may be spent; with a journal, those of earlier starts included.
        target: stop once the model believes that the best point's value has reached this.
        least_certainty: stop once the model's certainty that the gradient is not zero is below this (say 0.9) five
            times in a row: then the gradient is lost in its uncertainty. See `gibo.steps.certainty`.
        callback: called with the `Result` so far after each iteration; the run stops if it returns something true.
        progress: True shows a progress bar (needs the extra: ``pip install 'gibo[progress]'``); or an object that has
            an ``update(standing)``, see `gibo.runs.progress`.
        journal: a folder in which every query, value and failure is recorded before the run goes on. If it holds this
            very run, the run is continued; if it holds another one, that is an error. See also `resume`.
        workers: evaluate in this many processes on this machine; None: in this process, one after the other.
        executor: or in any `concurrent.futures.Executor`, such as that of a Dask cluster.
        time_limit: seconds after which an evaluation is ended and counts as failed; its process is replaced.
        retries: how often a failed evaluation is tried again.
        penalty: the value that a failed evaluation is given in the end; None: the model does not see it.
        share: the next iteration starts when this share of the queries has arrived, and the rest is used when it
            arrives. Below 1 the result depends on the order of arrival. For evaluations of very uneven durations.
        max_failures: stop after this many failed evaluations in a row.
        learner: learns from the evaluations' info between the iterations; see `gibo.runs.learner`.
        task: what the objective is, as plain data, for the journal: it is an error to continue with another one.
        sign: −1 minimises.

    Returns:
        A `Result`; also after Ctrl-C, with what was found until then. With workers, the first Ctrl-C lets the running
        evaluations finish, the second one ends them.

    Example:
        >>> import gibo
        >>> opt = gibo.GIBO([0.0], scale=0.3)
        >>> gibo.run(opt, lambda x: -(x[0] - 1.0) ** 2, budget=10).evaluations
        10
    """
    if not callable(objective):
        raise InputError(f"objective: expected a function of a vector, got {describe(objective)}")
    if callback is not None and not callable(callback):
        raise InputError(f"callback: expected a function of a Result, got {describe(callback)}")
    positive_int("budget", budget)
    positive_int("max_failures", max_failures)
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise InputError(f"retries: expected a whole number of at least 0, got {retries!r:.80}")
    target = None if target is None else finite("target", target)
    penalty = None if penalty is None else finite("penalty", penalty)
    time_limit = None if time_limit is None else positive("time_limit", time_limit)
    least_certainty = None if least_certainty is None else as_number("least_certainty", least_certainty)
    if least_certainty is not None and not 0.0 < least_certainty < 1.0:
        raise InputError(f"least_certainty: expected a probability between 0 and 1, got {least_certainty}")
    share = as_number("share", share)
    if not 0.0 < share <= 1.0:
        raise InputError(f"share: expected a number above 0 and at most 1, got {share}")
    if share < 1.0 and learner is not None:
        raise InputError("share: with a learner, such as a state normaliser, an iteration needs all of its values")
    if share < 1.0 and not optimizer.uses_late_values:
        raise InputError(f"share: {type(optimizer).__name__} needs all values of an iteration; leave it at 1")
    with ExitStack() as closing:
        facts = Facts.of(optimizer, sign=sign, penalty=penalty, share=share, task=task)
        pool = make_pool(objective, workers, executor, time_limit)
        closing.callback(pool.close)
        log = None if journal is None else closing.enter_context(_journal(Path(journal), optimizer, facts, learner))
        loop = _Loop(optimizer, facts, log, pool, budget, target, least_certainty, callback, retries, max_failures)
        loop.learner = learner
        if log is not None:
            known = locals()
            log.begin({name: known[name] for name in (*REMEMBERED, "workers")})
        if progress is True:
            loop.bar = closing.enter_context(progress_bar(budget))
        elif progress:
            loop.bar = progress
        reason = loop.until_done()
        with held_back():
            if log is not None:
                loop.record_elsewhere()
                log.end(reason, loop.steps)
            return summarise(optimizer, reason, tuple(loop.failures), sign)


def _journal(folder: Path, optimizer: Optimizer, facts: Facts, learner: Learner | None) -> Journal:
    """The journal of this run, new or continued; then the optimiser is brought to where the run is."""
    if optimizer.evaluations:
        raise InputError(
            f"optimizer: it was told {len(optimizer.evaluations)} values before; a journal needs a fresh one"
        )
    if not has_journal(folder):
        return Journal.create(folder, facts)
    journal = Journal.open(folder)
    try:
        differing = facts.differences(journal.facts())
        if differing:
            raise InputError(f"{folder} holds another run: {differing}. Name another folder, or use the old settings")
        journal.replay(optimizer, learner)
    except BaseException:
        journal.close()
        raise
    return journal


class _Loop:
    def __init__(
        self,
        optimizer: Optimizer,
        facts: Facts,
        log: Journal | None,
        pool: Pool,
        budget: int,
        target: float | None,
        least_certainty: float | None,
        callback: Callback | None,
        retries: int,
        max_failures: int,
    ) -> None:
        self.optimizer, self.log, self.pool, self.budget = optimizer, log, pool, budget
        self.sign, self.penalty, self.share = facts.sign, facts.penalty, facts.share
        self.target, self.least_certainty, self.callback = target, least_certainty, callback
        self.retries, self.max_failures = retries, max_failures
        self.out: dict[int, Query] = {}  # being evaluated
        self.attempts: dict[int, int] = {}
        self.failures: list[Failure] = []
        self.failed_in_a_row = 0
        self.spent = 0
        self.warned = False
        self.bar: Progress | None = None
        self.learner: Learner | None = None
        self.infos: dict[int, Any] = {}  # of the iteration so far, for the learner
        self.recorded: set[int] = set()  # ids of queries in the journal
        if log is not None:
            told = log.evaluations()
            self.attempts = log.attempts()
            self.spent = sum(t.query.kind != "told" for t in told)
            self.recorded = {query.id for query in optimizer.waiting} | {e.id for e in optimizer.evaluations}
            self.failures = [_failure(t.query.id, t.answer) for t in told if t.answer.failure is not None]
            good = [i for i, t in enumerate(told, start=1) if t.answer.failure is None]
            self.failed_in_a_row = len(told) - (good[-1] if good else 0)
            self.infos = {t.query.id: t.answer.info or {} for t in told if t.query.iteration == optimizer.iteration}

    @property
    def options(self) -> dict[str, Any]:
        return {} if self.learner is None else self.learner.options()

    @property
    def steps(self) -> list[Any]:
        return self.optimizer.iterations if isinstance(self.optimizer, GIBO) else []

    def until_done(self) -> str:
        """Run the loop and say why it ended."""
        try:
            self.show()
            while True:
                reason = self.iteration()
                if reason is not None:
                    return reason
        except KeyboardInterrupt:
            self.finish(" again")
            return f"interrupted after {self.spent} of {self.budget} evaluations"
        except RunError as error:
            self.finish()
            return f"stopped: {error}"

    def iteration(self) -> str | None:
        """One iteration of the optimiser; returns why the run should end, or None."""
        reason = self.enough()
        if reason is not None:
            return reason
        before = self.optimizer.iteration
        self.ask()
        while self.out:
            self.pool.wait()
            self.receive()
            if self.failed_in_a_row >= self.max_failures:
                row, last = self.failed_in_a_row, self.failures[-1].reason
                self.finish()
                return f"stopped: {row} evaluations in a row failed, the last one with {last}"
            if not self.optimizer.is_waiting:
                break
            if self.share <= self.optimizer.told_share < 1.0:
                with held_back():
                    if self.log is not None:
                        self.log.moved_on()
                    self.optimizer.move_on()
                break
        return self.call_back() if self.optimizer.iteration > before else None

    def ask(self) -> None:
        """Send out what the optimiser wants to know next, as far as the budget goes."""
        with held_back():
            self.record_elsewhere()
            self.begin_early()
            queries = self.optimizer.ask()
            fresh = [query for query in queries if query.id not in self.recorded]
            if self.log is not None and fresh:
                self.log.asked(fresh, self.optimizer.iterate, self.optimizer.thought(), self.steps)
            self.recorded |= {query.id for query in fresh}
            for query in [query for query in queries if query.id not in self.out][: self.room]:
                self.submit(query)

    def begin_early(self) -> None:
        """Send out the query that is known before the optimiser has planned the others: workers need not wait."""
        first = self.optimizer.foreseen()
        if first is None or not self.pool.is_elsewhere or self.room < 1:
            return
        if self.log is not None:
            self.log.foreseen(first)
        self.submit(first)

    @property
    def room(self) -> int:
        return self.budget - self.spent - len(self.out)

    def submit(self, query: Query) -> None:
        self.out[query.id] = query
        self.pool.submit(query, self.options)

    def receive(self, last: bool = False) -> int:
        """Record the answers that have arrived and tell them; a failed one may be tried again. Returns how many."""
        with held_back():
            arrivals = self.pool.take()
            self.settle(arrivals, last)
        return len(arrivals)

    def settle(self, arrivals: list[Arrival], last: bool) -> None:
        settled = []
        for number, answer in arrivals:
            if number not in self.recorded:
                continue  # begun early, and the run was ended before it was asked: it will be asked again
            tried = self.attempts.get(number, 0)
            if answer.failure is None:
                settled.append(Arrival(number, answer))
            elif tried < self.retries and not last:
                self.attempts[number] = tried + 1
                if self.log is not None:
                    self.log.attempted(number, answer)
                self.warn(number, answer, "tried again")
                self.pool.submit(self.out[number], self.options)
            else:
                settled.append(Arrival(number, answer if self.penalty is None else answer.with_value(self.penalty)))
        kinds = [self.out[number].kind for number, _ in settled]
        if self.log is not None and settled:
            self.log.told(settled)
        for number, answer in settled:
            self.spent += 1
            before = self.optimizer.iteration
            tell(self.optimizer, self.out.pop(number), answer, self.sign)
            if self.learner is not None:
                self.infos[number] = answer.info or {}
                if self.optimizer.iteration > before:
                    learn(self.learner, self.optimizer, [self.infos[i] for i in sorted(self.infos)])
                    self.infos = {}
            if answer.failure is None:
                self.failed_in_a_row = 0
            else:
                self.failed_in_a_row += 1
                self.failures.append(_failure(number, answer))
                self.warn(number, answer, "passed over" if self.penalty is None else "given the penalty")
        self.show(list(zip(kinds, (answer for _, answer in settled), strict=True)))

    def finish(self, again: str = "") -> None:
        """Wait for what is running, and record it, unless Ctrl-C is pressed."""
        with suppress(KeyboardInterrupt, RunError):
            running = self.pool.drop_pending()
            running -= self.receive(last=True)
            if running:
                text = f"gibo: waiting for {running} running evaluation{'s' if running > 1 else ''}"
                sys.stderr.write(f"{text}; Ctrl-C{again} ends {'them' if running > 1 else 'it'}\n")
            while running > 0:
                self.pool.wait()
                running -= self.receive(last=True)

    def record_elsewhere(self) -> None:
        """Record points that a callback told the optimiser."""
        if self.log is None:
            return
        for e in self.optimizer.evaluations:
            if e.kind == "told" and e.id not in self.recorded:
                gradient, noise = (None if part is None else part for part in (e.gradient, e.gradient_noise))
                answer = Answer(
                    None if e.value is None else self.sign * e.value,
                    None if gradient is None else (self.sign * gradient).tolist(),
                    None if noise is None else noise.tolist(),
                    failure=e.failure,
                )
                self.log.told_elsewhere(Query(e.id, e.x, 0, "told", e.iteration), answer)
                self.recorded.add(e.id)

    def warn(self, number: int, answer: Answer, what: str) -> None:
        """Show the first failure."""
        if self.warned:
            return
        self.warned = True
        text = f"evaluation {number} failed and is {what}: {answer.failure}"
        with suppress(FailedEvaluationWarning):  # where warnings are errors, it must not end the run either
            details = f"\n{answer.traceback}" if answer.traceback else ""
            warnings.warn(text + details, FailedEvaluationWarning, stacklevel=7)

    def show(self, answers: Sequence[tuple[str, Answer]] = ()) -> None:
        if self.bar is not None:
            seen = self.optimizer.best_seen
            best = None if seen is None else self.sign * seen.value
            self.bar.update(Standing(self.spent, best, len(self.failures), answers, self.optimizer))

    def enough(self) -> str | None:
        """Why there should be no further iteration, or None; the same after a restart."""
        optimizer = self.optimizer
        if self.spent >= self.budget:
            return f"the budget of {self.budget} evaluation{'s' if self.budget > 1 else ''} is spent"
        if optimizer.is_waiting or optimizer.iteration == 0:
            return None
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
        return None

    def call_back(self) -> str | None:
        """Show the callback how things stand; returns why it wants the run to end, or None."""
        if self.callback is None or self.enough() is not None:
            return None
        so_far = summarise(self.optimizer, "running", tuple(self.failures), self.sign)
        try:
            stop = bool(self.callback(so_far))
        except Exception as error:  # a mistake in a callback must not cost the results
            return f"stopped: the callback raised {describe_error(error)}"
        return "the callback asked to stop" if stop else None


def _failure(number: int, answer: Answer) -> Failure:
    return Failure(number, answer.failure or "", answer.traceback)
