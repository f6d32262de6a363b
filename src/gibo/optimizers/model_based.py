"""The base of optimisers with a model: a window of evaluations, hyperparameters, a box, a recommended point.

The model is not kept: it is computed from the window and the hyperparameters when it is needed.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from gibo._checks import shown
from gibo._linalg import Array, single_thread
from gibo.errors import InputError, NumericalError
from gibo.gp import Jacobian, conditioned
from gibo.means import Fitted
from gibo.optimizers.base import Optimizer
from gibo.optimizers.log import Iteration
from gibo.optimizers.model import Model, Surrogate
from gibo.optimizers.region import Region
from gibo.optimizers.rows import check_time
from gibo.optimizers.settings import Settings
from gibo.optimizers.sources import fit_sources
from gibo.outcome import BASELINE, ITERATE, QUERY, Best, Evaluation

# Required probability that another point is better than the start, to recommend it.
SURELY_BETTER = 0.95
# And the required evidence of the model against pure noise, in nats: twenty times likelier. The point was chosen among
# many, and the question is asked at any time. docs/algorithm.md has the share of runs on pure noise that leave the
# start; without this it is 23 to 38 %.
SURE_SIGNAL = math.log(20.0)
# Number of values from which on a trend in time is estimated.
LEAST_FOR_TREND = 20


class ModelBased(Optimizer):
    """Base of optimisers with a model; see the module's docstring. A subclass defines `_propose` and `_update`.

    Args:
        x0, scale, bounds, seed: see `Optimizer`.
        settings: see `Settings`.
    """

    default_settings: ClassVar[Settings] = Settings()

    def __init__(
        self,
        x0: npt.ArrayLike,
        *,
        scale: npt.ArrayLike = 1.0,
        bounds: npt.ArrayLike | None = None,
        seed: int = 0,
        settings: Settings | None = None,
    ) -> None:
        super().__init__(x0, scale=scale, bounds=bounds, seed=seed)
        if settings is not None and not isinstance(settings, Settings):
            raise InputError(f"settings: expected gibo.Settings(...), got {shown(settings)}")
        self.settings = (settings or self.default_settings).resolve(self.d)
        self._sizes = self.settings.sizes
        self._surrogate = Surrogate.initial(self.settings, self.scale)
        self._last_present: tuple[Surrogate, int, Surrogate] | None = None  # see `_present`
        self._widest = math.inf  # the largest half-width of the box, in units of `scale`
        if self.settings.drift and self.settings.blocks == "given":
            self.outcome_checks.append(check_time)

    # -- what it knows ------------------------------------------------------------------------------------------------

    @property
    def best(self) -> Best | None:
        """The recommended point with the predicted mean of the objective's values there.

        If `Settings.only_evaluated`: the evaluated point with the highest mean − caution standard deviations; but the
        start until the values are surely more than noise and that point is surely better. Otherwise the iterate also
        counts, and there is no rule for the start.
        Points outside the region in which limits hold, or measured to violate one, do not count. If the start is
        probably outside, too, the other point need not be surely better.
        """
        if not self.log.valued:
            return None
        with single_thread():
            judged, region = self._judged(), self._region()
            judge = self._model(judged, self._present())
            X = [e.x for e in judged if np.array_equal(self.clip(e.x), e.x) and self.within_limits(e)]
            if not self.settings.only_evaluated:
                failed = any(e.value is None for e in self.log.since_id(self._window()[0].id))
                X += [] if X and failed else [self.evaluated(self._iterate)]
            if region is not None:
                X = [x for x in X if region.slack(x[None] / self.scale)[0] >= 0.0]
            best: Array = X[int(judge.lower_bound(np.array(X), self.settings.caution).argmax())] if X else self.start
            start = self._start()
            in_doubt = region is not None and not region.likely(self.start / self.scale)
            if self.settings.only_evaluated and start is None and self.begun and not in_doubt:
                best = self.start  # it was named, and is not evaluated yet
            elif self.settings.only_evaluated and start is not None and not in_doubt:
                has_gradients = len(conditioned(judge.gp)[0].G) > 0  # their noise is known
                signal = has_gradients or judge.evidence_of_machine >= SURE_SIGNAL
                surely = signal and judge.probability_above(best, start.x) >= SURELY_BETTER
                best = best if surely else start.x
            return judge.at(best)

    def at_start(self) -> Best | None:
        with single_thread():
            return self._model(self._judged(), self._present()).at(self.start) if self.log.valued else None

    def jacobian(self) -> Jacobian:
        """Posterior of the objective's gradient at the iterate."""
        with single_thread():
            return self._model(surrogate=self._present()).jacobian(self._iterate)

    def model(self) -> Model | None:
        with single_thread():
            return self._model(surrogate=self._present()) if self.log.valued else None

    @property
    def uses_mean(self) -> bool:
        """Whether the settings have a fitted mean, such as that of a simulator, and it explains the present values."""
        return isinstance(self.settings.mean, Fitted) and self._surrogate.uses_mean

    def trend(self) -> float | None:
        """The slope of the values of the window in time, in its standard errors.

        None if the model has gradients, sources, or blocks or times that would explain it, or fewer than
        `LEAST_FOR_TREND` values.
        """
        window = self._window()
        if len(window) < LEAST_FOR_TREND or self.settings.drift or self.settings.blocks is not None:
            return None
        if self.log.simulator is not None or any(e.gradient is not None for e in window):
            return None
        with single_thread():
            return self._model(surrogate=self._present()).trend(np.array([float(e.id) for e in window]))

    def _start(self) -> Evaluation | None:
        """The evaluation that stands for the start: the last one of a baseline, or the first one of the search from it.

        Before a start that was named is evaluated, an earlier evaluation of that point.
        """
        valued = self.log.valued
        again = (e for e in reversed(valued) if e.kind == BASELINE) if self.baseline is not None else ()
        since = valued[bisect_left(valued, self.begun, key=lambda e: e.iteration) :]
        return next((e for e in chain(again, since, reversed(valued)) if np.array_equal(e.x, self.start)), None)

    def _judged(self) -> list[Evaluation]:
        """The window, with the start if points are compared with it."""
        window, start = self._window(), self._start()
        return [start, *window] if self.settings.only_evaluated and start and start not in window else window

    def _region(self) -> Region | None:
        """The region for the recommended point; None: no restriction."""
        return None

    # -- the model ----------------------------------------------------------------------------------------------------

    def _window(self, size: int | None = None) -> list[Evaluation]:
        """The last N_m evaluations with a value, by id."""
        size = self._sizes.N_m if size is None else size
        return self.log.valued[-size:] if size > 0 else []

    def _model(self, evaluations: Sequence[Evaluation] | None = None, surrogate: Surrogate | None = None) -> Model:
        """The posterior given evaluations, by default the window, the last N_g gradients among them, and the
        simulator's values; by default with the hyperparameters of the search."""
        known = self._window() if evaluations is None else evaluations
        return (surrogate or self._surrogate).given([*known, *self._simulated()], self._sizes.N_g)

    def _simulated(self) -> list[Evaluation]:
        """The first and the last N_m evaluations of the simulator with a value; none without sources."""
        simulated, N_m = self.log.simulated, self._sizes.N_m
        return simulated if len(simulated) <= N_m else [simulated[0], *simulated[-N_m:]]

    def _fitted(self) -> Surrogate:
        """The surrogate with MAP hyperparameters, if there are enough values."""
        needed = {"each": self._sizes.fit_from, "full": self._sizes.N_m}.get(self.settings.fit)
        window = [*self._window(), *self._simulated()]
        if not self.settings.priors or needed is None or len(window) < needed:
            return self._surrogate
        surrogate = self._surrogate
        return surrogate.fit(window) if surrogate.sources is None else fit_sources(surrogate, window, surrogate.sources)

    def _present(self) -> Surrogate:
        """The surrogate for questions about the present: fitted also to the values since the last step.

        The search itself does not use it, so that queries do not depend on pending values.
        """
        told, steps = len(self.log.evaluations), self.log.iterations
        if self.settings.fit_at != "step" or (steps and steps[-1].evaluations == told):
            return self._surrogate
        if self._last_present is None or self._last_present[:2] != (self._surrogate, told):
            self._last_present = (self._surrogate, told, self._fitted())
        return self._last_present[2]

    def _block(self) -> str | float | None:
        """With given blocks that of the last value; of an iteration whose queries share a seed, that seed."""
        if self.shares_seeds:
            return self._seed(self.log.next_id)
        return self.log.valued[-1].block if self.settings.blocks == "given" and self.log.valued else None

    def _last_iterate(self) -> Evaluation | None:
        """The last iterate that had a value."""
        return next((e for e in reversed(self.log.valued) if e.kind == ITERATE), None)

    def _gradients_to_come(self, iterate_comes: bool) -> tuple[Array | None, int]:
        """The noise of the gradient that the next iterate will have, if any, and the number of older gradients that
        count.

        Queries are expected to have gradients if those of the previous iteration had them.
        """
        before = self.log.of_iteration(self._iteration - 1)
        coming = sum(e.gradient is not None for e in before if e.kind == QUERY)
        room = max(0, self._sizes.N_g - coming)
        last = self._last_iterate() if iterate_comes and self._surrogate.sources is None else None
        noise = None if last is None else last.gradient_noise
        return (None, room) if noise is None or not room else (noise, room - 1)

    def _box(self) -> tuple[Array, Array]:
        """The box around the iterate, within the bounds; in z."""
        z, delta, ell = self._iterate / self.scale, self._sizes.delta, self._surrogate.hyperparameters.lengthscale
        half = delta * ell if self.settings.delta_unit == "lengthscales" else delta / self.scale
        half = np.minimum(half, self._widest)
        lower, upper = z - half, z + half
        if self.bounds is not None:
            low, high = (bound / self.scale for bound in self.bounds)
            lower, upper = np.maximum(lower, low), np.minimum(upper, high)
        if not (lower < upper).all():
            j = int(np.flatnonzero(~(lower < upper))[0])
            raise NumericalError(
                f"parameter {j} is {self._iterate[j]:g}, where floats are too coarse for queries {half[j]:g} scales "
                "apart; shift the parameters, or give a larger scale"
            )
        return lower, upper

    def _record(self, model: Model, before: Array) -> None:
        """Record the step from `before` to the present iterate."""
        internal = model.gp.jacobian(before / self.scale)
        jacobian, square = model.in_users_units(internal, before), model.units.spread**2
        ell, variance, noise, *_ = self._surrogate.hyperparameters
        step = self._iterate - before
        record = Iteration(
            number=self._iteration,
            evaluations=len(self.log.evaluations),
            x=before,
            gradient=jacobian.mean,
            uncertainty=float(jacobian.covariance.trace()),
            probability_of_ascent=internal.probability_of_ascent(step / self.scale),
            certainty=internal.certainty(),
            step=step,
            lengthscale=ell * self.scale,
            variance=variance * square,
            noise=noise * square,
            jitter=model.gp.jitter * square,
            warning=self._surrogate.warning,
        )
        self.log.step(record)

    def _used_again(self) -> Sequence[Evaluation]:
        start = self._start()
        window = [*self._window(), *self._simulated()]
        return window if start is None or start in window else [start, *window]

    # -- memo ---------------------------------------------------------------------------------------------------------

    def _memo(self) -> dict[str, Any]:
        return self._surrogate.memo()

    def _recall(self, memo: dict[str, Any]) -> None:
        self._surrogate = self._surrogate.recall(memo)
