"""`gibo plot`: runs of any kind as figures."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from gibo.cli import say, trial_folders
from gibo.errors import InputError


def add_commands(commands: Any) -> None:
    """Add this command to the command line."""
    plot = commands.add_parser(
        "plot",
        help="draw one or several runs of any kind",
        description="Draw a run of any kind, also a running one: its values, the model's value of its best "
        "point, the uncertainty of the gradient and the lengthscales. Several RUNs, or the trials of gibo train, are "
        "drawn together, one line each: mean and standard deviation over the trials. With GIBO a line shows "
        "the iterate's evaluations; ARS and CMA-ES never evaluate their iterate, so their line shows the mean of each "
        "iteration's batch.",
    )
    plot.set_defaults(run=_plot)
    plot.add_argument("folders", type=Path, nargs="+", metavar="RUN", help="folder of a run or of gibo train")
    plot.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="write PNG and SVG with this name (default: learning, in the first RUN)",
    )


def _plot(arguments: argparse.Namespace) -> int:
    from gibo.figures.run import journal_figure
    from gibo.figures.training import training_figure

    out = arguments.out or arguments.folders[0] / "learning"
    if out.suffix.lower() not in (".png", ".svg", ""):
        raise InputError(f"--out: expected a name that ends in .png, .svg or nothing, got {out.name!r}")
    folders = list(dict.fromkeys(arguments.folders))
    names = [_name(folder) for folder in folders]
    if len(set(names)) < len(names):
        names = [str(folder) for folder in folders]
    runs = {name: trial_folders(folder) for name, folder in zip(names, folders, strict=True)}
    trials = [trial for found in runs.values() for trial in found]
    for path in journal_figure(trials[0], out) if len(trials) == 1 else training_figure(runs, out):
        say(path)
    return 0


def _name(folder: Path) -> str:
    """The folder's name; for a trial also the name of its run."""
    whole = folder.resolve()
    return f"{whole.parent.name}/{whole.name}" if whole.name.startswith("trial-") else whole.name
