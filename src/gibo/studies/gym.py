"""Policy search on Gymnasium environments: section 4.3 of the paper and its ablations.

A cell is a trial: one training run with its journal, and afterwards one episode of the iterate now and then along the
way, which neither counts nor teaches the policy anything.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from gibo.errors import InputError
from gibo.runs.journal import Journal
from gibo.studies.engine import Record
from gibo.training.presets import PRESETS
from gibo.training.training import Training, train

# Along a trial, the iterate is looked at about this often.
LOOKS = 100
TRIALS_PER_SEED = 1000

_PUBLISHED, _OWN = PRESETS["published"], PRESETS["gibo"]


def _without_normalisation(training: Training) -> Training:
    return replace(training, options={"settings": replace(training.options["settings"], normalization="off")})


@dataclass(frozen=True)
class Comparison:
    """What a study compares: a budget, where to look in its table, and trainings by the name of their method."""

    budget: int
    marks: tuple[int, ...]
    methods: Mapping[str, Training]


STUDIES: dict[str, dict[str, Comparison]] = {
    "cartpole": {
        "CartPole-v1": Comparison(
            100,
            (10, 25, 54, 75, 100),
            {"GIBO": _PUBLISHED["CartPole-v1", "gibo"], "ARS": _PUBLISHED["CartPole-v1", "ars"]},
        )
    },
    "swimmer": {
        "Swimmer-v5": Comparison(
            2000,
            (200, 500, 1000, 2000),
            {"GIBO": _PUBLISHED["Swimmer-v5", "gibo"], "ARS": _PUBLISHED["Swimmer-v5", "ars"]},
        )
    },
    "hopper": {
        "Hopper-v5": Comparison(
            4000,
            (500, 1000, 2000, 4000),
            {"GIBO": _OWN["Hopper-v5", "gibo"], "ARS": _PUBLISHED["Hopper-v5", "ars"]},
        )
    },
    "cheetah": {
        "HalfCheetah-v5": Comparison(
            2000,
            (250, 500, 1000, 2000),
            {"GIBO": _OWN["HalfCheetah-v5", "gibo"], "ARS": _OWN["HalfCheetah-v5", "ars"]},
        )
    },
    "ablation-gym": {
        "CartPole-v1": Comparison(
            100,
            (25, 54, 100),
            {"without gradient normalisation": _without_normalisation(_PUBLISHED["CartPole-v1", "gibo"])},
        ),
        "Swimmer-v5": Comparison(
            2000,
            (500, 1000, 2000),
            {"without gradient normalisation": _without_normalisation(_PUBLISHED["Swimmer-v5", "gibo"])},
        ),
        # With nothing left out, and the data re-expressed: the study "hopper".
        "Hopper-v5": Comparison(
            2000,
            (500, 1000, 1500, 2000),
            {
                "without state normalisation": replace(_OWN["Hopper-v5", "gibo"], normalize_states=False),
                "iterate re-expressed": replace(_OWN["Hopper-v5", "gibo"], reexpressed="iterate"),
                "published settings": _PUBLISHED["Hopper-v5", "gibo"],
            },
        ),
    },
}


@dataclass(frozen=True)
class GymStudy:
    """A study by name: its methods, `trials` trials each, in each of its environments.

    Attributes:
        name: one of `STUDIES`.
        folder: where the trials' journals are kept; a trial that was stopped goes on where it was.
        trials: per method and environment.
        budget: episodes per trial; None for the study's own.
        methods: some of the study's; all by default.
        seed: of the trials.
    """

    name: str
    folder: Path
    trials: int = 10
    budget: int | None = None
    methods: tuple[str, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        if self.name not in STUDIES:
            raise InputError(f"study: expected one of {', '.join(STUDIES)}, got {self.name!r}")
        known = list(dict.fromkeys(method for each in STUDIES[self.name].values() for method in each.methods))
        unknown = [method for method in self.methods if method not in known]
        if unknown:
            raise InputError(f"methods: {unknown[0]!r} is not in {self.name}; there are {', '.join(known)}")
        for name, least in (("trials", 1), ("budget", 1), ("seed", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise InputError(f"{name}: must be at least {least}, got {value}")
        if self.trials > TRIALS_PER_SEED:
            raise InputError(f"trials: at most {TRIALS_PER_SEED} per seed, got {self.trials}")
        object.__setattr__(self, "methods", tuple(m for m in known if m in (self.methods or known)))

    def definition(self) -> dict[str, Any]:
        """The options, and the version of the code."""
        options = {name: value for name, value in asdict(self).items() if name != "folder"}
        return {**options, "gibo": version("gibo")}

    def budget_of(self, environment: str) -> int:
        """Episodes per trial."""
        own = STUDIES[self.name][environment].budget
        return own if self.budget is None else min(own, self.budget)

    def cells(self) -> list[dict[str, Any]]:
        """Trial by trial."""
        return [
            {"environment": environment, "method": method, "trial": trial}
            for trial in range(self.trials)
            for environment, comparison in STUDIES[self.name].items()
            for method in self.methods
            if method in comparison.methods
        ]

    def run_cell(self, cell: Mapping[str, Any]) -> Record:
        training = STUDIES[self.name][cell["environment"]].methods[cell["method"]]
        budget = self.budget_of(cell["environment"])
        words = (cell["environment"], *cell["method"].lower().split(), f"{cell['trial']:02d}")
        folder = self.folder / "trials" / "-".join(words)
        started = time.perf_counter()
        result = train(training, folder, budget=budget, seed=TRIALS_PER_SEED * self.seed + cell["trial"])
        if result.evaluations < budget:
            raise InputError(f"the trial ended early: {result.reason}")
        seconds = time.perf_counter() - started
        curve = learning_curve(folder, max(1, budget // LOOKS))
        return {"cell": dict(cell), "curve": curve, "seconds": round(seconds, 3)}


def learning_curve(folder: Path, every: int) -> list[tuple[int, float]]:
    """Episodes spent and the return of one episode of the iterate then, at most every so many episodes.

    The journal is replayed, so that a trial that was stopped and continued has the same curve.
    """
    with Journal.read(folder) as journal:
        facts = journal.facts()
        training = Training.from_plain(facts.task)
        with training.task() as task:
            optimizer, learner = facts.fresh_optimizer(), training.learner(task)
            curve: list[tuple[int, float]] = []

            def look(spent: int) -> None:
                if not curve or spent - curve[-1][0] >= every:
                    normalization = None if learner is None else learner.normalization
                    (episode,) = task.evaluate(optimizer.iterate, 1, seed=spent, normalization=normalization)
                    curve.append((spent, episode.value))

            look(0)
            journal.replay(optimizer, learner, look)
    return curve


def at(curve: list[tuple[int, float]], spent: int) -> float:
    """The return of the iterate that the method had after so many episodes."""
    return [value for n, value in curve if n <= spent][-1]
