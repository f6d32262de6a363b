"""The specification of a run: the journal's first record, which cannot change after the run has begun."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import NoneType
from typing import Any

from gibo._checks import as_number, as_vector, finite, instance, positive_int, shown
from gibo._linalg import Array
from gibo.errors import InputError
from gibo.optimizers.base import Optimizer
from gibo.optimizers.model_based import ModelBased
from gibo.outcome import Best, Query
from gibo.parameters import Parameters

# In the memo of a batch: the number of evaluations when it was asked, and, if known, the block for which its queries
# were planned and the source where they are evaluated.
AFTER, BLOCK, SOURCE = "after", "block", "source"
# The baseline of a run that evaluates its start in the first iteration only.
ONCE = 1 << 62
# The facts of a training that determine its values.
OF_OBJECTIVE = ("environment", "episodes", "reward_shift", "reward_scale", "action_noise", "max_steps")


@dataclass(frozen=True)
class Naming:
    """The user's form of a point: numbers by name, in the user's units, rounded if whole."""

    names: list[str]
    parameters: Parameters | None = None

    def __call__(self, x: Array) -> dict[str, float]:
        """The values by name of a point (d,)."""
        if self.parameters is None:
            return dict(zip(self.names, x.tolist(), strict=True))
        return self.parameters.to_values(x)

    def value(self, i: int, x: float) -> float:
        """The value of one entry of a point."""
        return x if self.parameters is None else self.parameters[self.names[i]].value(x)

    def query(self, query: Query) -> dict[str, Any]:
        """A query as JSON data: ``x`` and ``parameters`` have the values to set, in the user's units."""
        head = {"id": query.id, "kind": query.kind, "iteration": query.iteration, "seed": query.seed}
        head |= {} if query.block is None else {"block": query.block}
        head |= {} if query.source is None else {"source": query.source}
        parameters = self(query.x)
        return {**head, "x": list(parameters.values()), "parameters": parameters}

    def best(self, best: Best | None) -> dict[str, Any] | None:
        """A point with its value as JSON data; None if there is none."""
        return None if best is None else {"value": best.value, "parameters": self(best.x)}

    def point(self, values: Mapping[str, Any]) -> Array:
        """The vector of a point by name; needs a value for each name."""
        if self.parameters is not None:
            return self.parameters.to_vector(values)
        if set(values) != set(self.names):
            wrong = sorted(set(values) ^ set(self.names))[0]
            raise InputError(f"{wrong!r:.80}: expected a value for each of {', '.join(self.names[:12])}")
        return as_vector("x", [as_number(name, values[name]) for name in self.names])

    @property
    def rounding(self) -> Callable[[Array], Array] | None:
        """The function that rounds whole numbers; None if there are none."""
        p = self.parameters
        return p.rounded if p is not None and any(p[name].kind == "integer" for name in p) else None


@dataclass(frozen=True)
class RunSpec:
    """The specification of a run, which cannot change after the run has begun.

    Attributes:
        optimizer: the name of its class.
        arguments: of its constructor, as plain data.
        sign: 1 where the objective is maximised, −1 where it is minimised.
        names: names of the parameters; None without names.
        penalty: the value of a failed evaluation; None if it has no value.
        baseline: the start is evaluated again every `baseline` iterations; `ONCE`: in the first one; None: never.
        quorum: the share of an iteration's values after which the next iteration may start.
        training: the training as plain data, if known.
        parameters: `gibo.parameters.Parameters` as plain data, where the run has them.
        given_x0: the start that the caller gave, where the run starts at a better point that was known before; the
            start itself is in `arguments`.
    """

    optimizer: str
    arguments: dict[str, Any]
    sign: float = 1.0
    names: list[str] | None = None
    penalty: float | None = None
    baseline: int | None = None
    quorum: float = 1.0
    training: dict[str, Any] | None = None
    parameters: dict[str, Any] | None = None
    given_x0: list[float] | None = None

    @classmethod
    def of(cls, optimizer: Optimizer, **others: Any) -> RunSpec:
        """That of a run of this optimiser."""
        return cls(type(optimizer).__name__, optimizer.arguments(), **others)

    def __post_init__(self) -> None:
        # A file may contain anything.
        instance("training", self.training, (dict, NoneType), "facts by name")
        d = len(as_vector("x0", instance("arguments", self.arguments, dict, "options by name").get("x0", ())))
        if self.sign not in (1.0, -1.0) or not 0.0 < as_number("quorum", self.quorum) <= 1.0:
            raise InputError("expected a sign of 1 or -1, and a share of values as the quorum")
        names = instance("names", [""] * d if self.names is None else self.names, list, "a list of texts")
        if len(names) != d or set(map(type, names)) != {str}:
            raise InputError(f"expected {d} names of parameters")
        if self.given_x0 is not None:
            as_vector("given_x0", self.given_x0, d)
        if self.parameters is not None and list(Parameters.from_plain(self.parameters)) != self.names:
            raise InputError("the parameters and their names are not the same")
        if self.penalty is not None:
            finite("penalty", self.penalty)
        if self.baseline is not None:
            positive_int("baseline", self.baseline)

    @cached_property
    def naming(self) -> Naming:
        """The naming of points."""
        parameters = None if self.parameters is None else Parameters.from_plain(self.parameters)
        return Naming(self.names or parameter_names(len(self.arguments["x0"])), parameters)

    def fresh_optimizer(self) -> Optimizer:
        """The optimiser before anything was asked."""
        optimizer = Optimizer.from_arguments(self.optimizer, self.arguments)
        optimizer.rounding, optimizer.baseline = self.naming.rounding, self.baseline
        return optimizer

    def is_search_of(self, other: RunSpec) -> bool:
        """Whether another one has the same optimiser and the same start."""
        start = self.given_x0 or self.arguments["x0"]
        return self.optimizer == other.optimizer and start == other.arguments["x0"]

    def differences(self, saved: RunSpec) -> dict[str, str]:
        """The differences from a journal's specification by name, for a person to read. Names do not matter."""
        ours, theirs = self._flat(), saved._flat()
        if "x0" in ours and ours["x0"] == saved.given_x0:
            theirs["x0"] = saved.given_x0
        names = [name for name in ours | theirs if ours.get(name) != theirs.get(name)]
        return {name: _difference(name, theirs.get(name), ours.get(name)) for name in names}

    def starting_at(self, x: Array | None) -> RunSpec:
        """The same with another start; None: the caller's start."""
        given = self.given_x0 or self.arguments["x0"]
        x0, given_x0 = (given, None) if x is None else (x.tolist(), given)
        return replace(self, arguments={**self.arguments, "x0": x0}, given_x0=given_x0)

    def _flat(self) -> dict[str, Any]:
        """All parts by name, the training first."""
        flat: dict[str, Any] = {**(self.training or {})}
        flat |= {name: getattr(self, name) for name in ("optimizer", "sign", "penalty", "quorum")}
        flat |= {"baseline": "once" if self.baseline == ONCE else self.baseline, **self.arguments}
        parameters = self.naming.parameters
        if parameters is not None:  # they say where the vector starts, its scale and its bounds, in the user's units
            flat |= {"x0": None, "scale": None, "bounds": None} | {name: str(parameters[name]) for name in parameters}
        settings = flat.pop("settings", None)
        return flat | (settings if isinstance(settings, dict) else {})


def baseline_of(optimizer: Optimizer, given: int | None) -> int | None:
    """That of a new run: the given one. A search without a model believes nothing of its start, so it is evaluated."""
    return given or (None if isinstance(optimizer, ModelBased) else ONCE)


def check_sources(baseline: int | None, penalty: float | None = None) -> None:
    """Check that the options of a run can be combined with sources."""
    for name, option in (("baseline", baseline), ("penalty", penalty)):
        if option is not None:
            raise InputError(f"{name}: cannot be combined with sources; omit it")


def take_ungiven(optimizer: Optimizer, arguments: dict[str, Any]) -> None:
    """Fill the options that a new optimiser's caller omitted from these arguments."""
    own = optimizer.arguments()
    ungiven = {name: each for name, each in arguments.items() if name not in optimizer.given and name != "x0"}
    if own != {**own, **ungiven}:
        start_again(optimizer, {**own, **ungiven})


def start_again(optimizer: Optimizer, arguments: dict[str, Any]) -> None:
    """Initialise the optimiser again with these arguments."""
    kind = type(optimizer)
    optimizer.__dict__.update(kind.from_arguments(kind.__name__, arguments).__dict__)


def parameter_names(d: int) -> list[str]:
    """The default names of parameters."""
    return [f"x{i}" for i in range(d)]


def _difference(name: str, was: Any, now: Any) -> str:
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now) > 1:
        i = next(i for i in range(len(was)) if was[i] != now[i])
        return _difference(f"{name}[{i}]", was[i], now[i])
    return f"{name} was {shown(was)}, now {shown(now)}"
