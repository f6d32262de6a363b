"""What studies' options have in common: numbers that must make sense, and methods by their names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Protocol, cast

from gibo.errors import InputError
from gibo_studies.engine import Record, Study
from gibo_studies.report import ReportedStudy, write_report

# Trials and functions of one seed of a study do not meet those of the next.
PER_SEED = 1000


class WrittenStudy(Study, Protocol):
    """A study that also writes what it has to report."""

    reports_unfinished: ClassVar[bool]

    def write(self, records: Sequence[Record], out: Path, footnote: str) -> str: ...


class Options:
    """For a study that is a dataclass: its fields are its options."""

    reports_unfinished: ClassVar[bool] = False  # whether it is also reported when cells are missing

    def __post_init__(self) -> None:
        """Refuse trials, functions, episodes, a budget or a seed that cannot be."""
        options = self.definition()
        for name, least in (("trials", 1), ("functions", 1), ("episodes", 1), ("budget", 1), ("seed", 0)):
            value = options.get(name)
            if value is not None and value < least:
                raise InputError(f"{name}: must be at least {least}, got {value}")
            if value is not None and name in ("trials", "functions") and value > PER_SEED:
                raise InputError(f"{name}: at most {PER_SEED} per seed, got {value}; use another seed")

    def write(self, records: Sequence[Record], out: Path, footnote: str) -> str:
        """Write what the study has to report, and return its summary."""
        return write_report(cast(ReportedStudy, self), records, out, footnote)

    def definition(self) -> dict[str, Any]:
        """The options but for the folder, and the version: cells of two versions do not belong in one study."""
        names = [field.name for field in fields(cast(Any, self)) if field.name != "folder"]
        return {**{name: getattr(self, name) for name in names}, "gibo": version("gibo")}


def choose(methods: Sequence[str], known: Iterable[str], study: str, what: str = "methods") -> tuple[str, ...]:
    """Some methods, or what else, of a study in its own order, by names in any case; all of them if none is named."""
    by_name = {method.lower(): method for method in known}
    unknown = [method for method in methods if method.lower() not in by_name]
    if unknown:
        raise InputError(f"{what}: {unknown[0]!r} is not in {study}; there are {', '.join(by_name.values())}")
    wanted = {method.lower() for method in methods} or set(by_name)
    return tuple(method for name, method in by_name.items() if name in wanted)
