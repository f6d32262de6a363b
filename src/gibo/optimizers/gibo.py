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

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from gibo._checks import as_finite, positive
from gibo._linalg import Array
from gibo._serialize import is_own
from gibo.acquisition.information import GradientInformation
from gibo.errors import InputError
from gibo.gp import GaussianProcess
from gibo.means import Fitted, Mean
from gibo.optimizers.limits import Limits
from gibo.optimizers.log import Started
from gibo.optimizers.model import Model
from gibo.optimizers.queries import spread
from gibo.optimizers.restricted import RestrictedSearch
from gibo.optimizers.rows import expecting_usual_noise
from gibo.optimizers.scale import Findings
from gibo.optimizers.settings import Settings
from gibo.optimizers.sources import Sources
from gibo.outcome import ITERATE, QUERY, SIMULATED, SURVEY, Evaluation
from gibo.steps import State

# The survey stays within this many scales of the start.
SURVEY_REACH = 5.0


class GIBO(RestrictedSearch):
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
        self._restrict(limits, sources)
        self.largest_step = None if largest_step is None else positive("largest_step", largest_step)
        self.shares_seeds = self.settings.blocks == "iteration"
        self._iterate_asked = False
        self._move_state = self.settings.move.init(self.d)
        self._scale_found = not self._surrogate.can_be_rescaled
        self._directions = self.settings.queries.directions(self.d, self.seed)

    # -- algorithm 1 --------------------------------------------------------------------------------------------------

    def _propose(self) -> list[tuple[Array, str]]:
        M, M_first, *_ = self._sizes
        batch: list[tuple[Array, str]] = []
        if not self.log.next_id and self._may_survey:
            self._iterate_asked = True
            lower, upper = (self.clip(self.start + side * SURVEY_REACH * self.scale) for side in (-1.0, 1.0))
            points = spread(lower, upper, self.settings.survey, self._rng)
            return [(self._iterate, ITERATE), *((x, SURVEY) for x in points)]
        if not self._iterate_asked:
            batch.append((self._iterate, ITERATE))  # line 4
            if (self.settings.fit_at == "iterate" and self.settings.priors) or self._is_careful:
                self._iterate_asked = True
                return batch
        elif self._is_careful:
            self._check_careful_start()
        if self.settings.fit_at != "step":
            self._fit()  # line 6
        surveyed = sum(e.kind == SURVEY for e in self.log.of_iteration(self._iteration - 1))
        count = max(M, M_first - surveyed) if surveyed or not self._iteration else M
        if self._is_careful:
            count = 1
        if self.sources is not None:
            self._at, count = self._source_and_count(self.sources)
        if count:
            batch += self._queries(count, iterate_comes=bool(batch))
            self._iterate_asked = True
        is_simulated = self.sources is not None and self._at == self.sources.simulator
        return [(x, SIMULATED) for x, _ in batch] if is_simulated else batch

    def _queries(self, count: int, iterate_comes: bool) -> list[tuple[Array, str]]:
        """The most informative queries, lines 7 to 12, where evaluations should not fail."""
        information, region = self._information(iterate_comes), self._region(limited=self._is_careful)
        if region is None:
            Z = self._most_informative(information, count)
        else:
            Z = self._most_informative_within(region, information, count)
        return [(z * self.scale if self.rounding is None else self._apart(z * self.scale), QUERY) for z in Z]

    def _update(self, batch: list[Evaluation]) -> None:
        if self._is_careful:
            self._limit_models = self._limit_models.fit(self._seen())
            batch = self.log.of_iteration(self._iteration)
            if self._has_queries_left(batch):
                return
        kinds = {e.kind for e in batch}
        if kinds <= {ITERATE} and self.sources is None and not self._is_careful:
            return
        planned = self._surrogate.hyperparameters.lengthscale
        if self.settings.fit_at == "step":
            self._fit()
        model, before = self._model(), self._iterate
        if SURVEY in kinds:
            self._iterate = self._highest_evaluated(model)
        else:
            self._correct_scale(batch, planned)
            model = self._model()
            z, self._move_state = self._moved(model.gp)
            self._iterate = self.clip(z * self.scale)  # line 13
        self._record(model, before)
        self._iteration += 1
        self._iterate_asked = False

    def _fit(self) -> None:
        """MAP hyperparameters; the models of limits of a careful search are fitted after each evaluation."""
        self._surrogate = self._fitted()
        if self.limits is not None and not self._is_careful:
            self._limit_models = self._limit_models.fit(self._seen())

    def _begin(self, event: Started) -> None:
        super()._begin(event)
        self._iterate_asked, self._move_state = False, self.settings.move.init(self.d)

    @property
    def _may_survey(self) -> bool:
        """Whether a search that has no data knows nothing and may go anywhere between finite bounds."""
        knows = isinstance(self.settings.mean, (Mean, Fitted))
        bounded = self.bounds is not None and bool(np.isfinite(self.bounds).all())
        stays_near = self._is_careful or self.largest_step is not None or self.sources is not None
        return self.settings.survey > 0 and bounded and not knows and not stays_near

    def _highest_evaluated(self, model: Model) -> Array:
        """The point of the window with the highest mean − beta standard deviations, where the limits hold."""
        X, region = np.array([e.x for e in self._window()]).reshape(-1, self.d), self._region()
        X = X if region is None else X[region.slack(X / self.scale) >= 0.0]
        return X[int(model.lower_bound(X, self.settings.move.beta).argmax())] if len(X) else self._iterate

    def _most_informative(self, information: GradientInformation, count: int) -> Array:
        return self.settings.queries.choose(information, *self._box(), count, self._rng, self._directions)

    def _moved(self, gp: GaussianProcess) -> tuple[Array, State]:
        """The next iterate in z and the state of the move, within the largest step and within the limits."""
        t, (lower, upper), move, region = self._iterate / self.scale, self._box(), self.settings.move, self._region()
        if self.largest_step is not None:
            lower, upper = np.maximum(lower, t - self.largest_step), np.minimum(upper, t + self.largest_step)
        z, state = move.next(gp, t, lower, upper, self._move_state)
        if self.largest_step is not None:
            z = t + (z - t) * min(1.0, self.largest_step / max(float(np.abs(z - t).max()), 1e-300))
        if self.sources is not None:
            z = self._or_return(gp, z, move.beta)
        return z if region is None else self._highest_within(region, gp, z, lower, upper, move.beta), state

    def _correct_scale(self, batch: list[Evaluation], planned: Array) -> None:
        """Rescale the lengthscales and their prior until the values show a signal."""
        rule, window = self.settings.scale_rule, [*self._window(), *self._simulated()]
        if rule is None or self._scale_found or not window or all(e.kind == ITERATE for e in batch):
            return
        here, around = list[float](), list[float]()
        for e in batch:
            if e.value is not None:
                (here if np.array_equal(e.x, self._iterate) else around).append(e.value)
        shortened = float(np.exp(np.log(planned / self._surrogate.hyperparameters.lengthscale).mean()))
        factor = rule.factor(Findings(self._model().evidence, len(window), self.d, here, around, shortened))
        log_factor = self._surrogate.log_factor
        if factor is None:
            self._scale_found = self._iteration > 0
        else:
            self._surrogate = self._surrogate.rescaled(factor)
        if self.limits is not None:
            factor = float(np.exp(self._surrogate.log_factor - log_factor))
            self._limit_models = self._limit_models.rescaled(factor)

    def _information(self, iterate_comes: bool) -> GradientInformation:
        """The Gradient Information at the iterate, given all evaluations that the next move will use.

        The move will use the last N_m evaluations, so evaluations that will have left the window do not count.
        """
        M, _, N_m, N_g, *_ = self._sizes
        is_start = np.array_equal(self._iterate, self.start)
        baseline_comes = self.baseline is not None and self._baseline_is_due() and not is_start
        z, window = self._iterate / self.scale, self._window(N_m - M - iterate_comes - baseline_comes)
        noise, expecting, pending = None, None, self.pending  # of earlier iterations, see `proceed`
        if any(e.gradient is not None for e in self.log.valued[-N_m:]):
            noise, N_g = self._gradients_to_come(iterate_comes)
        groups, block, of_pending = self.sources or self._surrogate.groups, None, list[float | None]()
        if groups is not None:
            block, of_pending = groups.to_come(window, pending, self._block() if self.sources is None else self._at)
        if noise is not None:
            expecting = self._surrogate.expecting_gradient(window, self._window(), self._iterate, noise, N_g, block)
        gp = self._surrogate.given([*window, *self._simulated()], N_g).gp if expecting is None else expecting
        information = GradientInformation(expecting_usual_noise(gp), at=z, block=block)
        for query, its_block in zip_longest(pending, of_pending):
            information = information.in_block(its_block).extend(query.x / self.scale).in_block(block)
        if baseline_comes:
            information = information.extend(self.start / self.scale)
        return information.extend(z) if iterate_comes and expecting is None else information

    # -- memo ---------------------------------------------------------------------------------------------------------

    def _memo(self) -> dict[str, Any]:
        found = {} if self.settings.scale_rule is None else {"scale_found": self._scale_found}
        limits = {} if self.limits is None else self._limit_models.memo()
        return {**super()._memo(), "step": self._move_state, **found, **limits}

    def _recall(self, memo: dict[str, Any]) -> None:
        super()._recall(memo)
        if self.limits is not None:
            self._limit_models = self._limit_models.recall(memo)
        self._iterate_asked = True
        self._scale_found = bool(memo.get("scale_found", self._scale_found))
        state = {name: as_finite(f"step.{name}", value) for name, value in memo.get("step", {}).items()}
        # The names in the state of a user's move may change from step to step, those of gibo's moves do not.
        expected = self.settings.move.init(self.d)
        if is_own(type(self.settings.move)) and _shapes(state) != _shapes(expected):
            raise InputError(f"step: expected {_shapes(expected)} in a memo, got {_shapes(state)}")
        self._move_state = state


def _shapes(state: Mapping[str, Array]) -> dict[str, tuple[int, ...]]:
    return {name: state[name].shape for name in sorted(state)}
