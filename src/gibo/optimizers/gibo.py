"""GIBO: gradient ascent on a Gaussian process whose data are chosen to know the gradient (Müller et al. 2021).

One iteration at the iterate t (algorithm 1 of the paper, its line numbers in the code):

    ask    [the iterate]  →  fit the hyperparameters  →  plan M queries by Gradient Information   `_propose`
    tell   …values, in any order…
           the last one:  Jacobian posterior at t  →  direction  →  step  →  next iterate         `_update`

The model is never carried along: whenever it is needed it is made from the window's data and the hyperparameters
(`gibo.optimizers.surrogate`). z stands for parameters in units of `scale`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gibo._checks import as_finite, shown
from gibo._linalg import Array, single_thread
from gibo._serialize import is_own
from gibo.acquisition.climb import climb
from gibo.acquisition.confidence import LowerConfidenceBound
from gibo.acquisition.information import GradientInformation, plan
from gibo.errors import InputError, NumericalError
from gibo.gp import Jacobian
from gibo.optimizers.base import Optimizer
from gibo.optimizers.log import Asked, Event, Iteration
from gibo.optimizers.recommended import recommended, worth_keeping
from gibo.optimizers.scale_search import WIDEN, is_lower_far_away, look
from gibo.optimizers.settings import Settings
from gibo.optimizers.start import belief_at_start
from gibo.optimizers.surrogate import Model, Surrogate
from gibo.outcome import ITERATE, QUERY, Best, Evaluation
from gibo.steps import direction

# Times as far from the iterate as planned, at most, for whole numbers that would be the iterate's own.
FARTHER = (2.0, 4.0)


class GIBO(Optimizer):
    """Local search along a gradient that a Gaussian process infers from actively chosen queries. It maximises.

    Args:
        x0: (d,) where to start.
        scale: positive; by how much a parameter must change to matter, roughly (like sigma0 in CMA-ES): a number, or
            one per parameter. A wrong one is found out; one that is wrong by ten costs a few iterations.
        bounds: None, or (lower, upper); no query and no iterate leaves them.
        seed: of all random choices.
        settings: by default `Settings.default()`; see `Settings` for each of them and its reason. The paper's are
            `gibo.within_model` and `gibo.out_of_model`.

    Example:
        >>> import gibo
        >>> opt = gibo.GIBO([0.0, 0.0], scale=0.3, seed=1)
        >>> for _ in range(20):
        ...     for query in opt.ask():
        ...         opt.tell(query, -float(((query.x - 1.0) ** 2).sum()))
        >>> bool(abs(opt.best.x - 1.0).max() < 0.1)
        True

    Reference: Müller, von Rohr, Trimpe: Local policy search with Bayesian optimization, NeurIPS 2021.
    """

    method = "gibo"
    uses_late_values = True

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
        self._by_default = settings is None
        self.settings = (settings or Settings.default()).resolve(self.d)
        self._M, self._N_m, self._N_g, self._fit_from = self.settings.sizes
        self._surrogate = Surrogate.initial(self.settings, self.scale)
        self._coordinates = self._surrogate.coordinates
        self._iterate_asked = False
        self._kept: tuple[int, ...] = ()  # ids of the start and of the best point, see `Settings.remember`
        self._step_state = self.settings.step.init(self.d)
        self._scale_found = not (self.settings.scale_search and self._surrogate.can_be_rescaled)

    def adopt(self, arguments: dict[str, Any]) -> None:
        then, one_size = Settings.from_plain(arguments["settings"]), Settings.default(M_first=0)
        axes = [replace(one_size, plan_steps=n, patience=p, basis="axes") for n, p in ((60, 0), (8, 0), (8, 6))]
        larger_first = replace(one_size, M=one_size.resolve(self.d).M, M_first=self.d)
        old = [Settings(), *axes, one_size, larger_first]
        if self._by_default and then in [each.resolve(self.d) for each in old]:
            self.__init__(self.x0, scale=self.scale, bounds=self.bounds, seed=self.seed, settings=then)  # type: ignore[misc]

    # -- what it knows ------------------------------------------------------------------------------------------------

    @property
    def best(self) -> Best | None:
        """The point that `recommended` gives, of the window."""
        window = self._window(self._N_m)
        if not window:
            return None
        recent, beginning = self.log.since_id(self.log.valued[-self._N_m :][0].id), self.settings.beginning
        ids = {e.id for e in window}
        first = [e for e in self.log.valued[:beginning] if e.id not in ids]
        with single_thread():
            model = self._model()
            failed = any(e.value is None for e in recent)
            return model.at(recommended(self, self._surrogate, model, window, first, self._iterate, failed))

    def at_start(self) -> Best | None:
        with single_thread():
            return belief_at_start(self._model(), self._surrogate, self.log, self.x0)

    def jacobian(self) -> Jacobian:
        """Posterior of the objective's gradient at the iterate, from the window's data."""
        with single_thread():
            return self._model().jacobian(self._iterate)

    def model(self) -> Model | None:
        with single_thread():
            return self._model() if self.log.valued else None

    # -- algorithm 1 --------------------------------------------------------------------------------------------------

    def _propose(self) -> list[tuple[Array, str]]:
        proposals: list[tuple[Array, str]] = []
        if not self._iterate_asked:
            self._iterate_asked = True
            proposals.append((self._iterate, ITERATE))  # line 4
            if self.settings.priors and self.settings.fit_after_iterate:
                return proposals
        self._fit_if_due("plan")  # line 6
        lower, upper = self._box()
        M = self._M if self._iteration else max(self._M, self.settings.M_first or 0)
        if self.settings.sampling == "random":
            Z = lower + (upper - lower) * self._rng.random((M, self.d))
        else:
            gi, s = self._information(iterate_comes=bool(proposals)), self.settings  # lines 7 to 12
            ends, basis = (s.least_share, s.least_gain, s.plan_steps), s.basis or "axes"
            Z = plan(gi, lower, upper, M, self._rng, *ends, basis).X
        if not self._scale_found and self._iteration:
            proposals.append((self._iterate, QUERY))  # twice, to tell noise from detail
        return proposals + [(self._apart(x), QUERY) for x in self._coordinates.back(Z)]

    def _apart(self, x: Array) -> Array:
        """A query whose whole numbers are those of the iterate would tell nothing of them: there it goes farther."""
        if self.rounding is None:
            return x
        y, here = self.evaluated(x), self.evaluated(self._iterate)
        for k in FARTHER:
            same = (y == here) & (y != self.clip(x))
            y = np.where(same, self.evaluated(np.where(same, self._iterate + k * (x - self._iterate), x)), y)
        return y

    def _update(self, batch: list[Evaluation]) -> None:
        if all(e.kind == ITERATE for e in batch):
            return  # the queries of this iteration come next
        planned = self._surrogate.hyperparameters.lengthscale
        self._fit_if_due("step")
        before, retreat, model = self._iterate, self._retreat(batch), self._model()
        if retreat is None and self.settings.scale_search:
            fitted = self._surrogate
            retreat = self._look_at_scale(batch, model, planned)
            model = model if self._surrogate is fitted else self._model()
        if self.settings.remember and self.log.valued:
            self._kept = worth_keeping(self.settings, model, self._window(self._N_m), self.log.valued[0].id)
        internal = model.gp.jacobian(self._coordinates.to(before))
        if retreat is not None:
            self._iterate = retreat
        elif self.settings.move == "bound":
            self._iterate = self.clip(self._coordinates.back(self._highest_bound(model, internal)))
        else:
            ascent = direction(internal.mean, model.gp.kernel.ell(self.d), self.settings.normalization)
            step, self._step_state = self.settings.step.update(ascent, self._step_state)
            self._iterate = self.clip(before + self._coordinates.back(step))  # line 13
        self.log.step(self._knowledge(model, internal, before))
        self._iteration += 1
        self._iterate_asked = False

    def _look_at_scale(self, batch: list[Evaluation], model: Model, planned: Array) -> Array | None:
        """Rescale until a signal is found; returns where to stay or to go back to, if no step should be made."""
        window = self._window(self._N_m)
        if not window or not self._surrogate.can_be_rescaled:
            return None
        if len({e.value for e in window}) == 1:  # a plateau: nothing differs, so look farther away, or stay at the top
            if not self._scale_found:
                self._surrogate = self._surrogate.rescaled(WIDEN)
            return self._iterate
        before = self.log.of_iteration(self._iteration - 1)
        factor, self._scale_found, back = look(model, planned, window, batch, before, self._scale_found)
        wider = self._surrogate.rescaled(factor).log_factor > 0.0
        if wider and not self._scale_found and self._has_lost_patience() and is_lower_far_away(window, self.scale):
            factor, self._scale_found = math.exp(-self._surrogate.log_factor), True  # as given
        if factor != 1.0:
            self._surrogate = self._surrogate.rescaled(factor)
        return None if back is None else back.x.copy()

    def _has_lost_patience(self) -> bool:
        """Whether values have differed for as many iterations as the search for the scale may take."""
        first, patience = self.log.valued[0].value, self.settings.patience
        since = next((e.iteration for e in self.log.valued if e.value != first), self._iteration)
        return 0 < patience <= self._iteration - since + 1

    def _highest_bound(self, model: Model, internal: Jacobian) -> Array:
        """The maximum of mean − beta·sd in the box around the iterate; in z."""
        lower, upper = self._box()
        z, ell = self._coordinates.to(self._iterate), model.gp.kernel.ell(self.d)
        ascent = z + 0.35 * direction(internal.mean, ell, "invariant")
        data = model.gp.observations
        best = z if data is None else data.X[int(np.asarray(model.gp.predict(data.X).mean).argmax())]
        starts = [np.clip(start, lower, upper)[None] for start in (z, ascent, best)]
        return climb(LowerConfidenceBound(model.gp, self.settings.beta), starts, lower, upper, scale=ell)[0]

    def _fit_if_due(self, at: str) -> None:
        window, needed = self._window(self._N_m), {"each": self._fit_from, "full": self._N_m, "never": math.inf}
        if self.settings.fit_at == at and self.settings.priors and len(window) >= needed[self.settings.fit]:
            self._surrogate = self._surrogate.fit(window)

    def _information(self, iterate_comes: bool) -> GradientInformation:
        """What queries would tell about the gradient at the iterate, given all that the step will see besides them.

        The step will see the last N_m evaluations; what will have left the window by then is not counted on.
        """
        z, window = self._coordinates.to(self._iterate), self._window(self._N_m - self._M - iterate_comes)
        noise, N_g = self._gradients_to_come(iterate_comes)
        expecting = None
        if noise is not None:
            recent = self._window(self._N_m)
            expecting = self._surrogate.expecting_gradient(window, recent, self._iterate, noise, N_g)
        gi = GradientInformation(self._surrogate.given(window, N_g).gp if expecting is None else expecting, at=z)
        for query in self.log.pending.values():  # of earlier iterations; see `proceed`
            gi = gi.extend(self._coordinates.to(query.x))
        return gi.extend(z) if iterate_comes and expecting is None else gi

    def _gradients_to_come(self, iterate_comes: bool) -> tuple[Array | None, int]:
        """The noise of the gradient that the iterate will come with, if it will, and how many older ones will count.

        What came with gradients in the iteration before will come with them again.
        """
        before = self.log.of_iteration(self._iteration - 1)
        coming = sum(e.gradient is not None for e in before if e.kind == QUERY)
        room = max(0, self._N_g - coming)  # these come later than the iterate's
        last = self._last_iterate() if iterate_comes else None
        noise = None if last is None else last.gradient_noise
        return (None, room) if noise is None or not room else (noise, room - 1)

    def _retreat(self, batch: list[Evaluation]) -> Array | None:
        """The last iterate that had a value, if here neither the iterate nor most queries had one.

        Old data would lead further into where evaluations fail; a single failure here and there is no reason to go.
        """
        failed = [e for e in self.log.of_iteration(self._iteration) if e.value is None]
        if not any(e.kind == ITERATE for e in failed) or 2 * len(failed) <= len(batch):
            return None
        last = self._last_iterate()
        return None if last is None else last.x.copy()

    def _box(self) -> tuple[Array, Array]:
        """The box around the iterate in which queries are sought, within the bounds; in z."""
        s, z = self.settings, self._coordinates.to(self._iterate)
        ell = self._surrogate.hyperparameters.lengthscale
        half = s.delta * ell if s.delta_unit == "lengthscales" else s.delta / self.scale
        lower, upper = z - half, z + half
        if self.bounds is not None and s.correlation is None:
            low, high = (bound / self.scale for bound in self.bounds)
            lower, upper = np.maximum(lower, low), np.minimum(upper, high)
        if not (lower < upper).all():
            j = int(np.flatnonzero(~(lower < upper))[0])
            raise NumericalError(
                f"parameter {j} is {self._iterate[j]:g}, where floats are too coarse for queries {half[j]:g} scales "
                "apart; shift the parameters, or give a larger scale"
            )
        return lower, upper

    # -- its data -----------------------------------------------------------------------------------------------------

    def _window(self, size: int) -> list[Evaluation]:
        """The last evaluations that have a value, by id, after those that are kept."""
        recent = self.log.valued[-size:] if size > 0 else []
        first = recent[0].id if recent else self.log.next_id
        return [self.log.evaluations[i] for i in self._kept if i < first] + recent

    def _model(self) -> Model:
        """The posterior given the window."""
        return self._surrogate.given(self._window(self._N_m), self._N_g)

    def _last_iterate(self) -> Evaluation | None:
        """The last iterate that had a value."""
        return next((e for e in reversed(self.log.valued) if e.kind == ITERATE), None)

    def _used_again(self) -> Sequence[Evaluation]:
        last = self._last_iterate()
        return [*self._window(self._N_m), *([] if last is None else [last])]

    def _knowledge(self, model: Model, internal: Jacobian, before: Array) -> Iteration:
        """What was known when the step was made."""
        jacobian, square = model.in_users_units(internal, before), model.units.spread * model.units.spread
        ell, variance, noise, _ = self._surrogate.hyperparameters
        step = self._iterate - before
        return Iteration(
            number=self._iteration,
            evaluations=len(self.log.evaluations),
            x=before,
            gradient=jacobian.mean,
            uncertainty=float(jacobian.covariance.trace()),
            probability_of_ascent=internal.probability_of_ascent(self._coordinates.to(step)),
            certainty=internal.certainty(),
            step=step,
            lengthscale=ell * self.scale,
            variance=variance * square,
            noise=noise * square,
            jitter=model.gp.jitter * square,
            warning=self._surrogate.warning,
        )

    # -- memo ---------------------------------------------------------------------------------------------------------

    def _memo(self) -> dict[str, Any]:
        found = {} if not self.settings.scale_search else {"scale_found": self._scale_found}
        kept = {} if not self.settings.remember else {"kept": list(self._kept)}
        return {**self._surrogate.memo(), "step": self._step_state, **found, **kept}

    def load(self, event: Event) -> None:
        super().load(event)
        if isinstance(event, Asked):  # what is kept moves when the parameters change their meaning
            self._kept = self._known_ids((event.memo or {}).get("kept", ()))

    def _known_ids(self, given: Any) -> tuple[int, ...]:
        kept = tuple(given)
        known = (self.log.evaluations.get(i) for i in kept)
        if len(kept) > 2 or any(e is None or e.value is None for e in known):
            raise InputError(f"memo: kept: expected ids of evaluations with values, got {given!r:.80}")
        return kept

    def _recall(self, memo: dict[str, Any]) -> None:
        self._iterate_asked = True
        self._surrogate = self._surrogate.recall(memo)
        self._scale_found = bool(memo.get("scale_found", self._scale_found))
        self._kept = self._known_ids(memo.get("kept", ()))
        if "step" in memo:
            state = {name: as_finite(f"step.{name}", value) for name, value in memo["step"].items()}
            # Of a user's own rule the names may change from step to step, the shapes of gibo's own do not.
            before = self.settings.step.init(self.d)
            if is_own(type(self.settings.step)) and _shapes(state) != _shapes(before):
                raise InputError(f"step: expected {_shapes(before)} in a memo, got {_shapes(state)}")
            self._step_state = state


def _shapes(state: Mapping[str, Array]) -> dict[str, tuple[int, ...]]:
    return {name: state[name].shape for name in sorted(state)}
