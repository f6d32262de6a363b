"""`gibo train` and `gibo evaluate`: policy search on Gymnasium environments."""

from __future__ import annotations

import argparse
import inspect
import os
import signal
import statistics
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibo._checks import shown
from gibo.cli import say
from gibo.errors import InputError, missing_extra, printable

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from gibo.runs.progress import Standing
    from gibo.training.training import Training

# Evaluations per trial where nothing is known.
BUDGET = 300

# Seconds in which a Dask scheduler must answer.
DASK_TIMEOUT = 10

# What a Dask cluster with TLS asks its client for.
DASK_FILES = {
    "ca": "certificate of the cluster's authority",
    "cert": "certificate of this client",
    "key": "private key of this client",
}


def add_commands(commands: Any) -> None:
    """Add these commands to the command line."""
    train = commands.add_parser(
        "train",
        help="train a policy in a Gymnasium environment",
        description="Train a policy in a Gymnasium environment. The same command continues where it was stopped. At "
        "its end each trial says what it has reached; gibo status --help explains the words.",
    )
    train.set_defaults(run=_train)
    train.add_argument(
        "environment",
        metavar="ENV",
        help="a Gymnasium id, such as CartPole-v1; my_robot:Arm-v0 imports my_robot first, also from this folder",
    )
    train.add_argument(
        "--preset",
        metavar="NAME",
        help="paper, published or gibo: the settings of the paper's tables, of its published code or our own, for ENV "
        "and the method; none, the default: those that need no knowledge of ENV. Options given besides override them",
    )
    train.add_argument(
        "--policy", help='"linear", "affine", "mlp:16,16", "mlp:16,16:relu" (default: linear, or that of the preset)'
    )
    train.add_argument("--method", default="gibo", help="gibo (default), ars or cma-es")
    train.add_argument(
        "--budget", type=int, metavar="N", help="evaluations per trial (default: 300, or what the preset needs)"
    )
    train.add_argument("--episodes", type=int, metavar="N", help="per evaluation (default: 1)")
    train.add_argument("--trials", type=int, default=1, metavar="N", help="with seeds from --seed on (default: 1)")
    train.add_argument("--seed", type=int, default=0, metavar="N", help="of the first trial (default: 0)")
    train.add_argument(
        "--scale", type=float, metavar="X", help="by how much a parameter must change to matter (default: 0.1)"
    )
    train.add_argument(
        "--normalize-states", action=argparse.BooleanOptionalAction, help="the policy sees normalised states"
    )
    train.add_argument("--reward-shift", type=float, metavar="X", help="subtracted from each reward (default: 0)")
    train.add_argument("--reward-scale", type=float, metavar="X", help="multiplies what is left (default: 1)")
    train.add_argument(
        "--action-noise", type=float, metavar="X", help="on actions, share of half their range (default: 0)"
    )
    train.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the method, such as M=8 or eta=0.3 (those of gibo.Settings, and eta, the step size), or "
        "directions=4 of ars; may be given several times",
    )
    train.add_argument("--max-steps", type=int, metavar="N", help="cut episodes off")
    train.add_argument("--workers", type=int, metavar="N", help="processes (default: none but this one)")
    train.add_argument(
        "--dask", metavar="ADDRESS", help="or the workers of a Dask cluster, such as tcp://127.0.0.1:8786"
    )
    for name, what in DASK_FILES.items():
        train.add_argument(f"--dask-{name}", metavar="FILE", help=f"{what}, for a cluster at tls://... (PEM)")
    train.add_argument("--time-limit", type=float, metavar="SECONDS", help="per evaluation")
    train.add_argument(
        "--watch",
        action="store_true",
        help="show it in the browser while it goes on, several trials on one page; the address is printed",
    )
    train.add_argument(
        "--control", action="store_true", help="the same, and whoever has that address can pause and stop it there"
    )
    train.add_argument(
        "--force",
        action="store_true",
        help="continue a trial although its returns are of other options (--episodes, --reward-shift, --reward-scale, "
        "--action-noise, --max-steps) or another ENV: the returns of both are in it then",
    )
    train.add_argument("--tensorboard", type=Path, metavar="FOLDER", help="curves for tensorboard --logdir FOLDER")
    train.add_argument("--out", type=Path, metavar="FOLDER", help="(default: runs/ENV)")

    evaluate = commands.add_parser("evaluate", help="the returns of a trained policy over fresh episodes")
    evaluate.set_defaults(run=_evaluate)
    evaluate.add_argument("folder", type=Path, metavar="RUN", help="of gibo train")
    evaluate.add_argument("--episodes", type=int, default=20, metavar="N", help="per trial (default: 20)")
    evaluate.add_argument("--seed", type=int, default=0, metavar="N")
    add_allow_module(evaluate)


def _train(arguments: argparse.Namespace) -> int:
    from gibo.runs.progress import progress_bar
    from gibo.runs.result import Status
    from gibo.training.training import train

    look_here(arguments.environment)
    training, budget = _training(arguments)
    if arguments.trials < 1:
        raise InputError(f"--trials: expected at least 1, got {arguments.trials}")
    if arguments.dask is not None and arguments.workers is not None:
        raise InputError("--workers, --dask: give one of them; the cluster has its own workers")
    out = arguments.out or Path("runs") / arguments.environment.replace("/", "-")
    watch: Any = "control" if arguments.control else arguments.watch
    with like_ctrl_c(), _cluster(arguments) as executor, _page(out, watch and arguments.trials > 1, arguments.control):
        for trial in range(arguments.trials):
            folder = out / f"trial-{trial:02d}"
            with (
                progress_bar(budget, _parts(f"trial {trial + 1}/{arguments.trials}")) as bar,
                _board(arguments, folder.name) as board,
            ):
                result = train(
                    training,
                    folder,
                    budget=budget,
                    seed=arguments.seed + trial,
                    workers=arguments.workers,
                    executor=executor,
                    time_limit=arguments.time_limit,
                    progress=bar,
                    callback=board,
                    watch=watch if arguments.trials == 1 else False,
                    force=arguments.force,
                )
            say(f"{folder}: {result.reason}")
            for advice in result.advice:
                say(f"  {printable(advice.text)}")
            if not result.status.is_regular:
                say("The same command continues.")
                return 130 if result.status is Status.INTERRUPTED else 1
    say(f"Next: gibo evaluate {out}, gibo play {out}, gibo plot {out}")
    return 0


def _training(arguments: argparse.Namespace) -> tuple[Training, int]:
    """The preset, or our defaults, with what was given besides; and the budget."""
    from gibo.training.training import Training

    if arguments.preset in (None, "none"):
        training = Training(arguments.environment, "linear", arguments.method)
        budget = BUDGET
    else:
        training, budget = _preset(arguments.preset, arguments.environment, arguments.method)
    given = {each.name: getattr(arguments, each.name, None) for each in fields(training)}
    training = replace(training, **{name: value for name, value in given.items() if value is not None})
    training = replace(training, options=_options(training, dict(map(_setting, arguments.set))))
    return training, budget if arguments.budget is None else arguments.budget


def _setting(word: str) -> tuple[str, Any]:
    """A name and a value of ``NAME=VALUE``: a number, true, false, a list, or else a word."""
    name, equals, text = word.partition("=")
    if not equals or not name or not text:
        raise InputError(f"--set: expected NAME=VALUE, such as M=8, got {shown(word)}")
    try:
        return name, tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return name, text


def _options(training: Training, given: dict[str, Any]) -> dict[str, Any]:
    """The method's options with what was given."""
    from gibo.optimizers import methods
    from gibo.optimizers.settings import Settings
    from gibo.steps import GradientAscent

    options = dict(training.options)
    if not given:
        return options
    if training.method != "gibo":
        common = ("self", "x0", "scale", "bounds", "seed")
        parameters = inspect.signature(methods()[training.method]).parameters
        _refuse_unknown(given, [n for n, p in parameters.items() if n not in common and p.kind is not p.VAR_KEYWORD])
        return options | given
    _refuse_unknown(given, [*(name for name in Settings.__dataclass_fields__ if name != "step"), "eta"])
    if "eta" in given:
        given = {**given, "step": GradientAscent(eta=given["eta"])}
        del given["eta"]
    if "settings" not in options:
        return {"settings": Settings.default(**given)}
    return {"settings": replace(options["settings"], **given)}


def _refuse_unknown(given: dict[str, Any], known: list[str]) -> None:
    unknown = [name for name in given if name not in known]
    if unknown:
        raise InputError(f"--set: {unknown[0]!r} is unknown; expected one of {', '.join(known)}")


def _preset(name: str, environment: str, method: str) -> tuple[Training, int]:
    from gibo.training.presets import BUDGETS, PRESETS

    if name not in PRESETS:
        raise InputError(f"--preset: expected one of {', '.join(PRESETS)}, none, got {name!r}")
    known = PRESETS[name]
    if (environment, method) not in known:
        there = ", ".join(" with ".join(pair) for pair in known)
        raise InputError(f"--preset {name}: there is none for {environment} with {method}; there are: {there}")
    return known[environment, method], BUDGETS[environment]


def _evaluate(arguments: argparse.Namespace) -> int:
    from gibo.training.training import read_trial

    if arguments.episodes < 1:
        raise InputError(f"--episodes: expected at least 1, got {arguments.episodes}")
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


def add_allow_module(command: argparse.ArgumentParser) -> None:
    """For commands that make the environment which a run's journal names."""
    text = "import the module that the run's environment is in (module:Env-v0); only if you trust the folder"
    command.add_argument("--allow-module", action="store_true", help=text)


def look_here(environment: str) -> None:
    """Let Python find the module of ``module:Env-v0`` in the current folder, after all other places."""
    here = os.getcwd()
    if ":" in environment and here not in sys.path:
        sys.path.append(here)


def trial_folders(folder: Path) -> list[Path]:
    """The trials in a folder of `gibo train`, or the folder itself if it is one."""
    from gibo.runs.journal import has_journal
    from gibo.runs.store import FILE

    if has_journal(folder):
        return [folder]
    found = sorted(path for path in folder.glob("trial-*") if has_journal(path))
    if not found:
        raise InputError(f"{folder}: there is no run; expected a folder with {FILE}, or one of gibo train")
    return found


@contextmanager
def _cluster(arguments: argparse.Namespace) -> Iterator[Executor | None]:
    """The executor of a Dask cluster."""
    address = arguments.dask
    files = {name: getattr(arguments, f"dask_{name}") for name in DASK_FILES}
    _check_dask(address, files)
    if address is None:
        yield None
        return
    try:
        import distributed
        from distributed.comm.core import CommClosedError
    except ImportError:
        raise missing_extra("--dask needs distributed", "dask") from None
    security = _security(files) if address.startswith("tls://") else None
    try:
        client: Any = distributed.Client(address, timeout=DASK_TIMEOUT, security=security)  # type: ignore[no-untyped-call]
    except CommClosedError as error:
        raise InputError(
            f"--dask: the connection to {address} was closed; expected a scheduler there, with TLS if and only if the "
            f"address begins with tls://, whose certificates are of the same authority as ours: {error}"
        ) from None
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(f"--dask: no scheduler answers at {address}: {error}") from None
    with client:
        yield client.get_executor()


def _check_dask(address: str | None, files: dict[str, str | None]) -> None:
    missing = [f"--dask-{name}" for name, file in files.items() if file is None]
    if len(missing) == len(files):
        return
    if missing:
        raise InputError(f"--dask-ca, --dask-cert, --dask-key: expected all three, {' and '.join(missing)} is missing")
    if address is None or not address.startswith("tls://"):
        raise InputError(f"--dask: expected tls://HOST:PORT together with certificates, got {address or 'nothing'}")


def _security(files: dict[str, str | None]) -> Any:
    """The client's side of TLS, from the files given or else from Dask's own configuration."""
    from distributed.security import Security

    given = {}
    if files["ca"] is not None:
        given = {"tls_ca_file": files["ca"], "tls_client_cert": files["cert"], "tls_client_key": files["key"]}
        for name, file in files.items():
            if not Path(str(file)).is_file():
                raise InputError(f"--dask-{name}: there is no file {file}")
    security: Any = Security(require_encryption=True, **given)  # type: ignore[no-untyped-call]
    try:
        context = security.get_connection_args("client")["ssl_context"]
    except OSError as error:
        raise InputError(
            "--dask-ca, --dask-cert, --dask-key: expected a certificate, a certificate and its private key, "
            f"as PEM files that can be read: {error}"
        ) from None
    if context is None:
        raise InputError("--dask tls://...: needs --dask-ca, --dask-cert and --dask-key (docs/cluster.md makes them)")
    return security


@contextmanager
def _page(out: Path, wanted: bool, control: bool) -> Iterator[None]:
    """One page over all trials; a single trial brings its own."""
    if not wanted:
        yield
        return
    from gibo.web.watch import page_beside

    with page_beside(out, control, trials=True):
        yield


def _parts(title: str) -> Callable[[Standing], list[str]]:
    """What a progress bar says, the most important first."""
    returns: dict[str, float] = {}

    def parts(standing: Standing) -> list[str]:
        steps, told = standing.optimizer.log.iterations, standing.optimizer.log.valued
        for e in standing.arrived:
            if "return" in e.outcome.info:
                value = float(e.outcome.info["return"])
                returns["best"] = max(value, returns.get("best", value))
                if e.kind == "iterate" or not steps:
                    returns["now"] = value
        found = [f"{name} {value:.1f}" for name, value in returns.items()]
        if all(e.value == told[0].value for e in told):  # then a slope is the model's invention
            found += ["all alike"] if len(told) > 1 else []
        elif steps:
            found.append(f"P(ascent) {steps[-1].probability_of_ascent:.2f}")
        return [*found, *([f"{standing.failures} failed"] if standing.failures else []), title]

    return parts


@contextmanager
def _board(arguments: argparse.Namespace, name: str) -> Iterator[Any]:
    """Writes a trial's curves for TensorBoard, where they are wanted."""
    if arguments.tensorboard is None:
        yield None
        return
    from gibo.integrations.tensorboard import TensorBoard

    with TensorBoard(arguments.tensorboard / name) as board:
        yield board


@contextmanager
def like_ctrl_c() -> Iterator[None]:
    """A polite request to end is like Ctrl-C."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
