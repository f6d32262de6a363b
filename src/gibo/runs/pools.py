"""How the objective is called, and where it runs: in this process, in worker processes or in an executor.

A pool takes queries and returns outcomes as they arrive, in any order. An outcome depends only on the query, so that a
run does not depend on its pool. An exception of an evaluation becomes a failed outcome in every pool.
"""

from __future__ import annotations

import inspect
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Executor, Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, Protocol
from uuid import uuid4

from gibo._checks import describe_error, instance
from gibo._linalg import Array
from gibo.errors import InputError, RunError
from gibo.outcome import OBJECTIVE, Evaluation, Outcome, Query, checked
from gibo.parameters import Parameters

Objective = Callable[..., Any]

WAIT_POLL = 0.2  # seconds between two checks of a waiting pool for requests and dead workers
OFFERED = ("seed", "kind")  # fields of a query that an objective gets if it has a parameter of that name
OFFERED_WITH_SOURCES = (*OFFERED, "source")


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


class Named:
    """An objective of a vector from one of parameters by name.

    It is called with a keyword argument for each parameter if it takes them, else with a dictionary.

    Args:
        objective: of the parameters.
        parameters: the parameters of the vector.

    Example:
        >>> from gibo.parameters import integer
        >>> Named(lambda delay: delay + 1, Parameters(delay=integer(1, 9)))([4.4])
        5
    """

    def __init__(self, objective: Callable[..., Any], parameters: Parameters, offered: Sequence[str] = OFFERED) -> None:
        self.objective, self.parameters = objective, parameters
        found = _signature(objective) or inspect.signature(lambda **values: None)
        own = {name: p for name, p in found.parameters.items() if p.kind is not p.POSITIONAL_ONLY}
        takes_any = any(p.kind is p.VAR_KEYWORD for p in own.values())
        self.by_keyword = takes_any or any(name in own for name in parameters)
        x = inspect.Parameter("x", inspect.Parameter.POSITIONAL_ONLY)
        extra = [own[name].replace(kind=inspect.Parameter.KEYWORD_ONLY) for name in offered if name in own]
        self.__signature__ = inspect.Signature([x, *extra])
        values = dict.fromkeys(parameters)
        given = dict.fromkeys(_offered(found, offered))
        _bind(found, *([] if self.by_keyword else [values]), **(values if self.by_keyword else {}), **given)

    def __call__(self, x: Array, **options: Any) -> Any:
        values = self.parameters.to_values(x)
        return self.objective(**values, **options) if self.by_keyword else self.objective(values, **options)


def asked_for(objective: Callable[..., Any], reparametrizer: Any = None, offered: Sequence[str] = OFFERED) -> list[str]:
    """The fields of a query that the objective has parameters for; raises before the first evaluation if it cannot be
    called.

    An objective with a parameter ``seed`` gets the query's seed, one with a parameter ``kind`` its kind.
    """
    found = _signature(objective)
    if found is None:
        return []
    names = _offered(found, offered)
    _bind(found, None, **dict.fromkeys(names), **({} if reparametrizer is None else reparametrizer.options()))
    return names


def _offered(found: inspect.Signature, offered: Sequence[str]) -> list[str]:
    """The offered fields for which there is a parameter of that name."""
    own = found.parameters
    return [name for name in offered if name in own and own[name].kind is not inspect.Parameter.POSITIONAL_ONLY]


def _signature(objective: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(objective)
    except Exception:  # builtins may have no signature, and a foreign object may raise anything
        return None


def _bind(found: inspect.Signature, /, *args: Any, **kwargs: Any) -> None:
    try:
        found.bind(*args, **kwargs)
    except TypeError as error:
        how = "a vector" if args else f"the keywords {', '.join(kwargs)}"
        raise InputError(f"objective: it is called with {how}, but takes {found}: {error}") from None


class Underway(NamedTuple):
    """A running evaluation: its query, its worker (None: without a name), and its start."""

    query: int
    worker: str | None
    since: float


class Pool(Protocol):
    """The interface of pools, which evaluate queries elsewhere, or in this process while it waits."""

    def submit(self, query: Query, options: dict[str, Any]) -> None:
        """Evaluate this query as soon as there is room, with these further keyword arguments."""

    def wait(self) -> None:
        """Wait until there may be an outcome."""

    def take(self) -> list[Evaluation]:
        """The outcomes that have arrived, without waiting."""

    def hold(self, held: bool) -> None:
        """While held, nothing new begins; running evaluations continue."""

    def abandon(self, query: int) -> None:
        """Drop this query: its outcome is ignored, and its evaluation is ended if possible."""

    def underway(self) -> list[Underway]:
        """The running evaluations; in this process, the next one."""

    def drop_pending(self) -> int:
        """Drop the queries whose evaluation has not begun; returns the number of the others."""

    def close(self) -> None:
        """End the pool and its running evaluations."""


class InProcess:
    """Evaluates in this process, one query after another."""

    def __init__(self, objective: Objective) -> None:
        self.objective, self.held = objective, False
        self.queue: deque[tuple[Query, dict[str, Any]]] = deque()
        self.arrived: list[Evaluation] = []
        self.current: Underway | None = None

    def submit(self, query: Query, options: dict[str, Any]) -> None:
        self.queue.append((query, options))

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

    def hold(self, held: bool) -> None:
        self.held = held

    def abandon(self, query: int) -> None:
        self.queue = deque(item for item in self.queue if item[0].id != query)
        self.arrived = [e for e in self.arrived if e.id != query]

    def underway(self) -> list[Underway]:
        if self.current is not None:
            return [self.current]
        return [Underway(self.queue[0][0].id, None, time.time())] if self.queue and not self.held else []

    def drop_pending(self) -> int:
        self.queue.clear()
        return 0

    def close(self) -> None:
        self.queue.clear()


class Futures:
    """Evaluates in a `concurrent.futures.Executor`: threads, processes, or the workers of a cluster."""

    def __init__(self, objective: Objective, executor: Executor) -> None:
        self.objective, self.executor = objective, executor
        self.running: dict[Future[Outcome], tuple[Query, dict[str, Any], float]] = {}
        self.kept: dict[int, tuple[Query, dict[str, Any]]] = {}  # while held
        self.held = False
        self.done: SimpleQueue[None] = SimpleQueue()  # a message from each finished future
        self.lost: RunError | None = None  # raised after all arrived outcomes are taken

    def submit(self, query: Query, options: dict[str, Any]) -> None:
        if self.held:
            self.kept[query.id] = (query, options)
            return
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

    def hold(self, held: bool) -> None:
        self.held = held
        if held:
            for query, options, _ in self._cancelled():
                self.kept[query.id] = (query, options)
        else:
            kept, self.kept = self.kept, {}
            for query, options in kept.values():
                self.submit(query, options)

    def abandon(self, query: int) -> None:
        self.kept.pop(query, None)
        for future in [future for future, (each, *_) in self.running.items() if each.id == query]:
            future.cancel()
            del self.running[future]

    def underway(self) -> list[Underway]:
        begun = [item for future, item in self.running.items() if future.running()]
        return [Underway(query.id, None, since) for query, _, since in begun]

    def drop_pending(self) -> int:
        self.kept.clear()
        self._cancelled()
        return len(self.running)

    def _cancelled(self) -> list[tuple[Query, dict[str, Any], float]]:
        """Cancel evaluations that have not begun."""
        return [self.running.pop(future) for future in [future for future in self.running if future.cancel()]]

    def close(self) -> None:
        """The executor stays open, because its owner closes it."""
        self.drop_pending()
