"""What the studies of the algorithm share: a variant of the settings on a task, looked at after a few evaluations.

A study keeps its cells in a folder of its own and writes

    studies/results/algorithm/NAME.csv   a row per cell and look; see `ROW`
    studies/results/algorithm/NAME.md    its table

A stopped study is reported as far as it went; the same command continues it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from gibo.optimizers.gibo import GIBO
from gibo.optimizers.settings import Settings
from gibo_studies.leaderboard.run import look_at_a_run
from gibo_studies.leaderboard.task import Task, prepared
from gibo_studies.report import read_csv, write_csv
from gibo_studies.study import PER_SEED, Record, Study, results_folder

DEFAULT = "default"
# `true` is the value without noise of the recommended point, `share` its share of the way from the start's to the best
# known one; `at_start` whether the start is recommended; `held` whether the mean lies in the 90 % interval.
ROW = ("task", "scale", "variant", "trial", "look", "true", "share", "at_start", "held")
Row = Mapping[str, str]


@dataclass(frozen=True)
class AlgorithmStudy(Study):
    """Tasks × scales × variants × trials; `trials` is per task, None for the study's own numbers."""

    trials: int | None = None

    reports_unfinished: ClassVar[bool] = True
    quick: ClassVar[Mapping[str, Any]] = {"trials": 1}

    @abstractmethod
    def tasks(self) -> Mapping[str, Task]:
        """By their names, each with its number of trials."""

    @abstractmethod
    def table(self, rows: Sequence[Row]) -> str:
        """The study's report."""

    def settings(self) -> Mapping[str, Settings]:
        """Of each variant."""
        return {DEFAULT: Settings()}

    def arms(self, task: Task) -> Iterable[tuple[float, str]]:
        """Factors on the right scale, and the variants that run with them on a task."""
        return [(1.0, variant) for variant in self.settings()]

    def definition(self) -> dict[str, Any]:
        return {name: value for name, value in super().definition().items() if name != "trials"}

    def cells(self) -> list[dict[str, Any]]:
        trials = {task.name: self.trials or task.trials for task in self.tasks().values()}
        return [
            {"task": task.name, "scale": scale, "variant": variant, "trial": trial}
            for trial in range(max(trials.values()))
            for task in self.tasks().values()
            if trial < trials[task.name]
            for scale, variant in self.arms(task)
        ]

    def run_cell(self, cell: Mapping[str, Any]) -> Record:
        number = self.seed_of(cell["trial"])
        task, problem = prepared(self.tasks()[cell["task"]], number)
        settings, scale = self.settings()[cell["variant"]], task.scale * cell["scale"]
        optimizer = GIBO(task.start, scale=scale, bounds=task.bounds, seed=number + PER_SEED, settings=settings)
        rows = []
        for look in look_at_a_run(task, problem, optimizer, task.marks).looks:
            interval, mean = look.interval, look.mean
            held = "" if interval is None or mean is None else int(interval[0] <= mean <= interval[1])
            numbers = (f"{look.truth:.6g}", f"{look.share:.4f}", int(look.at_start), held)
            rows.append(dict(zip(ROW, map(str, (*cell.values(), look.spent, *numbers)), strict=True)))
        return {"cell": dict(cell), "rows": rows}

    def write(self, records: Sequence[Record], out: Path, footnote: str) -> str:
        folder = results_folder("algorithm", out)
        order = {key_of(cell): i for i, cell in enumerate(self.cells())}
        ordered = sorted(records, key=lambda record: order[key_of(record["cell"])])
        rows = [row for record in ordered for row in record["rows"]]
        write_csv(folder / f"{self.name}.csv", ROW, ([row[name] for name in ROW] for row in rows))
        text = f"# {self.name.capitalize()}\n\n{self.table(rows)}"
        (folder / f"{self.name}.md").write_text(f"{text}\n{footnote}\n", encoding="utf-8")
        return text


def key_of(cell: Mapping[str, Any]) -> tuple[str, ...]:
    """The entries of a cell or of a row that tell it from others."""
    return tuple(str(cell[name]) for name in ROW[:4])


def read(name: str) -> list[dict[str, str]]:
    """The committed rows of a study."""
    return read_csv(results_folder("algorithm", Path()) / f"{name}.csv")
