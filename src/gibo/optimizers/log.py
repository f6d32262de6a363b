"""An optimiser's history: a log of events, and data derived from it.

`Optimizer.replay` brings a new optimiser to the end of a log; this is the only way to continue. The journal of a run is
such a log on the disk; `Optimizer.state` is such a log as JSON.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gibo._checks import as_points
from gibo._linalg import Array
from gibo.errors import InputError, QueryError
from gibo.outcome import BASELINE, EXTERNAL, Evaluation, Outcome, Query, read_only


@dataclass(frozen=True, eq=False)
class Iteration:
    """The knowledge of a model-based optimiser at a step, in the user's units.

    Attributes:
        number: 0, 1, …
        evaluations: number of evaluations until then, failures included.
        x: (d,) the iterate before the step.
        gradient: (d,) posterior mean of the gradient there.
        uncertainty: trace of the gradient's posterior covariance.
        probability_of_ascent: the model's probability that the objective rises along the step.
        certainty: the model's probability that the gradient is not zero, see `gibo.Jacobian.certainty`.
        step: (d,) the step.
        lengthscale, variance, noise: the model's hyperparameters.
        jitter: the number added to the diagonal to factorise the model's covariance; almost always 0.
        warning: the reason why a fit kept the old hyperparameters, or None.
    """

    number: int
    evaluations: int
    x: Array
    gradient: Array
    uncertainty: float
    probability_of_ascent: float
    certainty: float
    step: Array
    lengthscale: Array
    variance: float
    noise: float
    jitter: float
    warning: str | None


@dataclass(frozen=True, eq=False)
class Belief:
    """The predictions of an optimiser's model after an update, which a journal records for the page.

    In the parameters' own units, with values in the optimiser's sign (it maximises).

    Attributes:
        x: (d,) the recommended point.
        value, deviation: the model's mean and standard deviation of its value.
        interval: the model's 90 % interval (low, high) of the value.
        iterate: (d,) the iterate after the update.
        gradient, gradient_deviation: (d,) mean and standard deviation of the gradient there.
        lengthscale: (d,).
        noise: variance of the noise on a value.
        units: the transformation of values: "shift", "spread", "warp", "centre", "width".
    """

    x: Array
    value: float
    deviation: float
    interval: tuple[float, float]
    iterate: Array
    gradient: Array
    gradient_deviation: Array
    lengthscale: Array
    noise: float
    units: dict[str, Any]


class Transform(Protocol):
    """A linear map of parameters, x' = T x, under which the objective keeps its values."""

    def parameters(self, theta: npt.ArrayLike) -> Array:
        """T x, for many (n, d)."""

    def gradients(self, g: npt.ArrayLike) -> Array:
        """T⁻ᵀ g, for many (n, d)."""


@dataclass(frozen=True, eq=False)
class Asked:
    """A batch was proposed; the memo has the data that were slow to compute, or None."""

    queries: tuple[Query, ...]
    memo: dict[str, Any] | None


@dataclass(frozen=True, eq=False)
class Told:
    """A query, or a point of the user, got its outcome."""

    query: Query
    outcome: Outcome


@dataclass(frozen=True, eq=False)
class Proceeded:
    """The batch was closed although some of its queries were pending."""


@dataclass(frozen=True, eq=False)
class Reparametrized:
    """Parameters changed their meaning."""

    transform: Transform
    moves_iterate: bool


@dataclass(frozen=True, eq=False)
class Stepped:
    """An update made a step; this is its record."""

    record: Iteration


@dataclass(frozen=True, eq=False)
class Started:
    """The search continues from another start x (d,) with this iteration; pending queries are withdrawn."""

    x: Array
    iteration: int


Event = Asked | Told | Proceeded | Reparametrized | Stepped | Started


def last_memo(events: Sequence[Event]) -> int:
    """The position of the last batch with a memo; −1 if there is none."""
    return max((i for i, e in enumerate(events) if isinstance(e, Asked) and e.memo is not None), default=-1)


class Log:
    """The events so far, and data derived from them.

    Attributes:
        events: in the order in which they happened.
        evaluations: all evaluations, by id.
        valued: the evaluations with a value, in the order of their ids; with sources, those of the machine.
        simulated: those of the simulator.
        best_seen: the evaluation with the highest value, the first one of equals.
        pending: the queries that are not told yet, by id.
        batch: ids of the last batch; empty after it is closed.
        iterations: the records of the steps.
        next_id: of the next query.
    """

    def __init__(self, simulator: str | None = None) -> None:
        self.simulator = simulator  # the name of the source whose values do not count
        self.simulated: list[Evaluation] = []
        self.events: list[Event] = []
        self.evaluations: dict[int, Evaluation] = {}
        self.valued: list[Evaluation] = []
        self.best_seen: Evaluation | None = None
        self.pending: dict[int, Query] = {}
        self.batch: tuple[int, ...] = ()
        self.iterations: list[Iteration] = []
        self.next_id = 0

    @property
    def has_asked(self) -> bool:
        """Whether `ask` was called."""
        return any(isinstance(event, Asked) for event in self.events)

    @property
    def has_failures(self) -> bool:
        """Whether an evaluation has no value."""
        return len(self.valued) + len(self.simulated) < len(self.evaluations)

    def ask(self, asked: Asked) -> None:
        """Make these queries pending; they must be the next ones."""
        numbers = self.check_next(asked.queries)
        self.pending.update(zip(numbers, asked.queries, strict=True))
        self.batch, self.next_id = tuple(numbers), self.next_id + len(numbers)
        self.events.append(asked)

    def check_next(self, queries: Sequence[Query]) -> list[int]:
        """Check that these queries may be asked now; returns their ids."""
        if not self.pending.keys().isdisjoint(self.batch):
            raise QueryError("queries of the previous batch are pending; tell them first")
        numbers = [query.id for query in queries]
        if not numbers or numbers != list(range(self.next_id, self.next_id + len(numbers))):
            raise QueryError(f"these are not the next queries; the next id is {self.next_id}")
        return numbers

    def tell(self, told: Told) -> None:
        """Add an evaluation."""
        query = self._known(told.query)
        e = Evaluation(query, told.outcome)
        self.events.append(Told(query, told.outcome))
        self.evaluations[e.id] = e
        if e.value is not None and e.source is not None and e.source == self.simulator:
            insort(self.simulated, e, key=lambda each: each.id)
        elif e.value is not None:
            insort(self.valued, e, key=lambda each: each.id)
            best = self.best_seen
            if best is None or best.value is None or (e.value, -e.id) > (best.value, -best.id):
                self.best_seen = e
        self.next_id = max(self.next_id, e.id + 1)
        self.pending.pop(e.id, None)

    def close(self) -> list[Evaluation]:
        """Close the batch; returns its evaluations by id, without values for pending queries."""
        batch, self.batch = self.batch, ()
        missing = Outcome(None, failure="not told yet")
        closed = [self.evaluations.get(i) or Evaluation(self.pending[i], missing) for i in batch]
        return [e for e in closed if e.kind != BASELINE]  # what the optimiser proposed itself

    def proceed(self) -> list[Evaluation]:
        """`close` although queries of the batch are pending."""
        self.events.append(Proceeded())
        return self.close()

    def start(self, event: Started) -> None:
        """Withdraw what is pending."""
        self.batch, self.pending = (), {}
        self.events.append(event)

    def step(self, record: Iteration) -> None:
        """Add the record of a step."""
        self.iterations.append(record)
        self.events.append(Stepped(record))

    def reparametrize(self, event: Reparametrized, used: Iterable[Evaluation]) -> None:
        """Move the evaluations that will be used again, and the best one, to the points with the same values."""
        if self.pending:
            raise QueryError("queries are pending; parameters can change their meaning between iterations only")
        moving = {e.id: e for e in used}
        if self.best_seen is not None:
            moving[self.best_seen.id] = self.best_seen
        moved = _moved(list(moving.values()), event.transform)
        self.evaluations = self.evaluations | moved
        self.valued = [moved.get(e.id, e) for e in self.valued]
        self.simulated = [moved.get(e.id, e) for e in self.simulated]
        if self.best_seen is not None:
            self.best_seen = moved[self.best_seen.id]
        self.events.append(event)

    def of_iteration(self, iteration: int) -> list[Evaluation]:
        """The evaluations of this iteration, queries and other points, by id."""
        found: list[Evaluation] = []
        for i in range(self.next_id - 1, -1, -1):
            e = self.evaluations.get(i)
            if e is not None and e.iteration < iteration:
                break
            found += [e] if e is not None and e.iteration == iteration else []
        return found[::-1]

    def since_id(self, number: int) -> list[Evaluation]:
        """The evaluations with ids above this one."""
        return [e for i in range(number + 1, self.next_id) if (e := self.evaluations.get(i)) is not None]

    def _known(self, query: Query) -> Query:
        """The pending query that equals this one, or the user's point with the next id; otherwise raises."""
        own = self.pending.get(query.id)
        if query.kind == EXTERNAL:
            if query.id != self.next_id:
                raise QueryError(f"query {query.id}: a point of your own gets the next id, {self.next_id}")
            return query
        if own is not None and np.array_equal(own.x, query.x):
            return own
        if own is None and query.id in self.evaluations:
            raise QueryError(f"query {query.id} was told before; each query is told once")
        raise QueryError(f"query {query.id} is unknown to this optimiser; tell queries that its ask() returned")


def moved_points(transform: Transform, X: Array) -> Array:
    """Points (n, d) after a change of the parameters' meaning."""
    moved = as_points("the transform's parameters", transform.parameters(X), X.shape[1])
    if len(moved) != len(X):
        raise InputError(f"the transform's parameters: expected {len(X)} points, got {len(moved)}")
    return moved


def _moved(used: list[Evaluation], transform: Transform) -> dict[int, Evaluation]:
    """Evaluations by id, moved to the points with the same values after a change of the parameters' meaning."""
    if not used:
        return {}
    X = moved_points(transform, np.array([e.x for e in used]))
    has_gradients = any(e.gradient is not None for e in used)
    squares = transform.gradients(np.eye(X.shape[1])) ** 2 if has_gradients else None
    moved = {}
    for e, x in zip(used, X, strict=True):
        outcome = e.outcome
        if e.gradient is not None and e.gradient_noise is not None and squares is not None:
            gradient = transform.gradients(e.gradient[None])[0]
            outcome = replace(outcome, gradient=gradient, gradient_noise=e.gradient_noise @ squares)
        moved[e.id] = Evaluation(replace(e.query, x=read_only(x.copy())), outcome)
    return moved
