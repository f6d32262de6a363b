"""The loop around an optimiser: ask, evaluate, tell, until something ends it.

ask      the session's next queries, which are on the disk before any is evaluated      `Loop.ask`
wait     for outcomes in any order, from this process, workers or an executor           `gibo.runs.pools`
receive  each outcome is on the disk before the optimiser is told                       `Loop.receive`
heed     what people asked for meanwhile: pause, stop, a value that they told           `gibo.runs.control`
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
from gibo.outcome import EXTERNAL, NO_NUMBER, Evaluation, Query
from gibo.runs.control import Control
from gibo.runs.options import RunOptions
from gibo.runs.pools import Pool
from gibo.runs.progress import Progress, Standing
from gibo.runs.result import Result, Status
from gibo.runs.session import Session

PAUSE_POLL = 0.1  # seconds after which a paused run looks whether it is to go on
# A single uncertain step can be bad luck; this many in a row mean that there is nothing left to see.
UNCERTAIN_STEPS = 5


class FailedEvaluationWarning(UserWarning):
    """The first evaluation of a run that had no value; the run goes on."""


class CallbackWarning(UserWarning):
    """A callback raised, with its traceback; the run ends with the result in hand."""


class Interrupts:
    """Remembers the first Ctrl-C while it is entered, in the main thread; it has no effect in other threads.

    A second one goes to the program's own handler, which by default raises KeyboardInterrupt: the journal makes a stop
    at any moment harmless.

    The same goes for SIGTERM if the program handles it. Of runs within runs, the first Ctrl-C ends all.

    Args:
        notice: written to standard error at the first one.

    Attributes:
        received: the number of the signal that came first; None if none did.
    """

    def __init__(self, notice: str = "") -> None:
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
        elif self.notice:
            with suppress(Exception):  # standard error may be closed, or in the middle of a line
                sys.stderr.write(self.notice)


class Loop:
    """One start of a run; see the module's text."""

    def __init__(
        self,
        session: Session,
        options: RunOptions,
        pool: Pool,
        wanted: Sequence[str],  # by the objective, of a query; see `gibo.runs.pools.asked_for`
        interrupts: Interrupts,
        bar: Progress | None,
    ) -> None:
        self.session, self.options, self.pool, self.wanted = session, options, pool, wanted
        self.interrupts, self.bar = interrupts, bar
        self.optimizer = session.optimizer
        self.running: dict[int, Query] = {}
        self.control = Control(session, pool)
        self.paused = False
        told = [] if session.journal is None else self.optimizer.evaluations  # what a journal has counts, too
        self.attempts = {} if session.journal is None else session.journal.attempts()
        self.warned = False
        # Of earlier starts only the last row matters: they may have gone on after another one.
        self.counted = min(self.optimizer.log.pending, default=self.optimizer.log.next_id)
        earlier = [e for e in told if e.id < self.counted and e.kind != EXTERNAL]
        self.failed_in_a_row = sum(1 for _ in takewhile(lambda e: e.failure is not None, reversed(earlier)))

    def until_done(self) -> tuple[Status, str]:
        """Run, and say why it ended."""
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
                    raise  # the second one
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
        while self.paused and not self.control.stopping and self.interrupted() is None:
            self.wait()
        ending = self.enough() or self.interrupted() or self.stopped()
        if ending is not None:
            return ending
        before = self.optimizer.iteration
        self.ask()
        while self.running:
            self.wait()
            ending = self.interrupted() or self.too_many_failures() or (self.stopped() if self.paused else None)
            if ending is not None:
                return ending
            if not self.optimizer.is_pending:
                break
            if self.options.quorum < 1.0 and self.options.quorum <= self.optimizer.told_share:
                self.session.proceed()
                break
        return self.call_back() if self.optimizer.iteration > before else None

    def ask(self) -> None:
        """Send out what the optimiser wants to know next, as far as the budget goes."""
        queries = self.session.ask()
        room = self.options.budget - self.session.spent - len(self.running)
        for query in [query for query in queries if query.id not in self.running][:room]:
            self.running[query.id] = query
            self.submit(query)

    def submit(self, query: Query) -> None:
        """Have a query evaluated, with what the objective wants to know besides its point."""
        of_query = {name: getattr(query, name) for name in self.wanted}
        self.pool.submit(query, {**self.session.options, **of_query})

    def wait(self) -> None:
        """Wait for outcomes, or in a pause for a person, while requests are handled; then take in what came."""
        self.heed()
        with self.session.released():
            if self.paused and not self.pool.underway():
                time.sleep(PAUSE_POLL)
            elif self.running:
                self.pool.wait()
        self.heed()
        self.receive()

    def receive(self, last: bool = False) -> int:
        """Record and tell the outcomes that have arrived; a failed one may be tried again. Returns how many."""
        arrived = [e for e in self.pool.take() if e.id in self.running]  # the others were told by a person
        if not self.optimizer.log.evaluations and arrived and NO_NUMBER in (arrived[0].failure or ""):
            # The first one of all: a slip in the program, not bad luck; nothing is recorded.
            raise InputError(f"{arrived[0].failure}; a run that has begun passes over such an evaluation")
        settled: list[Evaluation] = []
        failed: list[Evaluation] = []
        for e in arrived:
            if e.failure is not None and self.interrupts.received is not None:
                # Ctrl-C in a terminal also reaches the objective's processes, so this query stays pending.
                del self.running[e.id]
            elif e.failure is not None and self.attempts.get(e.id, 0) < self.options.retries and not last:
                failed.append(e)
            else:
                settled.append(e)
        for e in settled:
            del self.running[e.id]
            if e.failure is not None:
                self.warn(e, "passed over" if self.options.penalty is None else "given the penalty")
        self.session.tell(settled)  # first, for it is all that can be lost
        if settled:
            self.show(settled)
        for e in failed:
            self.attempts[e.id] = self.attempts.get(e.id, 0) + 1
            if self.session.journal is not None:
                self.session.journal.attempted(e)
            self.warn(e, "tried again")
            self.submit(e.query)
        return len(arrived)

    def finish(self) -> str:
        """Wait for what is running, and record it, unless Ctrl-C comes; returns what could not be recorded."""
        lost: list[str] = []

        def receive() -> int:
            before = len(self.running)
            try:
                self.receive(last=True)
            except JournalError as error:  # the result in hand has it; the others are waited for nevertheless
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
        """Do what people asked for; the journal has it."""
        told = self.control.take_told()
        for e in told:
            self.running.pop(e.id, None)
            self.pool.abandon(e.id)
        if told:
            self.session.settle()
            self.show(told)
        if self.paused != self.control.paused:
            self.paused = self.control.paused
            self.pool.hold(self.paused)
            if self.bar is None:
                sys.stderr.write("gibo: paused, until it is continued\n" if self.paused else "gibo: continued\n")
            self.show()

    def interrupted(self) -> tuple[Status, str] | None:
        """Whether Ctrl-C was pressed; `until_done` gives the reason once it is known what was evaluated."""
        return None if self.interrupts.received is None else (Status.INTERRUPTED, "")

    def stopped(self) -> tuple[Status, str] | None:
        """Whether a person has stopped the run: at the end of an iteration, or at once where it is paused."""
        if not self.control.stopping or (self.optimizer.is_pending and not self.paused):
            return None
        return Status.STOPPED, f"stopped by a person after {self.session.spent} of {self.options.budget} evaluations"

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
            best, sign = self.session.best, self.session.sign
            if best is not None and sign * best.value >= sign * options.target:
                reason = f"the target of {options.target:g} is reached: the model believes in {best.value:g}"
                return Status.TARGET_REACHED, reason
        if options.least_certainty is not None:
            recent = [step.certainty for step in optimizer.log.iterations[-UNCERTAIN_STEPS:]]
            if len(recent) == UNCERTAIN_STEPS and max(recent) < options.least_certainty:
                return Status.GRADIENT_LOST, (
                    f"the gradient is lost in its uncertainty: the certainty that it is not zero was below "
                    f"{options.least_certainty:g} in the last {UNCERTAIN_STEPS} iterations"
                )
        return None

    def too_many_failures(self) -> tuple[Status, str] | None:
        """Whether too many in a row failed, by id: one counts when all before it are told, whatever arrives first."""
        log = self.optimizer.log
        for i in range(self.counted, min(log.pending, default=log.next_id)):
            e = log.evaluations[i]
            self.counted += 1
            if e.kind != EXTERNAL:
                self.failed_in_a_row = 0 if e.failure is None else self.failed_in_a_row + 1
            if self.failed_in_a_row >= self.options.max_failures:
                row = f"stopped: {self.failed_in_a_row} evaluations in a row failed"
                return Status.TOO_MANY_FAILURES, f"{row}, the last one with {printable(e.failure or '')}"
        return None

    def call_back(self) -> tuple[Status, str] | None:
        """Show the callback how things stand; returns why it wants the run to end, or None."""
        if self.options.callback is None:
            return None
        over = self.enough()
        try:
            stop = bool(self.options.callback(Result.of(self.session, Status.RUNNING, "running")))
        except (Exception, SystemExit) as error:  # an error in a callback must not lose the results
            trace = printable("".join(traceback.format_exception(error)), lines=True)
            with suppress(CallbackWarning):
                warnings.warn(f"the callback raised:\n{trace}", CallbackWarning, stacklevel=_callers_level())
            return Status.ERROR, f"stopped: the callback raised {describe_error(error)}"
        return (Status.CALLBACK, "the callback asked to stop") if stop and over is None else None

    # -- what is shown ------------------------------------------------------------------------------------------------

    def warn(self, e: Evaluation, what: str) -> None:
        """Show the first failure."""
        if self.warned:
            return
        self.warned = True
        text = f"evaluation {e.id} failed and is {what}: {printable(e.failure or '', lines=True)}"
        with suppress(FailedEvaluationWarning):  # where warnings are errors, it must not end the run either
            details = f"\n{printable(e.outcome.traceback, lines=True)}" if e.outcome.traceback else ""
            warnings.warn(text + details, FailedEvaluationWarning, stacklevel=_callers_level())

    def show(self, arrived: Sequence[Evaluation] = ()) -> None:
        if self.bar is not None:
            seen = self.session.best_seen
            best = None if seen is None else seen.value
            spent, failures = self.session.spent, self.session.failures
            try:
                self.bar.update(Standing(spent, best, failures, arrived, self.optimizer, self.paused))
            except Exception as error:  # an error in a display must not lose the results
                raise RunError(f"the progress raised {describe_error(error)}") from error


def _callers_level() -> int:
    """The stack level, for who calls this, of the first frame outside the package: there the user called it."""
    level, frame = 0, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "gibo":
        level, frame = level + 1, frame.f_back
    return level + 1
