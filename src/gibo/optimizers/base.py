"""The face that every optimiser has: ask for queries, tell their values, in any order.

    ask()            all queries that can run now; the same ones until they are told
    tell(q, value)   one by one, in any order; once the last one of a batch is told, the optimiser moves on

An optimiser implements `_propose` (the next batch) and `_update` (what to do once the batch is told). What it does
depends on the told values in the order of their ids, never on the order or the time of their arrival.

Two more for those who run it. `move_on` goes on without the queries of a batch that are still out; only then does it
matter what arrived when. `recall` puts a fresh optimiser where another one stood after an `ask`, from the queries and
the `thought` of that ask, so that a record of asks and tells is enough to continue from.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from gibo._checks import as_bounds, as_finite, as_number, as_vector, describe_error
from gibo._linalg import Array, single_thread
from gibo._serialize import to_plain
from gibo.errors import GiboError, InputError, QueryError
from gibo.gp import Jacobian

STATE_FORMAT = 1


@dataclass(frozen=True, eq=False)
class Query:
    """A point to evaluate.

    Attributes:
        id: its number; ids rise by one.
        x: (d,) where to evaluate.
        seed: for a stochastic objective: depends on the run's seed and the id only.
        kind: what it is for, such as ``"iterate"`` or ``"query"``.
        iteration: in which iteration of the optimiser it was asked.
    """

    id: int
    x: Array
    seed: int
    kind: str
    iteration: int


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A query that was told: its value (and gradient), or why it failed. ``kind`` "told" is a point from elsewhere."""

    id: int
    x: Array
    kind: str
    iteration: int
    value: float | None = None
    gradient: Array | None = None
    gradient_noise: Array | None = None
    failure: str | None = None


class Best(NamedTuple):
    """A point and its value; for a point chosen by a model the value is the model's mean there."""

    x: Array
    value: float


class Transform(Protocol):
    """A linear map of parameters, x' = T x, under which the objective keeps its values."""

    def parameters(self, theta: npt.ArrayLike) -> Array:
        """T x, for many (n, d)."""

    def gradients(self, g: npt.ArrayLike) -> Array:
        """T⁻ᵀ g, for many (n, d)."""


class Optimizer(ABC):
    """Base of all optimisers; see the module's text.

    Args:
        x0: (d,) where to start.
        scale: positive; how far a parameter must move to matter, roughly: a number, or one per parameter.
        bounds: None, or (lower, upper) as numbers or vectors, or d pairs; no query and no iterate leaves them.
        seed: of all random choices.
    """

    registry: ClassVar[dict[str, type[Optimizer]]] = {}

    # Whether a value that arrives after its iteration is over is of any use; see `move_on`.
    uses_late_values: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Optimizer.registry[cls.__name__] = cls

    def __init__(
        self, x0: npt.ArrayLike, *, scale: npt.ArrayLike = 1.0, bounds: npt.ArrayLike | None = None, seed: int = 0
    ) -> None:
        self.x0 = as_vector("x0", x0)
        self.d = len(self.x0)
        self.scale = _one_per_parameter("scale", scale, self.d)
        if not (self.scale > 0).all():
            raise InputError(f"scale: expected positive number(s), got {scale!r:.80}")
        self.bounds = as_bounds(bounds, self.d)
        if self.bounds is not None and not ((self.bounds[0] <= self.x0) & (self.x0 <= self.bounds[1])).all():
            j = int(np.flatnonzero((self.x0 < self.bounds[0]) | (self.x0 > self.bounds[1]))[0])
            low, high = self.bounds[0][j], self.bounds[1][j]
            raise InputError(f"x0: must lie within the bounds; dimension {j} is {self.x0[j]}, bounds [{low}, {high}]")
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
            raise InputError(f"seed: expected a whole number of at least 0, got {seed!r:.80}")
        self.seed = int(seed)
        self._rng = np.random.default_rng(self.seed)
        self._iterate = self.x0.copy()
        self._iteration = 0
        self._next_id = 0
        self._evaluations: dict[int, Evaluation] = {}
        self._waiting: dict[int, Query] = {}
        self._batch: list[int] = []

    # -- the face -----------------------------------------------------------------------------------------------------

    def ask(self) -> list[Query]:
        """All queries that can run now, all at once if you can. Without a `tell` in between: the same ones again."""
        if not self.is_waiting:
            self._finish_batch()
            with self._all_or_nothing():
                proposals = self._propose()
            for x, kind in proposals:
                query = self._next_query(x, kind)
                self._next_id += 1
                self._waiting[query.id] = query
                self._batch.append(query.id)
        return self.waiting

    def foreseen(self) -> Query | None:
        """The query that the next `ask` will begin with, if that is known before it has thought; None otherwise.

        Its evaluation may begin while `ask` is planning the others; it is told once it has been asked.
        """
        return None

    def tell(
        self,
        query: Query | npt.ArrayLike,
        value: Any = None,
        *,
        gradient: npt.ArrayLike | None = None,
        gradient_noise: npt.ArrayLike | None = None,
        failed: bool | str | BaseException = False,
    ) -> None:
        """Report a value (higher is better), or a failure, of a query, or of a point (d,) evaluated elsewhere.

        Args:
            query: a `Query` from `ask`, or the point itself.
            value: a finite number.
            gradient: (d,) the objective's gradient there, if known; with gradient_noise, the variance of its noise (a
                number or one per parameter).
            failed: True, the reason or the exception: there is no value; the optimiser carries on without it.
        """
        known = isinstance(query, Query)
        if isinstance(query, Query):
            query = self._waiting_like(query)
        else:
            query = Query(self._next_id, _read_only(as_vector("x", query, self.d)), 0, "told", self.iteration)
        evaluation = self._evaluation(query, value, gradient, gradient_noise, failed)
        if known:
            del self._waiting[query.id]
        else:
            self._next_id += 1
        self._evaluations[query.id] = evaluation
        if not self.is_waiting:
            self._finish_batch()

    @property
    def waiting(self) -> list[Query]:
        """The queries that were asked and are still to be told."""
        return list(self._waiting.values())

    @property
    def is_waiting(self) -> bool:
        """Whether queries of the current batch are still to be told."""
        return any(i in self._waiting for i in self._batch)

    @property
    def told_share(self) -> float:
        """Which share of the current batch has been told; 1 if nothing is out."""
        return sum(i not in self._waiting for i in self._batch) / len(self._batch) if self._batch else 1.0

    def move_on(self) -> None:
        """Go on without the queries of this iteration that are still out; told later, they are used from then on.

        For evaluations of very uneven durations. What the optimiser does then depends on what had arrived by now.
        """
        if not self.uses_late_values:
            raise InputError(f"{type(self).__name__} cannot go on before all values of an iteration are there")
        if not any(i in self._evaluations for i in self._batch):
            raise QueryError("no query of this iteration has been told; there is nothing to go on with")
        with self._all_or_nothing():
            self._update([self._evaluations.get(i) or _still_out(self._waiting[i]) for i in self._batch])
            self._batch = []

    @property
    def evaluations(self) -> list[Evaluation]:
        """All that was told so far, failures included, by id."""
        return [self._evaluations[i] for i in sorted(self._evaluations)]

    @property
    def best_seen(self) -> Best | None:
        """The highest value told, as it was told, noise included; None before the first value."""
        seen = [e for e in self.evaluations if e.value is not None]
        if not seen:
            return None
        best = max(seen, key=lambda e: e.value if e.value is not None else -np.inf)
        assert best.value is not None
        return Best(best.x.copy(), best.value)

    @property
    def iterate(self) -> Array:
        """The optimiser's current guess (d,)."""
        return self._iterate.copy()

    @property
    def iteration(self) -> int:
        """Number of updates so far."""
        return self._iteration

    @property
    @abstractmethod
    def best(self) -> Best | None:
        """The point that the optimiser recommends, and what it believes its value to be; None before any value."""

    def jacobian(self) -> Jacobian | None:
        """What the optimiser knows of the gradient at its iterate; None for one without a model."""
        return None

    def clip(self, x: Array) -> Array:
        """The nearest point within the bounds."""
        return x if self.bounds is None else np.clip(x, *self.bounds)

    def reexpress(self, transform: Transform, move_iterate: bool = False) -> None:
        """Move what was told to where the same values are now, and the iterate too if asked; between iterations only.

        Records of earlier steps keep the coordinates of their time.
        """
        if self._waiting:
            raise QueryError("queries are still out; parameters can change their meaning between iterations only")
        told = self.evaluations
        if told:
            X = transform.parameters(np.array([e.x for e in told]))
            squares = transform.gradients(np.eye(self.d)) ** 2 if any(e.gradient is not None for e in told) else None
            moved = {}
            for e, x in zip(told, X, strict=True):
                gradient, noise = e.gradient, e.gradient_noise
                if gradient is not None and noise is not None and squares is not None:
                    gradient, noise = transform.gradients(gradient[None])[0], noise @ squares
                moved[e.id] = replace(e, x=_read_only(x.copy()), gradient=gradient, gradient_noise=noise)
            self._evaluations = moved
        if move_iterate:
            self._iterate = self.clip(transform.parameters(self._iterate[None])[0])

    # -- state --------------------------------------------------------------------------------------------------------

    def thought(self) -> dict[str, Any]:
        """What the last `ask` left behind besides its queries, as plain data; see `recall`."""
        plain: dict[str, Any] = to_plain({"generator": self._rng.bit_generator.state, **self._own_thought()})
        return plain

    def recall(self, batch: list[Query], thought: dict[str, Any]) -> None:
        """Stand where the optimiser stood when its `ask` had proposed this batch, without thinking it through again."""
        if self.is_waiting:
            raise QueryError("queries of the batch before are still out; tell them first")
        self._finish_batch()
        if [query.id for query in batch] != list(range(self._next_id, self._next_id + len(batch))) or not batch:
            raise QueryError(f"these are not the queries that come next; the next id is {self._next_id}")
        with self._all_or_nothing():
            proposals = self._recall(thought)
            self._rng.bit_generator.state = thought["generator"]
            if proposals is not None and not _alike(proposals, batch, self.clip):
                name = type(self).__name__
                raise InputError(f"{name} would ask other queries than it did: with another version of gibo or cma?")
        for query in batch:
            own = Query(query.id, _read_only(query.x.copy()), query.seed, query.kind, self._iteration)
            self._waiting[query.id] = own
            self._batch.append(query.id)
        self._next_id += len(batch)

    def state(self) -> dict[str, Any]:
        """Everything, random generator included, as plain data for JSON; see `from_state`."""
        state = {
            "optimizer": type(self).__name__,
            "format": STATE_FORMAT,
            "arguments": self._arguments(),
            "rng": self._rng.bit_generator.state,
            "next_id": self._next_id,
            "evaluations": self.evaluations,
            "waiting": list(self._waiting.values()),
            "batch": self._batch,
            "iterate": self._iterate,
            "iteration": self._iteration,
            "own": self._own_state(),
        }
        plain: dict[str, Any] = to_plain(state)
        return plain

    @classmethod
    def from_state(cls, state: dict[str, Any] | str) -> Self:
        """The optimiser that `state` (or its JSON text) was taken from; it continues bit for bit as that one would.

        Example:
            >>> import gibo, json
            >>> opt = gibo.GIBO([0.0, 0.0], scale=0.1)
            >>> again = gibo.GIBO.from_state(json.loads(json.dumps(opt.state())))
            >>> (again.ask()[0].x == opt.ask()[0].x).all()
            np.True_
        """
        try:
            data = json.loads(state) if isinstance(state, str) else state
            if data["format"] != STATE_FORMAT:
                raise InputError(f"state: format {data['format']!r} is not known to this version of gibo")
            optimizer = cls.from_arguments(data["optimizer"], data["arguments"])
            optimizer._rng.bit_generator.state = data["rng"]
            optimizer._next_id = int(data["next_id"])
            optimizer._batch = [int(i) for i in data["batch"]]
            optimizer._iterate = as_vector("iterate", data["iterate"], optimizer.d)
            optimizer._iteration = int(data["iteration"])
            for item in data["evaluations"]:
                evaluation = _evaluation_from_plain(item)
                optimizer._evaluations[evaluation.id] = evaluation
            for item in data["waiting"]:
                x = _read_only(as_vector("x", item["x"], optimizer.d))
                query = Query(int(item["id"]), x, item["seed"], item["kind"], item["iteration"])
                optimizer._waiting[query.id] = query
            known = optimizer._evaluations.keys() | optimizer._waiting.keys()
            if not known.issuperset(optimizer._batch):
                raise InputError("state: its batch holds queries that were never asked")
            optimizer._load_own_state(data["own"])
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, GiboError):
                raise
            raise InputError(f"state: not what state() gives: {error!r:.120}") from None
        return optimizer

    @classmethod
    def from_arguments(cls, name: str, arguments: dict[str, Any]) -> Self:
        """A fresh optimiser of this class (or of the one it is called on), from its `state`'s arguments."""
        kind = Optimizer.registry.get(name)
        if kind is None or not issubclass(kind, cls):
            raise InputError(f"state: it is one of {name!r}, not of {cls.__name__}")
        if arguments["bounds"] is not None:
            arguments = {**arguments, "bounds": Bounds(**arguments["bounds"])}
        return kind._from_arguments(arguments)

    # -- for the optimisers -------------------------------------------------------------------------------------------

    @abstractmethod
    def _propose(self) -> list[tuple[Array, str]]:
        """The next batch: points and their kinds, at least one."""

    @abstractmethod
    def _update(self, batch: list[Evaluation]) -> None:
        """Called once all of a batch is told, failures included; in the order of their ids."""

    def _own_thought(self) -> dict[str, Any]:
        """What `_propose` changes that is slow to compute again, for `to_plain`; see `_recall`."""
        return {}

    def _recall(self, thought: dict[str, Any]) -> list[tuple[Array, str]] | None:
        """Do to the optimiser what `_propose` did; None if the proposals came from elsewhere and need no comparison."""
        return self._propose()

    def _own_state(self) -> dict[str, Any]:
        """What this optimiser keeps beyond the base, for `to_plain`."""
        return {}

    def _load_own_state(self, own: dict[str, Any]) -> None:
        """Take back what `_own_state` gave; everything else of the state is in place by then."""
        if own != {}:
            raise InputError(f"state: {type(self).__name__} keeps nothing of its own, got {own!r:.80}")

    def _finish_batch(self) -> None:
        """Move on if a batch is told; done by its last `tell`, or by the next `ask` if that one was interrupted."""
        if self._batch:
            with self._all_or_nothing():
                self._update([self._evaluations[i] for i in self._batch])
                self._batch = []

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """A computation that is interrupted, by Ctrl-C say, leaves the optimiser as it was and can be repeated.

        For this, optimisers replace their attributes and never change what is in them.
        """
        attributes, generator = dict(self.__dict__), self._rng.bit_generator.state
        try:
            with single_thread():
                yield
        except BaseException:
            self.__dict__.update(attributes)
            self._rng.bit_generator.state = generator
            raise

    def _arguments(self) -> dict[str, Any]:
        """The constructor's arguments."""
        bounds = None if self.bounds is None else {"lb": self.bounds[0], "ub": self.bounds[1]}
        return {"x0": self.x0, "scale": self.scale, "bounds": bounds, "seed": self.seed}

    @classmethod
    def _from_arguments(cls, arguments: dict[str, Any]) -> Self:
        return cls(**arguments)

    def _next_query(self, x: Array, kind: str) -> Query:
        """The query of the next id."""
        seed = int(np.random.SeedSequence((self.seed, self._next_id)).generate_state(1)[0])
        return Query(self._next_id, _read_only(self.clip(x).copy()), seed, kind, self.iteration)

    def _waiting_like(self, query: Query) -> Query:
        """The open query that this one is, or an error."""
        own = self._waiting.get(query.id)
        if own is not None and np.array_equal(own.x, query.x):
            return own
        if own is None and query.id in self._evaluations:
            raise QueryError(f"query {query.id} was told before; each query is told once")
        raise QueryError(f"query {query.id} is unknown to this optimiser; tell queries that its ask() returned")

    def _evaluation(
        self,
        query: Query,
        value: Any,
        gradient: npt.ArrayLike | None,
        gradient_noise: npt.ArrayLike | None,
        failed: bool | str | BaseException,
    ) -> Evaluation:
        if isinstance(failed, (str, BaseException)) or failed:
            if value is not None or gradient is not None:
                raise InputError("tell: give a value (and a gradient) or failed, not both")
            reason = describe_error(failed) if isinstance(failed, BaseException) else failed
            reason = reason if isinstance(reason, str) and reason else "failed"
            return Evaluation(query.id, query.x, query.kind, query.iteration, failure=reason)
        if value is None:
            raise InputError("value: expected a number, got None; if there is none, say tell(query, failed=True)")
        if gradient is None and gradient_noise is not None:
            raise InputError("gradient_noise: there is no gradient that it belongs to")
        number = as_number("value", value)
        if not np.isfinite(number):
            raise InputError(f"value: expected a finite number, got {number}; tell(query, failed=True) passes it over")
        if gradient is None:
            return Evaluation(query.id, query.x, query.kind, query.iteration, number)
        g = as_vector("gradient", gradient, self.d)
        if gradient_noise is None:
            raise InputError("gradient: give gradient_noise too, the variance of the gradient's noise")
        noise = _one_per_parameter("gradient_noise", gradient_noise, self.d)
        if not (noise >= 0).all():
            raise InputError(f"gradient_noise: expected non-negative variance(s), got {gradient_noise!r:.80}")
        return Evaluation(query.id, query.x, query.kind, query.iteration, number, g, noise)


class Bounds(NamedTuple):
    """Bounds in a form that can be read in one way only; see `as_bounds`."""

    lb: Any
    ub: Any


def _one_per_parameter(name: str, value: npt.ArrayLike, d: int) -> Array:
    """(d,) from a finite number or d of them."""
    array = as_finite(name, value)
    if array.shape not in ((), (d,)):
        raise InputError(f"{name}: expected a number or {d} numbers, one per parameter, got shape {array.shape}")
    return np.broadcast_to(array, (d,)).copy()


def _still_out(query: Query) -> Evaluation:
    return Evaluation(query.id, query.x, query.kind, query.iteration, failure="not told yet")


def _alike(proposals: list[tuple[Array, str]], batch: list[Query], clip: Callable[[Array], Array]) -> bool:
    """Whether these are the same queries but for rounding, which may differ between machines."""
    return len(proposals) == len(batch) and all(
        kind == query.kind and np.allclose(clip(x), query.x, rtol=1e-6, atol=1e-6 * float(np.abs(query.x).max()))
        for (x, kind), query in zip(proposals, batch, strict=True)
    )


def _read_only(x: Array) -> Array:
    x.flags.writeable = False
    return x


def _evaluation_from_plain(item: dict[str, Any]) -> Evaluation:
    fields = {key: part for key, part in item.items() if key != "type"}
    for key in ("x", "gradient", "gradient_noise"):
        fields[key] = None if fields[key] is None else np.array(fields[key], dtype=np.float64)
    return Evaluation(**fields)
