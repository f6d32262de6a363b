"""The interface of every optimiser: ask for queries, tell their values in any order.

    ask()            all queries that can run now; the same ones until they are told
    tell(q, value)   one by one, in any order; after the last one of a batch, the optimiser updates itself

An optimiser has three hooks: `_propose` (the next batch), `_update` (after the batch is told) and, if proposing or
updating is slow, `_memo` with `_recall` (data with which another optimiser continues after this `ask`). Its behaviour
depends on the values in the order of their ids, never on the order or the time of arrival. Everything that happens is
an event in one log (`gibo.optimizers.log`), from which the optimiser can be rebuilt. `proceed` continues without the
pending queries of a batch; only then does the time of arrival matter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from gibo._checks import (
    LARGEST,
    as_bounds,
    as_vector,
    check_within,
    natural,
    one_per_parameter,
    shown,
)
from gibo._linalg import Array, single_thread
from gibo._serialize import register, to_plain
from gibo.errors import InputError, QueryError
from gibo.gp import Jacobian
from gibo.optimizers.log import (
    Asked,
    Belief,
    Event,
    Iteration,
    Log,
    Reparametrized,
    Started,
    Told,
    Transform,
    moved_points,
)
from gibo.optimizers.model import Model
from gibo.optimizers.state import arguments_of, from_state, make, replay, state_of
from gibo.outcome import BASELINE, EXTERNAL, Best, Evaluation, Outcome, Query, as_point, read_only, told_outcome


class Optimizer(ABC):
    """Base of all optimisers. Options are keywords of the constructor, each kept in an attribute of the same name, so
    that it is saved.

    Args:
        x0: (d,) the start.
        scale: positive; the change of a parameter that has a clear effect, roughly: one number or one per parameter.
        bounds: None, or (lower, upper) as numbers or vectors, or d pairs; no query and no iterate leaves them.
        seed: of all random choices.
    """

    registry: ClassVar[dict[str, type[Optimizer]]] = {}
    given: frozenset[str]  # names of the options that the caller gave
    method: ClassVar[str | None] = None  # its name on the command line and in files; None: not offered there
    title: ClassVar[str] = ""  # in figures
    # Whether it can use a value that arrives after its iteration; see `proceed`.
    uses_late_values: ClassVar[bool] = False
    # Whether a search that has begun can go on from another start; see `start_at`.
    can_start_again: ClassVar[bool] = False
    _at: str | None = None  # where the next queries are evaluated; None without sources
    shares_seeds = False  # whether all queries of an iteration share a seed
    baseline: int | None = None  # the start is evaluated again every `baseline` iterations; None: never
    rounding: Callable[[Array], Array] | None = None  # the nearest point (d,) that can be evaluated
    most_parameters: ClassVar[int | None] = 5000  # most keep d × d matrices; None: any number

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        register(Optimizer.registry, cls.__name__, cls)
        cls.title = vars(cls).get("title", cls.__name__)

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        optimizer = super().__new__(cls)
        optimizer.given = frozenset(name for name, option in options.items() if option is not None)
        return optimizer

    def __init__(
        self, x0: npt.ArrayLike, *, scale: npt.ArrayLike = 1.0, bounds: npt.ArrayLike | None = None, seed: int = 0
    ) -> None:
        self.x0 = as_vector("x0", x0)
        self.d = len(self.x0)
        if self.most_parameters is not None and self.d > self.most_parameters:
            raise InputError(
                f"x0: {type(self).__name__} handles at most {self.most_parameters} parameters, got {self.d}; if they "
                "are the weights of images, give the policy features of the images instead"
            )
        self.scale = one_per_parameter("scale", scale, self.d)
        if not (self.scale > 0).all():
            raise InputError(f"scale: expected positive number(s), got {shown(scale)}")
        if max(np.abs(self.x0).max(), self.scale.max()) > LARGEST or self.scale.min() < 1.0 / LARGEST:
            raise InputError(f"x0, scale: expected numbers of at most {LARGEST:g} in size; use other units")
        self.bounds = as_bounds(bounds, self.d)
        check_within("x0", self.x0, self.bounds)
        self.seed = natural("seed", seed)
        self._rng = np.random.default_rng(self.seed)
        self.start, self._iterate = self.x0, self.x0.copy()  # other points are compared with the start
        self._iteration = self.begun = 0  # the present one, and the one in which the search from the start began
        self.log = Log()  # all events; read-only
        self.outcome_checks: list[Callable[[Query, Outcome], None]] = []  # see `check_outcome`

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.d} parameters, {len(self.log.evaluations)} told, {self._iteration} steps)"

    # -- the face -----------------------------------------------------------------------------------------------------

    def ask(self) -> list[Query]:
        """All queries that can run now, also in parallel; without a `tell` in between the same ones again."""
        self.settle()
        if not self.is_pending:
            with single_thread():
                queries = [self._query(i, x, kind) for i, (x, kind) in enumerate(self._next_batch(), self.log.next_id)]
                self.log.ask(Asked(tuple(queries), self._whole_memo()))
        return self.pending

    def tell(
        self,
        query: Query | npt.ArrayLike,
        value: Any = None,
        *,
        gradient: npt.ArrayLike | None = None,
        gradient_noise: npt.ArrayLike | None = None,
        failed: bool | str | BaseException = False,
        noise: float | None = None,
        repeats: int | None = None,
        measured: Mapping[str, float] | None = None,
        block: str | float | None = None,
        source: str | None = None,
    ) -> None:
        """Report a value (higher is better) or a failure of a query, or of a point (d,) of your own.

        Args:
            query: a `Query` from `ask`, or the point itself.
            value: a finite number, or an `Outcome`.
            gradient: (d,) the objective's gradient there, if known; with gradient_noise, the variance of its noise (one
                number or one per parameter).
            failed: True, the reason or the exception, if there is no value; the optimiser continues without it.
            noise, repeats, measured, block, source: see `gibo.Outcome`.
        """
        details = {"noise": noise, "repeats": repeats, "measured": measured, "block": block, "source": source}
        outcome = told_outcome(self.d, value, gradient, gradient_noise, failed, **details)
        query = query if isinstance(query, Query) else self.external(query)
        self.check_outcome(query, outcome)
        self.receive(query, outcome)

    def check_outcome(self, query: Query, outcome: Outcome) -> None:
        """Raise an `InputError` if the optimiser cannot use the outcome."""
        if outcome.source is not None and self.log.simulator is None:
            raise InputError(f"source: expected none in a run without sources, got {shown(outcome.source)}")
        for check in self.outcome_checks:
            check(query, outcome)

    def within_limits(self, e: Evaluation) -> bool:
        """Whether no limit was measured to be violated: the search may begin there, and recommend it."""
        return True

    def external(self, x: npt.ArrayLike) -> Query:
        """A point of the user as the query with the next id, to be told at once."""
        self.settle()
        return Query(self.log.next_id, as_point(x, self.d), 0, EXTERNAL, self._iteration)

    def receive(self, query: Query, outcome: Outcome, update: bool = True) -> None:
        """`tell` with a checked outcome (`gibo.outcome.checked`), for code that runs optimisers. Without `update`, the
        update after the last value of a batch is left to `settle` or the next `ask`."""
        self.settle()
        self.log.tell(Told(query, outcome))
        if update:
            self.settle()

    @property
    def pending(self) -> list[Query]:
        """The queries that were asked and not told."""
        return list(self.log.pending.values())

    @property
    def is_pending(self) -> bool:
        """Whether queries of the current batch are pending."""
        return not self.log.pending.keys().isdisjoint(self.log.batch)

    @property
    def told_share(self) -> float:
        """The share of the current batch that was told; 1 if nothing is pending."""
        told = [i not in self.log.pending for i in self.log.batch]
        return sum(told) / len(told) if told else 1.0

    def proceed(self) -> None:
        """Continue without the pending queries of this iteration; values that arrive later are used from then on.

        For evaluations of very uneven durations. The result then depends on the values that have arrived by now.
        """
        self.settle()
        self._check_proceeding()
        with single_thread():
            self._update(self.log.proceed())

    @property
    def evaluations(self) -> list[Evaluation]:
        """All evaluations so far, including failures, by id."""
        return [self.log.evaluations[i] for i in sorted(self.log.evaluations)]

    @property
    def best_seen(self) -> Best | None:
        """The highest value so far, with its noise; None before the first value."""
        e = self.log.best_seen
        return None if e is None or e.value is None else Best(e.x.copy(), e.value)

    @property
    def iterate(self) -> Array:
        """The optimiser's current guess (d,)."""
        return self._iterate.copy()

    @property
    def iteration(self) -> int:
        """Number of updates so far."""
        return self._iteration

    @property
    def iterations(self) -> list[Iteration]:
        """One record per step; empty for an optimiser without a model."""
        return list(self.log.iterations)

    @property
    @abstractmethod
    def best(self) -> Best | None:
        """The recommended point with its estimated value; None before any value."""

    def at_start(self) -> Best | None:
        """The estimated value of the start; None for an optimiser without a model."""
        return None

    def jacobian(self) -> Jacobian | None:
        """The posterior of the gradient at the iterate; None for an optimiser without a model."""
        return None

    def model(self) -> Model | None:
        """The present posterior; None for an optimiser without a model and before any value."""
        return None

    def belief(self) -> Belief | None:
        """The model's present belief; None for an optimiser without a model and before any value."""
        model, best = self.model(), self.best
        return None if model is None or best is None else model.belief(best, self.iterate)

    def limits_at(self, x: Array) -> dict[str, float]:
        """The model's probability of each limit at x (d,), by the name of its quantity; empty without limits."""
        return {}

    def violated_at_start(self) -> list[str]:
        """Which limits the start violates, in words."""
        return []

    def clip(self, x: Array) -> Array:
        """The nearest point within the bounds."""
        return x if self.bounds is None else np.clip(x, *self.bounds)

    def evaluated(self, x: Array) -> Array:
        """The nearest point that can be evaluated."""
        return self.clip(x) if self.rounding is None else self.rounding(self.clip(x))

    def start_at(self, x: npt.ArrayLike) -> None:
        """Begin at x instead of x0. After the first `ask`: go on from x, which is the start from then on.

        Pending queries are withdrawn and cannot be told any more. All values are kept.
        """
        if self.log.has_asked:
            self.settle()
            self._begin(self.new_start(x))
            return
        arguments = {**self.arguments(), "x0": as_vector("x", x, self.d).tolist()}
        again = type(self).from_arguments(type(self).__name__, arguments)
        again.rounding, again.baseline = self.rounding, self.baseline
        again.replay(self.log.events)
        self.__dict__.update(again.__dict__)

    def new_start(self, x: npt.ArrayLike) -> Started:
        """The event of `start_at` for a search that has begun, or an error."""
        if not self.can_start_again:
            raise InputError(f"start: {type(self).__name__} cannot go on from another start; gibo.GIBO can")
        point = as_point(x, self.d)
        check_within("start", point, self.bounds)
        return Started(read_only(self.evaluated(point).copy()), self._iteration + 1)

    def reparametrize(self, transform: Transform, move_iterate: bool = False) -> None:
        """Move the evaluations that are still used, and optionally the iterate, to the points with the same values;
        only between iterations."""
        self.settle()
        self.log.reparametrize(Reparametrized(transform, move_iterate), self._used_again())
        if move_iterate:
            self._iterate = self.clip(moved_points(transform, self._iterate[None])[0])

    # -- saving, loading, continuing ----------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """The optimiser with its random generator as plain JSON data: the log; see `from_state`."""
        return state_of(self)

    @classmethod
    def from_state(cls, state: dict[str, Any] | str) -> Self:
        """The optimiser of a `state` (or its JSON text); it continues like the original, bit for bit.

        Example:
            >>> import gibo, json
            >>> opt = gibo.GIBO([0.0, 0.0], scale=0.1)
            >>> again = gibo.GIBO.from_state(json.loads(json.dumps(opt.state())))
            >>> (again.ask()[0].x == opt.ask()[0].x).all()
            np.True_
        """
        return from_state(cls, state)

    arguments = arguments_of  # a method: the constructor's arguments as plain data

    @classmethod
    def from_arguments(cls, name: str, arguments: dict[str, Any]) -> Self:
        """A new optimiser of this class from the result of `arguments`."""
        kind = Optimizer.registry.get(name) if isinstance(name, str) else None
        if kind is None or not issubclass(kind, cls):
            text = f"state: expected one of {cls.__name__}, got one of {shown(name)}"
            raise InputError(f"{text}; import the module that has it")
        return make(kind, arguments)

    def replay(self, events: Iterable[Event]) -> None:
        """Bring a new optimiser to the end of events. Events up to the last memo are loaded, later ones repeated."""
        replay(self, events)

    def _begin(self, event: Started) -> None:
        """Go on from another start."""
        self.log.start(event)
        self.start, self._iterate = event.x, event.x.copy()
        self._iteration = self.begun = event.iteration

    def _next_batch(self) -> list[tuple[Array, str]]:
        """The proposed batch, with the start once more where that is due."""
        batch = self._propose()
        if self.baseline is None:
            return batch
        asked = any(np.array_equal(self.evaluated(x), self.start) for x, _ in batch)
        return [*batch, (self.start, BASELINE)] if self._baseline_is_due() and not asked else batch

    def _baseline_is_due(self) -> bool:
        """Whether this iteration evaluates the start, and has not done so yet."""
        if not self.baseline or (self._iteration - self.begun) % self.baseline:
            return False
        return not any(np.array_equal(e.x, self.start) for e in self.log.of_iteration(self._iteration))

    # -- for the optimisers -------------------------------------------------------------------------------------------

    @abstractmethod
    def _propose(self) -> list[tuple[Array, str]]:
        """Propose the next batch: points and their kinds, at least one."""

    @abstractmethod
    def _update(self, batch: list[Evaluation]) -> None:
        """Update after a batch is told, failures included, in the order of ids; counts the iteration."""

    def _memo(self) -> dict[str, Any] | None:
        """Data for `to_plain` with which another optimiser, given evaluations, iterate and generator, continues after
        this `ask`. None, the default: a replay proposes and updates again, because nothing is slow."""
        return None

    def _recall(self, memo: dict[str, Any]) -> None:  # noqa: B027  # only those with a memo have it
        """Restore the data of `_memo`, after JSON."""

    def _block(self) -> str | float | None:
        """The block for which the next queries are planned; None if no block is known."""
        return None

    def _used_again(self) -> Sequence[Evaluation]:
        """The evaluations that the optimiser may use again; by default all."""
        return self.evaluations

    def _query(self, number: int, x: Array, kind: str) -> Query:
        x = read_only(self.evaluated(x).copy())
        return Query(number, x, self._seed(number), kind, self._iteration, self._block(), self._at)

    def _seed(self, number: int) -> int:
        """The seed of a query of the present iteration."""
        key = (self._iteration, 1) if self.shares_seeds else (number,)
        return int(np.random.SeedSequence((self.seed, *key)).generate_state(1)[0])

    def _whole_memo(self) -> dict[str, Any] | None:
        own = self._memo()
        if own is None:
            return None
        plain: dict[str, Any] = to_plain({"generator": self._rng.bit_generator.state, "iterate": self._iterate, **own})
        return plain

    def settle(self) -> None:
        """Update if the whole batch is told."""
        if self.log.batch and not self.is_pending:
            with single_thread():
                self._update(self.log.close())

    def _check_proceeding(self) -> None:
        if not self.uses_late_values:
            raise InputError(f"{type(self).__name__} cannot continue before all values of an iteration have arrived")
        if not self.is_pending or self.told_share == 0.0:
            raise QueryError("no query of this iteration has been told; tell at least one first")
