"""What the studies of the algorithm share: a variant of the settings on a task, looked at after a few evaluations.

A study keeps its cells in a folder of its own and writes

    studies/results/algorithm/NAME.csv   a row per cell and look; see `ROW`
    studies/results/algorithm/NAME.md    its table

A stopped study is reported as far as it went; the same command continues it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from gibo.optimizers.gibo import GIBO
from gibo.optimizers.settings import Settings
from gibo_studies.engine import Record
from gibo_studies.leaderboard.run import look_at_a_run, prepared
from gibo_studies.leaderboard.task import Task
from gibo_studies.options import PER_SEED, Options

DEFAULT = "default"
# `true` is the value without noise of the recommended point, `share` its share of the way from the start's to the best
# known one; `at_start` whether the start is recommended; `held` whether the mean lies in the 90 % interval.
ROW = ("task", "scale", "variant", "trial", "look", "true", "share", "at_start", "held")
Row = Mapping[str, str]


@dataclass(frozen=True)
class AlgorithmStudy(Options):
    """Tasks × scales × variants × trials.

    Attributes:
        trials: per task; None for the study's own numbers.
        seed: of the trials.
    """

    trials: int | None = None
    seed: int = 0
    name: str = ""

    reports_unfinished: ClassVar[bool] = True

    def tasks(self) -> Mapping[str, Task]:
        """By their names, each with its number of trials."""
        raise NotImplementedError

    def settings(self) -> Mapping[str, Settings]:
        """Of each variant."""
        return {DEFAULT: Settings()}

    def arms(self, task: Task) -> Iterable[tuple[float, str]]:
        """Factors on the right scale, and the variants that run with them on a task."""
        return [(1.0, variant) for variant in self.settings()]

    def table(self, rows: Sequence[Row]) -> str:
        """The study's report."""
        raise NotImplementedError

    def definition(self) -> dict[str, Any]:
        """What a cell's result depends on besides the cell."""
        return {"name": self.name, "seed": self.seed, "gibo": version("gibo")}

    def cells(self) -> list[dict[str, Any]]:
        """Trial by trial."""
        trials = {task.name: self.trials or task.trials for task in self.tasks().values()}
        return [
            {"task": task.name, "scale": scale, "variant": variant, "trial": trial}
            for trial in range(max(trials.values()))
            for task in self.tasks().values()
            if trial < trials[task.name]
            for scale, variant in self.arms(task)
        ]

    def run_cell(self, cell: Mapping[str, Any]) -> Record:
        """The rows of a run."""
        number = PER_SEED * self.seed + cell["trial"]
        task, problem = prepared(self.tasks()[cell["task"]], number)
        settings, scale = self.settings()[cell["variant"]], task.scale * cell["scale"]
        optimizer = GIBO(task.start, scale=scale, bounds=task.bounds, seed=number + PER_SEED, settings=settings)
        looked = look_at_a_run(replace(task, needs=()), problem, optimizer, [0, *task.marks])
        first, rows = looked.looks[0].truth, []
        for look in looked.looks[1:]:
            share = (look.truth - first) / (looked.reference - first)
            held = "" if look.interval_held is None else int(look.interval_held)
            numbers = (f"{look.truth:.6g}", f"{share:.4f}", int(look.at_start), held)
            rows.append(dict(zip(ROW, map(str, (*cell.values(), look.spent, *numbers)), strict=True)))
        return {"cell": dict(cell), "rows": rows}

    def write(self, records: Sequence[Record], out: Path, footnote: str) -> str:
        """The rows and the table."""
        folder = results() if results().is_dir() else out
        order = {key_of(cell): i for i, cell in enumerate(self.cells())}
        ordered = sorted(records, key=lambda record: order[key_of(record["cell"])])
        rows = [row for record in ordered for row in record["rows"]]
        with (folder / f"{self.name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, ROW, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        text = f"# {self.name.capitalize()}\n\n{self.table(rows)}"
        (folder / f"{self.name}.md").write_text(f"{text}\n{footnote}\n", encoding="utf-8")
        return text


def key_of(cell: Mapping[str, Any]) -> tuple[str, ...]:
    """The entries of a cell or of a row that tell it from others."""
    return tuple(str(cell[name]) for name in ROW[:4])


def results() -> Path:
    """The committed results in a copy of the repository."""
    return Path(__file__).resolve().parents[3] / "results" / "algorithm"


def read(name: str) -> list[dict[str, str]]:
    """The committed rows of a study."""
    with (results() / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
