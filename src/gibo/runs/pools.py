"""Where evaluations run: in this process, in worker processes on this machine, or in an executor.

A pool takes queries and gives back answers as they arrive, in any order. What an answer says depends on the query
alone, so a run does not depend on the pool it is given.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections import deque
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for_connections
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from gibo._checks import describe, describe_error, positive, positive_int
from gibo._linalg import Array
from gibo.errors import InputError, RunError
from gibo.optimizers.base import Query
from gibo.runs.evaluation import Answer, Objective, evaluate
from gibo.runs.interrupts import held_back

# How long a worker that was told to end may take before it is killed.
PATIENCE = 1.0


class Arrival(NamedTuple):
    """A query's id and what its evaluation gave."""

    id: int
    answer: Answer


class Order(NamedTuple):
    """All that an evaluation depends on besides the objective."""

    id: int
    x: Array
    seed: int
    options: dict[str, Any]
    kind: str

    @classmethod
    def of(cls, query: Query, options: dict[str, Any]) -> Order:
        return cls(query.id, query.x.copy(), query.seed, options, query.kind)


class Pool(Protocol):
    """Something that evaluates queries; elsewhere, or in this process while it waits."""

    is_elsewhere: ClassVar[bool]

    def submit(self, query: Query, options: dict[str, Any]) -> None:
        """Evaluate this query as soon as there is room, with these keyword arguments on top."""

    def wait(self) -> None:
        """Wait until there may be an answer."""

    def take(self) -> list[Arrival]:
        """The answers that have arrived, without waiting."""

    def drop_pending(self) -> int:
        """Forget the queries whose evaluation has not begun; returns how many have."""

    def close(self) -> None:
        """End, also what has begun."""


def make_pool(objective: Objective, workers: int | None, executor: Executor | None, time_limit: float | None) -> Pool:
    """The pool that these arguments of `gibo.run` ask for."""
    if workers is not None:
        positive_int("workers", workers)
    if time_limit is not None:
        positive("time_limit", time_limit)
    if executor is not None:
        if workers is not None:
            raise InputError("workers, executor: give one of them; an executor brings its own workers")
        if time_limit is not None:
            raise InputError("time_limit: an executor's evaluations cannot be ended; give workers=n instead")
        if not callable(getattr(executor, "submit", None)):
            raise InputError(f"executor: expected a concurrent.futures.Executor, got {describe(executor)}")
        return Futures(objective, executor)
    if workers is None and time_limit is None:
        return InProcess(objective)
    return Workers(objective, workers or 1, time_limit)


class InProcess:
    """One after the other, in this process."""

    is_elsewhere: ClassVar[bool] = False

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self.queue: deque[Order] = deque()
        self.arrived: list[Arrival] = []

    def submit(self, query: Query, options: dict[str, Any]) -> None:
        self.queue.append(Order.of(query, options))

    def wait(self) -> None:
        order = self.queue.popleft()
        answer = evaluate(self.objective, order.x, order.seed, order.options, order.kind)
        self.arrived.append(Arrival(order.id, answer))

    def take(self) -> list[Arrival]:
        arrived, self.arrived = self.arrived, []
        return arrived

    def drop_pending(self) -> int:
        self.queue.clear()
        return 0

    def close(self) -> None:
        self.queue.clear()


# -- processes on this machine ----------------------------------------------------------------------------------------


class Workers:
    """Processes on this machine, one evaluation each at a time; one that dies or takes too long is replaced.

    On Linux they are forked, so that the objective can be any function. Elsewhere they are started afresh and the
    objective must be one that can be pickled: defined at the top level of a module. The global generators of Python and
    NumPy are seeded with the query's seed before each evaluation.
    """

    is_elsewhere: ClassVar[bool] = True

    def __init__(self, objective: Objective, count: int, time_limit: float | None) -> None:
        self.objective, self.time_limit = objective, time_limit
        self.queue: deque[Order] = deque()
        self.workers = [_Worker(self.objective) for _ in range(count)]

    def submit(self, query: Query, options: dict[str, Any]) -> None:
        self.queue.append(Order.of(query, options))
        self._hand_out()

    def wait(self) -> None:
        with held_back():
            self._hand_out()
        busy = [worker for worker in self.workers if worker.order is not None]
        if busy:
            wait_for_connections([worker.connection for worker in busy], timeout=self._patience(busy))

    def take(self) -> list[Arrival]:
        arrivals = []
        for worker in [worker for worker in self.workers if worker.order is not None]:
            # A process that a dead worker started may hold its end of the connection open, so it is asked itself too.
            if worker.connection.poll() or worker.process.exitcode is not None:
                arrivals.append(self._receive(worker))
            elif self.time_limit is not None and worker.seconds > self.time_limit:
                arrivals.append(self._end(worker))
        self._hand_out()  # before anybody writes anything down: workers need not wait for that
        return arrivals

    def drop_pending(self) -> int:
        self.queue.clear()
        return sum(worker.order is not None for worker in self.workers)

    def close(self) -> None:
        self.queue.clear()
        for worker in self.workers:
            worker.stop(gently=worker.order is None)
        self.workers = []

    def _hand_out(self) -> None:
        idle = [i for i, worker in enumerate(self.workers) if worker.order is None]
        for i in idle[: len(self.queue)]:
            order = self.queue.popleft()
            try:
                self.workers[i].give(order)
            except (BrokenPipeError, ConnectionResetError):  # died while it was idle
                self.workers[i].stop(gently=False)
                self.workers[i] = _Worker(self.objective)
                self.workers[i].give(order)

    def _receive(self, worker: _Worker) -> Arrival:
        assert worker.order is not None
        try:
            if not worker.connection.poll():
                raise EOFError
            arrival = Arrival(worker.order.id, worker.connection.recv())
        except (EOFError, ConnectionResetError):
            worker.process.join(PATIENCE)
            answer = Answer(failure=_cause_of_death(worker.process.exitcode), seconds=worker.seconds)
            return self._replace(worker, answer)
        worker.order = None
        return arrival

    def _end(self, worker: _Worker) -> Arrival:
        failure = f"the time limit of {self.time_limit:g} s per evaluation was over, and its process was ended"
        return self._replace(worker, Answer(failure=failure, seconds=worker.seconds))

    def _replace(self, worker: _Worker, answer: Answer) -> Arrival:
        order = worker.order
        assert order is not None
        worker.stop(gently=False)
        self.workers[self.workers.index(worker)] = _Worker(self.objective)
        return Arrival(order.id, answer)

    def _patience(self, busy: list[_Worker]) -> float:
        """How long to wait before looking whether somebody died or took too long."""
        if self.time_limit is None:
            return PATIENCE
        return min(PATIENCE, max(0.0, self.time_limit - max(worker.seconds for worker in busy)) + 1e-3)


class _Worker:
    def __init__(self, objective: Objective) -> None:
        context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
        self.connection, theirs = context.Pipe()
        self.order: Order | None = None
        self.since = 0.0
        # Not a daemon: an objective may start processes of its own.
        self.process = context.Process(target=_work, args=(theirs, self.connection, objective), daemon=False)
        try:
            with warnings.catch_warnings():
                # Python warns of forking while there are threads; the child uses none of them.
                warnings.simplefilter("ignore", DeprecationWarning)
                self.process.start()
        except Exception as error:  # what cannot be pickled raises various things
            raise InputError(
                f"objective: it cannot be sent to a worker process ({describe_error(error)}); define it at the top "
                "level of a module"
            ) from None
        theirs.close()

    def give(self, order: Order) -> None:
        self.connection.send(tuple(order))
        self.order, self.since = order, time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.since

    def stop(self, gently: bool) -> None:
        """Let it end, or kill it and what it started."""
        if gently:
            with suppress(BrokenPipeError, ConnectionResetError):
                self.connection.send(None)
            self.process.join(PATIENCE)
        _kill(self.process.pid)
        self.process.kill()
        self.process.join()
        self.connection.close()


def _work(connection: Connection, parents_end: Connection, objective: Objective) -> None:
    """The life of a worker process: evaluate what comes until nobody is there any more."""
    os.setpgid(0, 0)  # a group of its own, so that what it starts can be ended with it
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the parent acts on Ctrl-C
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parents_end.close()  # its copy of it, or it would never see that the parent is gone
    threading.Thread(target=end_with_parent, daemon=True).start()
    while True:
        try:
            order = connection.recv()
        except (EOFError, OSError):
            return
        if order is None:
            return
        _, x, seed, options, kind = order
        # Forked workers share the state of the global generators, and so would their noise be the same.
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        answer = evaluate(objective, x, seed, options, kind)
        try:
            connection.send(answer)
        except (BrokenPipeError, ConnectionResetError):
            return


def end_with_parent() -> None:
    """However the parent went, its workers do not outlive it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        _kill(os.getpid() if os.getpgrp() == os.getpid() else None)
        os._exit(1)


def _kill(group: int | None) -> None:
    """End a worker's group of processes: itself and what it started or left behind."""
    if group is not None:
        with suppress(ProcessLookupError, PermissionError):  # none left, or it has just begun and has no group yet
            os.killpg(group, signal.SIGKILL)


def _cause_of_death(code: int | None) -> str:
    if code is None or code >= 0:
        return f"the worker process ended with exit code {code} during the evaluation"
    name = signal.Signals(-code).name if -code in {s.value for s in signal.Signals} else f"signal {-code}"
    hint = ", perhaps for lack of memory" if name == "SIGKILL" else ""
    return f"the worker process died of {name} during the evaluation{hint}"


# -- executors --------------------------------------------------------------------------------------------------------


class Futures:
    """Any `concurrent.futures.Executor`: threads, processes, or the workers of a cluster."""

    is_elsewhere: ClassVar[bool] = True

    def __init__(self, objective: Objective, executor: Executor) -> None:
        self.objective, self.executor = objective, executor
        self.running: dict[Future[Answer], int] = {}
        self.lost: RunError | None = None  # raised once all that did arrive is taken

    def submit(self, query: Query, options: dict[str, Any]) -> None:
        try:
            future = self.executor.submit(evaluate, self.objective, query.x.copy(), query.seed, options, query.kind)
        except Exception as error:  # shut down, broken, or not able to send the objective
            raise RunError(f"the executor takes no more evaluations: {describe_error(error)}") from error
        self.running[future] = query.id

    def wait(self) -> None:
        wait(self.running, timeout=PATIENCE, return_when=FIRST_COMPLETED)  # of a cancelled one it does not hear

    def take(self) -> list[Arrival]:
        arrivals = []
        done = [future for future in self.running if future.done()]
        for future in sorted(done, key=lambda future: self.running[future]):
            number = self.running.pop(future)
            try:
                arrivals.append(Arrival(number, future.result()))
            except (Exception, CancelledError) as error:  # of the executor, not of the objective: nothing was evaluated
                lost = RunError(f"the executor lost evaluation {number}: {describe_error(error)}")
                self.lost = self.lost or lost
        if self.lost is not None and not self.drop_pending() and not arrivals:  # what still runs is waited for
            raise self.lost
        return arrivals

    def drop_pending(self) -> int:
        for future in [future for future in self.running if future.cancel()]:
            del self.running[future]
        return len(self.running)

    def close(self) -> None:
        """The executor stays open: it is its owner's."""
        self.drop_pending()
