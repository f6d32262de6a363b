"""What restricts a search on a machine: limits, failures, whole numbers, two sources.

`gibo.optimizers.gibo.GIBO` derives from `RestrictedSearch` and calls it where an option restricts the search.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gibo._linalg import Array
from gibo.acquisition.confidence import LowerConfidenceBound
from gibo.acquisition.information import GradientInformation
from gibo.errors import InputError
from gibo.gp import GaussianProcess
from gibo.optimizers.limits import CAREFUL_WIDTH, LimitModels, Limits
from gibo.optimizers.log import Log
from gibo.optimizers.model import Surrogate
from gibo.optimizers.model_based import ModelBased
from gibo.optimizers.region import Region
from gibo.optimizers.sources import Sources
from gibo.outcome import EXTERNAL, ITERATE, QUERY, Evaluation, Outcome, Query

# If rounding maps a query onto the iterate, it moves out by these factors.
FARTHER = (2.0, 4.0)


class RestrictedSearch(ModelBased):
    """Base of a local search with restrictions; see the module's docstring. Its constructor calls `_restrict`."""

    def _restrict(
        self, limits: Limits | Mapping[str, Any] | None, sources: Sources | Mapping[str, float] | None
    ) -> None:
        """Set what restricts the search; see `gibo.GIBO`."""
        self.sources = sources if isinstance(sources, Sources) or sources is None else Sources(sources)
        if self.sources is not None:
            self.sources.check(self.settings, limited=limits is not None)
            self.outcome_checks.append(self.sources.check_outcome)
            self.log = Log(self.sources.simulator)
            self._surrogate = Surrogate.initial(self.settings, self.scale, self.sources)
        self.limits = limits if isinstance(limits, Limits) or limits is None else Limits(limits)
        self._limit_models = LimitModels(None, {}, self.settings.kernel, self.scale)
        self._is_careful = self.limits is not None and self.limits.careful
        if self.limits is not None:
            self._limit_models = LimitModels.initial(self.limits, self.settings, self.scale)
            self.outcome_checks.append(self._check_measured)
        if self._is_careful:
            self._widest = CAREFUL_WIDTH

    @abstractmethod
    def _most_informative(self, information: GradientInformation, count: int) -> Array:
        """Up to `count` queries in the box, in z, without restrictions."""

    @abstractmethod
    def _information(self, iterate_comes: bool) -> GradientInformation:
        """The Gradient Information at the iterate, given all evaluations that the next move will use."""

    # -- limits and failures ------------------------------------------------------------------------------------------

    def limits_at(self, x: Array) -> dict[str, float]:
        """The model's probability of each limit at x (d,), by the name of its quantity."""
        if self.limits is None:
            return {}
        region = self._region()
        probabilities = {} if region is None else region.probabilities(x / self.scale)
        return {name: probabilities.get(name, math.nan) for name in self.limits.names}

    def violated_at_start(self) -> list[str]:
        if self.limits is None or self.limits.careful:  # a careful search refuses such a start
            return []
        start = self._start()
        return [] if start is None else self.limits.violations(start.measured)

    def within_limits(self, e: Evaluation) -> bool:
        return self.limits is None or not self.limits.violations(e.measured)

    def _check_measured(self, query: Query, outcome: Outcome) -> None:
        if self.limits is not None and query.kind != EXTERNAL:
            self.limits.check_measured(outcome)

    def _seen(self) -> list[Evaluation]:
        """The data of the models of limits and failures: the start and the last N_m evaluations, including failures."""
        N_m, start = self._sizes.N_m, self._start()
        seen = [e for e in self.evaluations if self.sources is None or e.source != self.sources.simulator][-N_m:]
        return seen if start is None or start in seen else [start, *seen]

    def _region(self, limited: bool = True) -> Region | None:
        """The region in which evaluations should not fail and, if `limited`, the limits should hold."""
        if self.limits is None and not self.log.has_failures:
            return None
        return self._limit_models.region(self._seen(), self._surrogate.hyperparameters.lengthscale, limited)

    def _most_informative_within(self, region: Region, information: GradientInformation, count: int) -> Array:
        """The queries (count, d) where evaluations should not fail; careful queries also keep to the limits."""
        box, t, ell = self._box(), self._iterate / self.scale, self._surrogate.hyperparameters.lengthscale
        Z: list[Array] = []
        for _ in range(count):
            (z,) = self._most_informative(information, 1)
            Z.append(region.replaced(information, z, t, *box, ell, mirrors=self._is_careful))
            information = information.extend(Z[-1])
        return np.array(Z)

    def _highest_within(
        self, region: Region, gp: GaussianProcess, z: Array, lower: Array, upper: Array, beta: float
    ) -> Array:
        """z; if it is outside the region, the point with the highest lower confidence bound within, in the box."""
        if region.slack(z[None])[0] >= 0.0:
            return z
        X = np.empty((0, self.d)) if gp.observations is None else gp.observations.X
        candidates = np.array([self._iterate / self.scale, *X[((lower <= X) & (upper >= X)).all(axis=1)]])
        bound, ell = LowerConfidenceBound(gp, beta), gp.kernel.ell(self.d)
        return region.highest(bound, np.clip(z, lower, upper), candidates, lower, upper, ell)

    # -- careful ------------------------------------------------------------------------------------------------------

    def _has_queries_left(self, batch: list[Evaluation]) -> bool:
        """Whether queries of an iteration of a careful search are to come: it has several batches in one. It leaves an
        iterate that violates a limit."""
        M, M_first, *_ = self._sizes
        if self._iteration > self.begun and not all(self.within_limits(e) for e in batch if e.kind == ITERATE):
            return False
        return sum(e.kind == QUERY for e in batch) < (M if self._iteration else M_first)

    def _check_careful_start(self) -> None:
        """Check that the start of a careful search satisfies the limits, once it is evaluated."""
        if self.limits is None or self._iteration > self.begun:
            return
        start = next(e for e in self.log.of_iteration(self._iteration) if e.kind == ITERATE)
        failed = [f"its evaluation failed ({start.failure})"]
        why = failed if start.failure is not None else self.limits.violations(start.measured)
        if why:
            raise InputError(
                f"careful: the start must satisfy all limits, but {', '.join(why)}. Begin at a point that satisfies "
                "them, or use careful=False, so that the search may look for such a point"
            )

    # -- sources ------------------------------------------------------------------------------------------------------

    def _source_and_count(self, sources: Sources) -> tuple[str, int]:
        """Where this iteration is evaluated, and the number of its queries; see `gibo.optimizers.sources`."""
        M, M_first, *_ = self._sizes
        self._at = sources.machine
        known = self.evaluations
        on_machine = sources.of_machine(known)
        if not self.log.valued:
            return sources.machine, M_first if on_machine else 0  # the start alone, unless it failed
        if self._surrogate.uses_simulator and sources.can_afford(self.log, M_first + 1):
            information = self._information(iterate_comes=False)
            worth = {}
            for name, cost in sources.costs:
                at_source = information.in_block(sources.number(name))
                z = self._most_informative(at_source, 1)
                worth[name] = float(np.asarray(at_source(z))[0]) / cost
            if worth[sources.simulator] > worth[sources.machine]:
                return sources.simulator, M_first
        if len(on_machine) == 1 and len(known) > 1:
            return sources.machine, 0  # a look at where the simulator led
        is_known = self._surrogate.uses_simulator or any(e.kind == QUERY for e in on_machine)
        return sources.machine, M if is_known else M_first

    def _or_return(self, gp: GaussianProcess, z: Array, beta: float) -> Array:
        """z, or the point evaluated on the machine that has a higher lower confidence bound."""
        Z = np.array([z, *(e.x / self.scale for e in self._window())])
        return np.asarray(Z[int(LowerConfidenceBound(gp, beta)(Z).argmax())])

    # -- whole numbers ------------------------------------------------------------------------------------------------

    def _apart(self, x: Array) -> Array:
        """Move a query farther out if rounding whole numbers maps it onto the iterate."""
        y, here = self.evaluated(x), self.evaluated(self._iterate)
        for k in FARTHER:
            same = (y == here) & (y != self.clip(x))
            y = np.where(same, self.evaluated(np.where(same, self._iterate + k * (x - self._iterate), x)), y)
        return y

    def _used_again(self) -> Sequence[Evaluation]:
        last = self._last_iterate()
        seen = self._seen() if self.limits is not None or self.log.has_failures else []
        return [*super()._used_again(), *([] if last is None else [last]), *seen]
