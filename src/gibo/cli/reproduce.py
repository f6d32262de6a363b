"""`gibo reproduce` and `gibo figures`: the studies of the paper."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibo.errors import InputError

if TYPE_CHECKING:
    from gibo.studies.engine import Study

SYNTHETIC = ("within-model", "out-of-model", "ablation-normalisation", "ablation-sampling")
GYM = ("cartpole", "swimmer", "hopper", "cheetah", "ablation-gym")
STUDIES = (*SYNTHETIC, "illustrations", "lqr", "gradients", *GYM)


def add_commands(commands: Any) -> None:
    """Add these commands to the command line."""
    study = commands.add_parser(
        "reproduce",
        help="run a study of the paper, or continue it",
        description="Run a study of the paper: data, tables, figures. A second start continues where the first ended.",
    )
    study.set_defaults(run=_reproduce)
    study.add_argument("study", choices=STUDIES)
    study.add_argument("--out", type=Path, help="folder for the results (default: results/STUDY)")
    study.add_argument("--quick", action="store_true", help="a small version, in less than a minute")
    study.add_argument("--dimensions", metavar="LIST", help="such as 4,8,12 (default: 4 to 36 by 4)")
    study.add_argument("--functions", type=int, metavar="N", help="per dimension (default: 40)")
    study.add_argument("--trials", type=int, metavar="N", help="of lqr (default: 100) and on Gymnasium (default: 10)")
    study.add_argument("--budget", type=int, metavar="N", help="values per run (default: 300), or episodes per trial")
    study.add_argument("--methods", metavar="LIST", help='separated by semicolons, such as "GIBO;ARS" (default: all)')
    study.add_argument("--seed", type=int, default=0, metavar="N", help="of functions and methods (default: 0)")
    study.add_argument("--workers", type=int, metavar="N", help="processes (default: one per core)")
    figures = commands.add_parser("figures", help="draw the figures of a study again, from its saved data")
    figures.set_defaults(run=lambda arguments: _figures(arguments.folder))
    figures.add_argument("folder", type=Path, metavar="FOLDER")


def _reproduce(arguments: argparse.Namespace) -> int:
    out = arguments.out or Path("results") / (arguments.study + ("-quick" if arguments.quick else ""))
    if arguments.study == "illustrations":
        _refuse(arguments, "dimensions", "functions", "trials", "budget", "methods", "workers")
        return _illustrations(arguments.out or Path("results/illustrations"))
    if arguments.study in GYM:
        return _reproduce_gym(arguments, out)
    if arguments.study == "lqr":
        return _reproduce_lqr(arguments, out)
    if arguments.study == "gradients":
        return _reproduce_gradients(arguments, out)
    _refuse(arguments, "trials")
    from gibo.studies.engine import need, parse_list
    from gibo.studies.figures.studies import study_figures
    from gibo.studies.report import write_report
    from gibo.studies.synthetic import SyntheticStudy

    need("rich", "matplotlib", *(["cma"] if "model" in arguments.study else []))
    study = SyntheticStudy(arguments.study, seed=arguments.seed)
    study = _chosen(study, arguments, {"dimensions": (4, 8), "functions": 3, "budget": 100}, "functions", "budget")
    if arguments.dimensions is not None:
        study = replace(study, dimensions=tuple(parse_list(arguments.dimensions, int, "--dimensions")))
    return _run(
        arguments,
        study,
        out,
        lambda records, footnote: write_report(records, study.methods, out, footnote),
        study_figures,
    )


def _reproduce_gym(arguments: argparse.Namespace, out: Path) -> int:
    from gibo.studies.engine import need
    from gibo.studies.figures.learning import gym_figures
    from gibo.studies.gym import GymStudy
    from gibo.studies.gym_report import write_gym_report

    _refuse(arguments, "dimensions", "functions")
    need("rich", "matplotlib", "gymnasium", *([] if arguments.study == "cartpole" else ["mujoco"]))
    study = GymStudy(arguments.study, out, seed=arguments.seed)
    study = _chosen(study, arguments, {"trials": 2, "budget": 60}, "trials", "budget")
    return _run(
        arguments, study, out, lambda records, footnote: write_gym_report(study, records, out, footnote), gym_figures
    )


def _reproduce_lqr(arguments: argparse.Namespace, out: Path) -> int:
    from gibo.studies.engine import need
    from gibo.studies.figures.lqr import lqr_figures
    from gibo.studies.lqr import LQRStudy
    from gibo.studies.lqr_report import write_lqr_report

    _refuse(arguments, "dimensions", "functions")
    need("rich", "matplotlib")
    study = _chosen(LQRStudy(seed=arguments.seed), arguments, {"trials": 4, "budget": 60}, "trials", "budget")
    return _run(
        arguments, study, out, lambda records, footnote: write_lqr_report(study, records, out, footnote), lqr_figures
    )


def _reproduce_gradients(arguments: argparse.Namespace, out: Path) -> int:
    from gibo.studies.engine import need
    from gibo.studies.figures.gradients import gradient_figures
    from gibo.studies.gradients import GradientStudy
    from gibo.studies.gradients_report import write_gradient_report

    _refuse(arguments, "dimensions", "methods", "budget")
    need("rich", "matplotlib", "gymnasium")
    quick = {"trials": 2, "episodes": 40, "functions": 2, "budget": 60}
    study = _chosen(GradientStudy(seed=arguments.seed), arguments, quick, "trials", "functions")
    return _run(
        arguments,
        study,
        out,
        lambda records, footnote: write_gradient_report(study, records, out, footnote),
        gradient_figures,
    )


def _run(
    arguments: argparse.Namespace,
    study: Study,
    out: Path,
    report: Callable[[list[Any], str], str],
    figures: Callable[[Path], list[Path]],
) -> int:
    """Run what is not finished of a study, and write its table and figures once all of it is."""
    from gibo.studies.engine import cell_bar, run_study

    workers = arguments.workers if arguments.workers is not None else _cores()
    if workers < 1:
        raise InputError(f"--workers: expected at least 1, got {workers}")
    started = time.perf_counter()
    total = len(study.cells())
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        with cell_bar(total) as (bar, notice):
            records, failures, complete = run_study(study, out, workers, bar, notice)
    finally:
        signal.signal(signal.SIGTERM, before)
    minutes = (time.perf_counter() - started) / 60
    for cell, cause in failures:
        print(f"gibo: {' '.join(str(part) for part in cell.values())}: {cause}", file=sys.stderr)
    if not complete:
        print(f"Stopped with {len(records)} of {total} cells in {out}; the same command continues.")
        return 1 if failures else 130
    command = "gibo " + shlex.join(arguments.words)
    spent = sum(record["seconds"] for record in records) / 60
    footnote = f"`{command}`: {total} cells, {spent:.1f} minutes of one core; this start took {minutes:.1f} minutes."
    print(report(records, footnote))
    print(f"Data, table and {len(figures(out))} figures: {out}")
    return 0


def _chosen(study: Any, arguments: argparse.Namespace, quick: dict[str, Any], *names: str) -> Any:
    """The study with what was asked for: its quick version, some of its methods, other numbers of these names."""
    if arguments.quick:
        study = replace(study, **quick)
    if arguments.methods is not None:
        study = replace(study, methods=_methods(arguments.methods, study.methods))
    return replace(study, **{name: value for name in names if (value := getattr(arguments, name)) is not None})


def _refuse(arguments: argparse.Namespace, *names: str) -> None:
    for name in names:
        if getattr(arguments, name) is not None:
            what = "the illustrations have" if arguments.study == "illustrations" else f"{arguments.study} has"
            raise InputError(f"--{name}: {what} no such option")


def _methods(text: str, known: Sequence[str]) -> tuple[str, ...]:
    names = [part.strip() for part in text.split(";") if part.strip()]
    own = {method.lower(): method for method in known}
    return tuple(own.get(name.lower(), name) for name in names or [""])


def _cores() -> int:
    """The cores that this process may use, where the system says so, or all there are."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else (os.cpu_count() or 1)


def _interrupt(number: int, frame: object) -> None:
    """A polite request to end is like Ctrl-C."""
    raise KeyboardInterrupt


def _illustrations(out: Path) -> int:
    from gibo.studies.illustrations import illustration_data

    out.mkdir(parents=True, exist_ok=True)
    (out / "illustrations.json").write_text(json.dumps(illustration_data()) + "\n", encoding="utf-8")
    return _figures(out)


def _figures(folder: Path) -> int:
    from gibo.studies.figures.gradients import gradient_figures
    from gibo.studies.figures.illustrations import illustration_figures
    from gibo.studies.figures.learning import gym_figures
    from gibo.studies.figures.lqr import lqr_figures
    from gibo.studies.figures.studies import study_figures

    saved = folder / "illustrations.json"
    if saved.exists():
        paths = illustration_figures(json.loads(saved.read_text(encoding="utf-8")), folder)
    elif (folder / "returns.csv").exists():
        paths = gym_figures(folder)
    elif (folder / "gradients.csv").exists():
        paths = gradient_figures(folder)
    elif (folder / "costs.csv").exists():
        paths = lqr_figures(folder)
    else:
        paths = study_figures(folder)
    for path in paths:
        print(path)
    return 0
