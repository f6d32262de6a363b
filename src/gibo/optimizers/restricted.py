"""What restricts a search on a machine: limits, failures, a largest step, whole numbers, two sources.

A search derives from `RestrictedSearch` and asks it where it may go. Without these options each answer is the plain
one, so that the search itself reads as if there were none.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gibo._checks import positive
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
from gibo.optimizers.rows import blocks_to_come
from gibo.optimizers.sources import Sources
from gibo.outcome import EXTERNAL, ITERATE, QUERY, SIMULATED, Evaluation, Outcome, Query

# If rounding maps a query onto the iterate, it moves out by these factors.
FARTHER = (2.0, 4.0)


class RestrictedSearch(ModelBased):
    """Base of a local search with restrictions; see the module's docstring. Its constructor calls `_restrict`."""

    def _restrict(
        self,
        limits: Limits | Mapping[str, Any] | None,
        largest_step: float | None,
        sources: Sources | Mapping[str, float] | None,
    ) -> None:
        """Set what restricts the search; see `gibo.GIBO`."""
        self.sources = sources if isinstance(sources, Sources) or sources is None else Sources(sources)
        if self.sources is not None:
            self.sources.check(self.settings, limited=limits is not None)
            self.log = Log(self.sources.simulator)
            self._surrogate = Surrogate.initial(self.settings, self.scale, self.sources)
        self.limits = limits if isinstance(limits, Limits) or limits is None else Limits(limits)
        self.largest_step = None if largest_step is None else positive("largest_step", largest_step)
        self._limit_models = LimitModels.initial(self.limits, self.settings, self.scale)

    @abstractmethod
    def _most_informative(self, information: GradientInformation, count: int) -> Array:
        """Up to `count` queries in the box, in z, without restrictions."""

    @abstractmethod
    def _information(self, iterate_comes: bool) -> GradientInformation:
        """The Gradient Information at the iterate, given all evaluations that the next move will use."""

    # -- what the search asks -----------------------------------------------------------------------------------------

    @property
    def _stays_near(self) -> bool:
        """Whether it must not begin far from its start."""
        return self._is_careful or self.largest_step is not None or self.sources is not None

    def _restricted_count(self, count: int) -> int:
        """The number of the next queries: one if careful; with sources it depends on where they are evaluated."""
        if self.sources is not None:
            self._at, count = self._source_and_count(self.sources)
        return 1 if self._is_careful else count

    def _with_earlier(self, batch: list[Evaluation]) -> list[Evaluation]:
        """The batch; for a careful search, which has several in an iteration, with the earlier ones."""
        if not self._is_careful:
            return batch
        self._limit_models = self._limit_models.fit(self._seen())
        return self.log.of_iteration(self._iteration)

    def _has_queries_left(self, batch: list[Evaluation]) -> bool:
        """Whether queries of this iteration are to come. A careful search leaves an iterate that violates a limit."""
        M, M_first, *_ = self.settings.sizes
        if not self._is_careful:
            return self.sources is None and all(e.kind == ITERATE for e in batch)
        if self._iteration > self.begun and not all(self.within_limits(e) for e in batch if e.kind == ITERATE):
            return False
        return sum(e.kind == QUERY for e in batch) < (M if self._iteration else M_first)

    def _planned(self, information: GradientInformation, count: int) -> Array:
        """The queries (M, d), where evaluations should not fail; careful queries also keep to the limits."""
        box = self._box()
        region = self._region(limited=self._is_careful)
        if region is None:
            return self._most_informative(information, count)
        t, ell, Z = self._iterate / self.scale, self._surrogate.hyperparameters.lengthscale, list[Array]()
        for _ in range(count):
            (z,) = self._most_informative(information, 1)
            Z.append(region.replaced(information, z, t, *box, ell, mirrors=self._is_careful))
            information = information.extend(Z[-1])
        return np.array(Z)

    def _step_box(self) -> tuple[Array, Array]:
        """The box for the move, in z: at most the largest step from the iterate."""
        t, (lower, upper) = self._iterate / self.scale, self._box()
        if self.largest_step is not None:
            lower, upper = np.maximum(lower, t - self.largest_step), np.minimum(upper, t + self.largest_step)
        return lower, upper

    def _admissible(self, gp: GaussianProcess, z: Array, lower: Array, upper: Array) -> Array:
        """z within the largest step; if it is outside the region, the highest point within, in the box of the move."""
        t, beta = self._iterate / self.scale, self.settings.move.beta
        if self.largest_step is not None:
            z = t + (z - t) * min(1.0, self.largest_step / max(float(np.abs(z - t).max()), 1e-300))
        if self.sources is not None:
            z = self._or_return(gp, z, beta)
        region = self._region()
        if region is None or region.slack(z[None])[0] >= 0.0:
            return z
        X = np.empty((0, self.d)) if gp.observations is None else gp.observations.X
        candidates = np.array([t, *X[((lower <= X) & (upper >= X)).all(axis=1)]])
        bound, ell = LowerConfidenceBound(gp, beta), gp.kernel.ell(self.d)
        return region.highest(bound, np.clip(z, lower, upper), candidates, lower, upper, ell)

    @property
    def _widest(self) -> float:
        return CAREFUL_WIDTH if self._is_careful else math.inf

    # -- sources ------------------------------------------------------------------------------------------------------

    def _next_batch(self) -> list[tuple[Array, str]]:
        batch = super()._next_batch()
        is_simulated = self.sources is not None and self._at == self.sources.simulator
        return [(x, SIMULATED) for x, _ in batch] if is_simulated else batch

    def _blocks_to_come(
        self, window: Sequence[Evaluation], pending: Sequence[Query]
    ) -> tuple[float | None, list[float | None]]:
        """The numbers of the blocks, or sources, of the next queries and of the pending ones."""
        if self.sources is None:
            return blocks_to_come(window, pending, self._block(), self.settings)
        return self.sources.number(self._at), self.sources.numbers(pending).tolist()

    def _source_and_count(self, sources: Sources) -> tuple[str, int]:
        """Where this iteration is evaluated, and the number of its queries; see `gibo.optimizers.sources`."""
        M, M_first, *_ = self.settings.sizes
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

    # -- limits and failures ------------------------------------------------------------------------------------------

    def limits_at(self, x: Array) -> dict[str, float]:
        """The model's probability of each limit at x (d,), by the name of its quantity."""
        region = None if self.limits is None else self._region()
        probabilities = {} if region is None else region.probabilities(x / self.scale)
        return {name: probabilities.get(name, math.nan) for name in ([] if self.limits is None else self.limits.names)}

    def violated_at_start(self) -> list[str]:
        start = self._start()
        if self.limits is None or self.limits.careful or start is None:  # a careful search refuses such a start
            return []
        return self.limits.violations(start.measured)

    def check_outcome(self, query: Query, outcome: Outcome) -> None:
        super().check_outcome(query, outcome)
        if self.sources is not None:
            self.sources.check_outcome(query, outcome)
        if self.limits is not None and query.kind != EXTERNAL:
            self.limits.check_measured(outcome)

    def within_limits(self, e: Evaluation) -> bool:
        return self.limits is None or not self.limits.violations(e.measured)

    def _seen(self) -> list[Evaluation]:
        """The data of the models of limits and failures: the start and the last N_m evaluations, including failures."""
        N_m, start = self.settings.sizes[2], self._start()
        seen = [e for e in self.evaluations if self.sources is None or e.source != self.sources.simulator][-N_m:]
        return seen if start is None or start in seen else [start, *seen]

    @property
    def _models_limits(self) -> bool:
        return self.limits is not None or self.log.has_failures

    def _region(self, limited: bool = True) -> Region | None:
        """The region in which evaluations should not fail and, if `limited`, the limits should hold."""
        if not self._models_limits:
            return None
        return self._limit_models.region(self._seen(), self._surrogate.hyperparameters.lengthscale, limited)

    def _fit(self) -> None:
        super()._fit()
        if self.limits is not None and not self._is_careful:  # whose models are fitted after each evaluation
            self._limit_models = self._limit_models.fit(self._seen())

    @property
    def _is_careful(self) -> bool:
        return self.limits is not None and self.limits.careful

    def _check_careful_start(self) -> None:
        """Check that the start of a careful search satisfies the limits, once it is evaluated."""
        if not self._is_careful or self._iteration > self.begun:
            return
        start = next(e for e in self.log.of_iteration(self._iteration) if e.kind == ITERATE)
        why = [f"its evaluation failed ({start.failure})"]
        if start.failure is None and self.limits is not None:
            why = self.limits.violations(start.measured)
        if why:
            raise InputError(
                f"careful: the start must satisfy all limits, but {', '.join(why)}. Begin at a point that satisfies "
                "them, or use careful=False, so that the search may look for such a point"
            )

    # -- special cases ------------------------------------------------------------------------------------------------

    def _apart(self, x: Array) -> Array:
        """Move a query farther out if rounding whole numbers maps it onto the iterate."""
        if self.rounding is None:
            return x
        y, here = self.evaluated(x), self.evaluated(self._iterate)
        for k in FARTHER:
            same = (y == here) & (y != self.clip(x))
            y = np.where(same, self.evaluated(np.where(same, self._iterate + k * (x - self._iterate), x)), y)
        return y

    def _used_again(self) -> Sequence[Evaluation]:
        last = self._last_iterate()
        seen = self._seen() if self._models_limits else []
        return [*super()._used_again(), *([] if last is None else [last]), *seen]

    # -- memo ---------------------------------------------------------------------------------------------------------

    def _memo(self) -> dict[str, Any]:
        return {**super()._memo(), **({} if self.limits is None else self._limit_models.memo())}

    def _recall(self, memo: dict[str, Any]) -> None:
        super()._recall(memo)
        self._limit_models = self._limit_models.recall(memo)
