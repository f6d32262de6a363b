"""Two places to evaluate: a cheap simulator, and the machine whose objective counts.

Symbols: c_S, c_M the costs of an evaluation; α_S, α_M the Gradient Information (`gibo.acquisition.information`) of the
most informative query at either source about the gradient of the machine's objective; the model is that of `gibo.gap`.

    1. The start is evaluated on the machine.
    2. An iteration (the iterate and its queries) is evaluated in the simulator if α_S/c_S > α_M/c_M, and if all
       evaluations of the simulator then cost at most as much as those of the machine so far; otherwise on the machine.
       The first iteration on the machine after some in the simulator is the iterate alone, to see whether the simulator
       led to a better point.
    3. The next iterate is the maximum of the machine's lower confidence bound in the box, as without sources, or the
       point evaluated on the machine that has the highest one, if this is higher: so the search returns from a region
       that looked good only in the simulator.
    4. After each iteration on the machine the simulator is used further only if it makes the machine's values likelier:

           log p(y_M | y_S) > log p(y_M),

       on the left with the MAP hyperparameters of both sources, on the right with these or with those of the machine
       alone, whichever is more. Otherwise the model has the machine's values alone, as without sources.

Observed gradients are not used.
α does not depend on values, so that the queries of an iteration may all run at once. Reference: CAGES (arXiv
2405.07760) for the gradient's information per cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gibo._checks import as_list, positive, shown
from gibo._linalg import Array
from gibo._serialize import Serializable
from gibo.errors import InputError
from gibo.gap import MACHINE, SIMULATOR, GapTerm
from gibo.means import Fitted, Mean
from gibo.optimizers.log import Log
from gibo.optimizers.settings import Settings
from gibo.outcome import Evaluation, Outcome, Query, as_name
from gibo.priors import LogNormal, Prior

Surrogate = Any  # of `gibo.optimizers.model`, which imports this module
# Number of values of the machine from which on hyperparameters are fitted to them alone.
LEAST_ALONE = 4
# Priors of the hyperparameters of `gibo.gap`: shift and share as shares of the variance of the values. The noise of the
# simulator has the prior of the machine's.
GAP_PRIORS: dict[str, Prior] = {
    "shift": LogNormal(1.0, 1.5),
    "share": LogNormal(0.3, 1.0),
    "factor": LogNormal(1.0, 0.7),
    "simulator_noise": LogNormal(1.0, 1.5),
}


@dataclass(frozen=True)
class Sources(Serializable):
    """The two sources of evaluations.

    Args:
        costs: the cost of an evaluation by the source's name, ``{"simulator": 1, "robot": 50}``. The objective of the
            more expensive one, the machine, is the one to maximise.

    Example:
        >>> sources = Sources({"simulator": 1, "robot": 50})
        >>> sources.machine, sources.simulator, sources.ratio
        ('robot', 'simulator', 50.0)
    """

    costs: Any

    def __post_init__(self) -> None:
        what = 'costs by name, such as {"simulator": 1, "robot": 50}'
        given = self.costs.items() if isinstance(self.costs, Mapping) else self.costs
        pairs = [as_list("sources", pair, what) for pair in as_list("sources", given, what)]
        if any(len(pair) != 2 for pair in pairs):
            raise InputError(f"sources: expected {what}")
        costs = {as_name("sources", name, "a name"): cost for name, cost in pairs}
        if len(costs) != 2 or len(pairs) != 2:
            raise InputError(f"sources: expected two sources, a simulator and a machine, got {shown(list(costs))}")
        checked = sorted((positive(f"sources: {name}", cost), name) for name, cost in costs.items())
        if checked[0][0] == checked[1][0]:
            raise InputError("sources: the more expensive source is the machine; expected different costs")
        object.__setattr__(self, "costs", tuple((name, cost) for cost, name in checked))

    @property
    def simulator(self) -> str:
        """The name of the cheap source."""
        return str(self.costs[0][0])

    @property
    def machine(self) -> str:
        """The name of the expensive source, whose objective counts."""
        return str(self.costs[1][0])

    @property
    def ratio(self) -> float:
        """The number of evaluations of the simulator that cost as much as one of the machine."""
        return float(self.costs[1][1] / self.costs[0][1])

    @property
    def priors(self) -> Mapping[str, Prior]:
        """The priors of the hyperparameters of `gibo.gap`."""
        return GAP_PRIORS

    def term(self, hyperparameters: Mapping[str, float], numbers: Array) -> GapTerm:
        """The model's gap."""
        return GapTerm(**hyperparameters)

    def to_come(
        self, known: Sequence[Evaluation], pending: Sequence[Query], here: str | float | None
    ) -> tuple[float | None, list[float | None]]:
        """The source of the next queries and of the pending ones."""
        return self.number(here), self.numbers(pending).tolist()

    def number(self, source: str | float | None) -> float:
        """A source in `gibo.gap`."""
        return SIMULATOR if source == self.simulator else MACHINE

    def numbers(self, known: Sequence[Evaluation | Query]) -> Array:
        """The source (n,) of each in `gibo.gap`."""
        return np.array([self.number(each.source) for each in known], dtype=np.float64)

    def of_machine(self, evaluations: Sequence[Evaluation]) -> list[Evaluation]:
        """Those of the machine."""
        return [e for e in evaluations if e.source != self.simulator]

    def can_afford(self, log: Log, more: int) -> bool:
        """Whether all evaluations of the simulator, with so many more, cost at most as much as the machine's."""
        known: list[Evaluation | Query] = [*log.evaluations.values(), *log.pending.values()]
        simulated = int(self.numbers(known).sum())
        return simulated + more <= self.ratio * (len(known) - simulated)

    def check(self, settings: Settings, limited: bool) -> None:
        """Check that the other options can be combined with sources."""
        with_it = {
            "limits": limited,
            "blocks": settings.blocks is not None,
            "drift": settings.drift,
            "standardize=False": not settings.standardize,
            f"fit_at={settings.fit_at!r}": settings.fit_at != "step",
            "a mean that is a function": isinstance(settings.mean, (Mean, Fitted)),
        }
        for name, chosen in with_it.items():
            if chosen:
                raise InputError(f"sources: cannot be combined with {name}; choose one of them")

    def check_outcome(self, query: Query, outcome: Outcome) -> None:
        """Check that a query was evaluated where it should be; own points of the user belong to the machine."""
        expected = query.source or self.machine
        if outcome.source not in (None, expected):
            raise InputError(f"source: expected {expected!r} for query {query.id}, got {shown(outcome.source)}")


def aligned(y: Array, sources: Array, X: Array) -> Array:
    """The values (n,) at X (n, d), with the simulator's shifted to the machine's level.

    The level is compared at the points where both were evaluated, such as the start; without any, by the means.
    """
    simulated = sources == SIMULATOR
    if simulated.all() or not simulated.any():
        return y
    real = {X[i].tobytes(): y[i] for i in np.flatnonzero(~simulated)}
    known = [real[X[i].tobytes()] - y[i] for i in np.flatnonzero(simulated) if X[i].tobytes() in real]
    shift = np.mean(known) if known else y[~simulated].mean() - y[simulated].mean()
    return np.where(simulated, y + shift, y)


def fit_sources(surrogate: Surrogate, evaluations: Sequence[Evaluation], sources: Sources) -> Surrogate:
    """The fit to both sources, or to the machine alone; see the module's docstring."""
    machine = sources.of_machine(evaluations)
    if len(machine) == len(evaluations):
        return surrogate.fit(evaluations)
    both = replace(surrogate, groups=sources).fit(evaluations)
    if not machine or machine[-1].id < max(e.id for e in evaluations):
        return both  # after an iteration in the simulator
    with_simulator = both.given(evaluations)
    alone = replace(surrogate, groups=None)
    evidence = [with_simulator.of_source(MACHINE).evidence]
    if len(machine) >= LEAST_ALONE:
        alone = alone.fit(machine)
        evidence.append(alone.given(machine).evidence)
    return both if with_simulator.evidence_of_machine > max(evidence) else alone
