"""Worker processes on this machine. They and their child processes always end with the run."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import random
import signal
import sys
import threading
import time
import warnings
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for_connections
from typing import Any

import numpy as np

from gibo._checks import describe_error
from gibo.errors import InputError
from gibo.outcome import Evaluation, Outcome, Query
from gibo.runs.pools import WAIT_POLL, Objective, Pool, Underway, evaluate

PR_SET_PDEATHSIG = 1  # of Linux's prctl
F_SETSIG = 10  # of Linux's fcntl
FORKS = sys.platform == "linux"
ENDING = 1.0  # seconds that a worker may take to end


class Workers(Pool):
    """Processes on this machine with one evaluation each at a time; a process that dies or takes too long is replaced.

    On Linux they are forked, so that the objective can be any function. On other systems they are spawned, and the
    objective must be picklable: defined at the top level of a module. The global generators of Python and
    NumPy are seeded with the query's seed before each evaluation.
    """

    def __init__(self, objective: Objective, count: int, time_limit: float | None) -> None:
        if not hasattr(os, "setpgid"):
            raise InputError(
                "workers: they need groups of processes, as Linux and macOS have them; here, give an executor, such as "
                "executor=concurrent.futures.ProcessPoolExecutor()"
            )
        super().__init__(objective)
        self.time_limit, self.lifeline = time_limit, Lifeline()
        self.workers: list[_Worker] = []
        try:
            for _ in range(count):
                self.workers.append(_Worker(objective, self.lifeline))
        except BaseException:
            self.close()
            raise

    def wait(self) -> None:
        busy = [worker for worker in self.workers if worker.query is not None]
        patience = WAIT_POLL  # the time until the next check for workers that died or took too long
        if busy and self.time_limit is not None:
            left = self.time_limit - max(worker.seconds for worker in busy)
            patience = min(WAIT_POLL, max(0.0, left) + 1e-3)
        if busy:
            wait_for_connections([worker.connection for worker in busy], timeout=patience)

    def take(self) -> list[Evaluation]:
        arrivals = []
        for worker in [worker for worker in self.workers if worker.query is not None]:
            # A child process of a dead worker may hold its end of the connection open, so the worker itself is checked,
            # too.
            if worker.connection.poll() or worker.process.exitcode is not None:
                arrivals.append(self._receive(worker))
            elif self.time_limit is not None and worker.seconds > self.time_limit:
                cause = (
                    f"the time limit of {self.time_limit:g} s per evaluation was exceeded, and its process was ended"
                )
                arrivals.append(self._replace(worker, cause))
        self.hand_out()  # before outcomes are recorded, because workers need not wait for that
        return arrivals

    def abandon(self, query: int) -> None:
        super().abandon(query)
        for worker in [each for each in self.workers if each.query is not None and each.query.id == query]:
            self._replace(worker, "")
        self.hand_out()

    def underway(self) -> list[Underway]:
        busy = [(i, worker, worker.query) for i, worker in enumerate(self.workers) if worker.query is not None]
        now = time.time()
        return [Underway(query.id, f"worker {i + 1}", now - worker.seconds) for i, worker, query in busy]

    def close(self) -> None:
        super().close()
        for worker in self.workers:
            worker.stop(gently=worker.query is None)
        self.workers = []
        self.lifeline.close()

    def hand_out(self) -> None:
        idle = [i for i, worker in enumerate(self.workers) if worker.query is None and not self.held]
        for i in idle[: len(self.queue)]:
            query, options = self.queue.popleft()
            try:
                self.workers[i].give(query, options)
            except (BrokenPipeError, ConnectionResetError):  # it died while it was idle
                self.workers[i].stop(gently=False)
                self.workers[i] = _Worker(self.objective, self.lifeline)
                self.workers[i].give(query, options)

    def _receive(self, worker: _Worker) -> Evaluation:
        assert worker.query is not None
        try:
            if not worker.connection.poll():
                raise EOFError
            evaluation = Evaluation(worker.query, worker.connection.recv())
        except (EOFError, ConnectionResetError):
            worker.process.join(ENDING)
            return self._replace(worker, _cause_of_death(worker.process.exitcode))
        worker.query = None
        return evaluation

    def _replace(self, worker: _Worker, cause: str) -> Evaluation:
        query, outcome = worker.query, Outcome.failed(cause, worker.seconds)
        assert query is not None
        worker.stop(gently=False)
        self.workers[self.workers.index(worker)] = _Worker(self.objective, self.lifeline)
        return Evaluation(query, outcome)


class Lifeline:
    """A pipe with one end in the parent only, so that it breaks when the parent ends.

    Then Linux kills the worker and its child processes at once. The worker itself would need Python's lock for that,
    which a C function may hold. On systems without fork, a thread of the worker does it.
    """

    def __init__(self) -> None:
        self.ends: tuple[int, ...] = os.pipe() if FORKS else ()

    def hold(self) -> None:
        """Make the worker's group of processes end when the pipe breaks."""
        if not self.ends:
            return
        import fcntl  # of Linux

        theirs, parents = self.ends
        os.close(parents)  # its copy
        # A separate open file, because the process to kill is a property of it.
        descriptor = os.open(f"/proc/self/fd/{theirs}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        fcntl.fcntl(descriptor, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(descriptor, F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(descriptor, fcntl.F_SETFL, os.O_NONBLOCK | os.O_ASYNC)
        with suppress(BlockingIOError):  # there are no data to read while the parent lives
            os.read(descriptor, 1)
            _kill(os.getpgrp())

    def close(self) -> None:
        """Close the pipe in the parent, after the last worker has ended."""
        ends, self.ends = self.ends, ()
        for end in ends:
            os.close(end)


class _Worker:
    def __init__(self, objective: Objective, lifeline: Lifeline) -> None:
        context: Any = multiprocessing.get_context("fork" if FORKS else "spawn")
        self.connection, theirs = context.Pipe()
        self.query: Query | None = None  # the query that it evaluates
        self.since = 0.0
        # Not a daemon, because an objective may start processes.
        self.process = context.Process(target=_work, args=(theirs, self.connection, objective, lifeline), daemon=False)
        try:
            with warnings.catch_warnings():
                # Python warns of a fork with running threads; the child uses none of them.
                warnings.simplefilter("ignore", DeprecationWarning)
                self.process.start()
        except Exception as error:  # pickling may raise various exceptions
            raise InputError(
                f"objective: it cannot be sent to a worker process ({describe_error(error)}); define it at the top "
                "level of a module"
            ) from None
        theirs.close()

    def give(self, query: Query, options: dict[str, Any]) -> None:
        self.connection.send((query, options))
        self.query, self.since = query, time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.since

    def stop(self, gently: bool) -> None:
        """End the worker, or kill it with its child processes."""
        if gently:
            with suppress(BrokenPipeError, ConnectionResetError):
                self.connection.send(None)
            self.process.join(ENDING)
        _kill(self.process.pid)
        self.process.kill()
        self.process.join()
        self.connection.close()


def _work(connection: Connection, parents_end: Connection, objective: Objective, lifeline: Lifeline) -> None:
    """The main function of a worker process: evaluate queries until the parent is gone."""
    os.setpgid(0, 0)  # a separate group, so that its child processes can be ended with it
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the parent acts on Ctrl-C
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parents_end.close()  # its copy, or it would never notice that the parent is gone
    lifeline.hold()
    end_with_parent(with_group=True)
    while True:
        try:
            order = connection.recv()
        except (EOFError, OSError):
            return _kill(os.getpgrp())  # the parent is gone: end the child processes, too
        if order is None:
            return
        query, options = order
        # Forked workers share the state of the global generators, so that their noise would be equal.
        random.seed(query.seed)
        np.random.seed(query.seed)  # noqa: NPY002
        outcome = evaluate(objective, query, options)
        try:
            connection.send(outcome)
        except (BrokenPipeError, ConnectionResetError):
            return _kill(os.getpgrp())


def end_with_parent(with_group: bool = False) -> None:
    """Make this process end when its parent ends in any way.

    Linux ends it, also inside a C function that holds Python's lock; on other systems a thread waits for the parent.
    Call this in the main thread, because the setting of Linux ends with the calling thread.

    With a group, the process holds a lifeline. Linux must not kill it before the lifeline breaks, or its child
    processes would stay. So it only gets a signal here, in case another process keeps the lifeline open.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if with_group:
            signal.signal(signal.SIGRTMAX, lambda *_: _end_group(parent))
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGRTMAX if with_group else signal.SIGKILL)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: Any) -> None:
    parent.join()
    _kill(os.getpid() if os.getpgrp() == os.getpid() else None)  # with its child processes
    os.kill(os.getpid(), signal.SIGKILL)


def _end_group(parent: Any) -> None:
    if os.getppid() != parent.pid:  # Linux also sends the signal when the thread that started this process ends
        _kill(os.getpgrp())


def _kill(group: int | None) -> None:
    """End a worker's group of processes: the worker and its child processes."""
    if group is not None:
        with suppress(ProcessLookupError, PermissionError):  # no process left, or it has no group yet
            os.killpg(group, signal.SIGKILL)


def _cause_of_death(code: int | None) -> str:
    if code is None or code >= 0:
        return f"the worker process ended with exit code {code} during the evaluation"
    name = signal.Signals(-code).name if -code in {s.value for s in signal.Signals} else f"signal {-code}"
    hint = ", perhaps because of a lack of memory" if name == "SIGKILL" else ""
    return f"the worker process died of {name} during the evaluation{hint}"
