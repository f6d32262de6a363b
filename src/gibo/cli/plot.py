"""`gibo plot`: learning curves of runs of `gibo train`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from gibo.cli import say
from gibo.cli.train import trial_folders
from gibo.errors import InputError


def add_commands(commands: Any) -> None:
    """Add this command to the command line."""
    plot = commands.add_parser(
        "plot",
        help="draw learning curves of runs of gibo train",
        description="Draw learning curves of runs of gibo train, one line each, also while they are running: mean and "
        "standard deviation over the trials. With GIBO a curve shows the iterate's own episodes; ARS and CMA-ES never "
        "evaluate their iterate, so theirs shows the mean return of each iteration's batch.",
    )
    plot.set_defaults(run=_plot)
    plot.add_argument("folders", type=Path, nargs="+", metavar="RUN", help="of gibo train, or one of its trials")
    plot.add_argument(
        "--out", type=Path, metavar="FILE", help="PNG and SVG of this name (default: learning, in the first RUN)"
    )


def _plot(arguments: argparse.Namespace) -> int:
    from gibo.figures.training import training_figure

    out = arguments.out or arguments.folders[0] / "learning"
    if out.suffix.lower() not in (".png", ".svg", ""):
        raise InputError(f"--out: expected a name that ends in .png, .svg or nothing, got {out.name!r}")
    folders = list(dict.fromkeys(arguments.folders))
    names = [_name(folder) for folder in folders]
    if len(set(names)) < len(names):
        names = [str(folder) for folder in folders]
    runs = {name: trial_folders(folder) for name, folder in zip(names, folders, strict=True)}
    for path in training_figure(runs, out):
        say(path)
    return 0


def _name(folder: Path) -> str:
    """The folder's own name; of a trial, its run's too."""
    whole = folder.resolve()
    return f"{whole.parent.name}/{whole.name}" if whole.name.startswith("trial-") else whole.name
