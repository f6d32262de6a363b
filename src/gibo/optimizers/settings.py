"""The settings of GIBO. `Settings()` is the default method, `Settings.paper()` the paper's method.

Symbols: d number of parameters, M queries of an iteration, N_m window, delta half-width of the box for queries (Müller
et al. 2021, algorithm 1 and section 3.3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from gibo._checks import (
    as_finite,
    as_flag,
    as_number,
    as_vector,
    batch_size,
    finite,
    instance,
    natural,
    one_of,
    positive,
    positive_int,
)
from gibo._linalg import Array
from gibo._serialize import Serializable, check_serializable, from_plain
from gibo.errors import InputError
from gibo.kernels import kernel_name
from gibo.means import Fitted, Mean
from gibo.optimizers.moves import BoundStep, GradientStep, Move
from gibo.optimizers.queries import Informative, Queries
from gibo.optimizers.scale import ScaleRule, ScaleSearch
from gibo.priors import LogNormal, Prior, SharedLogNormal


@dataclass(frozen=True)
class PowerLaw(Serializable):
    """A setting that depends on the number of parameters d: ``factor·d^power``, within limits; counts are rounded.

    Example:
        >>> PowerLaw(10, least=100)(4), PowerLaw(10, least=100)(36)
        (100.0, 360.0)
    """

    factor: float
    power: float = 1.0
    least: float = 0.0
    most: float | None = None
    rounding: Literal["up", "down"] = "up"

    def __post_init__(self) -> None:
        one_of("PowerLaw.rounding", self.rounding, ("up", "down"))
        object.__setattr__(self, "factor", positive("PowerLaw.factor", self.factor))
        object.__setattr__(self, "power", finite("PowerLaw.power", self.power))
        object.__setattr__(self, "least", positive("PowerLaw.least", self.least, or_zero=True))
        if self.most is not None:
            object.__setattr__(self, "most", positive("PowerLaw.most", self.most))

    def __call__(self, d: int) -> float:
        grown = math.sqrt(d) if self.power == 0.5 else float(d) ** self.power
        return min(max(self.factor * grown, self.least), math.inf if self.most is None else self.most)

    def count(self, d: int) -> int:
        """The setting as a whole number."""
        return math.ceil(self(d) - 1e-9) if self.rounding == "up" else math.floor(self(d) + 1e-9)


class Sizes(NamedTuple):
    """The numbers of resolved settings, see `Settings`."""

    M: int
    M_first: int
    N_m: int
    N_g: int
    fit_from: int
    delta: float


Hyperparameter: TypeAlias = Prior | PowerLaw | float | Sequence[float] | Array
Count: TypeAlias = int | PowerLaw


@dataclass(frozen=True)
class Settings(Serializable):
    """How GIBO models and moves. The default is the method of docs/algorithm.md; `Settings.paper` gives the paper's.

    Lengthscales and the step are in units of the optimiser's `scale`. Variance and noise are shares of the variance of
    the values in the window; if `standardize` is False, they are in units of the values. A `PowerLaw` is a number that
    depends on the number of parameters.

    Args:
        kernel: ``"squared_exponential"``, as in the paper; ``"matern52"`` for rougher objectives; or the name of your
            own kernel, see `gibo.Kernel`.
        lengthscale: a number, one per parameter, or a prior; a `PowerLaw` is the median of the default prior,
            ``SharedLogNormal(median, shared_log_sd, 0.3)``.
        shared_log_sd: standard deviation in that prior of the logarithm of a factor common to all lengthscales: how
            wrong `scale` may be.
        variance: variance of the objective, a number or a prior.
        noise: variance of the noise on a value, a number or a prior.
        mean: the model's prior mean: a number; ``"estimated"`` by generalised least squares; or a function with a
            gradient, `gibo.means.LinearMean`, `QuadraticMean` or your own. ``"published"`` does the same as the paper's
            published code: estimated in fits, 0 in the inference of the gradient. `gibo.means.Fitted` is a function
            whose shift and factor are estimated, such as that of an earlier run, ``gibo.means.from_run(...)``. It is
            used while it makes the values in the window likelier.
        standardize: shift and scale values before the model uses them, see `gibo.optimizers.units`.
        warp: also warp values if that makes them likelier.
        fit: when to fit hyperparameters with a prior. ``"each"``: in each iteration, from `fit_from` values on;
            ``"full"``: when the window is full, as in the published code; ``"never"``.
        fit_at: the time of the fit in an iteration. ``"step"``: after the queries, before the step; ``"queries"``:
            before the queries are planned; ``"iterate"``: after the iterate's value, as in algorithm 1; the iterate is
            then evaluated alone.
        fit_from: see `fit`.
        scale_rule: the rule that corrects a wrong `scale`: `ScaleSearch`, or None.
        M: queries per iteration.
        M_first: queries of the first iteration, if more than M. A `PowerLaw` gives at most d.
        survey: points spread over finite bounds, at most 5 scales from the start, that are evaluated with the start
            before the first iteration. The search goes on at the best of them, and they count for M_first. 0: none.
        N_m: the window: the model uses the last N_m evaluations. Time and memory grow with its square.
        N_g: the model uses at most the last N_g gradients in the window, of d rows each.
        delta: half-width of the box around the iterate for queries and for the bound step.
        delta_unit: ``"lengthscales"``, or ``"absolute"`` (units of the parameters).
        queries: the choice of queries: `Informative` (Gradient Information) or `RandomQueries` (an ablation).
        move: the step to the next iterate: `BoundStep` or `GradientStep`.
        only_evaluated: recommend only evaluated points, and the start until another point is surely better. If False:
            the point with the highest mean, also the iterate.
        caution: the recommended point has the highest mean − caution standard deviations.
        blocks: groups of evaluations with a common shift. ``"given"``: evaluations with the same `block`, such as a day
            or an operator. ``"iteration"``: all queries of an iteration get one seed, for a simulator whose values for
            one seed have a common shift; see `gibo noise`. None: no groups.
        drift: the objective changes with time, and the search follows the present objective. The time is the number of
            the evaluation; with ``blocks="given"`` it is the block, a number.

    Example:
        >>> Settings(M=4).resolve(d=10).N_m
        100
        >>> Settings.paper(M=4).resolve(d=10).N_m
        50
    """

    kernel: str = "squared_exponential"
    lengthscale: Hyperparameter = PowerLaw(0.9, 0.8)
    shared_log_sd: float = 1.0
    variance: Prior | float = LogNormal(1.0, 0.7)
    noise: Prior | float = LogNormal(1.0, 1.5)
    mean: float | Literal["estimated", "published"] | Mean | Fitted = "estimated"
    standardize: bool = True
    warp: bool = True
    fit: Literal["each", "full", "never"] = "each"
    fit_at: Literal["step", "queries", "iterate"] = "step"
    fit_from: Count = 4
    scale_rule: ScaleRule | None = ScaleSearch()
    M: Count = PowerLaw(1.0, 0.5)
    M_first: Count = PowerLaw(4.0, 0.5)
    survey: int = 4
    N_m: Count = PowerLaw(10.0, least=100.0, most=2000.0)
    N_g: Count = PowerLaw(2000.0, -1.0, least=1.0, most=5.0, rounding="down")
    delta: float | PowerLaw = PowerLaw(2.5, -0.3)
    delta_unit: Literal["lengthscales", "absolute"] = "lengthscales"
    queries: Queries = Informative()
    move: Move = BoundStep()
    only_evaluated: bool = True
    caution: float = 1.0
    blocks: Literal["given", "iteration"] | None = None
    drift: bool = False

    def __post_init__(self) -> None:
        own = self.__dict__  # the class is frozen
        own["kernel"] = kernel_name(self.kernel)
        one_of("delta_unit", self.delta_unit, ("lengthscales", "absolute"))
        one_of("fit", self.fit, ("each", "full", "never"))
        one_of("fit_at", self.fit_at, ("step", "queries", "iterate"))
        for name in ("standardize", "warp", "only_evaluated", "drift"):
            own[name] = as_flag(name, getattr(self, name))
        if self.blocks is not None:
            one_of("blocks", self.blocks, ("given", "iteration"))
        if self.drift and self.blocks == "iteration":
            raise InputError("drift: cannot be combined with blocks='iteration'; choose one of them")
        if (self.drift or self.blocks is not None) and not self.standardize:
            raise InputError("blocks, drift: their priors are shares of the values' variance; use standardize=True")
        own["caution"] = positive("caution", self.caution, or_zero=True)
        own["shared_log_sd"] = positive("shared_log_sd", self.shared_log_sd)
        for name in ("lengthscale", "variance", "noise"):
            own[name] = _hyperparameter(name, getattr(self, name))
        if self.scale_rule is not None:
            rule = instance("scale_rule", self.scale_rule, ScaleRule, "ScaleSearch() or None")
            check_serializable("scale_rule", rule)
        if self.warp and not self.standardize:
            raise InputError("warp: values are warped before they are standardised; set warp=False or standardize=True")
        if isinstance(self.mean, Fitted):
            check_serializable("mean", self.mean.mean)
        elif isinstance(self.mean, Mean):
            check_serializable("mean", self.mean)
            if self.warp:
                raise InputError(
                    "mean: a mean that is a function of known size cannot be warped; set warp=False, or let the data "
                    "determine its shift and factor, with gibo.means.Fitted(mean)"
                )
        elif not isinstance(self.mean, str) or self.mean not in ("estimated", "published"):
            own["mean"] = finite("mean", self.mean)
        for name in ("fit_from", "M", "M_first", "N_m", "N_g"):
            if not isinstance(getattr(self, name), PowerLaw):
                own[name] = (batch_size if name.startswith("M") else positive_int)(name, getattr(self, name))
        own["survey"] = natural("survey", self.survey)
        if not isinstance(self.delta, PowerLaw):
            own["delta"] = positive("delta", self.delta)
        check_serializable("queries", instance("queries", self.queries, Queries, "Informative() or RandomQueries()"))
        check_serializable("move", instance("move", self.move, Move, "BoundStep(), GradientStep() or another Move"))
        for name in ("M", "M_first"):
            most = getattr(self, name)
            if isinstance(most, int) and isinstance(self.N_m, int) and self.N_m < most + 1:
                raise InputError(
                    f"N_m: the window must hold the iterate and its {name} = {most} queries, got {self.N_m}"
                )

    @classmethod
    def paper(cls, **changes: Any) -> Settings:
        """The method of Müller et al. 2021 for an objective with a known scale only, with these changes.

        It steps along the gradient, evaluates d/2 queries per iteration along the parameters and uses the last 5d
        values. It does not warp values and has no rule for the start. The paper's studies know more about their
        objectives: see `gibo.within_model`, `gibo.out_of_model` and the presets of `gibo train`.

        Example:
            >>> from gibo.optimizers.moves import GradientStep
            >>> from gibo.steps import Decay, GradientAscent
            >>> slower = Settings.paper(move=GradientStep(GradientAscent(Decay(0.5, halving=20))))
        """
        _known_names(changes)
        paper: dict[str, Any] = {
            "shared_log_sd": 0.7,
            "lengthscale": PowerLaw(1.5, 0.5),
            "noise": LogNormal(0.1, 1.5),
            "warp": False,
            "fit_at": "queries",
            "fit_from": PowerLaw(0.5, least=4.0, rounding="down"),
            "scale_rule": None,
            "M": PowerLaw(0.5, least=1.0, rounding="down"),
            "M_first": 1,
            "survey": 0,
            "N_m": PowerLaw(5.0, least=20.0, most=2000.0),
            "delta": 1.0,
            "queries": Informative(plan_steps=60, basis="axes"),
            "move": GradientStep(),
            "only_evaluated": False,
            "caution": 0.0,
        }
        return cls(**{**paper, **changes})

    @classmethod
    def given(cls, changes: dict[str, Any]) -> Settings:
        """The default with changes from a command line or a file. Values that are not standardised are not warped.
        `eta` is the step size of a gradient step."""
        changes = dict(changes)
        if "eta" in changes:
            changes["move"] = GradientStep.with_eta(changes.pop("eta"))
        _known_names(changes)
        if "standardize" in changes and not as_flag("standardize", changes["standardize"]):
            changes = {"warp": False, **changes}
        return cls(**changes)

    def resolve(self, d: int) -> Settings:
        """These settings for d parameters: each `PowerLaw` becomes a number."""
        d = positive_int("d", d)

        def count(name: str) -> int:
            value = getattr(self, name)
            return value.count(d) if isinstance(value, PowerLaw) else value

        M, N_m = max(1, count("M")), count("N_m")
        first = count("M_first")
        M_first = max(M, min(first, d) if isinstance(self.M_first, PowerLaw) else first)
        M_first = min(M_first, N_m - 1) if isinstance(self.N_m, int) else M_first
        ell = self.lengthscale
        resolved = replace(
            self,
            lengthscale=SharedLogNormal(ell(d), self.shared_log_sd, 0.3) if isinstance(ell, PowerLaw) else ell,
            delta=self.delta(d) if isinstance(self.delta, PowerLaw) else self.delta,
            M=M,
            M_first=M_first,
            N_m=N_m if isinstance(self.N_m, int) else max(N_m, M_first + 1),
            N_g=max(1, count("N_g")),
            fit_from=max(1, count("fit_from")),
        )
        function = self.mean.mean if isinstance(self.mean, Fitted) else self.mean
        if isinstance(function, Mean):
            function.check(d)
        if isinstance(ell, tuple) and len(ell) != d:
            raise InputError(f"lengthscale: expected a number or {d} numbers, one per parameter, got {len(ell)}")
        return resolved

    @property
    def sizes(self) -> Sizes:
        """The numbers of resolved settings."""
        sizes = (self.M, self.M_first, self.N_m, self.N_g, self.fit_from, self.delta)
        if any(isinstance(size, PowerLaw) for size in sizes):
            raise InputError("settings: they depend on the number of parameters; call resolve(d) first")
        return Sizes(*sizes)  # type: ignore[arg-type]

    @cached_property
    def priors(self) -> dict[str, Prior]:
        """The priors of the hyperparameters that are not fixed."""
        names = ("lengthscale", "variance", "noise")
        return {name: getattr(self, name) for name in names if isinstance(getattr(self, name), Prior)}

    @classmethod
    def from_plain(cls, data: dict[str, Any]) -> Settings:
        """Settings from the result of `gibo._serialize.to_plain`."""
        settings = from_plain(data)
        if not isinstance(settings, cls):
            raise InputError("settings: expected the result of to_plain")
        return settings


def _known_names(changes: dict[str, Any]) -> None:
    names = [field.name for field in fields(Settings)]
    for name in changes:
        one_of("a setting", name, names)


def _hyperparameter(name: str, value: Any) -> Prior | PowerLaw | float | tuple[float, ...]:
    if isinstance(value, PowerLaw) and name == "lengthscale":
        return value
    if isinstance(value, Prior):
        check_serializable(name, value)
        return value
    if name == "lengthscale" and isinstance(value, (list, tuple, np.ndarray)) and as_finite(name, value).ndim:
        return tuple(positive(name, item) for item in as_vector(name, value))
    return positive(name, as_number(name, value))
