"""GIBO with bound steps: local Bayesian optimisation with queries by Gradient Information (Müller et al. 2021).

One iteration at the iterate t, with the line numbers of the paper's algorithm 1:

    ask    evaluate t  →  plan the M queries with most information about the gradient at t    `_propose`
    tell   …values, in any order…
           the last one:  fit the hyperparameters  →  move t                              `_update`

The paper fits before it plans and moves along the gradient. The default fits before it moves, and moves to the maximum
of a lower confidence bound in the box around t (MinUCB, Fan et al. 2024); `Settings.paper` gives the paper's method.
docs/algorithm.md has the default as pseudo-code. z stands for parameters in units of `scale`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gibo._checks import as_finite, positive
from gibo._linalg import Array
from gibo._serialize import is_own
from gibo.acquisition.confidence import LowerConfidenceBound
from gibo.acquisition.information import GradientInformation
from gibo.errors import InputError
from gibo.gp import GaussianProcess
from gibo.optimizers.limits import CAREFUL_WIDTH, LimitModels, Limits
from gibo.optimizers.log import Log, Started
from gibo.optimizers.model import Model, Surrogate
from gibo.optimizers.model_based import ModelBased
from gibo.optimizers.queries import spread
from gibo.optimizers.region import Region
from gibo.optimizers.rows import blocks_to_come, expecting_usual_noise
from gibo.optimizers.scale import Findings
from gibo.optimizers.settings import Settings
from gibo.optimizers.sources import Sources
from gibo.outcome import EXTERNAL, ITERATE, QUERY, SIMULATED, SURVEY, Evaluation, Outcome, Query
from gibo.steps import State

# If rounding maps a query onto the iterate, it moves out by these factors.
FARTHER = (2.0, 4.0)
# The survey stays within this many scales of the start.
SURVEY_REACH = 5.0


class GIBO(ModelBased):
    """Local search around an iterate, with queries that are most informative about the gradient there. It maximises.

    Args:
        x0: (d,) the start.
        scale: positive; the change of a parameter that has a clear effect, roughly (like sigma0 in CMA-ES): one number
            or one per parameter. An error by a factor of ten costs a few iterations.
        bounds: None, or (lower, upper); no query and no iterate leaves them.
        seed: of all random choices.
        settings: by default `Settings()`; `Settings.paper()`, `gibo.within_model` and `gibo.out_of_model` are the
            paper's.
        limits: limits of measured quantities: `gibo.Limits`, or (lower, upper) by name.
        largest_step: the largest change of a parameter in a step, in units of `scale`; None: no limit.
        sources: two sources of different cost, ``{"simulator": 1, "robot": 50}``; see `gibo.optimizers.sources`.

    Example:
        >>> import gibo
        >>> opt = gibo.GIBO([0.0, 0.0], scale=0.3, seed=1)
        >>> for _ in range(20):
        ...     for query in opt.ask():
        ...         opt.tell(query, -float(((query.x - 1.0) ** 2).sum()))
        >>> bool(abs(opt.best.x - 1.0).max() < 0.1)
        True

    References: Müller, von Rohr, Trimpe: Local policy search with Bayesian optimization, NeurIPS 2021. Fan et al.:
    Minimizing UCB: a better local search strategy in local Bayesian optimization, NeurIPS 2024.
    """

    method = "gibo"
    uses_late_values = True
    can_start_again = True

    def __init__(
        self,
        x0: npt.ArrayLike,
        *,
        scale: npt.ArrayLike = 1.0,
        bounds: npt.ArrayLike | None = None,
        seed: int = 0,
        settings: Settings | None = None,
        limits: Limits | Mapping[str, Any] | None = None,
        largest_step: float | None = None,
        sources: Sources | Mapping[str, float] | None = None,
    ) -> None:
        super().__init__(x0, scale=scale, bounds=bounds, seed=seed, settings=settings)
        self.sources = sources if isinstance(sources, Sources) or sources is None else Sources(sources)
        if self.sources is not None:
            self.sources.check(self.settings, limited=limits is not None)
            self.log = Log(self.sources.simulator)
            self._surrogate = Surrogate.initial(self.settings, self.scale, self.sources)
        self.limits = limits if isinstance(limits, Limits) or limits is None else Limits(limits)
        self.largest_step = None if largest_step is None else positive("largest_step", largest_step)
        self._limit_models = LimitModels.initial(self.limits, self.settings, self.scale)
        self.shares_seeds = self.settings.blocks == "iteration"
        self._iterate_asked = False
        self._move_state = self.settings.move.init(self.d)
        self._scale_found = not self._surrogate.can_be_rescaled
        self._directions = self.settings.queries.directions(self.d, self.seed)

    # -- algorithm 1 --------------------------------------------------------------------------------------------------

    def _propose(self) -> list[tuple[Array, str]]:
        M, M_first, *_ = self.settings.sizes
        batch: list[tuple[Array, str]] = []
        if self._may_survey:
            self._iterate_asked = True
            reach = SURVEY_REACH * self.scale
            points = spread(
                self.clip(self.start - reach), self.clip(self.start + reach), self.settings.survey, self._rng
            )
            return [(self._iterate, ITERATE), *((x, SURVEY) for x in points)]
        if not self._iterate_asked:
            batch.append((self._iterate, ITERATE))  # line 4
            if (self.settings.fit_at == "iterate" and self.settings.priors) or self._is_careful:
                self._iterate_asked = True
                return batch
        elif self._is_careful and self._iteration == self.begun:
            self._check_start()
        if self.settings.fit_at != "step":
            self._fit()  # line 6
        if self.sources is not None:
            self._at, count = self._source_and_count(self.sources)
        else:
            surveyed = sum(e.kind == SURVEY for e in self.log.of_iteration(self._iteration - 1))
            count = max(M, M_first - surveyed) if surveyed or not self._iteration else M
            count = 1 if self._is_careful else count
        if not count:
            return batch
        information = self._information(iterate_comes=bool(batch))
        Z = self._planned(information, count)  # lines 7 to 12
        self._iterate_asked = True
        return batch + [(self._apart(z * self.scale), QUERY) for z in Z]

    def _update(self, batch: list[Evaluation]) -> None:
        if self._is_careful:
            self._limit_models, batch = self._limit_models.fit(self._seen()), self.log.of_iteration(self._iteration)
        if self._has_queries_left(batch):
            return
        planned = self._surrogate.hyperparameters.lengthscale
        if self.settings.fit_at == "step":
            self._fit()
        model, before = self._model(), self._iterate
        if any(e.kind == SURVEY for e in batch):
            self._iterate = self._highest_evaluated(model)
        else:
            self._correct_scale(batch, planned)
            model = self._model()
            z, self._move_state = self._moved(model.gp)
            self._iterate = self.clip(z * self.scale)  # line 13
        self._record(model, before)
        self._iteration += 1
        self._iterate_asked = False

    def _has_queries_left(self, batch: list[Evaluation]) -> bool:
        """Whether queries of this iteration are to come. A careful search leaves an iterate that violates a limit."""
        M, M_first, *_ = self.settings.sizes
        if not self._is_careful:
            return self.sources is None and all(e.kind == ITERATE for e in batch)
        if self._iteration > self.begun and not all(self.within_limits(e) for e in batch if e.kind == ITERATE):
            return False
        return sum(e.kind == QUERY for e in batch) < (M if self._iteration else M_first)

    def _begin(self, event: Started) -> None:
        super()._begin(event)
        self._iterate_asked, self._move_state = False, self.settings.move.init(self.d)

    @property
    def _may_survey(self) -> bool:
        """Whether this is the first batch of a search that knows nothing and may go anywhere between finite bounds."""
        near = self._is_careful or self.largest_step is not None or self.sources is not None
        bounded = self.bounds is not None and bool(np.isfinite(self.bounds).all())
        return self.settings.survey > 0 and bounded and not near and not self.log.has_asked and not self.log.evaluations

    def _highest_evaluated(self, model: Model) -> Array:
        """The point of the window with the highest mean − beta standard deviations, where the limits hold."""
        X, region = np.array([e.x for e in self._window()]).reshape(-1, self.d), self._region()
        X = X if region is None else X[region.slack(X / self.scale) >= 0.0]
        return X[int(model.lower_bound(X, self.settings.move.beta).argmax())] if len(X) else self._iterate

    def _planned(self, information: GradientInformation, count: int) -> Array:
        """The queries (M, d), where evaluations should not fail; careful queries also keep to the limits."""
        choose, box = self.settings.queries.choose, self._box()
        region = self._region(limited=self._is_careful)
        if region is None:
            return choose(information, *box, count, self._rng, self._directions)
        t, ell, Z = self._iterate / self.scale, self._surrogate.hyperparameters.lengthscale, list[Array]()
        for _ in range(count):
            (z,) = choose(information, *box, 1, self._rng, self._directions)
            Z.append(region.replaced(information, z, t, *box, ell, mirrors=self._is_careful))
            information = information.extend(Z[-1])
        return np.array(Z)

    def _moved(self, gp: GaussianProcess) -> tuple[Array, State]:
        """The next iterate in z and the state of the move, within the largest step and within the limits."""
        move, t, (lower, upper) = self.settings.move, self._iterate / self.scale, self._box()
        if self.largest_step is not None:
            lower, upper = np.maximum(lower, t - self.largest_step), np.minimum(upper, t + self.largest_step)
        z, state = move.next(gp, t, lower, upper, self._move_state)
        if self.largest_step is not None:
            z = t + (z - t) * min(1.0, self.largest_step / max(float(np.abs(z - t).max()), 1e-300))
        if self.sources is not None:
            z = self._or_return(gp, z, move.beta)
        region = self._region()
        if region is None or region.slack(z[None])[0] >= 0.0:
            return z, state
        X = np.empty((0, self.d)) if gp.observations is None else gp.observations.X
        candidates = np.array([t, *X[((lower <= X) & (upper >= X)).all(axis=1)]])
        bound, ell = LowerConfidenceBound(gp, move.beta), gp.kernel.ell(self.d)
        return region.highest(bound, np.clip(z, lower, upper), candidates, lower, upper, ell), state

    @property
    def _widest(self) -> float:
        return CAREFUL_WIDTH if self._is_careful else math.inf

    def _correct_scale(self, batch: list[Evaluation], planned: Array) -> None:
        """Rescale the lengthscales and their prior until the values show a signal."""
        rule, window = self.settings.scale_rule, [*self._window(), *self._simulated()]
        if rule is None or self._scale_found or not window or all(e.kind == ITERATE for e in batch):
            return
        valued = [(e.value, np.array_equal(e.x, self._iterate)) for e in batch if e.value is not None]
        here, around = ([value for value, same in valued if same is which] for which in (True, False))
        shortened = float(np.exp(np.log(planned / self._surrogate.hyperparameters.lengthscale).mean()))
        factor = rule.factor(Findings(self._model().evidence, len(window), self.d, here, around, shortened))
        log_factor = self._surrogate.log_factor
        if factor is None:
            self._scale_found = self._iteration > 0
        else:
            self._surrogate = self._surrogate.rescaled(factor)
        if self._surrogate.log_factor != log_factor:
            self._limit_models = self._limit_models.rescaled(float(np.exp(self._surrogate.log_factor - log_factor)))

    def _information(self, iterate_comes: bool) -> GradientInformation:
        """The Gradient Information at the iterate, given all evaluations that the next move will use.

        The move will use the last N_m evaluations, so evaluations that will have left the window do not count.
        """
        M, _, N_m, *_ = self.settings.sizes
        baseline_comes = self._baseline_is_due() and not np.array_equal(self._iterate, self.start)
        z, window = self._iterate / self.scale, self._window(N_m - M - iterate_comes - baseline_comes)
        noise, N_g = self._gradients_to_come(iterate_comes)
        expecting, pending = None, list(self.log.pending.values())  # of earlier iterations, see `proceed`
        block, of_pending = self._blocks_to_come(window, pending)
        if noise is not None:
            expecting = self._surrogate.expecting_gradient(window, self._window(), self._iterate, noise, N_g, block)
        gp = self._surrogate.given([*window, *self._simulated()], N_g).gp if expecting is None else expecting
        information = GradientInformation(expecting_usual_noise(gp), at=z, block=block)
        for query, its_block in zip(pending, of_pending, strict=True):
            information = information.in_block(its_block).extend(query.x / self.scale).in_block(block)
        if baseline_comes:
            information = information.extend(self.start / self.scale)
        return information.extend(z) if iterate_comes and expecting is None else information

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
                z = self.settings.queries.choose(at_source, *self._box(), 1, self._rng, self._directions)
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

    def _check_start(self) -> None:
        """Check that the start of a careful search satisfies the limits."""
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

    def _gradients_to_come(self, iterate_comes: bool) -> tuple[Array | None, int]:
        """The noise of the gradient that the next iterate will have, if any, and the number of older gradients that
        count.

        Queries are expected to have gradients if those of the previous iteration had them.
        """
        before = self.log.of_iteration(self._iteration - 1)
        coming = sum(e.gradient is not None for e in before if e.kind == QUERY)
        room = max(0, self.settings.sizes[3] - coming)
        last = self._last_iterate() if iterate_comes and self.sources is None else None
        noise = None if last is None else last.gradient_noise
        return (None, room) if noise is None or not room else (noise, room - 1)

    def _used_again(self) -> Sequence[Evaluation]:
        last = self._last_iterate()
        seen = self._seen() if self._models_limits else []
        return [*super()._used_again(), *([] if last is None else [last]), *seen]

    # -- memo ---------------------------------------------------------------------------------------------------------

    def _memo(self) -> dict[str, Any]:
        found = {} if self.settings.scale_rule is None else {"scale_found": self._scale_found}
        limits = {} if self.limits is None else self._limit_models.memo()
        return {**super()._memo(), "step": self._move_state, **found, **limits}

    def _recall(self, memo: dict[str, Any]) -> None:
        super()._recall(memo)
        self._iterate_asked = True
        self._limit_models = self._limit_models.recall(memo)
        self._scale_found = bool(memo.get("scale_found", self._scale_found))
        state = {name: as_finite(f"step.{name}", value) for name, value in memo.get("step", {}).items()}
        # The names in the state of a user's move may change from step to step, those of gibo's moves do not.
        expected = self.settings.move.init(self.d)
        if is_own(type(self.settings.move)) and _shapes(state) != _shapes(expected):
            raise InputError(f"step: expected {_shapes(expected)} in a memo, got {_shapes(state)}")
        self._move_state = state


def _shapes(state: Mapping[str, Array]) -> dict[str, tuple[int, ...]]:
    return {name: state[name].shape for name in sorted(state)}
