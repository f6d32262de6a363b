"""GIBO as a sampler of Optuna: ``optuna.create_study(sampler=GIBOSampler(seed=0))``.

The state of the search is in the study's storage, so that threads, processes and later starts share one search:

    trial's system attribute    content
    gibo:state:0, :1, …         the optimiser after it had asked for a batch of queries, as text, in pieces
    gibo:batch                  that the pieces are complete, the batch's number and a token; the *head* is the highest
                                batch, of two with one number that of the lower trial
    gibo:query                  which query of which head this trial evaluates
    gibo:extra                  that it evaluates a point beside the queries of this head

To sample, a trial loads the head, tells it all trials that have finished since, and takes a free query. If no query is
left and all are told, the trial asks for the next batch and becomes the head. If all queries are taken and some still
run, the trial evaluates a random point near the iterate, as an additional value for the model.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import secrets
import threading
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from gibo._checks import instance, natural, positive
from gibo._linalg import Array
from gibo.errors import InputError, missing_extra
from gibo.optimizers.gibo import GIBO
from gibo.optimizers.settings import Settings
from gibo.outcome import Query
from gibo.parameters import SHARE, Parameter, Parameters

try:
    import optuna
    from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution, distribution_to_json
    from optuna.samplers import BaseSampler, RandomSampler
    from optuna.search_space import intersection_search_space
    from optuna.study import Study, StudyDirection
    from optuna.trial import FrozenTrial, TrialState
except ImportError as error:
    raise missing_extra("GIBOSampler needs Optuna", "optuna") from error

STATE_KEY, BATCH_KEY, QUERY_KEY, EXTRA_KEY = "gibo:state", "gibo:batch", "gibo:query", "gibo:extra"

PIECE = 30_000  # characters; a text of MySQL holds 65,535

# A query of a running trial is skipped after this many extra trials per running one, because its process may have been
# killed. If its value arrives later, it is used from then on.
EXTRA_ROUNDS = 2

_logger = optuna.logging.get_logger(__name__)


class Recommendation(NamedTuple):
    """The model's recommendation: parameters by name, and the model's value there, without noise."""

    params: dict[str, Any]
    value: float


@dataclass(frozen=True)
class _Space:
    """Converts between Optuna's parameters and the optimiser's vector."""

    distributions: dict[str, BaseDistribution]
    parameters: Parameters

    @property
    def key(self) -> str:
        text = json.dumps({name: distribution_to_json(d) for name, d in self.distributions.items()})
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_vector(self, params: Mapping[str, Any]) -> Array:
        return self.parameters.to_vector({f"p{i}": params[name] for i, name in enumerate(self.distributions)})

    def to_params(self, x: Array) -> dict[str, Any]:
        values = self.parameters.to_values(x).values()
        return {name: _on_grid(d, v) for (name, d), v in zip(self.distributions.items(), values, strict=True)}

    def rounded(self, x: Array) -> Array:
        """The vector of the values that are evaluated at x, after rounding to whole numbers or steps."""
        on_grid = [
            isinstance(d, IntDistribution) or bool(getattr(d, "step", None)) for d in self.distributions.values()
        ]
        return np.where(on_grid, self.to_vector(self.to_params(x)), x) if any(on_grid) else x


@dataclass
class _Search:
    """The optimiser of a head, with the trials that it was told since."""

    token: str
    batch: int
    optimizer: GIBO
    pending: dict[int, Query]  # the head's pending queries, by id
    told: set[int]  # numbers of trials


class GIBOSampler(BaseSampler):
    """Local search with GIBO over the study's float and integer parameters, also on log scales.

    The independent sampler samples categorical parameters and parameters that some trials lack. The first trial of a
    study evaluates the start, unless it was enqueued. The search begins at the best existing trial. Failed and pruned
    trials have no value and are skipped; enqueued and added trials are told to the model.

    Several threads (``n_jobs``) or processes with one storage share one search; see the module's docstring. A study
    that is continued on the same storage continues its search. With one worker, the same seed gives the same trials.
    Two processes that sample at the same moment may evaluate one query twice; both values count.

    Args:
        start: values of the start by name; by default the middle of each range, on its scale.
        scale: the change of a parameter that has a clear effect, as a share of its range, roughly.
        seed: of all random choices; None: a different one each time.
        settings: `gibo.Settings`; the default method needs none.
        independent_sampler: samples the other parameters; by default Optuna's ``RandomSampler``.
        warn_independent_sampling: write a log message when a parameter is sampled independently.

    Example:
        >>> import optuna
        >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
        >>> study = optuna.create_study(sampler=GIBOSampler(seed=0))
        >>> study.optimize(lambda trial: (trial.suggest_float("x", -10, 10) - 2) ** 2, n_trials=20)
        >>> study.best_value < 0.1
        True
    """

    def __init__(
        self,
        *,
        start: Mapping[str, float] | None = None,
        scale: float = SHARE,
        seed: int | None = None,
        settings: Any = None,
        independent_sampler: BaseSampler | None = None,
        warn_independent_sampling: bool = True,
    ) -> None:
        self._start = dict(instance("start", {} if start is None else start, Mapping, "values by name"))
        self._scale = positive("scale", scale)
        self._seed = secrets.randbits(32) if seed is None else natural("seed", seed)
        self._settings = instance("settings", settings, (Settings, NoneType), "gibo.Settings(...)")
        sampler = RandomSampler(seed=self._seed % 2**32) if independent_sampler is None else independent_sampler
        self._independent = instance("independent_sampler", sampler, BaseSampler, "a sampler of Optuna")
        self._warn = warn_independent_sampling
        self._warned: set[str] = set()
        self._search: _Search | None = None
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_lock", "_search")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock(), _search=None)

    def reseed_rng(self) -> None:
        """Reseed the generator for Optuna's workers. The search is shared; it depends on the trial's number."""
        self._independent.reseed_rng()

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The search space: the numbers with a range that all complete trials have in common."""
        return _searched(study)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The parameters of a trial: a query of the optimiser, or a point beside its queries."""
        with self._lock:
            space = _space(study, search_space)
            if space is None:
                return {}
            search = self._current(study, space)
            if "fixed_params" in trial.system_attrs:  # enqueued, perhaps with only some of the parameters
                return space.to_params(search.optimizer.iterate)
            trials = study.get_trials(deepcopy=False)
            if set(search.pending) <= _taken(trials, search.token) and _waited_enough(trials, search.token, trial):
                for query in search.pending.values():
                    search.optimizer.tell(query, failed="its trial is still running")
                search.pending = {}
            if not search.pending:
                search = self._next_batch(study, trial, space, search)
                trials = study.get_trials(deepcopy=False)
            taken = _taken(trials, search.token)
            free = [query for query in search.pending.values() if query.id not in taken]
            if free:
                _set(study, trial, QUERY_KEY, {"token": search.token, "id": free[0].id})
                return space.to_params(free[0].x)
            _set(study, trial, EXTRA_KEY, search.token)
            rng = np.random.default_rng((self._seed, trial.number))
            step = self._scales(space) * rng.uniform(-1.0, 1.0, space.parameters.d)
            return space.to_params(search.optimizer.iterate + step)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """The start in a study's first trial, otherwise the value of the independent sampler."""
        if trial.number == 0 and _is_searched(param_distribution):
            parameter = _parameter(param_distribution, self._start.get(param_name))
            return _on_grid(param_distribution, parameter.value(parameter.inner_start))
        begun = any(t.state == TrialState.COMPLETE for t in study.get_trials(deepcopy=False))
        if self._warn and begun and param_name not in self._warned:
            self._warned.add(param_name)
            name = type(self._independent).__name__
            _logger.warning(f"{param_name}: sampled by {name}, as GIBO searches numbers that all complete trials have")
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def recommend(self, study: Study) -> Recommendation:
        """The model's recommendation; with a noisy objective, ``study.best_trial`` is a lucky trial."""
        with self._lock:
            space = _space(study, _searched(study))
            best = None if space is None else self._current(study, space).optimizer.best
        if space is None or best is None:
            raise InputError("recommend: no complete trial has a value yet, or no parameter is searched by GIBO")
        return Recommendation(space.to_params(best.x), _sign(study) * best.value)

    # -- the search ---------------------------------------------------------------------------------------------------

    def _current(self, study: Study, space: _Space) -> _Search:
        """The head's optimiser, or a new one if these parameters have no head, with all finished trials."""
        trials, search = study.get_trials(deepcopy=False), self._search
        heads = [t for t in trials if t.system_attrs.get(BATCH_KEY, {}).get("space") == space.key]
        head = min(heads, key=lambda t: (-t.system_attrs[BATCH_KEY]["batch"], t.number), default=None)
        if head is None:
            bounds, scale = space.parameters.bounds, self._scales(space)
            optimizer = GIBO(space.parameters.x0, scale=scale, bounds=bounds, seed=self._seed, settings=self._settings)
            optimizer.rounding = space.rounded
            search = _Search("", 0, optimizer, {}, set())
        elif search is None or search.token != head.system_attrs[BATCH_KEY]["token"]:
            search = _load(head, space)
        for trial in trials:
            if trial.state.is_finished() and trial.number not in search.told:
                search.told.add(trial.number)
                _tell(search, space, trial, _sign(study))
        self._search = search
        return search

    def _next_batch(self, study: Study, trial: FrozenTrial, space: _Space, search: _Search) -> _Search:
        """Ask for the next queries and make this trial the head, unless another process was faster."""
        pending = {query.id: query for query in search.optimizer.ask()}
        self._search = _Search(secrets.token_hex(8), search.batch + 1, search.optimizer, pending, search.told)
        _save(study, trial, space, self._search)
        return self._current(study, space)

    def _scales(self, space: _Space) -> Array:
        return space.parameters.scale * (self._scale / SHARE)


# -- heads ------------------------------------------------------------------------------------------------------------


def _save(study: Study, trial: FrozenTrial, space: _Space, search: _Search) -> None:
    content = json.dumps({"state": search.optimizer.state(), "told": sorted(search.told)})
    text = base64.b85encode(zlib.compress(content.encode())).decode()
    pieces = [text[i : i + PIECE] for i in range(0, len(text), PIECE)]
    for i, piece in enumerate(pieces):
        _set(study, trial, f"{STATE_KEY}:{i}", piece)
    head = {"space": space.key, "batch": search.batch, "token": search.token, "pieces": len(pieces)}
    _set(study, trial, BATCH_KEY, head)  # last, because it marks the pieces as complete


def _load(head: FrozenTrial, space: _Space) -> _Search:
    known = head.system_attrs[BATCH_KEY]
    text = "".join(head.system_attrs[f"{STATE_KEY}:{i}"] for i in range(known["pieces"]))
    content = json.loads(zlib.decompress(base64.b85decode(text)))
    optimizer = GIBO.from_state(content["state"])
    optimizer.rounding = space.rounded
    pending = {query.id: query for query in optimizer.ask()}  # the same ones again
    return _Search(known["token"], known["batch"], optimizer, pending, set(content["told"]))


def _tell(search: _Search, space: _Space, trial: FrozenTrial, sign: float) -> None:
    """Tell a finished trial as the value of its query, or as a value of a further point."""
    claim, value = trial.system_attrs.get(QUERY_KEY, {}), _value(trial)
    query = search.pending.get(claim.get("id")) if claim.get("token") == search.token else None
    if query is not None and value is None:
        search.optimizer.tell(search.pending.pop(query.id), failed=f"the trial ended as {trial.state.name}")
    elif query is not None and value is not None and _is_at(trial, space.to_params(query.x)):
        search.optimizer.tell(search.pending.pop(query.id), sign * value)
    elif value is not None and all(name in trial.params for name in space.distributions):
        search.optimizer.tell(space.to_vector(trial.params), sign * value)


def _taken(trials: list[FrozenTrial], token: str) -> set[int]:
    """The queries of a head that trials are evaluating."""
    claims = [t.system_attrs.get(QUERY_KEY, {}) for t in trials if t.state == TrialState.RUNNING]
    return {claim["id"] for claim in claims if claim.get("token") == token}


def _waited_enough(trials: list[FrozenTrial], token: str, own: FrozenTrial) -> bool:
    running = sum(t.state == TrialState.RUNNING and t.number != own.number for t in trials)
    extras = sum(t.system_attrs.get(EXTRA_KEY) == token and t.state.is_finished() for t in trials)
    return bool(extras >= EXTRA_ROUNDS * running)


def _set(study: Study, trial: FrozenTrial, key: str, value: Any) -> None:
    study._storage.set_trial_system_attr(trial._trial_id, key, value)


# -- parameters -------------------------------------------------------------------------------------------------------


def _searched(study: Study) -> dict[str, BaseDistribution]:
    if len(study.directions) > 1:
        raise InputError(f"GIBOSampler: expected a study with one objective, got one with {len(study.directions)}")
    space = intersection_search_space(study.get_trials(deepcopy=False))
    return {name: distribution for name, distribution in space.items() if _is_searched(distribution)}


def _is_searched(distribution: BaseDistribution) -> bool:
    return isinstance(distribution, (FloatDistribution, IntDistribution)) and not distribution.single()


def _space(study: Study, distributions: dict[str, BaseDistribution]) -> _Space | None:
    """The space with the best trial as its start; None without parameters to search or without a start."""
    values = [(_sign(study) * value, t) for t in study.get_trials(deepcopy=False) if (value := _value(t)) is not None]
    if not distributions or not values:
        return None
    best = max(values, key=lambda pair: pair[0])[1]
    # Optuna's names may be any text, those of Parameters may not.
    each = [_parameter(distribution, best.params[name]) for name, distribution in distributions.items()]
    return _Space(distributions, Parameters(**{f"p{i}": parameter for i, parameter in enumerate(each)}))


def _parameter(distribution: BaseDistribution, start: float | None) -> Parameter:
    assert isinstance(distribution, (FloatDistribution, IntDistribution))  # `_is_searched`
    low, high = distribution.low, distribution.high
    if isinstance(distribution, IntDistribution):
        return Parameter("integer", low, high, start, log=distribution.log)
    return Parameter("log" if distribution.log else "linear", low, high, start)


def _on_grid(distribution: BaseDistribution, value: float) -> float:
    """The nearest value that the distribution's step allows."""
    assert isinstance(distribution, (FloatDistribution, IntDistribution))
    if distribution.step is None or distribution.log:
        return value
    steps = round((value - distribution.low) / distribution.step)
    return min(distribution.low + steps * distribution.step, distribution.high)


def _value(trial: FrozenTrial) -> float | None:
    """A complete trial's value if it is finite; a pruned trial's value is an intermediate one."""
    value = trial.value if trial.state == TrialState.COMPLETE else None
    return value if value is not None and math.isfinite(value) else None


def _is_at(trial: FrozenTrial, params: dict[str, Any]) -> bool:
    """Whether a trial was evaluated at its query; an enqueued one was not. A storage may round."""
    return all(math.isclose(params[name], trial.params.get(name, math.nan), rel_tol=1e-9) for name in params)


def _sign(study: Study) -> float:
    return -1.0 if study.direction == StudyDirection.MINIMIZE else 1.0
