"""`gibo noise`: the share of an objective's noise that is common to all evaluations with one seed."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from gibo._checks import as_vector, describe_error, finite, positive
from gibo._linalg import Array
from gibo.cli import look_here, numbers, say
from gibo.errors import InputError

# From this share on, one seed for all queries of an iteration is better than one seed per query.
WORTH_SHARING = 0.5


def add_commands(commands: Any) -> None:
    """Add this command to the command line."""
    noise = commands.add_parser(
        "noise",
        help="measure the share of an objective's noise that is common to a seed",
        description="Evaluate a few points near the start, each with the same few seeds, and say which share of the "
        "noise's variance is common to a seed, and whether Settings(blocks='iteration') is worth a try. The objective "
        "takes a vector and seed, and returns a number.",
    )
    noise.set_defaults(run=_noise)
    noise.add_argument("objective", metavar="MODULE:FUNCTION")
    noise.add_argument("--x0", required=True, metavar="LIST", help="the start, such as --x0=-0.5,1,2")
    noise.add_argument("--scale", type=float, default=1.0, metavar="X", help="the scale of the search (default: 1)")
    noise.add_argument("--points", type=int, default=4, metavar="N", help="(default: 4)")
    noise.add_argument("--seeds", type=int, default=8, metavar="N", help="(default: 8)")


def common_share(values: Array) -> tuple[float, float]:
    """The share of the noise's variance that is common to a seed, and the noise's standard deviation.

    Args:
        values: (points, seeds), at least two of each. With ``value = point + seed + rest`` the variances of seed and
            rest are those of an analysis of variance: ``(MS_seed − MS_rest)/points`` and ``MS_rest``.
    """
    p, s = values.shape
    of_seeds = values.mean(axis=0) - values.mean()
    rest = values - values.mean(axis=1, keepdims=True) - of_seeds
    ms_seed, ms_rest = p * float(of_seeds @ of_seeds) / (s - 1), float((rest**2).sum()) / ((p - 1) * (s - 1))
    common = max(0.0, (ms_seed - ms_rest) / p)
    total = common + ms_rest
    return (common / total if total > 0.0 else 0.0), total**0.5


def _noise(arguments: argparse.Namespace) -> int:
    from gibo._plugins import load

    look_here(arguments.objective)
    objective = load("objective", arguments.objective)
    x0 = as_vector("--x0", numbers("--x0", arguments.x0))
    for name in ("points", "seeds"):
        if not 2 <= getattr(arguments, name) <= 1000:
            raise InputError(f"--{name}: expected 2 to 1000, got {getattr(arguments, name)}")
    scale = positive("--scale", arguments.scale)
    steps = np.random.default_rng(0).normal(size=(arguments.points, len(x0)))
    points = x0 + 0.5 * scale * steps
    values = np.array([[_value(objective, x, seed) for seed in range(arguments.seeds)] for x in points])
    share, deviation = common_share(values)
    if deviation == 0.0:
        say("No noise: the values do not depend on the seed.")
        return 0
    say(f"The noise has the standard deviation {deviation:.3g}; {share:.0%} of its variance is common to a seed.")
    if share >= WORTH_SHARING:
        say("Settings(blocks='iteration') is worth a try: the queries of an iteration then share one seed.")
    else:
        say("Leave the seeds as they are: each query has its own.")
    return 0


def _value(objective: Any, x: Array, seed: int) -> float:
    try:
        found = objective(x.copy(), seed=seed)
    except Exception as error:  # the objective may raise anything
        raise InputError(f"objective: at seed {seed} it raised {describe_error(error)}") from error
    return finite(f"the objective's value at seed {seed}", getattr(found, "value", found))
