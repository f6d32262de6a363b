"""Further data of evaluations for a model: their noise, and their blocks or times.

Noise: a value that is the mean of r repeats has the noise variance ``noise/r``, where `noise` is the model's
hyperparameter. A value with a known noise variance v has exactly this variance, ``v/spread²`` in the model.

Blocks (`gibo.blocks`): a number for each evaluation. Those of the same `Evaluation.block` share one, others have one of
their own. With ``Settings.blocks="iteration"`` the block of an iteration's queries is their seed.
With ``Settings.drift`` the numbers are times: the evaluations' ids, or the blocks that were given, in units of one
evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gibo._linalg import Array
from gibo.blocks import BlockTerm
from gibo.errors import InputError
from gibo.gap import GapTerm
from gibo.gp import GaussianProcess
from gibo.optimizers.settings import Settings
from gibo.outcome import Evaluation, Outcome, Query
from gibo.priors import LogNormal, Prior

# Priors of the block term: shift as a share of the values' variance, share of the objective's variance, and the
# timescale of a drift in evaluations.
BLOCK_PRIORS: dict[str, Prior] = {"shift": LogNormal(0.3, 1.5), "share": LogNormal(0.1, 1.5)}
DRIFT_PRIORS: dict[str, Prior] = {
    "shift": LogNormal(0.3, 1.5),
    "share": LogNormal(0.1, 1.5),
    "timescale": LogNormal(200.0, 1.0),
}
# The number of a block that no evaluation has had. Those that are shared have numbers from 0 on, and others whole ones.
NEW_BLOCK = -0.5


def noise_of(evaluations: Sequence[Evaluation], spread: float) -> dict[str, Array]:
    """``noise_scale`` and ``known_noise`` of `GaussianProcess.condition`; empty if all values have the usual noise."""
    if all(e.noise is None and e.repeats == 1 for e in evaluations):
        return {}
    scale = np.array([1.0 / e.repeats if e.noise is None else 0.0 for e in evaluations])
    known = np.array([e.noise or 0.0 for e in evaluations])
    return {"noise_scale": scale, "known_noise": known / spread**2}


def can_be_warped(evaluations: Sequence[Evaluation]) -> bool:
    """Whether values can be warped: a known noise variance belongs to unwarped values."""
    return all(e.noise is None for e in evaluations)


def expecting_usual_noise(gp: GaussianProcess) -> GaussianProcess:
    """The posterior, with the median noise of the present values expected for further values."""
    data = gp.observations
    if data is None or not gp.n or ((data.noise_scale == 1.0) & (data.known_noise == 0.0)).all():
        return gp
    return replace(gp, noise=float(np.median(gp.noise * data.noise_scale + data.known_noise)))


def block_priors(settings: Settings) -> dict[str, Prior]:
    """The priors of the block term's hyperparameters; empty without a block term."""
    return DRIFT_PRIORS if settings.drift else BLOCK_PRIORS if settings.blocks is not None else {}


def block_term(hyperparameters: dict[str, float], now: float) -> BlockTerm | None:
    """The model's block term, or gap, with these hyperparameters."""
    if not hyperparameters:
        return None
    if "factor" in hyperparameters:
        return GapTerm(**hyperparameters)
    return BlockTerm(**hyperparameters, now=now if "timescale" in hyperparameters else None)


def blocks_of(evaluations: Sequence[Evaluation], settings: Settings) -> Array | None:
    """The block or time (n,) of each evaluation; None for a model without a block term."""
    if settings.drift:
        return _times(evaluations, settings)
    return None if settings.blocks is None else _numbers(evaluations)


def blocks_to_come(
    evaluations: Sequence[Evaluation], pending: Sequence[Query], block: str | float | None, settings: Settings
) -> tuple[float | None, list[float | None]]:
    """The block numbers of the next queries and of the pending queries.

    None without blocks, and with a drift, because future evaluations happen now.
    """
    if settings.drift or settings.blocks is None:
        return None, [None] * len(pending)
    known: list[Evaluation | Query] = [*evaluations, *pending]
    numbers = _numbers(known).tolist()
    same = [number for each, number in zip(known, numbers, strict=True) if block is not None and each.block == block]
    return (same[0] if same else NEW_BLOCK), numbers[len(evaluations) :]


def check_time(query: Query, outcome: Outcome, settings: Settings) -> None:
    """Check that a value has its time, if the user gives the times of a drift."""
    is_missing = outcome.block is None and outcome.value is not None
    if settings.drift and settings.blocks == "given" and (is_missing or isinstance(outcome.block, str)):
        raise InputError(
            "block: with drift=True and blocks='given' each value needs a number as its block, its time; "
            f"that of query {query.id} has {outcome.block!r}"
        )


def _numbers(known: Sequence[Evaluation | Query]) -> Array:
    seen: dict[str | float, int] = {}
    blocks = [-1.0 - e.id if e.block is None else float(seen.setdefault(e.block, len(seen))) for e in known]
    return np.array(blocks)


def _times(evaluations: Sequence[Evaluation], settings: Settings) -> Array:
    if settings.blocks is None:
        return np.array([float(e.id) for e in evaluations])
    times = np.array([float(e.block or 0.0) for e in evaluations])
    if not len(times):
        return times
    late = np.sort(times)[len(times) // 2 :]  # the start may be much older than the window
    unit = float(late[-1] - late[0]) / max(len(late) - 1, 1)
    return times / unit if unit > 0.0 else times
