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

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gibo._checks import as_finite
from gibo._linalg import Array
from gibo._serialize import is_own
from gibo.acquisition.information import GradientInformation
from gibo.errors import InputError
from gibo.optimizers.model_based import ModelBased
from gibo.optimizers.scale import Findings
from gibo.optimizers.settings import Settings
from gibo.outcome import ITERATE, QUERY, Evaluation

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

    def __init__(
        self,
        x0: npt.ArrayLike,
        *,
        scale: npt.ArrayLike = 1.0,
        bounds: npt.ArrayLike | None = None,
        seed: int = 0,
        settings: Settings | None = None,
    ) -> None:
        super().__init__(x0, scale=scale, bounds=bounds, seed=seed, settings=settings)
        self._iterate_asked = False
        self._move_state = self.settings.move.init(self.d)
        self._scale_found = not self._surrogate.can_be_rescaled
        self._directions = self.settings.queries.directions(self.d, self.seed)

    # -- algorithm 1 --------------------------------------------------------------------------------------------------

    def _propose(self) -> list[tuple[Array, str]]:
        M, M_first, *_ = self.settings.sizes
        batch: list[tuple[Array, str]] = []
        if not self._iterate_asked:
            batch.append((self._iterate, ITERATE))  # line 4
            if self.settings.fit_at == "iterate" and self.settings.priors:
                self._iterate_asked = True
                return batch
        if self.settings.fit_at != "step":
            self._fit()  # line 6
        information = self._information(iterate_comes=bool(batch))
        count = M if self._iteration else M_first
        # lines 7 to 12
        Z = self.settings.queries.choose(information, *self._box(), count, self._rng, self._directions)
        self._iterate_asked = True
        return batch + [(self._apart(z * self.scale), QUERY) for z in Z]

    def _update(self, batch: list[Evaluation]) -> None:
        if all(e.kind == ITERATE for e in batch):
            return  # the queries of this iteration come next
        planned = self._surrogate.hyperparameters.lengthscale
        if self.settings.fit_at == "step":
            self._fit()
        self._correct_scale(batch, planned)
        model, before, retreat = self._model(), self._iterate, self._retreat(batch)
        if retreat is not None:
            self._iterate = retreat
        else:
            z, state = self.settings.move.next(model.gp, before / self.scale, *self._box(), self._move_state)
            self._iterate, self._move_state = self.clip(z * self.scale), state  # line 13
        self._record(model, before)
        self._iteration += 1
        self._iterate_asked = False

    def _correct_scale(self, batch: list[Evaluation], planned: Array) -> None:
        """Rescale the lengthscales and their prior, until the values show a signal."""
        rule, window = self.settings.scale_rule, self._window()
        if rule is None or self._scale_found or not window:
            return
        valued = [(e.value, np.array_equal(e.x, self._iterate)) for e in batch if e.value is not None]
        here, around = ([value for value, same in valued if same is which] for which in (True, False))
        shortened = float(np.exp(np.log(planned / self._surrogate.hyperparameters.lengthscale).mean()))
        factor = rule.factor(Findings(self._model().evidence, len(window), self.d, here, around, shortened))
        if factor is None:
            self._scale_found = self._iteration > 0
        else:
            self._surrogate = self._surrogate.rescaled(factor)

    def _information(self, iterate_comes: bool) -> GradientInformation:
        """What queries tell about the gradient at the iterate, given all else that the next move will see.

        The move will see the last N_m evaluations, so what will have left the window by then is not counted on.
        """
        M, _, N_m, *_ = self.settings.sizes
        z, window = self._iterate / self.scale, self._window(N_m - M - iterate_comes)
        noise, N_g = self._gradients_to_come(iterate_comes)
        expecting = None
        if noise is not None:
            expecting = self._surrogate.expecting_gradient(window, self._window(), self._iterate, noise, N_g)
        information = GradientInformation(
            self._surrogate.given(window, N_g).gp if expecting is None else expecting, at=z
        )
        for query in self.log.pending.values():  # of earlier iterations; see `proceed`
            information = information.extend(query.x / self.scale)
        return information.extend(z) if iterate_comes and expecting is None else information

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

    def _retreat(self, batch: list[Evaluation]) -> Array | None:
        """The last iterate that had a value, if here neither the iterate nor most queries had one."""
        failed = [e for e in self.log.of_iteration(self._iteration) if e.value is None]
        if not any(e.kind == ITERATE for e in failed) or 2 * len(failed) <= len(batch):
            return None
        last = self._last_iterate()
        return None if last is None else last.x.copy()

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
        return [*super()._used_again(), *([] if last is None else [last])]

    # -- memo ---------------------------------------------------------------------------------------------------------

    def _memo(self) -> dict[str, Any]:
        found = {} if self.settings.scale_rule is None else {"scale_found": self._scale_found}
        return {**super()._memo(), "step": self._move_state, **found}

    def _recall(self, memo: dict[str, Any]) -> None:
        super()._recall(memo)
        self._iterate_asked = True
        self._scale_found = bool(memo.get("scale_found", self._scale_found))
        state = {name: as_finite(f"step.{name}", value) for name, value in memo.get("step", {}).items()}
        # The names in the state of a user's own move may change from step to step, those of gibo's own do not.
        expected = self.settings.move.init(self.d)
        if is_own(type(self.settings.move)) and _shapes(state) != _shapes(expected):
            raise InputError(f"step: expected {_shapes(expected)} in a memo, got {_shapes(state)}")
        self._move_state = state


def _shapes(state: Mapping[str, Array]) -> dict[str, tuple[int, ...]]:
    return {name: state[name].shape for name in sorted(state)}
