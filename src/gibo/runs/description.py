"""The description of a run by hand, made in Python or read from a TOML file of parameters."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from gibo._checks import Box, as_finite_or_infinite, as_number, instance, shown
from gibo._plugins import without_imports
from gibo._serialize import read_file
from gibo.errors import InputError
from gibo.optimizers import method_class
from gibo.optimizers.base import Optimizer
from gibo.optimizers.limits import with_care
from gibo.optimizers.settings import Settings
from gibo.parameters import Parameters
from gibo.runs.earlier import mean_of
from gibo.runs.spec import Naming

OF_VECTOR = ("start", "scale", "lower", "upper")


def read_description(path: Path, **options: Any) -> Description:
    """A description from a TOML file and further options; see `gibo init --help` for an example."""
    with read_file(path, tomllib.loads, "TOML") as data:
        description = _description(data, options)
        if "minimize" not in data and "minimize" not in options:
            raise InputError(
                "minimize: expected minimize = true (small values are good) or minimize = false at the top of the "
                "file, or the option --minimize or --maximize"
            )
        return description


@dataclass(frozen=True)
class Description:
    """The description of a run by hand: its parameters, their start, and the method.

    Attributes:
        names: of the parameters.
        start, scale, lower, upper: one number per parameter.
        method: see `gibo.optimizers.method_class`.
        minimize: whether small values are good.
        seed: of all random choices.
        budget: number of evaluations after which you may stop, also for `gibo.resume`. None: unknown.
        target: value of the model at which you may stop.
        baseline: number of iterations after which the start is evaluated again; None: see `gibo.runs.options`.
        settings: fields of `gibo.Settings` that differ from the default.
        limits: limits of measured quantities by name: "lower", "upper" or both.
        careful: whether queries keep to the limits.
        largest_step: the largest change of a parameter in a step, in units of its scale.
        sources: the costs of two sources by name, see `gibo.optimizers.sources`.
        prior_run: the folder of an earlier run with the same names, of a simulator; see `gibo.means.from_run`.
        parameters: the source of the numbers, if the parameters have kinds such as log scales and whole numbers.
    """

    names: list[str]
    start: list[float]
    scale: list[float]
    lower: list[float]
    upper: list[float]
    method: str = "gibo"
    minimize: bool = False
    seed: int = 0
    budget: int | None = None
    target: float | None = None
    baseline: int | None = None
    settings: Mapping[str, Any] | None = None
    limits: Mapping[str, Any] | None = None
    careful: bool = False
    largest_step: float | None = None
    sources: Mapping[str, Any] | None = None
    prior_run: str | None = None
    parameters: Parameters | None = None

    @classmethod
    def of(cls, parameters: Parameters, **others: Any) -> Description:
        """The description of parameters with kinds."""
        low, high = parameters.bounds or (np.full(parameters.d, -math.inf), np.full(parameters.d, math.inf))
        start, scale, lower, upper = (each.tolist() for each in (parameters.x0, parameters.scale, low, high))
        return replace(cls(list(parameters), start, scale, lower, upper, **others), parameters=parameters)

    def optimizer(self) -> Optimizer:
        """A new optimiser of this description."""
        kind = method_class(self.method)
        names = instance("names", self.names, (list, tuple), "a list of names")
        if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise InputError(f"names: expected different texts, got {shown(names)}")
        sides = [as_finite_or_infinite("bounds", side) for side in (self.lower, self.upper)]
        own: dict[str, Any] = {
            "prior_run": self.prior_run,
            "settings": instance("settings", self.settings, (Mapping, NoneType), "settings by their names") or None,
            "limits": with_care(self._pairs(), self.careful),
            "largest_step": self.largest_step,
            "sources": self.sources,
        }
        options = {name: option for name, option in own.items() if option is not None}
        if options and self.method != "gibo":
            raise InputError(f"{next(iter(options))}: only the method gibo has this option, {self.method} does not")
        if "settings" in options:
            with without_imports():
                options["settings"] = Settings.given(options["settings"])
        if (run := options.pop("prior_run", None)) is not None:
            mean = mean_of(run, Naming(list(names), self.parameters), np.array(self.scale))
            options["settings"] = replace(options.get("settings", Settings()), mean=mean)
        bounds = Box(self.lower, self.upper) if any(np.isfinite(side).any() for side in sides) else None
        return kind(self.start, scale=self.scale, bounds=bounds, seed=self.seed, **options)

    def _pairs(self) -> dict[str, tuple[Any, Any]] | None:
        """(lower, upper) of each limited quantity."""
        limits = instance("limits", self.limits, (Mapping, NoneType), "limits by the names of their quantities")
        for name, entry in (limits or {}).items():
            instance(f"limits.{name}", entry, Mapping, "lower and upper")
            check_names(f"limits.{name}", entry, ("lower", "upper"))
        return {name: (entry.get("lower"), entry.get("upper")) for name, entry in limits.items()} if limits else None


def _description(data: Mapping[str, Any], options: Mapping[str, Any]) -> Description:
    names = [field.name for field in fields(Description) if field.name not in (*OF_VECTOR, "names")]
    check_names("the file", data, names)
    parameters = data.get("parameters")
    if not isinstance(parameters, dict) or not parameters:
        raise InputError("expected a table [parameters.NAME] for each parameter, got none")
    for name in data.keys() & options.keys():
        raise InputError(f"{name}: the file already states it; omit the option")
    rest = {name: part for name, part in data.items() if name != "parameters"} | dict(options)
    if any(isinstance(entry, dict) and "kind" in entry for entry in parameters.values()):
        return Description.of(Parameters.from_plain(parameters), **rest)
    columns: dict[str, Any] = {name: [] for name in OF_VECTOR}
    default = {"scale": 1.0, "lower": -math.inf, "upper": math.inf}
    for name, entry in parameters.items():
        check_names(f"parameters.{name}", instance(f"parameters.{name}", entry, dict, "a table"), OF_VECTOR)
        if "start" not in entry:
            raise InputError(f"parameters.{name}: expected start, the value at which the search begins")
        for column, numbers in columns.items():
            numbers.append(as_number(f"parameters.{name}.{column}", entry.get(column, default.get(column))))
    return Description(list(parameters), **columns, **rest)


def check_names(where: str, data: Mapping[str, Any], names: Sequence[str]) -> None:
    """Check that data from elsewhere have only these entries."""
    unknown = [name for name in data if name not in names]
    if unknown:
        raise InputError(f"{where}: {unknown[0][:80]!r} is unknown; expected {', '.join(names)}")
