"""`gibo train` and `gibo evaluate`: policy search on Gymnasium environments."""

from __future__ import annotations

import argparse
import statistics
import tomllib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import Field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibo._checks import one_of, positive_int, shown
from gibo.cli import ALLOW_MODULE, like_ctrl_c, look_here, say, trial_folders
from gibo.errors import InputError

if TYPE_CHECKING:
    from gibo.runs.progress import Standing
    from gibo.training.training import Begun, Training

# Default number of evaluations per trial.
BUDGET = 300

# Files that a client of a cluster with TLS needs.
DASK_FILES = {
    "ca": "certificate of the cluster's authority",
    "cert": "certificate of this client",
    "key": "private key of this client",
}


def add_commands(commands: Any) -> None:
    """Add these commands to the command line."""
    from gibo.training.training import Training

    train = commands.add_parser(
        "train",
        help="train a policy in a Gymnasium environment",
        description="Train a policy in a Gymnasium environment. The same command continues a training that was "
        "stopped. At its end each trial prints its result; gibo status --help explains the terms.",
    )
    train.set_defaults(run=_train, executor=None)
    train.add_argument(
        "environment",
        metavar="ENV",
        help="a Gymnasium id, such as CartPole-v1; my_robot:Arm-v0 first imports my_robot, also from this folder",
    )
    train.add_argument(
        "--preset",
        metavar="NAME",
        help="paper, published or gibo: the settings of the paper's tables, of its published code or our own, for ENV "
        "and the method; none: the defaults below. Other options override the preset",
    )
    for each in fields(Training):
        if "help" in each.metadata:
            _add_setting(train, each)
    train.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the method, such as M=8 or eta=0.3 (those of gibo.Settings, and eta, the step size), or "
        "directions=4 of ars; can be repeated",
    )
    train.add_argument(
        "--budget", type=int, metavar="N", help=f"evaluations per trial (default: {BUDGET}, or what the preset needs)"
    )
    train.add_argument("--trials", type=int, default=1, metavar="N", help="with seeds from --seed on (default: 1)")
    train.add_argument("--seed", type=int, metavar="N", help="seed of the first trial (default: 0)")
    train.add_argument("--workers", type=int, metavar="N", help="worker processes (default: none)")
    train.add_argument("--dask", metavar="ADDRESS", help="workers of a Dask cluster, such as tcp://127.0.0.1:8786")
    for name, what in DASK_FILES.items():
        train.add_argument(f"--dask-{name}", metavar="FILE", help=f"{what}, for a cluster at tls://... (PEM)")
    train.add_argument("--time-limit", type=float, metavar="SECONDS", help="per evaluation")
    train.add_argument("--watch", action="store_true", help="serve a page of the trials at the address that is printed")
    train.add_argument(
        "--control", action="store_true", help="the same; who has the address can pause and stop the run"
    )
    train.add_argument(
        "--force",
        action="store_true",
        help="continue a trial with other values of --episodes, --reward-shift, --reward-scale, "
        "--action-noise, --max-steps or ENV; the trial then mixes different returns",
    )
    train.add_argument(
        "--tensorboard", type=Path, metavar="FOLDER", help="write curves for tensorboard --logdir FOLDER"
    )
    train.add_argument("--out", type=Path, metavar="FOLDER", help="(default: runs/ENV)")

    evaluate = commands.add_parser("evaluate", help="measure the returns of a trained policy over new episodes")
    evaluate.set_defaults(run=_evaluate)
    evaluate.add_argument("folder", type=Path, metavar="RUN", help="folder of gibo train")
    evaluate.add_argument("--episodes", type=int, default=20, metavar="N", help="per trial (default: 20)")
    evaluate.add_argument("--seed", type=int, default=0, metavar="N")
    evaluate.add_argument("--allow-module", **ALLOW_MODULE)


def _add_setting(command: argparse.ArgumentParser, each: Field[Any]) -> None:
    """Add the option of a field of `Training`. It has no default, so that a missing option is recognised."""
    name, text = "--" + each.name.replace("_", "-"), each.metadata["help"]
    kind = {"int": int, "int | None": int, "float": float, "str": str, "bool": bool}[str(each.type)]
    if kind is bool:
        command.add_argument(name, action=argparse.BooleanOptionalAction, help=text)
        return
    shown_default = "" if each.default is None else f" (default: {each.default})"
    letter = {int: "N", float: "X", str: "NAME"}[kind]
    command.add_argument(name, type=kind, metavar=letter, help=text + shown_default)


def _train(arguments: argparse.Namespace) -> int:
    from gibo.optimizers import load_method
    from gibo.training.training import begun_trial

    look_here(arguments.environment, arguments.method or "")
    if arguments.method is not None:
        arguments.method = load_method(arguments.method)
    if arguments.dask is not None and arguments.workers is not None:
        raise InputError("--workers, --dask: give only one of them; the cluster has its own workers")
    out = arguments.out or Path("runs") / arguments.environment.replace("/", "-")
    trials = {}
    for number in range(positive_int("--trials", arguments.trials)):
        folder = out / f"trial-{number:02d}"
        trials[folder] = _trial(arguments, number, begun_trial(folder))
    watch: Any = "control" if arguments.control else arguments.watch
    files = {name: getattr(arguments, f"dask_{name}") for name in DASK_FILES}
    with ExitStack() as stack:
        stack.enter_context(like_ctrl_c())
        if arguments.dask is not None or any(files.values()):
            from gibo.cli.cluster import dask_executor

            arguments.executor = stack.enter_context(dask_executor(arguments.dask, files))
        if watch and len(trials) > 1:  # one page for all; a single trial has its own
            from gibo.web.watch import page_beside

            stack.enter_context(page_beside(out, arguments.control, trials=True))
            watch = False
        for folder, trial in trials.items():
            code = _train_trial(arguments, folder, trial, watch)
            if code:
                say("The same command continues the training.")
                return code
    say(f"Next: gibo evaluate {out}, gibo play {out}, gibo plot {out}")
    return 0


def _train_trial(arguments: argparse.Namespace, folder: Path, trial: dict[str, Any], watch: Any) -> int:
    """Train one trial, say what came of it, and return the exit code."""
    from gibo.runs.progress import Bar
    from gibo.runs.result import Status
    from gibo.training.training import train

    with ExitStack() as stack:
        parts = _parts(f"{folder.name} of {arguments.trials}")
        board = None
        if arguments.tensorboard is not None:
            from gibo.integrations.tensorboard import TensorBoard

            board = stack.enter_context(TensorBoard(arguments.tensorboard / folder.name))
        result = train(
            folder=folder,
            **trial,
            workers=arguments.workers,
            executor=arguments.executor,
            progress=stack.enter_context(Bar(trial["budget"], parts)),
            callback=board,
            watch=watch,
            force=arguments.force,
        )
    say(f"{folder}: {result.reason}")
    for advice in result.advice:
        say(f"  {advice.text}")
    if result.status.is_regular:
        return 0
    return 130 if result.status is Status.INTERRUPTED else 1


def _trial(arguments: argparse.Namespace, number: int, begun: Begun | None) -> dict[str, Any]:
    """Training, budget, seed and time limit of a trial, from the arguments, else the journal, else the defaults."""
    from gibo.training.training import Training

    seed, time_limit = (arguments.seed or 0) + number, arguments.time_limit
    if begun is not None and arguments.seed is None:
        seed = int(begun.spec.arguments.get("seed", seed))
    if begun is not None and time_limit is None and arguments.dask is None:
        time_limit = begun.last_start.get("time_limit")
    if begun is not None and arguments.preset is None:
        training, budget = begun.training, begun.last_start.get("budget") or BUDGET
    elif arguments.preset in (None, "none"):
        training, budget = Training(arguments.environment, method=arguments.method or "gibo"), BUDGET
    else:
        training, budget = _preset(arguments.preset, arguments.environment, arguments.method or "gibo")
    options = vars(arguments)
    given = {each.name: options[each.name] for each in fields(training) if options.get(each.name) is not None}
    training = replace(training, **given)
    if arguments.set:
        training = replace(training, options=_options(training, dict(map(_setting, arguments.set))))
    budget = budget if arguments.budget is None else arguments.budget
    return {"training": training, "budget": budget, "seed": seed, "time_limit": time_limit}


def _setting(word: str) -> tuple[str, Any]:
    """The name and the value of ``NAME=VALUE``: a number, true, false, a list, or else a word."""
    name, equals, text = word.partition("=")
    if not equals or not name or not text:
        raise InputError(f"--set: expected NAME=VALUE, such as M=8, got {shown(word)}")
    try:
        return name, tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return name, text


def _options(training: Training, given: dict[str, Any]) -> dict[str, Any]:
    """The method's options, with those of the command line."""
    from gibo.optimizers.settings import Settings

    options = dict(training.options)
    if training.method != "gibo":
        return options | given
    changed = Settings.given(given)  # refuses unknown names
    if "settings" not in options:
        return {"settings": changed}
    if "eta" in given:
        given["move"] = replace(options["settings"].move, step=changed.move.step)  # type: ignore[attr-defined]
        del given["eta"]
    return {"settings": replace(options["settings"], **given)}


def _preset(name: str, environment: str, method: str) -> tuple[Training, int]:
    from gibo.training.presets import BUDGETS, PRESETS

    one_of("--preset", name, (*PRESETS, "none"))
    known, wanted = PRESETS[name], f"{environment} with {method}"
    one_of(f"--preset {name}", wanted, [" with ".join(pair) for pair in known])
    return known[environment, method], BUDGETS[environment]


def _evaluate(arguments: argparse.Namespace) -> int:
    from gibo.training.training import read_trial

    folders = trial_folders(arguments.folder)
    if arguments.allow_module:
        look_here(":")
    for folder in folders:
        trial = read_trial(folder, arguments.allow_module)
        with trial.training.task() as task:
            policy = trial.policy
            played = task.evaluate(policy.theta, arguments.episodes, arguments.seed, policy.normalization)
        returns = sorted(episode.value for episode in played)
        spread = statistics.stdev(returns) if len(returns) > 1 else 0.0
        low, middle, high = (returns[round(q * (len(returns) - 1))] for q in (0.1, 0.5, 0.9))
        mean = f"mean {statistics.fmean(returns):.1f}, standard deviation {spread:.1f}"
        say(f"{folder}: {len(returns)} episodes, {mean}, 10 % {low:.1f}, median {middle:.1f}, 90 % {high:.1f}")
    return 0


def _parts(title: str) -> Callable[[Standing], list[str]]:
    """The texts of a progress bar, the most important first."""
    returns: dict[str, float] = {}

    def parts(standing: Standing) -> list[str]:
        steps = standing.optimizer.log.iterations
        for e in standing.arrived:
            if "return" in e.outcome.info:
                value = float(e.outcome.info["return"])
                returns["best"] = max(value, returns.get("best", value))
                if e.kind == "iterate" or not steps:
                    returns["now"] = value
        found = [f"{name} {value:.1f}" for name, value in returns.items()]
        if steps:
            found.append(f"P(ascent) {steps[-1].probability_of_ascent:.2f}")
        return [*found, *([f"{standing.failures} failed"] if standing.failures else []), title]

    return parts
