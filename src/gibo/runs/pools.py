"""How the objective is called, and where it runs: in this process, in worker processes or in an executor.

A pool takes queries and returns outcomes as they arrive, in any order. An outcome depends only on the query, so that a
run does not depend on its pool. An exception of an evaluation becomes a failed outcome in every pool.
"""

from __future__ import annotations

import inspect
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Executor, Future
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple
from uuid import uuid4

from gibo._checks import describe_error, instance
from gibo._linalg import Array
from gibo.errors import InputError, RunError
from gibo.outcome import OBJECTIVE, Evaluation, Outcome, Query, checked
from gibo.parameters import Parameters

Objective = Callable[..., Any]

WAIT_POLL = 0.2  # seconds between two checks of a waiting pool for requests and dead workers


def evaluate(objective: Objective, query: Query, options: dict[str, Any], ticket: str = "") -> Outcome:
    """Call the objective and turn the result or exception into an `Outcome`; only KeyboardInterrupt passes through.

    The ticket makes each call unique for executors that cache the results of calls, as Dask does.
    """
    started = time.perf_counter()
    try:
        returned = objective(query.x.copy(), **options)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # no other exception of an objective may end the run
        return Outcome.failed(error, time.perf_counter() - started)
    seconds = time.perf_counter() - started
    try:
        return checked(returned, len(query.x), f"{OBJECTIVE}value", seconds)
    except InputError as error:
        return Outcome.failed(str(error), seconds)
    except Exception as error:  # the content of an Outcome is foreign
        return Outcome.failed(f"{OBJECTIVE}outcome: {describe_error(error)}", seconds)


@dataclass(frozen=True)
class Named:
    """An objective of a vector from one of parameters by name: as keyword arguments, or as a dictionary."""

    objective: Callable[..., Any]
    parameters: Parameters
    by_keyword: bool

    def __call__(self, x: Array, **options: Any) -> Any:
        values = self.parameters.to_values(x)
        return self.objective(**values, **options) if self.by_keyword else self.objective(values, **options)


def prepared(
    objective: Objective, parameters: Parameters | None, further: Mapping[str, Any], with_sources: bool
) -> tuple[Objective, list[str]]:
    """An objective of a vector, and the fields of a query that it gets: its seed, kind and source, for which it has
    parameters of these names. An error if it cannot be called.

    Args:
        objective: of a vector, or of the parameters by name.
        parameters: their names and kinds, or None.
        further: keyword arguments that it gets besides.
        with_sources: whether queries have a source.
    """
    try:
        found = inspect.signature(objective)
    except Exception:  # builtins may have no signature, and a foreign object may raise anything
        found = inspect.signature(lambda *args, **kwargs: None)
    own = {name: p.kind for name, p in found.parameters.items() if p.kind is not p.POSITIONAL_ONLY}
    wanted = [name for name in ("seed", "kind", *(["source"] if with_sources else [])) if name in own]
    values = dict.fromkeys(parameters or ())
    by_keyword = inspect.Parameter.VAR_KEYWORD in own.values() or any(name in own for name in values)
    try:
        if parameters is not None and by_keyword:
            found.bind(**values, **dict.fromkeys(wanted), **further)
        else:
            found.bind(None, **dict.fromkeys(wanted), **further)
    except TypeError as error:
        how = f"the keywords {', '.join(values)}" if parameters is not None and by_keyword else "a vector"
        raise InputError(f"objective: it is called with {how}, but takes {found}: {error}") from None
    if with_sources and "source" not in wanted:
        raise InputError("objective: with sources it needs a parameter source, the name of the one to evaluate")
    return (objective if parameters is None else Named(objective, parameters, by_keyword)), wanted


class Underway(NamedTuple):
    """A running evaluation: its query, its worker (None: without a name), and its start."""

    query: int
    worker: str | None
    since: float


class Pool(ABC):
    """Evaluates queries elsewhere, or in this process while it waits.

    Attributes:
        queue: queries that have not begun, with further keyword arguments of the objective.
        held: while held, nothing new begins; running evaluations continue.
    """

    def __init__(self, objective: Objective) -> None:
        self.objective, self.held = objective, False
        self.queue: deque[tuple[Query, dict[str, Any]]] = deque()

    def submit(self, query: Query, options: dict[str, Any]) -> None:
        """Evaluate this query as soon as there is room, with these further keyword arguments."""
        self.queue.append((query, options))
        self.hand_out()

    def hold(self, held: bool) -> None:
        """Hold, or go on."""
        self.held = held
        self.hand_out()

    def abandon(self, query: int) -> None:
        """Drop this query: its outcome is ignored, and its evaluation is ended if possible."""
        self.queue = deque(item for item in self.queue if item[0].id != query)

    def drop_pending(self) -> int:
        """Drop the queries whose evaluation has not begun; returns the number of the others."""
        self.queue.clear()
        return len(self.underway())

    def hand_out(self) -> None:  # noqa: B027  # a pool of this process has nothing to do
        """Begin what can begin."""

    @abstractmethod
    def wait(self) -> None:
        """Wait until there may be an outcome."""

    @abstractmethod
    def take(self) -> list[Evaluation]:
        """The outcomes that have arrived, without waiting."""

    @abstractmethod
    def underway(self) -> list[Underway]:
        """The running evaluations; in this process, the next one."""

    def close(self) -> None:
        """End the pool and its running evaluations."""
        self.queue.clear()


class InProcess(Pool):
    """Evaluates in this process, one query after another."""

    def __init__(self, objective: Objective) -> None:
        super().__init__(objective)
        self.arrived: list[Evaluation] = []
        self.current: Underway | None = None

    def wait(self) -> None:
        query, options = self.queue.popleft()
        self.current = Underway(query.id, None, time.time())
        try:
            self.arrived.append(Evaluation(query, evaluate(self.objective, query, options)))
        finally:
            self.current = None

    def take(self) -> list[Evaluation]:
        arrived, self.arrived = self.arrived, []
        return arrived

    def abandon(self, query: int) -> None:
        super().abandon(query)
        self.arrived = [e for e in self.arrived if e.id != query]

    def underway(self) -> list[Underway]:
        if self.current is not None:
            return [self.current]
        return [Underway(self.queue[0][0].id, None, time.time())] if self.queue and not self.held else []


class Futures(Pool):
    """Evaluates in a `concurrent.futures.Executor`: threads, processes, or the workers of a cluster.

    The executor gets all queries at once. It stays open, because its owner closes it.
    """

    def __init__(self, objective: Objective, executor: Executor) -> None:
        super().__init__(objective)
        self.executor = executor
        self.running: dict[Future[Outcome], tuple[Query, dict[str, Any], float]] = {}
        self.done: SimpleQueue[None] = SimpleQueue()  # a message from each finished future
        self.lost: RunError | None = None  # raised after all arrived outcomes are taken

    def hand_out(self) -> None:
        if self.held:
            self.queue.extend((query, options) for query, options, _ in self._cancelled())
        while self.queue and not self.held:
            query, options = self.queue.popleft()
            try:
                future = self.executor.submit(evaluate, self.objective, query, options, uuid4().hex)
            except Exception as error:  # shut down, broken, or unable to send the objective
                raise RunError(f"the executor takes no more evaluations: {describe_error(error)}") from error
            self.running[future] = (query, options, time.time())
            future.add_done_callback(lambda _: self.done.put(None))

    def wait(self) -> None:
        # Do not interrupt `concurrent.futures.wait` or `Future.done`: they might keep locks that others need.
        if not any(future.done() for future in self.running):
            with suppress(Empty):
                self.done.get(timeout=WAIT_POLL)

    def take(self) -> list[Evaluation]:
        arrivals = []
        done = [future for future in self.running if future.done()]
        for future in sorted(done, key=lambda future: self.running[future][0].id):
            query, _, _ = self.running.pop(future)
            try:
                outcome = instance("its result", future.result(), Outcome, "an evaluation's outcome")
                arrivals.append(Evaluation(query, outcome))
            # An exception of the executor, not of the objective; KeyboardInterrupt comes from a process that also got
            # Ctrl-C.
            except (Exception, CancelledError, KeyboardInterrupt) as error:
                lost = RunError(f"the executor lost evaluation {query.id}: {describe_error(error)}")
                self.lost = self.lost or lost
        if self.lost is not None and not self.drop_pending() and not arrivals:  # wait for running evaluations
            raise self.lost
        return arrivals

    def abandon(self, query: int) -> None:
        super().abandon(query)
        for future in [future for future, (each, *_) in self.running.items() if each.id == query]:
            future.cancel()
            del self.running[future]

    def underway(self) -> list[Underway]:
        begun = [item for future, item in self.running.items() if future.running()]
        return [Underway(query.id, None, since) for query, _, since in begun]

    def drop_pending(self) -> int:
        self.queue.clear()
        self._cancelled()
        return len(self.running)

    def close(self) -> None:
        self.drop_pending()

    def _cancelled(self) -> list[tuple[Query, dict[str, Any], float]]:
        """Cancel evaluations that have not begun."""
        return [self.running.pop(future) for future in [future for future in self.running if future.cancel()]]
