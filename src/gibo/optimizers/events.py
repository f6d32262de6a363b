"""What an optimiser is asked and told, and the events that its history is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from gibo._checks import LARGEST, as_vector, shown
from gibo._linalg import Array
from gibo._serialize import from_plain, to_plain
from gibo.errors import GiboError, InputError
from gibo.outcome import Outcome, checked

STATE_FORMAT = 2

ITERATE, QUERY, EXTERNAL = "iterate", "query", "external"


@dataclass(frozen=True, eq=False)
class Query:
    """A point to evaluate.

    Attributes:
        id: its number; ids rise by one.
        x: (d,) where to evaluate.
        seed: for a stochastic objective: depends on the run's seed and the id only.
        kind: what it is for: ``"iterate"``, ``"query"``, or ``"external"``, a point that was told without being asked.
        iteration: in which iteration of the optimiser it was asked.
    """

    id: int
    x: Array
    seed: int
    kind: str
    iteration: int


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A query and its outcome."""

    query: Query
    outcome: Outcome

    @property
    def id(self) -> int:
        return self.query.id

    @property
    def x(self) -> Array:
        return self.query.x

    @property
    def kind(self) -> str:
        return self.query.kind

    @property
    def iteration(self) -> int:
        return self.query.iteration

    @property
    def value(self) -> float | None:
        return self.outcome.value

    @property
    def gradient(self) -> Array | None:
        gradient: Any = self.outcome.gradient  # an array: it was checked at the door
        return gradient  # type: ignore[no-any-return]

    @property
    def gradient_noise(self) -> Array | None:
        noise: Any = self.outcome.gradient_noise
        return noise  # type: ignore[no-any-return]

    @property
    def failure(self) -> str | None:
        return self.outcome.failure


def not_told_yet(query: Query) -> Evaluation:
    """Stands for a query that an iteration goes on without."""
    return Evaluation(query, Outcome(None, failure="not told yet"))


def read_only(x: Array) -> Array:
    """The same array, from now on not to be written to."""
    x.flags.writeable = False
    return x


def as_point(x: npt.ArrayLike, d: int) -> Array:
    """A point (d,) from outside, checked, and not to be written to."""
    point = as_vector("x", x, d)
    if np.abs(point).max() > LARGEST:
        raise InputError(f"x: expected numbers of at most {LARGEST:g} in size, got {shown(x)}; use other units")
    return read_only(point)


class Best(NamedTuple):
    """A point and its value; for a point chosen by a model the value is the model's mean there.

    `interval` is what a model believes of the value without noise: it lies within (low, high) with 90 % probability.
    """

    x: Array
    value: float
    interval: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class Iteration:
    """What a model-based optimiser knew when it made a step, in the user's units.

    Attributes:
        number: 0, 1, …
        evaluations: values told up to then, failures included.
        x: (d,) the iterate from which it stepped.
        gradient: (d,) posterior mean of the gradient there.
        uncertainty: trace of the gradient's posterior covariance.
        probability_of_ascent: the model's probability that the objective rises along the step.
        certainty: how sure the model is that the gradient is not zero, see `gibo.Jacobian.certainty`.
        step: (d,) the step made.
        lengthscale, variance, noise: the model's hyperparameters.
        jitter: what had to be added to factorise the model's covariance; almost always 0.
        warning: why a fit kept the old hyperparameters, or None.
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


class Transform(Protocol):
    """A linear map of parameters, x' = T x, under which the objective keeps its values."""

    def parameters(self, theta: npt.ArrayLike) -> Array:
        """T x, for many (n, d)."""

    def gradients(self, g: npt.ArrayLike) -> Array:
        """T⁻ᵀ g, for many (n, d)."""


# -- what can happen to an optimiser ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Asked:
    """A batch was proposed; the memo is what was slow to compute, None if nothing was."""

    queries: tuple[Query, ...]
    memo: dict[str, Any] | None


@dataclass(frozen=True, eq=False)
class Told:
    """A query, or a point from elsewhere, got its outcome."""

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
    """An update made a step and left this record."""

    record: Iteration


Event = Asked | Told | Proceeded | Reparametrized | Stepped


def last_whole(events: Sequence[Event]) -> int:
    """Where the last batch stands whose memo holds all that is needed; −1 if none does.

    (A memo of the first version of the journal had no iterate: then what came before must be computed again.)
    """
    whole = (i for i, e in enumerate(events) if isinstance(e, Asked) and e.memo is not None and "iterate" in e.memo)
    return max(whole, default=-1)


# -- as plain data ----------------------------------------------------------------------------------------------------


def events_to_plain(events: Sequence[Event]) -> list[list[Any]]:
    """For JSON: what a replay needs, and so the same for two optimisers that are told the same in another order.

    Of the memos only the last one is kept; what is told between two updates stands in one order; how long an
    evaluation took, and what else was seen in it, is left out.
    """
    last = last_whole(events)
    kept = [replace(e, memo=None) if isinstance(e, Asked) and i < last else e for i, e in enumerate(events)]
    return [_event_to_plain(event) for event in _ordered(kept)]


def _ordered(events: Sequence[Event]) -> Iterator[Event]:
    """What is told between two updates: first points from elsewhere, then queries, each by id.

    So the last value of a batch comes last: the update that it leads to knows of the points that were told before it,
    and not of those that were told after it.
    """
    row: list[Told] = []
    missing: set[int] = set()  # of the batch
    for event in events:
        if isinstance(event, Told):
            row.append(event)
            if missing and not (missing := missing - {event.query.id}):
                yield from _by_id(row)
                row = []
        else:
            yield from _by_id(row)
            yield event
            row, missing = [], {query.id for query in event.queries} if isinstance(event, Asked) else set()
    yield from _by_id(row)


def _by_id(row: list[Told]) -> list[Told]:
    return sorted(row, key=lambda told: (told.query.kind != EXTERNAL, told.query.id))


def events_from_plain(data: Any, d: int) -> list[Event]:
    """The inverse of `events_to_plain` for an optimiser of d parameters; everything is checked."""
    try:
        return [_event_from_plain(name, content, d) for name, content in data]
    except GiboError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise InputError(f"state: its events are not what state() gives: {error!r:.120}") from error


def _event_to_plain(event: Event) -> list[Any]:
    if isinstance(event, Asked):
        return [
            "asked",
            {"queries": [to_plain(asdict(query)) for query in event.queries], "memo": to_plain(event.memo)},
        ]
    if isinstance(event, Told):
        names = ("value", "gradient", "gradient_noise", "failure")
        outcome = {name: part for name in names if (part := getattr(event.outcome, name)) is not None}
        return ["told", {"query": to_plain(asdict(event.query)), "outcome": to_plain(outcome)}]
    if isinstance(event, Stepped):
        return ["stepped", to_plain(vars(event.record))]
    if isinstance(event, Reparametrized):
        return ["reparametrized", {"transform": to_plain(event.transform), "moves_iterate": event.moves_iterate}]
    return ["proceeded", {}]


def _event_from_plain(name: str, content: dict[str, Any], d: int) -> Event:
    if name == "asked":
        return asked_from_plain(content, d)
    if name == "told":
        return Told(query_from_plain(content["query"], d), outcome_from_plain(content["outcome"], d))
    if name == "stepped":
        return Stepped(iteration_from_plain(content, d))
    if name == "reparametrized":
        transform = from_plain(content["transform"])
        if not all(callable(getattr(transform, name, None)) for name in ("parameters", "gradients")):
            raise InputError(f"state: expected a transform of parameters, got {type(transform).__name__}")
        return Reparametrized(transform, bool(content["moves_iterate"]))
    if name == "proceeded":
        return Proceeded()
    raise InputError(f"state: {shown(name)} is no event that this version of gibo knows")


def asked_from_plain(data: dict[str, Any], d: int) -> Asked:
    """A batch and its memo, checked; what is in the memo is checked by the optimiser that recalls it."""
    queries, memo = tuple(query_from_plain(query, d) for query in data["queries"]), data["memo"]
    if len({query.iteration for query in queries}) != 1 or any(query.kind == EXTERNAL for query in queries):
        raise InputError("state: a batch has one or more queries, all of one iteration and none from elsewhere")
    if memo is not None and not isinstance(memo, dict):
        raise InputError(f"state: expected a memo or none, got {type(memo).__name__}")
    return Asked(queries, memo)


def query_from_plain(data: dict[str, Any], d: int) -> Query:
    """A query, checked."""
    x = read_only(as_vector("x", data["x"], d))
    numbers = [data[name] for name in ("id", "seed", "iteration")]
    if not all(type(n) is int and 0 <= n < 1 << 63 for n in numbers) or not isinstance(data["kind"], str):
        raise InputError("state: a query's id, seed and iteration are whole numbers, its kind is a word")
    return Query(data["id"], x, data["seed"], data["kind"][:40], data["iteration"])


def outcome_from_plain(data: dict[str, Any], d: int) -> Outcome:
    """An outcome, checked; a failure keeps its penalty and its traceback."""
    outcome = Outcome(**{"value": None, **data})
    seconds = outcome.seconds if isinstance(outcome.seconds, (int, float)) else 0.0
    if outcome.value is None:
        failed = Outcome.failed(outcome.failure or "failed", seconds)
        return replace(failed, info=outcome.info or {}, traceback=outcome.traceback)
    return replace(checked(outcome, d, seconds=seconds), traceback=outcome.traceback)


def iteration_from_plain(data: dict[str, Any], d: int) -> Iteration:
    """The record of a step, checked; numbers that are not finite are texts or None in plain data."""
    fields = dict(data)
    for name in ("x", "gradient", "step", "lengthscale"):
        fields[name] = np.array(fields[name], dtype=np.float64)
        if fields[name].shape != (d,):
            raise InputError(f"iteration: {name} has {fields[name].size} numbers, expected {d}")
    for name in ("uncertainty", "probability_of_ascent", "certainty", "variance", "noise", "jitter"):
        fields[name] = np.nan if fields[name] is None else float(fields[name])
    for name in ("number", "evaluations"):
        fields[name] = int(fields[name])
    return Iteration(**fields)
