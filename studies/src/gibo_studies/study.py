"""What a study is: options, cells, what running one of them gives, and how the results are reported."""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from gibo._linalg import Array
from gibo.errors import InputError
from gibo.optimizers.base import Optimizer
from gibo.outcome import Outcome

PER_SEED = 1000  # trials or functions, at most

# The cell itself under "cell", and its result under other names: plain data, also NumPy arrays, of any size. It is kept
# as one line of JSON, with the "seconds" that the cell took.
Record: TypeAlias = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Study(ABC):
    """Base of studies, which are frozen dataclasses: their fields are their options.

    A study is picklable; its cells are dictionaries of numbers and strings that tell them apart.
    """

    name: str = ""
    seed: int = 0  # of trials, functions and methods

    reports_unfinished: ClassVar[bool] = False  # whether it is also reported when cells are missing
    quick: ClassVar[Mapping[str, Any]] = {}  # options of its small version

    def __post_init__(self) -> None:
        """Refuse numbers that cannot be, and bring the methods into the study's order."""
        options = vars(self)
        for name, least in (("trials", 1), ("functions", 1), ("episodes", 1), ("budget", 1), ("seed", 0)):
            value = options.get(name)
            if value is not None and value < least:
                raise InputError(f"{name}: must be at least {least}, got {value}")
            if value is not None and name in ("trials", "functions") and value > PER_SEED:
                raise InputError(f"{name}: at most {PER_SEED} per seed, got {value}; use another seed")
        if self.known_methods():
            object.__setattr__(self, "methods", choose(options["methods"], self.known_methods(), self.name))

    def known_methods(self) -> Collection[str]:
        """What the option ``methods`` chooses from."""
        return ()

    def needs(self) -> tuple[str, ...]:
        """Modules, beside those that show progress and draw."""
        return ()

    def definition(self) -> dict[str, Any]:
        """The options but for the folder, and the version: cells of two versions do not belong in one study."""
        names = [field.name for field in fields(self) if field.name != "folder"]
        return {**{name: getattr(self, name) for name in names}, "gibo": version("gibo")}

    def seed_of(self, repetition: int) -> int:
        """Of a trial or a function: those of one seed of the study do not meet those of the next."""
        return PER_SEED * self.seed + repetition

    @abstractmethod
    def cells(self) -> list[dict[str, Any]]:
        """All of them, in their order."""

    @abstractmethod
    def run_cell(self, cell: Mapping[str, Any]) -> Record:
        """The result of a cell."""

    @abstractmethod
    def write(self, records: Sequence[Record], out: Path, footnote: str) -> str:
        """Write what the study has to report, and return its summary."""

    @classmethod
    def figures(cls, out: Path) -> list[Path]:
        """Draw the figures of a folder from its saved data alone, and return their files."""
        return []


def choose(names: Sequence[str], known: Iterable[str], study: str, what: str = "methods") -> tuple[str, ...]:
    """Some methods, or what else, of a study in its own order, by names in any case; all of them if none is named."""
    by_name = {name.lower(): name for name in known}
    unknown = [name for name in names if name.lower() not in by_name]
    if unknown:
        raise InputError(f"{what}: {unknown[0]!r} is not in {study}; there are {', '.join(by_name.values())}")
    wanted = {name.lower() for name in names} or set(by_name)
    return tuple(name for lower, name in by_name.items() if lower in wanted)


def iterates(optimizer: Optimizer, evaluate: Callable[[Any, int], Outcome], budget: int) -> Iterator[tuple[int, Array]]:
    """What was spent after each finished iteration of a fresh optimiser, and the iterate then; first of all the start.

    `evaluate` makes of a query and what was spent before it its outcome; ``info["episodes"]`` says what it costs, 1 if
    nothing does. No evaluation begins once the budget is spent, and an iteration that went beyond it is left out.
    """
    yield 0, optimizer.iterate
    spent = 0
    while spent < budget:
        iteration = optimizer.iteration
        for query in optimizer.ask():
            if spent >= budget:
                break
            outcome = evaluate(query, spent)
            optimizer.tell(query, outcome.value, gradient=outcome.gradient, gradient_noise=outcome.gradient_noise)
            spent += outcome.info.get("episodes", 1)
        if optimizer.iteration > iteration and spent <= budget:
            yield spent, optimizer.iterate


def results_folder(name: str, out: Path) -> Path:
    """A folder of `studies/results` in a copy of the repository; the study's own folder elsewhere."""
    results = Path(__file__).resolve().parents[2] / "results"
    return results / name if results.is_dir() else out


def missing(needs: Iterable[str]) -> list[str]:
    """Which of these modules are not installed."""
    return [module for module in needs if not _is_installed(module)]


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:  # what sys.modules holds in its place is no module
        return False
