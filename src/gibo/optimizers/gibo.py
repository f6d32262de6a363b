"""GIBO with bound steps: local Bayesian optimisation with queries by Gradient Information (Müller et al. 2021).

One iteration at the iterate t, with the line numbers of the paper's algorithm 1:

    ask    evaluate t  →  plan M queries that tell most about the gradient at t           `_propose`
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

from gibo._checks import as_finite, natural, positive
from gibo._linalg import Array
from gibo._serialize import is_own
from gibo.acquisition.confidence import LowerConfidenceBound
from gibo.acquisition.information import GradientInformation
from gibo.errors import InputError
from gibo.gp import GaussianProcess
from gibo.optimizers.limits import LimitModels, Limits
from gibo.optimizers.log import Started
from gibo.optimizers.model import Model
from gibo.optimizers.model_based import ModelBased
from gibo.optimizers.queries import spread
from gibo.optimizers.region import Region
from gibo.optimizers.rows import blocks_to_come, expecting_usual_noise
from gibo.optimizers.scale import Findings
from gibo.optimizers.settings import Settings
from gibo.outcome import EXTERNAL, ITERATE, QUERY, Evaluation, Outcome, Query
from gibo.steps import State

# If rounding maps a query onto the iterate, it moves out by these factors.
FARTHER = (2.0, 4.0)


class GIBO(ModelBased):
    """Local search around an iterate, with queries that tell most about the gradient there. It maximises.

    Args:
        x0: (d,) where to start.
        scale: positive; by how much a parameter must change to matter, roughly (like sigma0 in CMA-ES): a number, or
            one per parameter. If it is wrong by a factor of ten, that costs a few iterations.
        bounds: None, or (lower, upper); no query and no iterate leaves them.
        seed: of all random choices.
        settings: by default `Settings()`; `Settings.paper()`, `gibo.within_model` and `gibo.out_of_model` are the
            paper's.
        limits: of measured quantities: `gibo.Limits`, or (lower, upper) by name.
        largest_step: the most by which a step may change a parameter, in units of `scale`; None: no such cap.

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
    ) -> None:
        super().__init__(x0, scale=scale, bounds=bounds, seed=seed, settings=settings)
        self.limits = limits if isinstance(limits, Limits) or limits is None else Limits(limits)
        self.largest_step = None if largest_step is None else positive("largest_step", largest_step)
        self._limit_models = LimitModels.initial(self.limits, self.settings, self.scale)
        self.shares_seeds = self.settings.blocks == "iteration"
        self._iterate_asked = False
        self._surveyed = 0  # points spread over the bounds that the first iteration asked for
        self._move_state = self.settings.move.init(self.d)
        self._scale_found = not self._surrogate.can_be_rescaled
        self._directions = self.settings.queries.directions(self.d, self.seed)

    # -- algorithm 1 --------------------------------------------------------------------------------------------------

    def _propose(self) -> list[tuple[Array, str]]:
        M, M_first, *_ = self.settings.sizes
        batch: list[tuple[Array, str]] = []
        survey = self._survey() if not (self._iteration or self._iterate_asked) else []
        if survey:
            self._iterate_asked, self._surveyed = True, len(survey)
            return [(self._iterate, ITERATE), *((x, QUERY) for x in survey)]
        if not self._iterate_asked:
            batch.append((self._iterate, ITERATE))  # line 4
            if (self.settings.fit_at == "iterate" and self.settings.priors) or self._is_first_careful:
                self._iterate_asked = True
                return batch
        elif self._is_first_careful:
            self._check_start()
        if self.settings.fit_at != "step":
            self._fit()  # line 6
        information = self._information(iterate_comes=bool(batch))
        count = max(M, M_first - self._surveyed) if self._iteration == (self._surveyed > 0) else M
        Z = self._planned(information, count)  # lines 7 to 12
        self._iterate_asked = True
        return batch + [(self._apart(z * self.scale), QUERY) for z in Z]

    def _update(self, batch: list[Evaluation]) -> None:
        if all(e.kind == ITERATE for e in batch):
            return  # the queries of this iteration come next
        planned = self._surrogate.hyperparameters.lengthscale
        if self.settings.fit_at == "step":
            self._fit()
        is_survey = self._surveyed > 0 and not self._iteration
        if not is_survey:
            self._correct_scale(batch, planned)
        model, before = self._model(), self._iterate
        if is_survey:
            self._iterate = self._highest_evaluated(model)
        else:
            z, self._move_state = self._moved(model.gp)
            self._iterate = self.clip(z * self.scale)  # line 13
        self._record(model, before)
        self._iteration += 1
        self._iterate_asked = False

    def _begin(self, event: Started) -> None:
        super()._begin(event)
        self._iterate_asked, self._move_state = False, self.settings.move.init(self.d)

    def _survey(self) -> list[Array]:
        """Points spread over the bounds, before anything is known; none where the search must stay near its start."""
        bounds, count = self.bounds, self.settings.sizes[5]
        near = self.largest_step is not None or (self.limits is not None and self.limits.careful)
        if bounds is None or not np.isfinite(bounds).all() or near or self.log.evaluations:
            return []
        return list(spread(*bounds, count, self._rng))

    def _highest_evaluated(self, model: Model) -> Array:
        """The evaluated point with the highest mean − beta standard deviations where the limits hold."""
        X, region = np.array([e.x for e in self._window()]).reshape(-1, self.d), self._region()
        X = X if region is None else X[region.slack(X / self.scale) >= 0.0]
        return X[int(model.lower_bound(X, self.settings.move.beta).argmax())] if len(X) else self._iterate

    def _planned(self, information: GradientInformation, count: int) -> Array:
        """The queries (M, d), where evaluations are expected not to fail; careful ones keep to the limits, too."""
        choose, box = self.settings.queries.choose, self._box()
        region = self._region(limited=self.limits is not None and self.limits.careful)
        if region is None:
            return choose(information, *box, count, self._rng, self._directions)
        t = self._iterate / self.scale
        region, Z = region.around(t), list[Array]()
        for _ in range(count):
            z = choose(information, *box, 1, self._rng, self._directions)[0]
            Z.append(region.nearest(z, t, *box))
            information = information.extend(Z[-1])
        return np.array(Z)

    def _moved(self, gp: GaussianProcess) -> tuple[Array, State]:
        """The next iterate, in z, and the state of the move, within the largest step and where the limits hold."""
        move, t, (lower, upper) = self.settings.move, self._iterate / self.scale, self._box()
        if self.largest_step is not None:
            lower, upper = np.maximum(lower, t - self.largest_step), np.minimum(upper, t + self.largest_step)
        z, state = move.next(gp, t, lower, upper, self._move_state)
        if self.largest_step is not None:
            z = t + (z - t) * min(1.0, self.largest_step / max(float(np.abs(z - t).max()), 1e-300))
        region = self._region()
        if region is None or region.slack(z[None])[0] >= 0.0:
            return z, state
        X = np.empty((0, self.d)) if gp.observations is None else gp.observations.X
        candidates = np.array([t, *X[((lower <= X) & (upper >= X)).all(axis=1)]])
        bound, ell = LowerConfidenceBound(gp, move.beta), gp.kernel.ell(self.d)
        return region.highest(bound, np.clip(z, lower, upper), candidates, lower, upper, ell), state

    def _correct_scale(self, batch: list[Evaluation], planned: Array) -> None:
        """Rescale the lengthscales and their prior, until the values show a signal."""
        rule, window = self.settings.scale_rule, self._window()
        if rule is None or self._scale_found or not window:
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
        """What queries tell about the gradient at the iterate, given all else that the next move will see.

        The move will see the last N_m evaluations, so what will have left the window by then is not counted on.
        """
        M, _, N_m, *_ = self.settings.sizes
        baseline_comes = self._baseline_is_due() and not np.array_equal(self._iterate, self.start)
        z, window = self._iterate / self.scale, self._window(N_m - M - iterate_comes - baseline_comes)
        noise, N_g = self._gradients_to_come(iterate_comes)
        expecting, pending = None, list(self.log.pending.values())  # of earlier iterations; see `proceed`
        block, of_pending = blocks_to_come(window, pending, self._block(), self.settings)
        if noise is not None:
            expecting = self._surrogate.expecting_gradient(window, self._window(), self._iterate, noise, N_g, block)
        gp = self._surrogate.given(window, N_g).gp if expecting is None else expecting
        information = GradientInformation(expecting_usual_noise(gp), at=z, block=block)
        for query, its_block in zip(pending, of_pending, strict=True):
            information = information.in_block(its_block).extend(query.x / self.scale).in_block(block)
        if baseline_comes:
            information = information.extend(self.start / self.scale)
        return information.extend(z) if iterate_comes and expecting is None else information

    def _block(self) -> str | float | None:
        """With given blocks that of the last value; of an iteration whose queries share a seed, that seed."""
        if self.shares_seeds:
            return self._seed(self.log.next_id)
        return self.log.valued[-1].block if self.settings.blocks == "given" and self.log.valued else None

    # -- limits and failures ------------------------------------------------------------------------------------------

    def limits_at(self, x: Array) -> dict[str, float]:
        """The believed probability of each limit at x (d,), by the name of its quantity."""
        region = None if self.limits is None else self._region()
        probabilities = {} if region is None else region.probabilities(x / self.scale)
        return {name: probabilities.get(name, math.nan) for name in ([] if self.limits is None else self.limits.names)}

    def check_outcome(self, query: Query, outcome: Outcome) -> None:
        super().check_outcome(query, outcome)
        if self.limits is not None and query.kind != EXTERNAL:
            self.limits.check_measured(outcome)

    def within_limits(self, e: Evaluation) -> bool:
        return self.limits is None or not self.limits.violations(e.measured)

    def _seen(self) -> list[Evaluation]:
        """What the models of limits and failures see: the start and the last N_m evaluations, failed ones included."""
        N_m, start = self.settings.sizes[2], self._start()
        seen = self.evaluations[-N_m:]
        return seen if start is None or start in seen else [start, *seen]

    @property
    def _models_limits(self) -> bool:
        return self.limits is not None or len(self.log.valued) < len(self.log.evaluations)

    def _region(self, limited: bool = True) -> Region | None:
        """Where evaluations are expected not to fail and, if `limited`, the limits to hold."""
        if not self._models_limits:
            return None
        return self._limit_models.region(self._seen(), self._surrogate.hyperparameters.lengthscale, limited)

    def _fit(self) -> None:
        super()._fit()
        if self.limits is not None:
            self._limit_models = self._limit_models.fit(self._seen())

    @property
    def _is_first_careful(self) -> bool:
        """A careful search evaluates its start alone, to see whether it satisfies the limits."""
        return self.limits is not None and self.limits.careful and self._iteration == self.begun

    def _check_start(self) -> None:
        """That the start of a careful search satisfies the limits."""
        start = next(e for e in self.log.of_iteration(self._iteration) if e.kind == ITERATE)
        why = ["its evaluation failed"]
        if start.failure is None and self.limits is not None:
            why = self.limits.violations(start.measured)
        if why:
            raise InputError(
                f"careful: the start must satisfy all limits; there {', '.join(why)}. Begin at a point that satisfies "
                "them, or give careful=False: then the search may look for such a point"
            )

    # -- special cases ------------------------------------------------------------------------------------------------

    def _apart(self, x: Array) -> Array:
        """A query whose rounded numbers differ from the iterate's, where parameters are whole numbers."""
        if self.rounding is None:
            return x
        y, here = self.evaluated(x), self.evaluated(self._iterate)
        for k in FARTHER:
            same = (y == here) & (y != self.clip(x))
            y = np.where(same, self.evaluated(np.where(same, self._iterate + k * (x - self._iterate), x)), y)
        return y

    def _gradients_to_come(self, iterate_comes: bool) -> tuple[Array | None, int]:
        """The noise of the gradient that the iterate will come with, if it will, and how many older ones will count.

        Queries that came with gradients in the iteration before will come with them again.
        """
        before = self.log.of_iteration(self._iteration - 1)
        coming = sum(e.gradient is not None for e in before if e.kind == QUERY)
        room = max(0, self.settings.sizes[3] - coming)
        last = self._last_iterate() if iterate_comes else None
        noise = None if last is None else last.gradient_noise
        return (None, room) if noise is None or not room else (noise, room - 1)

    def _last_iterate(self) -> Evaluation | None:
        """The last iterate that had a value."""
        return next((e for e in reversed(self.log.valued) if e.kind == ITERATE), None)

    def _used_again(self) -> Sequence[Evaluation]:
        last = self._last_iterate()
        seen = self._seen() if self._models_limits else []
        return [*super()._used_again(), *([] if last is None else [last]), *seen]

    # -- memo ---------------------------------------------------------------------------------------------------------

    def _memo(self) -> dict[str, Any]:
        found: dict[str, Any] = {} if self.settings.scale_rule is None else {"scale_found": self._scale_found}
        found |= {"surveyed": self._surveyed} if self._surveyed else {}
        limits = {} if self.limits is None else self._limit_models.memo()
        return {**super()._memo(), "step": self._move_state, **found, **limits}

    def _recall(self, memo: dict[str, Any]) -> None:
        super()._recall(memo)
        self._iterate_asked = True
        self._limit_models = self._limit_models.recall(memo)
        self._scale_found = bool(memo.get("scale_found", self._scale_found))
        self._surveyed = natural("memo: surveyed", memo.get("surveyed", 0))
        state = {name: as_finite(f"step.{name}", value) for name, value in memo.get("step", {}).items()}
        # The names in the state of a user's own move may change from step to step, those of gibo's own do not.
        expected = self.settings.move.init(self.d)
        if is_own(type(self.settings.move)) and _shapes(state) != _shapes(expected):
            raise InputError(f"step: expected {_shapes(expected)} in a memo, got {_shapes(state)}")
        self._move_state = state


def _shapes(state: Mapping[str, Array]) -> dict[str, tuple[int, ...]]:
    return {name: state[name].shape for name in sorted(state)}
