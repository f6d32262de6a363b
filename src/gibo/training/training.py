"""Policy search: a task, an optimiser and what is learnt of the states, put together as one run with a journal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from gibo._checks import as_flag, as_path, describe, finite, instance, one_of, positive, positive_int, shown
from gibo._serialize import to_plain
from gibo.errors import InputError
from gibo.optimizers import methods
from gibo.optimizers.base import Optimizer
from gibo.optimizers.gibo import GIBO
from gibo.optimizers.log import Asked, Reparametrized
from gibo.optimizers.settings import Settings
from gibo.outcome import EXTERNAL, ITERATE, Evaluation
from gibo.policies.actions import Act
from gibo.policies.architecture import Architecture, architecture, with_parameters
from gibo.policies.normalizer import Normalization, Statistics, reexpress
from gibo.policies.policy import Policy
from gibo.policies.task import Task
from gibo.runs.api import Callback, run
from gibo.runs.journal import Journal, has_journal
from gibo.runs.progress import Progress
from gibo.runs.result import Result
from gibo.runs.session import Session

REEXPRESSIONS = ("exact", "data", "iterate", "off")


class StateNormalizer:
    """Learns how a task's states are normalised: statistics stay as they are during an iteration.

    Args:
        architecture: of the policy.
        reexpressed: what moves when the statistics change, so that the same behaviour keeps the same value: ``"exact"``
            and ``"data"``, what the optimiser was told; ``"iterate"``, that and the iterate; ``"off"``, nothing, as in
            ARS V2. Of a policy without biases the behaviour cannot be kept when the states' mean changes; with
            ``"exact"`` it keeps the mean that it learnt first. What that gains is in docs/leaderboard.md.
    """

    def __init__(self, architecture: Architecture, reexpressed: str = "exact") -> None:
        one_of("reexpressed", reexpressed, REEXPRESSIONS)
        self.architecture, self.reexpressed = architecture, reexpressed
        self.statistics = Statistics.empty(architecture.inputs)
        self.normalization = Normalization.identity(architecture.inputs)

    def options(self) -> dict[str, Any]:
        return {"normalization": self.normalization}

    def learn(self, infos: Sequence[Mapping[str, Any]]) -> Reparametrized | None:
        known = self.statistics.count > 0
        for info in infos:
            if "statistics" in info:  # a failed episode has none
                self.statistics = self.statistics.merge(Statistics.from_plain(info["statistics"]))
        old, new = self.normalization, self.statistics.normalization
        if known and self.reexpressed == "exact" and not self.architecture.has_bias:
            new = Normalization(old.mean, new.std)
        self.normalization = new
        if self.reexpressed == "off":
            return None
        return Reparametrized(reexpress(self.architecture, old, self.normalization), self.reexpressed == "iterate")


def usual_reexpression(method: str | None) -> Literal["exact", "data"]:
    """Exact for GIBO, which keeps what it was told; others have nothing to move, or have it moved by mean and std."""
    return "exact" if method == GIBO.method else "data"


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "scale": positive,
    "episodes": positive_int,
    "normalize_states": as_flag,
    "reward_shift": finite,
    "reward_scale": positive,
    "action_noise": partial(positive, or_zero=True),
    "max_steps": positive_int,
}


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
        reexpressed: what moves when the normalisation changes; see `StateNormalizer`. None is `usual_reexpression`.
        reward_shift, reward_scale: what the optimiser sees of a reward r is (r − shift)·scale.
        action_noise: on continuous actions while parameters are searched; see `gibo.policies.Task`.
        max_steps: cut episodes off after this many steps.
    """

    environment: str
    policy: str = "affine"
    method: str = "gibo"
    scale: float = 0.1
    options: Mapping[str, Any] = field(default_factory=dict)
    episodes: int = 1
    normalize_states: bool = False
    reexpressed: Literal["exact", "data", "iterate", "off"] | None = None
    reward_shift: float = 0.0
    reward_scale: float = 1.0
    action_noise: float = 0.0
    max_steps: int | None = None

    def __post_init__(self) -> None:
        instance("environment", self.environment, str, "a Gymnasium id")
        one_of("method", self.method, methods())
        if self.reexpressed is None:
            object.__setattr__(self, "reexpressed", usual_reexpression(self.method))
        one_of("reexpressed", self.reexpressed, REEXPRESSIONS)
        architecture(self.policy, 1, 1)
        for name, check in _CHECKS.items():
            if name != "max_steps" or self.max_steps is not None:
                object.__setattr__(self, name, check(name, getattr(self, name)))
        if not isinstance(self.options, Mapping) or not all(isinstance(name, str) for name in self.options):
            raise InputError(f"options: expected options by their names, got {shown(self.options)}")

    def task(self) -> Task:
        """The objective."""
        return Task(
            self.environment,
            self.policy,
            episodes=self.episodes,
            normalize_states=self.normalize_states,
            reward_shift=self.reward_shift,
            reward_scale=self.reward_scale,
            action_noise=self.action_noise,
            max_steps=self.max_steps,
        )

    def optimizer(self, task: Task, seed: int) -> Optimizer:
        """A fresh one."""
        return methods()[self.method](task.x0(seed), scale=self.scale, seed=seed, **self.options)

    def normalizer(self, architecture: Architecture) -> StateNormalizer | None:
        """What learns between the iterations, if anything does."""
        return StateNormalizer(architecture, str(self.reexpressed)) if self.normalize_states else None

    def to_plain(self) -> dict[str, Any]:
        """As data that JSON can hold; without an `action_noise` that is 0, which older trials have not either."""
        try:
            plain: dict[str, Any] = to_plain(self)
        except TypeError as error:
            raise InputError(f"options: expected what can be saved: {error}") from None
        if not self.action_noise:
            del plain["action_noise"]
        return plain

    @classmethod
    def from_plain(cls, data: Any) -> Training:
        """The inverse of `to_plain`."""
        names = {f.name for f in fields(cls)}
        if not isinstance(data, dict) or not names - {"action_noise"} <= data.keys():
            raise InputError(f"training: expected what to_plain gives, got {describe(data)}")
        options = dict(instance("options", data["options"], dict, "options by their names"))
        if "settings" in options:
            options["settings"] = Settings.from_plain(options["settings"])
        return cls(**{**{name: data[name] for name in names & data.keys()}, "options": options})


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
    callback: Callback | None = None,
    watch: bool | Literal["control"] = False,
    force: bool = False,
) -> Result:
    """One trial, in its own folder; the same call continues it. The policy is saved there as ``policy.json``.

    Args:
        training: what and how.
        folder: for the journal and the policy.
        budget: evaluations, of `training.episodes` episodes each.
        seed: of the trial.
        workers, executor, time_limit, progress, callback, watch, force: see `gibo.run`.
    """
    positive_int("budget", budget)
    folder = as_path("folder", folder)
    training = _as_begun(instance("training", training, Training, "a Training"), folder)
    with training.task() as task:
        normalizer = training.normalizer(task.architecture)
        result = run(
            training.optimizer(task, seed),
            task,
            budget=budget,
            journal=folder,
            workers=workers,
            executor=executor,
            time_limit=time_limit,
            progress=progress,
            callback=callback,
            watch=watch,
            force=force,
            reparametrizer=normalizer,
            training=training.to_plain(),
        )
        policy = task.bind(result.x, None if normalizer is None else normalizer.normalization)
    policy.save(folder / "policy.json")
    return result


def _as_begun(training: Training, folder: Path) -> Training:
    """With what moves in a trial that is begun, if it was a default: "data", or "off" for other methods than GIBO."""
    if training.reexpressed != usual_reexpression(training.method) or not has_journal(folder):
        return training
    with Journal.read(folder) as journal:
        begun = (journal.spec().training or {}).get("reexpressed")
    return replace(training, reexpressed=begun) if begun in ("data", "off") else training


class Trial(NamedTuple):
    """A trial as its journal has it."""

    training: Training
    returns: list[float]
    kinds: list[str]
    optimizer: Optimizer
    policy: Policy


def read_trial(folder: Path | str, allow_module: bool = False) -> Trial:
    """What was trained in a folder, how it went, and the policy that it has come to, also while it is running.

    The environment is made for this. An id such as ``"module:Env-v0"`` makes Gymnasium import that module, which a file
    from elsewhere must not decide; it is an error unless allowed.
    """
    with Journal.read(folder) as journal:
        training = _trusted(journal, allow_module)
        told = sorted((e for e, _ in journal.evaluations()), key=lambda e: e.id)
        with training.task() as task:
            normalizer = training.normalizer(task.architecture)
            session = Session.of(journal, normalizer)
            best = session.best
            x = session.optimizer.iterate if best is None else best.x
            policy = task.bind(x, None if normalizer is None else normalizer.normalization)
    returns = [float(e.outcome.info.get("return", "nan")) for e in told]
    return Trial(training, returns, [e.kind for e in told], session.optimizer, policy)


class LastEpisode(NamedTuple):
    """The last episode of a trial's iterates: what acted in it, and the seed that `rollout` had."""

    training: Training
    evaluation: Evaluation
    policy: Policy | Act
    seed: int


def last_episode(folder: Path | str, allow_module: bool = False) -> LastEpisode:
    """The episode that a trial's last iterate had, or, of a method that never evaluates its iterates, the last of all.

    The environment is made for this; see `read_trial`.
    """
    with Journal.read(folder) as journal:
        training, spec = _trusted(journal, allow_module), journal.spec()
        told = [e for e, _ in journal.evaluations() if e.failure is None and e.kind != EXTERNAL]
        if not told:
            raise InputError(f"{folder}: no episode is over yet")
        last = max(told, key=lambda e: (e.kind == ITERATE, e.id))
        with training.task() as task:
            normalizer = training.normalizer(task.architecture)
            if normalizer is not None:  # as it was then
                lesson = Session(spec.fresh_optimizer(), spec.sign, normalizer).lesson(journal.events())
                asked = (query.id for event in lesson if isinstance(event, Asked) for query in event.queries)
                next(i for i in asked if i == last.id)
            numbers = (last.query.seed, training.episodes - 1)  # as in Task
            acting = task.bind(last.x, None if normalizer is None else normalizer.normalization)
            policy = task.searching(acting, numbers)
    return LastEpisode(training, last, policy, int(np.random.SeedSequence(numbers).generate_state(1)[0]))


def _trusted(journal: Journal, allow_module: bool) -> Training:
    """What a journal's run trains, if its environment may be made."""
    training = training_of(journal)
    module, colon, _ = training.environment.partition(":")
    if colon and not allow_module:
        raise InputError(
            f"{journal.folder}: its environment {shown(training.environment)} would import the module {shown(module)}; "
            "if you trust it, say --allow-module"
        )
    return training


def training_of(journal: Journal) -> Training:
    """What a journal's run trains."""
    spec = journal.spec()
    if spec.training is None:
        raise InputError(f"{journal.folder}: a run, but not one of gibo train")
    return Training.from_plain(spec.training)


def normalizer_of(journal: Journal) -> StateNormalizer | None:
    """What learns in a run, to read its journal with, from the journal alone: no environment is made."""
    spec = journal.spec()
    if spec.training is None or not spec.training.get("normalize_states"):
        return None
    training, d = Training.from_plain(spec.training), len(spec.arguments["x0"])
    seen = (e.outcome.info["statistics"] for e, _ in journal.evaluations() if "statistics" in e.outcome.info)
    first = next(seen, None)
    if first is None:
        return None  # nothing to learn from yet
    return training.normalizer(with_parameters(training.policy, Statistics.from_plain(first).k, d))
