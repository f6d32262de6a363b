"""Further data of evaluations for a model: their noise, and the groups that they belong to.

Noise: a value that is the mean of r repeats has the noise variance ``noise/r``, where `noise` is the model's
hyperparameter. A value with a known noise variance v has exactly this variance, ``v/spread²`` in the model.

Groups have a common shift (`gibo.blocks`): each evaluation has a number, and evaluations with equal numbers are one
group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from gibo._linalg import Array
from gibo.blocks import BlockTerm
from gibo.errors import InputError
from gibo.gp import GaussianProcess
from gibo.optimizers.settings import Settings
from gibo.outcome import Evaluation, Outcome, Query
from gibo.priors import LogNormal, Prior

# Priors of the block term: shift as a share of the values' variance, share of the objective's variance, and the
# timescale of a drift in evaluations.
BLOCK_PRIORS: dict[str, Prior] = {"shift": LogNormal(0.3, 1.5), "share": LogNormal(0.1, 1.5)}
DRIFT_PRIORS: dict[str, Prior] = {**BLOCK_PRIORS, "timescale": LogNormal(200.0, 1.0)}
# The number of a block that no evaluation has had. Those that are shared have numbers from 0 on, and others whole ones.
NEW_BLOCK = -0.5


def noise_of(evaluations: Sequence[Evaluation], spread: float) -> dict[str, Array]:
    """``noise_scale`` and ``known_noise`` of `GaussianProcess.condition`."""
    scale = np.array([1.0 / e.repeats if e.noise is None else 0.0 for e in evaluations])
    known = np.array([e.noise or 0.0 for e in evaluations])
    return {"noise_scale": scale, "known_noise": known / spread**2}


def expecting_usual_noise(gp: GaussianProcess) -> GaussianProcess:
    """The posterior, with the median noise of the present values expected for further values."""
    data = gp.observations
    if data is None or not gp.n or ((data.noise_scale == 1.0) & (data.known_noise == 0.0)).all():
        return gp
    return replace(gp, noise=float(np.median(gp.noise * data.noise_scale + data.known_noise)))


class Groups(Protocol):
    """Groups of evaluations: `Blocks`, `Drift`, or `gibo.optimizers.sources.Sources`."""

    @property
    def priors(self) -> Mapping[str, Prior]:
        """The priors of the term's hyperparameters."""

    def term(self, hyperparameters: Mapping[str, float], numbers: Array) -> BlockTerm:
        """The model's term for groups with these numbers."""

    def numbers(self, known: Sequence[Evaluation]) -> Array:
        """The group (n,) of each evaluation."""

    def to_come(
        self, known: Sequence[Evaluation], pending: Sequence[Query], here: str | float | None
    ) -> tuple[float | None, list[float | None]]:
        """The groups of the next queries, whose block or source is `here`, and of the pending ones."""


@dataclass(frozen=True)
class Blocks:
    """Evaluations of the same `Evaluation.block` share a number, others have one of their own.

    With ``Settings.blocks="iteration"`` the block of an iteration's queries is their seed.
    """

    priors = BLOCK_PRIORS

    def term(self, hyperparameters: Mapping[str, float], numbers: Array) -> BlockTerm:
        return BlockTerm(**hyperparameters)

    def numbers(self, known: Sequence[Evaluation | Query]) -> Array:
        seen: dict[str | float, int] = {}
        blocks = [-1.0 - e.id if e.block is None else float(seen.setdefault(e.block, len(seen))) for e in known]
        return np.array(blocks)

    def to_come(
        self, known: Sequence[Evaluation], pending: Sequence[Query], here: str | float | None
    ) -> tuple[float | None, list[float | None]]:
        both: list[Evaluation | Query] = [*known, *pending]
        numbers = self.numbers(both).tolist()
        same = [number for each, number in zip(both, numbers, strict=True) if here is not None and each.block == here]
        return (same[0] if same else NEW_BLOCK), numbers[len(known) :]


@dataclass(frozen=True)
class Drift:
    """The numbers are times: the evaluations' ids or, if `given`, their blocks, in units of one evaluation."""

    given: bool

    priors = DRIFT_PRIORS

    def term(self, hyperparameters: Mapping[str, float], numbers: Array) -> BlockTerm:
        return BlockTerm(**hyperparameters, now=float(numbers.max()) if len(numbers) else 0.0)

    def numbers(self, known: Sequence[Evaluation]) -> Array:
        if not self.given:
            return np.array([float(e.id) for e in known])
        times = np.array([float(e.block or 0.0) for e in known])
        if not len(times):
            return times
        late = np.sort(times)[len(times) // 2 :]  # the start may be much older than the window
        unit = float(late[-1] - late[0]) / max(len(late) - 1, 1)
        return times / unit if unit > 0.0 else times

    def to_come(
        self, known: Sequence[Evaluation], pending: Sequence[Query], here: str | float | None
    ) -> tuple[float | None, list[float | None]]:
        return None, [None] * len(pending)  # they happen now


def groups_of(settings: Settings) -> Groups | None:
    """The groups that the settings ask for."""
    if settings.drift:
        return Drift(settings.blocks == "given")
    return None if settings.blocks is None else Blocks()


def check_time(query: Query, outcome: Outcome) -> None:
    """Check that a value has its time, where the user gives the times of a drift."""
    if (outcome.block is None and outcome.value is not None) or isinstance(outcome.block, str):
        raise InputError(
            "block: with drift=True and blocks='given' each value needs a number as its block, its time; "
            f"that of query {query.id} has {outcome.block!r}"
        )
