"""`gibo reproduce` and `gibo figures`: the studies of the paper, which are loaded only when these are called."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

from gibo.cli import look_here, say
from gibo_studies.table import STUDIES

OPTIONS = ("dimensions", "functions", "trials", "budget", "methods", "tasks", "seed", "judge")


def add_commands(commands: Any) -> None:
    study = commands.add_parser(
        "reproduce",
        help="run a study of the paper, or continue it",
        description="Run a study of the paper: data, tables, figures. A second start continues where the first ended.",
    )
    study.set_defaults(run=_reproduce)
    study.add_argument("study", metavar="STUDY", choices=list(STUDIES), help="one of %(choices)s")
    study.add_argument("--out", type=Path, help="folder for the results (default: results/STUDY)")
    study.add_argument("--quick", action="store_true", help="run a small version, in less than a minute")
    study.add_argument("--dimensions", metavar="LIST", help="such as 4,8,12 (default: 4 to 36 by 4)")
    study.add_argument("--functions", type=int, metavar="N", help="per dimension (default: 40)")
    trials = "number of trials of lqr (default: 100) and of Gymnasium studies (default: 10)"
    study.add_argument("--trials", type=int, metavar="N", help=trials)
    study.add_argument("--budget", type=int, metavar="N", help="values per run (default: 300), or episodes per trial")
    methods = 'methods, such as "GIBO;ARS" (default: all); judge: also module:Class'
    study.add_argument("--methods", metavar="LIST", help=methods)
    study.add_argument("--tasks", metavar="LIST", help='for judge: some of its tasks, such as "lag-pi" (default: all)')
    judges = "for judge: coco-noisy, coco, gains, simopt, policies or control"
    study.add_argument("--judge", metavar="NAME", help=judges)
    study.add_argument("--seed", type=int, metavar="N", help="seed of functions and methods (default: 0)")
    study.add_argument("--workers", type=int, metavar="N", help="processes (default: one per core)")
    figures = commands.add_parser("figures", help="draw the figures of a study again, from its saved data")
    figures.set_defaults(run=_figures)
    figures.add_argument("folder", type=Path, metavar="FOLDER")


def _reproduce(arguments: argparse.Namespace) -> int:
    from gibo_studies.command import reproduce

    look_here(arguments.methods or "")
    given = {name: value for name in OPTIONS if (value := getattr(arguments, name)) is not None}
    command = "gibo " + shlex.join(arguments.words)
    return reproduce(arguments.study, arguments.out, arguments.quick, arguments.workers, given, command)


def _figures(arguments: argparse.Namespace) -> int:
    from gibo_studies.command import draw

    for path in draw(arguments.folder):
        say(path)
    return 0
