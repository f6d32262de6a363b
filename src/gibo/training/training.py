"""Policy search: a task, an optimiser and what is learnt of the states, put together as one run with a journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, NamedTuple

from gibo._checks import describe, positive_int
from gibo._serialize import to_plain
from gibo.errors import InputError
from gibo.optimizers.ars import ARS
from gibo.optimizers.base import Optimizer
from gibo.optimizers.cma import CMAES
from gibo.optimizers.gibo import GIBO
from gibo.optimizers.settings import Settings
from gibo.policies.normalizer import Normalization, Reexpression, Statistics, reexpress
from gibo.policies.policy import Policy
from gibo.policies.task import Task
from gibo.runs.api import run
from gibo.runs.journal import Journal
from gibo.runs.progress import Progress
from gibo.runs.result import Result

METHODS: dict[str, type[Optimizer]] = {"gibo": GIBO, "ars": ARS, "cma-es": CMAES}
REEXPRESSIONS = ("data", "iterate", "off")


class Change(NamedTuple):
    """How parameters change with the normalisation of the states; see `gibo.runs.learner.Change`."""

    transform: Reexpression
    moves_iterate: bool


class StateNormalizer:
    """Learns how a task's states are normalised: statistics stay as they are during an iteration.

    Args:
        task: with ``normalize_states=True``.
        reexpressed: what moves when the statistics change, so that the same behaviour keeps the same value: ``"data"``,
            what the optimiser was told; ``"iterate"``, that and the iterate; ``"off"``, nothing, as in ARS V2.
    """

    def __init__(self, task: Task, reexpressed: str = "data") -> None:
        if reexpressed not in REEXPRESSIONS:
            raise InputError(f"reexpressed: expected one of {', '.join(REEXPRESSIONS)}, got {reexpressed!r:.80}")
        self.architecture, self.reexpressed = task.architecture, reexpressed
        self.statistics = Statistics.empty(task.architecture.inputs)
        self.normalization = Normalization.identity(task.architecture.inputs)

    def options(self) -> dict[str, Any]:
        return {"normalization": self.normalization}

    def learn(self, infos: Sequence[Mapping[str, Any]]) -> Change | None:
        for info in infos:
            if "statistics" in info:  # a failed episode has none
                self.statistics = self.statistics.merge(Statistics.from_plain(info["statistics"]))
        old, self.normalization = self.normalization, self.statistics.normalization
        if self.reexpressed == "off":
            return None
        return Change(reexpress(self.architecture, old, self.normalization), self.reexpressed == "iterate")


@dataclass(frozen=True)
class Training:
    """What is trained and how; all that a trial depends on, but for its seed and its budget.

    Attributes:
        environment: a Gymnasium id.
        policy: "linear", "affine", "mlp:16,16", "mlp:16,16:relu".
        method: "gibo", "ars" or "cma-es".
        scale: by how much a parameter must change to matter, roughly.
        options: of the method: ``{"settings": gibo.Settings(...)}`` for gibo, ``{"step_size": ...}`` for ars.
        episodes: per evaluation.
        normalize_states: whether the policy sees normalised states.
        reexpressed: what moves when the normalisation changes; see `StateNormalizer`.
        reward_shift, reward_scale: what the optimiser sees of a reward r is (r − shift)·scale.
        max_steps: cut episodes off after this many steps.
    """

    environment: str
    policy: str = "affine"
    method: str = "gibo"
    scale: float = 0.1
    options: Mapping[str, Any] = field(default_factory=dict)
    episodes: int = 1
    normalize_states: bool = False
    reexpressed: Literal["data", "iterate", "off"] = "data"
    reward_shift: float = 0.0
    reward_scale: float = 1.0
    max_steps: int | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InputError(f"method: expected one of {', '.join(METHODS)}, got {self.method!r:.80}")

    def task(self) -> Task:
        """The objective."""
        return Task(
            self.environment,
            self.policy,
            episodes=self.episodes,
            normalize_states=self.normalize_states,
            reward_shift=self.reward_shift,
            reward_scale=self.reward_scale,
            max_steps=self.max_steps,
        )

    def optimizer(self, task: Task, seed: int) -> Optimizer:
        """A fresh one."""
        return METHODS[self.method](task.x0(seed), scale=self.scale, seed=seed, **self.options)

    def learner(self, task: Task) -> StateNormalizer | None:
        """What learns between the iterations, if anything does."""
        return StateNormalizer(task, self.reexpressed) if self.normalize_states else None

    def to_plain(self) -> dict[str, Any]:
        """As data that JSON can hold."""
        plain: dict[str, Any] = to_plain(self)
        return plain

    @classmethod
    def from_plain(cls, data: Any) -> Training:
        """The inverse of `to_plain`."""
        names = {f.name for f in fields(cls)}
        if not isinstance(data, dict) or not names <= data.keys():
            raise InputError(f"training: expected what to_plain gives, got {describe(data)}")
        options = dict(data["options"])
        if "settings" in options:
            options["settings"] = Settings.from_plain(options["settings"])
        return cls(**{**{name: data[name] for name in names}, "options": options})


def train(
    training: Training,
    folder: Path | str,
    *,
    budget: int,
    seed: int = 0,
    workers: int | None = None,
    executor: Executor | None = None,
    time_limit: float | None = None,
    progress: bool | Progress = False,
) -> Result:
    """One trial, in its own folder; the same call continues it. The policy is saved there as ``policy.json``.

    Args:
        training: what and how.
        folder: for the journal and the policy.
        budget: evaluations, of `training.episodes` episodes each.
        seed: of the trial.
        workers, executor, time_limit, progress: see `gibo.run`.
    """
    positive_int("budget", budget)
    with training.task() as task:
        learner = training.learner(task)
        result = run(
            training.optimizer(task, seed),
            task,
            budget=budget,
            journal=folder,
            workers=workers,
            executor=executor,
            time_limit=time_limit,
            progress=progress,
            learner=learner,
            task=training.to_plain(),
        )
        policy = task.bind(result.x, None if learner is None else learner.normalization)
    policy.save(Path(folder) / "policy.json")
    return result


class Trial(NamedTuple):
    """A trial as its journal has it."""

    training: Training
    returns: list[float]
    kinds: list[str]
    optimizer: Optimizer
    policy: Policy


def read_trial(folder: Path | str) -> Trial:
    """What was trained in a folder, how it went, and the policy that it has come to, also while it is running."""
    with Journal.read(folder) as journal:
        facts = journal.facts()
        if facts.task is None:
            raise InputError(f"{folder}: a run, but not one of gibo train")
        training = Training.from_plain(facts.task)
        told = sorted(journal.evaluations(), key=lambda t: t.query.id)
        with training.task() as task:
            learner = training.learner(task)
            optimizer = journal.optimizer(learner)
            best = optimizer.best
            x = optimizer.iterate if best is None else best.x
            policy = task.bind(x, None if learner is None else learner.normalization)
    nan = float("nan")
    returns = [nan if t.answer.info is None else float(t.answer.info["return"]) for t in told]
    return Trial(training, returns, [t.query.kind for t in told], optimizer, policy)
