"""The loop around an optimiser: ask, evaluate, tell, until the run ends.

ask      the session's next queries, which are on the disk before any is evaluated      `Loop.ask`
wait     for outcomes in any order, from this process, workers or an executor           `gibo.runs.pools`
receive  each outcome is on the disk before the optimiser is told                       `Loop.receive`
heed     requests of people: pause, stop, a value                                       `gibo.runs.control`
"""

from __future__ import annotations

import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import takewhile
from types import FrameType
from typing import Any

from gibo._checks import describe_error
from gibo.errors import InputError, JournalError, RunError, printable
from gibo.outcome import EXTERNAL, OBJECTIVE, SIMULATED, Evaluation, Outcome, Query, is_mistake
from gibo.runs.advice import start_violates
from gibo.runs.control import Control
from gibo.runs.options import Callback, RunOptions
from gibo.runs.pools import Pool
from gibo.runs.progress import Progress, Standing
from gibo.runs.result import Result, Status
from gibo.runs.session import Session

NOTICE = "gibo: the run ends when the running evaluations have returned; Ctrl-C again ends it at once\n"
PAUSE_POLL = 0.1  # seconds between two checks whether a paused run continues
# One uncertain step can be bad luck; this many in a row mean that the gradient is lost.
UNCERTAIN_STEPS = 5


class FailedEvaluationWarning(UserWarning):
    """The first failed evaluation of a run; the run continues."""


class CallbackWarning(UserWarning):
    """A callback raised, with its traceback; the run ends with its result so far."""


class Interrupts:
    """Remembers the first Ctrl-C within the block, in the main thread; it has no effect in other threads.

    A second Ctrl-C goes to the program's handler, which by default raises KeyboardInterrupt. The journal makes a stop
    at any moment harmless.

    SIGTERM acts in the same way if the program handles it. The first Ctrl-C ends all nested runs.

    Args:
        notice: written to standard error at the first one.

    Attributes:
        received: the number of the first signal; None if none came.
    """

    def __init__(self, notice: str = NOTICE) -> None:
        self.notice = notice
        self.received: int | None = None
        self._before: dict[int, Callable[[int, FrameType | None], Any]] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                handler = signal.getsignal(number)
                if callable(handler):
                    self._before[number] = handler
                    signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        before, first = self._before[number], self.received is None
        self.received = number
        if not first or isinstance(getattr(before, "__self__", None), Interrupts):
            before(number, frame)
        else:
            with suppress(Exception):  # standard error may be closed or busy
                sys.stderr.write(self.notice)


class Loop:
    """One start of a run; see the module's docstring."""

    def __init__(
        self,
        session: Session,
        options: RunOptions,
        pool: Pool,
        wanted: Sequence[str],  # names of the objective's further arguments, see `gibo.runs.pools.prepared`
        interrupts: Interrupts,
        bar: Progress | None,
    ) -> None:
        self.session, self.options, self.pool, self.wanted = session, options, pool, wanted
        self.interrupts, self.bar = interrupts, bar
        self.optimizer = session.optimizer
        self.running: dict[int, Query] = {}
        self.control = Control(session, pool)
        self.paused = False
        told = [] if session.journal is None else self.optimizer.evaluations  # the journal's evaluations count, too
        self.warned = False
        # Only the last failures in a row of earlier starts matter.
        self.counted = min(self.optimizer.log.pending, default=self.optimizer.log.next_id)
        earlier = [e for e in told if e.id < self.counted and e.kind != EXTERNAL]
        self.failed_in_a_row = sum(1 for _ in takewhile(lambda e: e.failure is not None, reversed(earlier)))

    def until_done(self) -> tuple[Status, str]:
        """Run until the end; returns the reason."""
        with self.session.lock:
            try:
                self.show()
                ending = None
                while ending is None:
                    ending = self.iteration()
                status, reason = ending
            except (RunError, JournalError) as error:
                status, reason = Status.ERROR, f"stopped: {error}"
            except KeyboardInterrupt:
                if self.interrupts.received is not None:
                    raise  # the second Ctrl-C
                status, reason = Status.INTERRUPTED, ""  # the objective raised it
            finally:
                self.control.close()
            lost = self.finish() if self.running else ""
            if status is Status.INTERRUPTED:
                reason = f"interrupted after {self.session.spent} of {self.options.budget} evaluations"
            return status, reason + lost

    def iteration(self) -> tuple[Status, str] | None:
        """One iteration of the optimiser; returns why the run should end, or None."""
        self.heed()
        while self.paused and not self.control.stopping and self.interrupts.received is None:
            self.wait()
        ending = self.enough() or self.halted(between=not self.optimizer.is_pending)
        if ending is not None:
            return ending
        before = self.optimizer.iteration
        self.ask()
        while self.running:
            self.wait()
            ending = self.halted(between=False) or self.too_many_failures()
            if ending is not None:
                return ending
            if not self.optimizer.is_pending:
                break
            if self.options.quorum < 1.0 and self.options.quorum <= self.optimizer.told_share:
                self.session.proceed()
                break
        has_updated = self.optimizer.iteration > before
        return None if self.options.callback is None or not has_updated else self.call_back(self.options.callback)

    def ask(self) -> None:
        """Submit the optimiser's next queries, as far as the budget allows."""
        queries = self.session.ask()
        room = self.options.budget - self.session.spent - len(self.running)
        new = [query for query in queries if query.id not in self.running]
        for query in new if new and new[0].kind == SIMULATED else new[:room]:
            self.running[query.id] = query
            self.submit(query)

    def submit(self, query: Query) -> None:
        """Submit a query with the objective's further arguments."""
        further = {} if self.session.reparametrizer is None else self.session.reparametrizer.options()
        self.pool.submit(query, {**further, **{name: getattr(query, name) for name in self.wanted}})

    def wait(self) -> None:
        """Wait for outcomes (in a pause, for a person) and handle requests; then receive the outcomes."""
        self.heed()
        self.session.lock.release()  # this thread holds it once
        try:
            if self.paused and not self.pool.underway():
                time.sleep(PAUSE_POLL)
            elif self.running:
                self.pool.wait()
        finally:
            self.session.lock.acquire()
        self.heed()
        self.receive()

    def receive(self, last: bool = False) -> None:
        """Record and tell the outcomes that have arrived; failed ones may be tried again."""
        settled: list[Evaluation] = []
        failed: list[Evaluation] = []
        is_first, is_first_value = not self.optimizer.log.evaluations, not self.optimizer.log.valued
        for arrived in self.pool.take():
            e = arrived
            if e.id not in self.running:  # a person told it
                continue
            try:
                self.optimizer.check_outcome(e.query, e.outcome)
            except InputError as error:  # something is missing that the optimiser needs besides a value
                e = Evaluation(e.query, Outcome.failed(f"{OBJECTIVE}{error}", e.outcome.seconds))
            if is_first and not settled and not failed and e.failure is not None and is_mistake(e.failure):
                # The very first evaluation: an error in the program; nothing is recorded.
                raise InputError(f"{e.failure}; later in a run such an evaluation would count as failed")
            if e.failure is not None and self.interrupts.received is not None:
                # Ctrl-C in a terminal also reaches the objective's processes, so this query stays pending.
                del self.running[e.id]
            elif e.failure is not None and self.session.attempts.get(e.id, 0) < self.options.retries and not last:
                failed.append(e)
            else:
                settled.append(e)
        for e in settled:
            del self.running[e.id]
            if e.failure is not None:
                self.warn(e, "passed over" if self.options.penalty is None else "given the penalty")
        self.session.tell(settled)  # first, because nothing else can be lost
        if is_first_value and (violated := self.optimizer.violated_at_start()):
            sys.stderr.write(f"gibo: {start_violates(violated)}\n")
        if settled:
            self.show(settled)
        for e in failed:
            self.session.attempted(e)
            self.warn(e, "tried again")
            self.submit(e.query)

    def finish(self) -> str:
        """Wait for the running evaluations and record them, unless Ctrl-C comes; returns what could not be recorded."""
        lost: list[str] = []

        def receive() -> int:
            before = len(self.running)
            try:
                self.receive(last=True)
            except JournalError as error:  # the result has it; wait for the others nevertheless
                lost.append(f"; {error}")
            return before - len(self.running)

        interrupted = self.interrupts.received is not None
        with suppress(RunError):
            running = self.pool.drop_pending()
            running -= receive()
            if running > 0 and not interrupted:
                them = "evaluations; Ctrl-C ends them" if running > 1 else "evaluation; Ctrl-C ends it"
                sys.stderr.write(f"gibo: waiting for {running} running {them}\n")
            while running > 0 and (interrupted or self.interrupts.received is None):
                self.pool.wait()
                running -= receive()
        return "".join(lost)

    # -- people -------------------------------------------------------------------------------------------------------

    def heed(self) -> None:
        """Execute people's requests, which the journal already has."""
        told, self.control.told = self.control.told, []
        withdrawn, self.control.withdrawn = self.control.withdrawn, []
        for number in [*(e.id for e in told), *(query.id for query in withdrawn)]:
            self.running.pop(number, None)
            self.pool.abandon(number)
        if told:
            self.session.settle()
            self.show(told)
        if self.paused != self.control.paused:
            self.paused = self.control.paused
            self.pool.hold(self.paused)
            if self.bar is None:
                sys.stderr.write(
                    "gibo: paused; the run waits for a person to continue it\n" if self.paused else "gibo: continued\n"
                )
            self.show()

    def halted(self, between: bool) -> tuple[Status, str] | None:
        """Whether Ctrl-C was pressed or a person has stopped the run, which ends between two iterations or, where it is
        paused or was aborted, at once. `until_done` gives the reason of Ctrl-C when the evaluations are counted.
        """
        aborted = self.control.aborted
        if self.interrupts.received is not None:
            return Status.INTERRUPTED, ""
        if not self.control.stopping or not (between or self.paused or aborted is not None):
            return None
        done = f"stopped by a person after {self.session.spent} of {self.options.budget} evaluations"
        return Status.STOPPED, done if aborted is None else aborted

    # -- endings ------------------------------------------------------------------------------------------------------

    def enough(self) -> tuple[Status, str] | None:
        """The reason to stop, or None; the same after a restart."""
        optimizer, options = self.optimizer, self.options
        if self.session.spent >= options.budget:
            plural = "s" if options.budget > 1 else ""
            return Status.BUDGET_SPENT, f"the budget of {options.budget} evaluation{plural} is spent"
        if optimizer.is_pending or optimizer.iteration == 0:
            return None
        if options.target is not None:
            best, sign = optimizer.best, self.session.sign
            if best is not None and best.value >= sign * options.target:
                reason = f"the target of {options.target:g} is reached: the model's value is {sign * best.value:g}"
                return Status.TARGET_REACHED, reason
        if options.least_certainty is not None:
            recent = [step.certainty for step in optimizer.log.iterations[-UNCERTAIN_STEPS:]]
            if len(recent) == UNCERTAIN_STEPS and max(recent) < options.least_certainty:
                return Status.GRADIENT_LOST, (
                    f"the gradient is lost in its uncertainty: the probability that it is not zero was below "
                    f"{options.least_certainty:g} in the last {UNCERTAIN_STEPS} iterations"
                )
        return None

    def too_many_failures(self) -> tuple[Status, str] | None:
        """Whether too many evaluations in a row failed, by id; one counts when all before it have arrived."""
        log = self.optimizer.log
        for i in range(self.counted, min(log.pending, default=log.next_id)):
            e = log.evaluations.get(i)
            self.counted += 1
            if e is None:  # withdrawn
                continue
            if e.kind != EXTERNAL:
                self.failed_in_a_row = 0 if e.failure is None else self.failed_in_a_row + 1
            if self.failed_in_a_row >= self.options.max_failures:
                row = f"stopped: {self.failed_in_a_row} evaluations in a row failed"
                return Status.TOO_MANY_FAILURES, f"{row}, the last one with {printable(e.failure or '')}"
        return None

    def call_back(self, callback: Callback) -> tuple[Status, str] | None:
        """Call the callback; returns the reason why it ends the run, or None."""
        over = self.enough()
        try:
            stop = bool(callback(Result.of(self.session, Status.RUNNING, "running")))
        except (Exception, SystemExit) as error:  # an error in a callback must not lose the results
            trace = printable("".join(traceback.format_exception(error)), lines=True)
            with suppress(CallbackWarning):
                warnings.warn(f"the callback raised:\n{trace}", CallbackWarning, stacklevel=_callers_level())
            return Status.ERROR, f"stopped: the callback raised {describe_error(error)}"
        return (Status.CALLBACK, "the callback asked to stop") if stop and over is None else None

    # -- what is shown ------------------------------------------------------------------------------------------------

    def warn(self, e: Evaluation, what: str) -> None:
        """Warn of the first failure."""
        if self.warned:
            return
        self.warned = True
        text = f"evaluation {e.id} failed and is {what}: {printable(e.failure or '', lines=True)}"
        with suppress(FailedEvaluationWarning):  # if warnings are errors, this must not end the run
            details = f"\n{printable(e.outcome.traceback, lines=True)}" if e.outcome.traceback else ""
            warnings.warn(text + details, FailedEvaluationWarning, stacklevel=_callers_level())

    def show(self, arrived: Sequence[Evaluation] = ()) -> None:
        if self.bar is not None:
            seen = self.optimizer.best_seen
            best = None if seen is None else self.session.sign * seen.value
            spent, failures = self.session.spent, self.session.failures
            try:
                self.bar.update(Standing(spent, best, failures, arrived, self.optimizer, self.paused))
            except Exception as error:  # an error in a display must not lose the results
                raise RunError(f"the progress raised {describe_error(error)}") from error


def _callers_level() -> int:
    """The stack level of the first frame outside the package, where the user called gibo."""
    level, frame = 0, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "gibo":
        level, frame = level + 1, frame.f_back
    return level + 1
