"""Policy search: combines a task, an optimiser and the normalisation of states in one run with a journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from gibo._checks import as_path, describe, instance, one_of, positive_int, shown
from gibo._serialize import to_plain
from gibo.errors import InputError
from gibo.optimizers import method_class, methods_text
from gibo.optimizers.base import Optimizer
from gibo.optimizers.gibo import GIBO
from gibo.optimizers.log import Asked, Reparametrized
from gibo.optimizers.settings import Settings
from gibo.outcome import EXTERNAL, ITERATE, Evaluation
from gibo.policies.architecture import Architecture, with_parameters
from gibo.policies.normalizer import Normalization, Statistics, reexpress
from gibo.policies.policy import Act, Policy
from gibo.policies.task import Task, episode_seed
from gibo.runs.api import run
from gibo.runs.journal import Journal, has_journal
from gibo.runs.options import Callback
from gibo.runs.progress import Progress
from gibo.runs.result import Result
from gibo.runs.session import Session
from gibo.runs.spec import OF_OBJECTIVE, RunSpec

REEXPRESSIONS = ("exact", "data", "iterate", "off")


class StateNormalizer:
    """Normalises a task's states by their statistics, which change only between iterations.

    Args:
        architecture: of the policy.
        reexpressed: the points that are converted when the normalisation changes, so that the same behaviour keeps the
            same value. ``"exact"`` and ``"data"``: the optimiser's data; ``"iterate"``: its data and its iterate;
            ``"off"``: none, as in ARS V2. A policy without biases cannot keep its behaviour when the mean of the states
            changes; with ``"exact"`` its normalisation keeps the first mean. docs/diary.md has the effect.
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
            if "statistics" in info:  # a failed episode has no statistics
                self.statistics = self.statistics.merge(Statistics.from_plain(info["statistics"]))
        old, new = self.normalization, self.statistics.normalization
        if known and self.reexpressed == "exact" and not self.architecture.has_bias:
            new = Normalization(old.mean, new.std)
        self.normalization = new
        if self.reexpressed == "off":
            return None
        return Reparametrized(reexpress(self.architecture, old, self.normalization), self.reexpressed == "iterate")


def setting(default: Any, help: str) -> Any:
    """A field of `Training` that is also an option of ``gibo train``, with its help text."""
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class Training:
    """The specification of a trial: everything that it depends on, except its seed and its budget.

    ``gibo train --help`` shows the help texts of the fields below. `Task` and the optimiser check their values.

    Attributes:
        environment: a Gymnasium id; ``my_robot:Arm-v0`` imports ``my_robot`` first.
        options: options of the method: ``{"settings": gibo.Settings(...)}`` for gibo, ``{"step_size": ...}`` for ars.
        reexpressed: see `StateNormalizer`. None: from the journal, or in a new trial `chosen_reexpression`.
    """

    environment: str
    policy: str = setting("linear", "linear, affine, mlp:16,16 or mlp:16,16:relu")
    method: str = setting("gibo", methods_text())
    scale: float = setting(0.1, "the change of a parameter that has a clear effect, roughly")
    options: Mapping[str, Any] = field(default_factory=dict)
    episodes: int = setting(1, "episodes per evaluation; its value is their mean return")
    normalize_states: bool = setting(False, "the policy sees normalised states")
    reexpressed: Literal["exact", "data", "iterate", "off"] | None = None
    reward_shift: float = setting(0.0, "subtracted from each reward")
    reward_scale: float = setting(1.0, "multiplies the shifted reward; positive")
    action_noise: float = setting(
        0.0, "standard deviation of noise on continuous actions during the search, as a share of half their range"
    )
    max_steps: int | None = setting(None, "cut episodes off after this many steps")

    def __post_init__(self) -> None:
        instance("environment", self.environment, str, "a Gymnasium id")
        instance("options", self.options, Mapping, "options by their names")

    def task(self) -> Task:
        """The objective."""
        options = {name: getattr(self, name) for name in (*OF_OBJECTIVE, "policy", "normalize_states")}
        return Task(**options)

    def optimizer(self, task: Task, seed: int) -> Optimizer:
        """A new optimiser at the task's start."""
        try:
            return method_class(self.method)(task.x0(seed), scale=self.scale, seed=seed, **self.options)
        except TypeError as error:  # unknown options
            raise InputError(f"options: {error}") from error

    def normalizer(self, architecture: Architecture) -> StateNormalizer | None:
        """The normaliser of the states, or None."""
        return StateNormalizer(architecture, self.chosen_reexpression) if self.normalize_states else None

    @property
    def chosen_reexpression(self) -> str:
        """`reexpressed`; else ``"exact"`` for GIBO, whose model keeps old data, and ``"data"`` for the others."""
        return self.reexpressed or ("exact" if self.method == GIBO.method else "data")

    def to_plain(self) -> dict[str, Any]:
        """Plain data for JSON."""
        try:
            plain: dict[str, Any] = to_plain(self) | {"reexpressed": self.chosen_reexpression}
        except TypeError as error:
            raise InputError(f"training: expected values that can be saved: {error}") from None
        return plain

    @classmethod
    def from_plain(cls, data: Any) -> Training:
        """The inverse of `to_plain`. Fields that the data lack have their defaults."""
        names = {f.name for f in fields(cls)}
        if not isinstance(data, dict) or not {"environment", "method", "options", "reexpressed"} <= data.keys():
            raise InputError(f"training: expected the result of to_plain, got {describe(data)}")
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
    """Train one trial in its own folder; the same call continues it. The policy is saved there as ``policy.json``.

    Args:
        training: the specification of the trial.
        folder: for the journal and the policy.
        budget: number of evaluations, of `training.episodes` episodes each.
        seed: of the trial.
        workers, executor, time_limit, progress, callback, watch, force: see `gibo.run`.
    """
    positive_int("budget", budget)
    folder = as_path("folder", folder)
    instance("training", training, Training, "a Training")
    begun = begun_trial(folder)
    if begun is not None and training.reexpressed is None:
        training = replace(training, reexpressed=begun.training.reexpressed)
    with training.task() as task:
        normalizer = training.normalizer(task.architecture)
        result = run(
            (begun and begun.optimizer(training, seed)) or training.optimizer(task, seed),
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
            training=begun.spec.training if begun and begun.training == training else training.to_plain(),
        )
        policy = task.bind(result.x, None if normalizer is None else normalizer.normalization)
    policy.save(folder / "policy.json")
    return result


class Begun(NamedTuple):
    """A trial that has a journal: its training, its run, and the options of its last start."""

    training: Training
    spec: RunSpec
    last_start: Mapping[str, Any]

    def optimizer(self, training: Training, seed: int) -> Optimizer | None:
        """The journal's optimiser, if this training searches with the same settings; else None."""
        objective = {name: getattr(self.training, name) for name in OF_OBJECTIVE}
        same = replace(training, **objective) == self.training and self.spec.arguments.get("seed") == seed
        return self.spec.fresh_optimizer() if same else None


def begun_trial(folder: Path) -> Begun | None:
    """The trial in a folder, if it has a journal."""
    if not has_journal(folder):
        return None
    with Journal.read(folder) as journal:
        starts = journal.starts()
        return Begun(training_of(journal), journal.spec(), starts[-1].options if starts else {})


class Trial(NamedTuple):
    """A trial as read from its journal."""

    training: Training
    returns: list[float]
    kinds: list[str]
    optimizer: Optimizer
    policy: Policy


def read_trial(folder: Path | str, allow_module: bool = False) -> Trial:
    """The trial in a folder with its current policy, also while it is running.

    This creates the environment. For an id such as ``"module:Env-v0"``, Gymnasium imports the module: allow that only
    for a journal that you trust.
    """
    with Journal.read(folder) as journal:
        training = training_of(journal, allow_module)
        told = sorted((e for e, _ in journal.evaluations()), key=lambda e: e.id)
        with training.task() as task:
            normalizer = training.normalizer(task.architecture)
            session = Session.of(journal, normalizer)
            best = session.optimizer.best
            x = session.optimizer.iterate if best is None else best.x
            policy = task.bind(x, None if normalizer is None else normalizer.normalization)
    returns = [float(e.outcome.info.get("return", "nan")) for e in told]
    return Trial(training, returns, [e.kind for e in told], session.optimizer, policy)


class LastEpisode(NamedTuple):
    """The last episode of a trial's iterates: the policy that acted, and the seed for `rollout`."""

    training: Training
    evaluation: Evaluation
    policy: Policy | Act
    seed: int


def last_episode(folder: Path | str, allow_module: bool = False) -> LastEpisode:
    """The episode of a trial's last iterate; for a method that never evaluates iterates, the last episode of all.

    This creates the environment; see `read_trial`.
    """
    with Journal.read(folder) as journal:
        training, spec = training_of(journal, allow_module), journal.spec()
        told = [e for e, _ in journal.evaluations() if e.failure is None and e.kind != EXTERNAL]
        if not told:
            raise InputError(f"{folder}: no episode has ended yet")
        last = max(told, key=lambda e: (e.kind == ITERATE, e.id))
        with training.task() as task:
            normalizer = training.normalizer(task.architecture)
            if normalizer is not None:  # the normalisation of that time
                events = Session(spec.fresh_optimizer(), spec.sign, normalizer).as_replayed(journal.events())
                next(e for e in events if isinstance(e, Asked) and any(query.id == last.id for query in e.queries))
            numbers = (last.query.seed, training.episodes - 1)  # as in Task
            policy = task.with_action_noise(
                task.bind(last.x, None if normalizer is None else normalizer.normalization), numbers
            )
    return LastEpisode(training, last, policy, episode_seed(numbers))


def training_of(journal: Journal, allow_module: bool = True) -> Training:
    """The training of a journal's run; whether its environment's module may be imported."""
    spec = journal.spec()
    if spec.training is None:
        raise InputError(f"{journal.folder}: a run, but not one of gibo train")
    training = Training.from_plain(spec.training)
    module, colon, _ = training.environment.partition(":")
    if colon and not allow_module:
        raise InputError(
            f"{journal.folder}: its environment {shown(training.environment)} would import the module {shown(module)}. "
            "If you trust it, give --allow-module"
        )
    return training


def normalizer_of(journal: Journal) -> StateNormalizer | None:
    """The normaliser of a run's states, for reading its journal; creates no environment."""
    spec = journal.spec()
    if spec.training is None or not spec.training.get("normalize_states"):
        return None
    training, d = Training.from_plain(spec.training), len(spec.arguments["x0"])
    seen = (e.outcome.info["statistics"] for e, _ in journal.evaluations() if "statistics" in e.outcome.info)
    first = next(seen, None)
    if first is None:
        return None
    return training.normalizer(with_parameters(training.policy, len(Statistics.from_plain(first).mean), d))
