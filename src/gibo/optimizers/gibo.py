"""GIBO: gradient ascent on a Gaussian process whose data are chosen to know the gradient (Müller et al. 2021).

One iteration at the iterate t (algorithm 1 of the paper, its line numbers in the code):

    ask    [the iterate]  →  fit the hyperparameters  →  plan M queries by Gradient Information   `_propose`
    tell   …values, in any order…
           the last one:  Jacobian posterior at t  →  direction  →  step  →  next iterate         `_update`

The model is never carried along: whenever it is needed it is made from the window's data and the hyperparameters, so
the optimiser's state is plain data, and continuing from a saved state is the same as not having stopped.

Inside, the parameters are divided by `scale` (z = x/scale) and the values are standardised over the window
(u = (y − shift)/spread) if the settings say so; everything that leaves is in the user's units.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from gibo._linalg import Array, single_thread
from gibo.acquisition.information import GradientInformation
from gibo.acquisition.plan import plan
from gibo.errors import InputError
from gibo.gp import GaussianProcess, Jacobian
from gibo.map_fit import fit
from gibo.optimizers.base import Best, Evaluation, Optimizer, Query
from gibo.optimizers.settings import Hyperparameters, Settings, Standardisation
from gibo.steps import certainty, direction, probability_of_ascent

# An entry of a gradient whose noise variance is this many times its prior variance says nothing. A gradient without any
# other entries is left out of the model.
SAYS_NOTHING = 1e6


@dataclass(frozen=True, eq=False)
class Iteration:
    """What the optimiser knew when it made a step, in the user's units.

    Attributes:
        number: 0, 1, …
        evaluations: values told up to then, failures included.
        x: (d,) the iterate from which it stepped.
        gradient: (d,) posterior mean of the gradient there.
        uncertainty: trace of the gradient's posterior covariance.
        probability_of_ascent: the model's probability that the objective rises along the step.
        certainty: how sure the model is that the gradient is not zero, see `gibo.steps.certainty`.
        step: (d,) the step made.
        lengthscale, variance, noise: the model's hyperparameters.
        jitter: what had to be added to factorise the model's covariance; almost always 0.
        warning: why a fit kept the old hyperparameters, or None.
    """

    number: int
    evaluations: int
    x: Array
    gradient: Array
    uncertainty: float
    probability_of_ascent: float
    certainty: float
    step: Array
    lengthscale: Array
    variance: float
    noise: float
    jitter: float
    warning: str | None


class _Model(NamedTuple):
    """A model of u as a function of z, and how u came from y."""

    gp: GaussianProcess
    units: Standardisation


class GIBO(Optimizer):
    """Local search along a gradient that a Gaussian process infers from actively chosen queries. It maximises.

    Args:
        x0: (d,) where to start.
        scale: positive; by how much a parameter must change to matter, roughly (like sigma0 in CMA-ES): a number, or
            one per parameter. The default settings are made for a scale that is right within a factor of about 3.
        bounds: None, or (lower, upper); no query and no iterate leaves them.
        seed: of all random choices.
        settings: see `Settings` for each default and its reason; `gibo.within_model` and `gibo.out_of_model` are
            the paper's.

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
            raise InputError(f"settings: expected gibo.Settings(...), got {settings!r:.80}")
        self.settings = (settings or Settings()).resolve(self.d)
        self._hyperparameters = self.settings.initial(self.d)
        self._iterate_asked = False
        self._warning: str | None = None
        self._step_state = self.settings.step.init(self.d)
        self._steps: list[Iteration] = []

    # -- what it knows ------------------------------------------------------------------------------------------------

    @property
    def iterations(self) -> list[Iteration]:
        """One record per step made."""
        return list(self._steps)

    @property
    def best(self) -> Best | None:
        """The point with the highest mean under the model: one of the window's within the bounds, or the iterate.

        But not the iterate, which is yet to be evaluated, if evaluations failed since the window's first.
        """
        window = self._window(self._N_m)
        if not window:
            return None
        X = [e.x for e in window if np.array_equal(self.clip(e.x), e.x)]
        if not X or all(e.failure is None for e in self._evaluations.values() if e.id > window[0].id):
            X.append(self._iterate)
        with single_thread():
            gp, units = self._model(window)
            mean = np.asarray(gp.predict(np.array(X) / self.scale).mean)
        i = int(mean.argmax())
        return Best(X[i].copy(), float(units.shift + units.spread * mean[i]))

    def jacobian(self) -> Jacobian:
        """Posterior of the objective's gradient at the iterate, from the window's data."""
        with single_thread():
            return self._jacobian(self._model(self._window(self._N_m)))[0]

    def foreseen(self) -> Query | None:
        return None if self._batch or self._iterate_asked else self._next_query(self._iterate, "iterate")

    # -- algorithm 1 --------------------------------------------------------------------------------------------------

    def _propose(self) -> list[tuple[Array, str]]:
        proposals: list[tuple[Array, str]] = []
        if not self._iterate_asked:
            self._iterate_asked = True
            proposals.append((self._iterate, "iterate"))  # line 4
            if self.settings.priors and self.settings.fit_after_iterate:
                return proposals
        self._fit()  # line 6
        M, z, (lower, upper) = self._M, self._iterate / self.scale, self._box()
        if self.settings.sampling == "random":
            Z = lower + (upper - lower) * self._rng.random((M, self.d))
        else:
            # The step will see the last N_m evaluations; what will have left the window by then is not counted on.
            window = self._window(self._N_m - M - len(proposals))
            noise, N_g = self._gradients_to_come(iterate_too=bool(proposals))
            model = self._model(window, N_g)
            with_gradient = None if noise is None else self._with_gradient_to_come(model, z, noise)
            gi = GradientInformation(model.gp if with_gradient is None else with_gradient, at=z)
            for query in self._waiting.values():  # of earlier iterations, still to be told; see `move_on`
                gi = gi.extend(query.x / self.scale)
            if proposals and with_gradient is None:
                gi = gi.extend(z)
            Z = plan(gi, lower, upper, M, self._rng, self.settings.least_share).X  # lines 7 to 12
        return proposals + [(z * self.scale, "query") for z in Z]

    def _update(self, batch: list[Evaluation]) -> None:
        if all(e.kind == "iterate" for e in batch):
            return  # the queries of this iteration come next
        model = self._model(self._window(self._N_m))
        jacobian, internal = self._jacobian(model)
        ell = model.gp.kernel.ell(self.d)
        ascent = direction(internal.mean, ell, self.settings.normalization)
        before, retreat = self._iterate, self._retreat(batch)
        if retreat is None:
            step, self._step_state = self.settings.step.update(ascent, self._step_state)
            self._iterate = self.clip(before + step * self.scale)  # line 13
        else:
            self._iterate = retreat
        self._record(model, jacobian, internal, before)
        self._iteration += 1
        self._iterate_asked = False

    def _retreat(self, batch: list[Evaluation]) -> Array | None:
        """The last iterate that had a value, if here neither the iterate nor most queries had one.

        Old data would lead further into where evaluations fail; a single failure here and there is no reason to go.
        """
        failed = [e for e in self._evaluations.values() if e.iteration == self._iteration and e.failure is not None]
        if not any(e.kind == "iterate" for e in failed) or 2 * len(failed) <= len(batch):
            return None
        good = [e.x for e in self.evaluations if e.kind == "iterate" and e.value is not None]
        return good[-1].copy() if good else None

    def _fit(self) -> None:
        """Line 6: MAP hyperparameters, from the present ones on; to the values alone.

        Exact gradients of a gentle slope beside a cliff would outweigh the values, and the lengthscales that they want,
        and with them the steps, would be far too long.
        """
        window, priors = self._window(self._N_m), self.settings.priors
        needed = {"each": self.settings.fit_from, "full": self._N_m, "never": None}[self.settings.fit]
        if not priors or needed is None or len(window) < needed:
            return
        if self.settings.standardize and len({e.value for e in window}) == 1:
            return  # all the same, such as the highest score: any long lengthscale explains it, and says nothing
        fitted = fit(self._model(window, N_g=0).gp, priors)
        self._hyperparameters = Hyperparameters.of(fitted.gp, self.d)
        self._warning = None if fitted.warning is None else fitted.warning.message

    def _box(self) -> tuple[Array, Array]:
        """The box around the iterate in which queries are sought, within the bounds; in z."""
        s, z = self.settings, self._iterate / self.scale
        half = s.delta * self._hyperparameters.lengthscale if s.delta_unit == "lengthscales" else s.delta / self.scale
        lower, upper = z - half, z + half
        if self.bounds is not None:
            lower, upper = (
                np.maximum(lower, self.bounds[0] / self.scale),
                np.minimum(upper, self.bounds[1] / self.scale),
            )
        return lower, upper

    # -- the model ----------------------------------------------------------------------------------------------------

    def _window(self, size: int) -> list[Evaluation]:
        """The last evaluations that have a value, by id."""
        return [e for e in self.evaluations if e.value is not None][-size:] if size > 0 else []

    def _model(self, window: list[Evaluation], N_g: int | None = None) -> _Model:
        """The Gaussian process given the window, in z and u; with its last N_g gradients, by default the settings'."""
        gp = self.settings.model(self._hyperparameters)
        y = np.array([e.value for e in window], dtype=np.float64)
        units = self.settings.standardisation(y)
        if not window:
            return _Model(gp, units)
        X = np.array([e.x for e in window]) / self.scale
        u = units.apply(y)
        given = [e for e in window if e.gradient is not None and e.gradient_noise is not None]
        G, g, g_noise = self._gradients(gp, units, [(e.x, e.gradient, e.gradient_noise) for e in given])
        last = slice(max(0, len(G) - (self._N_g if N_g is None else N_g)), None)
        if not len(G[last]):
            return _Model(gp.condition(X, u), units)
        return _Model(gp.condition(X, u, G[last], g[last], g_noise[last]), units)

    def _gradients(self, gp: GaussianProcess, units: Standardisation, given: list[Any]) -> tuple[Array, Array, Array]:
        """Of gradients (x, gradient, noise) those that say something, in z and u: where, what and their noise (m, d).

        An entry g with noise v far above its prior variance H says g/v. So does (c/v)·g with the noise c < v, if c is
        still far above H; and K, whose digits are relative to its largest entry, stays well conditioned.
        """
        x, g, v = np.array(given, dtype=np.float64).reshape(-1, 3, self.d).swapaxes(0, 1)
        with np.errstate(over="ignore", invalid="ignore"):
            slope = self.scale / units.spread  # du/dz = dy/dx · scale/spread
            v = v * slope**2
            c = np.minimum(v, SAYS_NOTHING * gp.kernel.gradient_variance(self.d))
            g = np.where(c < v, c / v, 1.0) * (g * slope)
        # The largest float may not be large enough for a gradient in these units.
        speaks = (c == v).any(axis=1) & np.isfinite(g).all(axis=1)
        return x[speaks] / self.scale, g[speaks], c[speaks]

    def _gradients_to_come(self, iterate_too: bool) -> tuple[Array | None, int]:
        """The noise of the gradient that the iterate will come with, if it will, and how many older ones will count.

        What came with gradients in the iteration before will come with them again.
        """
        queries = [e for e in self._evaluations.values() if e.kind == "query" and e.iteration == self._iteration - 1]
        room = max(0, self._N_g - sum(e.gradient is not None for e in queries))  # these come later than the iterate's
        iterates = [e for e in self.evaluations if e.kind == "iterate" and e.value is not None]
        noise = iterates[-1].gradient_noise if iterates and iterate_too else None
        return (None, room) if noise is None or not room else (noise, room - 1)

    def _with_gradient_to_come(self, model: _Model, z: Array, noise: Array) -> GaussianProcess | None:
        """The model given the iterate's value and gradient, whatever they will be: α does not depend on them.

        None if such a gradient says nothing.
        """
        # If the window that will be left is empty, so are its units; the present one's are the best guess.
        values = np.array([e.value for e in self._window(self._N_m)], dtype=np.float64)
        units = model.units if model.gp.n else self.settings.standardisation(values)
        _, g, g_noise = self._gradients(model.gp, units, [(self._iterate, np.zeros(self.d), noise)])
        return model.gp.extend(z, 0.0, z[None], g, g_noise) if len(g) else None

    def _jacobian(self, model: _Model) -> tuple[Jacobian, Jacobian]:
        """The posterior of the gradient at the iterate, in the user's units and in the model's."""
        internal = model.gp.jacobian(self._iterate / self.scale)
        slope = model.units.spread / self.scale
        with np.errstate(over="ignore", invalid="ignore"):  # a covariance has the square of the values' unit
            return Jacobian(internal.mean * slope, internal.covariance * np.outer(slope, slope)), internal

    def _record(self, model: _Model, jacobian: Jacobian, internal: Jacobian, before: Array) -> None:
        step = self._iterate - before
        square = model.units.spread * model.units.spread
        self._steps = [
            *self._steps,
            Iteration(
                number=self._iteration,
                evaluations=len(self._evaluations),
                x=before,
                gradient=jacobian.mean,
                uncertainty=float(jacobian.covariance.trace()),
                probability_of_ascent=probability_of_ascent(step / self.scale, internal.mean, internal.covariance),
                certainty=certainty(internal.mean, internal.covariance),
                step=step,
                lengthscale=self._hyperparameters.lengthscale * self.scale,
                variance=self._hyperparameters.variance * square,
                noise=self._hyperparameters.noise * square,
                jitter=model.gp.jitter * square,
                warning=self._warning,
            ),
        ]

    @property
    def _M(self) -> int:
        assert self.settings.M is not None  # resolved
        return self.settings.M

    @property
    def _N_g(self) -> int:
        assert self.settings.N_g is not None  # resolved
        return self.settings.N_g

    @property
    def _N_m(self) -> int:
        assert self.settings.N_m is not None  # resolved
        return self.settings.N_m

    # -- state --------------------------------------------------------------------------------------------------------

    def _arguments(self) -> dict[str, Any]:
        return {**super()._arguments(), "settings": self.settings}

    @classmethod
    def _from_arguments(cls, arguments: dict[str, Any]) -> Self:
        return cls(**{**arguments, "settings": Settings.from_plain(arguments["settings"])})

    def _own_thought(self) -> dict[str, Any]:
        return {"hyperparameters": self._hyperparameters, "warning": self._warning}

    def _recall(self, thought: dict[str, Any]) -> None:
        self._iterate_asked = True
        self._hyperparameters = Hyperparameters.from_plain(thought["hyperparameters"])
        self._warning = thought["warning"]

    def _own_state(self) -> dict[str, Any]:
        return {
            "iterate_asked": self._iterate_asked,
            "hyperparameters": self._hyperparameters,
            "warning": self._warning,
            "step_state": self._step_state,
            "steps": [asdict(step) for step in self._steps],
        }

    def _load_own_state(self, own: dict[str, Any]) -> None:
        self._iterate_asked = bool(own["iterate_asked"])
        self._hyperparameters = Hyperparameters.from_plain(own["hyperparameters"])
        self._warning = own["warning"]
        self._step_state = {key: np.array(value) for key, value in own["step_state"].items()}
        self._steps = [_iteration_from_plain(step) for step in own["steps"]]


def _iteration_from_plain(step: dict[str, Any]) -> Iteration:
    arrays = ("x", "gradient", "step", "lengthscale")
    floats = ("uncertainty", "probability_of_ascent", "certainty", "variance", "noise", "jitter")
    fields: dict[str, Any] = {**step}
    fields |= {name: np.array(step[name], dtype=np.float64) for name in arrays}
    fields |= {name: float(step[name]) for name in floats}
    return Iteration(**fields)
