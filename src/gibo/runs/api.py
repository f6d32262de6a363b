"""Maximise, minimise, resume, and run any optimiser."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Unpack

import numpy.typing as npt

from gibo._checks import describe, describe_error, instance
from gibo.errors import InputError, JournalError
from gibo.optimizers.base import Optimizer
from gibo.optimizers.gibo import GIBO
from gibo.optimizers.limits import Limits, with_care
from gibo.optimizers.settings import Settings
from gibo.optimizers.sources import Sources
from gibo.parameters import Parameters
from gibo.runs.fingerprint import fingerprint
from gibo.runs.journal import Journal
from gibo.runs.loop import Interrupts, Loop
from gibo.runs.options import REMEMBERED, OptionNames, RunOptions, like, takes_options
from gibo.runs.pools import Futures, InProcess, Objective, Pool, prepared
from gibo.runs.progress import Bar
from gibo.runs.result import Result, Status
from gibo.runs.session import Session
from gibo.runs.spec import Naming, RunSpec, baseline_of, check_sources
from gibo.runs.workers import Workers


@takes_options
def maximize(
    objective: Objective,
    x0: npt.ArrayLike | None = None,
    *,
    budget: int,
    scale: npt.ArrayLike | None = None,
    bounds: npt.ArrayLike | None = None,
    seed: int | None = None,
    settings: Settings | None = None,
    limits: Limits | Mapping[str, Any] | None = None,
    careful: bool = False,
    largest_step: float | None = None,
    sources: Sources | Mapping[str, float] | None = None,
    **options: Unpack[OptionNames],
) -> Result:
    """Maximise a noisy, expensive objective near x0 with GIBO.

    Args:
        objective: takes a vector (d,) and returns a number or a `gibo.Outcome`. If it has a parameter ``seed``, it gets
            a seed that depends only on the run's seed and the query. If it has a parameter ``kind``, it gets the kind
            of the query, ``"iterate"`` (the optimiser's guess), ``"query"`` (near it) or ``"baseline"`` (the start
            again), so that it can spend more on an iterate. An evaluation fails if it raises or returns no finite
            number. The run then continues, and the search avoids regions where evaluations fail.
        x0: (d,) the start; or give `parameters`.
        budget: the largest number of evaluations; with a journal, including those of earlier starts.
        scale: the change of a parameter that has a clear effect, roughly; one number or one per parameter. None: 1.
        bounds: None, or (lower, upper) as numbers or vectors, or d pairs.
        seed: of all random choices. None: 0.
        settings: `gibo.Settings`; the default method needs none. A run that is continued takes omitted scale, bounds,
            seed and settings from its journal.
        limits: (lower, upper) of measured quantities by name, such as ``{"torque": (None, 4.0)}``, or `gibo.Limits`.
            The objective then returns ``Outcome(value, measured={"torque": 3.2})``. `Result.limits` has the model's
            probability that each limit holds at the recommended point.
        careful: queries also keep to the limits, according to the models; the start must satisfy them.
        largest_step: the largest change of a parameter in a step, in units of `scale`.
        sources: the costs of an evaluation in a simulator and on the machine, ``{"simulator": 1, "robot": 50}``. The
            objective has a parameter ``source`` and gets one of the names. The values of the more expensive source
            count: the budget is the number of its evaluations, and those of the simulator together cost at most as
            much.
        **options: those of `gibo.runs.options.RunOptions`.

    Returns:
        A `Result`, also after Ctrl-C, which ends the run when the running evaluations have returned. A second Ctrl-C
        raises KeyboardInterrupt at once; the journal is kept.

    Example:
        >>> import gibo
        >>> result = gibo.maximize(lambda x: -((x - 1.0) ** 2).sum(), [0.0, 0.0], budget=60, scale=0.3)
        >>> result.reason
        'the budget of 60 evaluations is spent'
        >>> bool(abs(result.x - 1.0).max() < 0.1)
        True
    """
    parameters = options.get("parameters")
    if parameters is not None:
        instance("parameters", parameters, Parameters, "gibo.parameters.Parameters(...)")
        if x0 is not None or bounds is not None or scale is not None:
            raise InputError("parameters: they already have start, scale and bounds; omit x0, scale and bounds")
        x0, scale, bounds = parameters.x0, parameters.scale, parameters.bounds
    elif x0 is None:
        raise InputError("x0: expected the start, a vector (d,); or give parameters=")
    search: dict[str, Any] = {"scale": scale, "bounds": bounds, "seed": seed, "settings": settings}
    limited = None if limits is None and careful is False else with_care(limits, careful)
    search |= {"limits": limited, "largest_step": largest_step, "sources": sources}
    optimizer = GIBO(x0, **{name: each for name, each in search.items() if each is not None})
    return run(optimizer, objective, budget=budget, **options)


@like(maximize)
def minimize(*arguments: Any, **options: Any) -> Result:
    """Minimise: `maximize` with the opposite sign. All values keep the objective's sign.

    Example:
        >>> import gibo
        >>> gibo.minimize(lambda x: ((x - 1.0) ** 2).sum(), [0.0, 0.0], budget=60, scale=0.3).value < 0.1
        True
    """
    return maximize(*arguments, **{"sign": -1.0, **options})


@takes_options
def resume(journal: str | Path, objective: Objective, *, budget: int | None = None, **options: Any) -> Result:
    """Continue the run in a folder. Recorded values are used, and pending queries are evaluated again.

    The continued run equals a run without the stop, bit for bit on the same machine. If `budget`, `target`,
    `least_certainty`, `time_limit`, `retries` or `max_failures` is omitted, the value of the last start is used.
    `target=None` removes the target.

    Args:
        journal: the run's folder.
        objective: the same as before.
        budget: the largest number of evaluations, including those of earlier starts; None: as in the last start.
        **options: see `maximize`.

    Example:
        >>> import gibo, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> f = lambda x: -((x - 1.0) ** 2).sum()
        >>> half = gibo.maximize(f, [0.0, 0.0], budget=10, scale=0.3, journal=folder)
        >>> whole = gibo.resume(folder, f, budget=20)
        >>> whole.evaluations, bool((whole.x == gibo.maximize(f, [0.0, 0.0], budget=20, scale=0.3).x).all())
        (20, True)
    """
    with Journal.read(journal) as saved:
        spec, last = saved.spec(), saved.last_options()
    if spec.training is not None:
        raise InputError(f"{journal}: a run of gibo train; continue it with the same command, gibo train ...")
    remembered: dict[str, Any] = {name: last[name] for name in REMEMBERED if last.get(name) is not None}
    if budget is not None:
        remembered["budget"] = budget
    elif "budget" not in remembered:
        raise InputError(f"budget: {journal} has none yet; give the largest number of evaluations with budget=n")
    names = ("sign", "penalty", "baseline", "quorum")
    of_run = {"parameters": spec.naming.parameters, **{name: getattr(spec, name) for name in names}}
    return run(spec.fresh_optimizer(), objective, **{**of_run, **remembered, **options, "journal": journal})


@takes_options
def run(optimizer: Optimizer, objective: Objective, *, budget: int, **options: Unpack[OptionNames]) -> Result:
    """Run any optimiser on an objective.

    The result does not depend on the number of workers or on the order of arrival, unless `quorum` is below 1 or the
    objective depends on more than its arguments. (In worker processes, the global generators of Python and NumPy are
    seeded for each evaluation; in this process and in executors they are not.)

    Args:
        optimizer: a new one.
        objective: see `maximize`.
        budget: the largest number of evaluations; with a journal, including those of earlier starts.
        **options: those of `gibo.runs.options.RunOptions`.

    Returns:
        A `Result`; see `maximize`.

    Example:
        >>> import gibo
        >>> opt = gibo.GIBO([0.0], scale=0.3)
        >>> gibo.run(opt, lambda x: -(x[0] - 1.0) ** 2, budget=10).evaluations
        10
    """
    chosen = RunOptions.of({"budget": budget, **options})
    if not callable(objective):
        raise InputError(f"objective: expected a function of a vector, got {describe(objective)}")
    instance("optimizer", optimizer, Optimizer, "one such as gibo.GIBO(x0)")
    if chosen.quorum < 1.0 and not optimizer.uses_late_values:
        raise InputError(f"quorum: {type(optimizer).__name__} needs all values of an iteration; use quorum=1")
    known = None if chosen.training is not None or chosen.journal is None else fingerprint(objective)
    if optimizer.log.simulator is not None:
        check_sources(chosen.baseline, chosen.penalty)
    further = {} if chosen.reparametrizer is None else chosen.reparametrizer.options()
    objective, wanted = prepared(objective, chosen.parameters, further, optimizer.log.simulator is not None)
    with Interrupts() as interrupts, ExitStack() as closing:
        pool = make_pool(objective, chosen)
        closing.callback(pool.close)
        session = _session(optimizer, chosen)
        if session.journal is not None:
            closing.callback(session.journal.close)
            session.start({name: getattr(chosen, name) for name in (*REMEMBERED, "workers")}, known, chosen.force)
        if chosen.data and not optimizer.log.events:  # a continued run has its data already
            session.tell_elsewhere(chosen.data)
        bar = closing.enter_context(Bar(chosen.budget)) if chosen.progress is True else chosen.progress or None
        if session.journal is not None and chosen.watch:
            from gibo.web.watch import page_beside  # imported here: rarely needed

            closing.enter_context(page_beside(session.journal.folder, control=chosen.watch == "control"))
        try:
            status, reason = Loop(session, chosen, pool, wanted, interrupts, bar).until_done()
        except (Exception, KeyboardInterrupt) as error:
            with suppress(JournalError):
                session.end(f"stopped: {describe_error(error)}")
            raise
        try:
            session.end(reason)
        except JournalError as error:  # keep the result and report the error
            if status is not Status.ERROR:
                status, reason = Status.ERROR, f"{reason}; this cannot be recorded: {error}"
        return Result.of(session, status, reason)


def _session(optimizer: Optimizer, options: RunOptions) -> Session:
    """The run, with its journal if it has one."""
    p = options.parameters
    naming = None if p is None else Naming(list(p), p)
    optimizer.baseline = options.baseline or optimizer.baseline
    if not optimizer.log.events and options.training is None and options.reparametrizer is None:
        optimizer.baseline = baseline_of(optimizer, optimizer.baseline)
    if options.journal is None:
        return Session(optimizer, options.sign, options.reparametrizer, naming=naming, penalty=options.penalty)
    spec = RunSpec.of(
        optimizer,
        sign=options.sign,
        penalty=options.penalty,
        baseline=optimizer.baseline,
        quorum=options.quorum,
        training=options.training,
        names=None if naming is None else naming.names,
        parameters=None if p is None else p.to_plain(),
    )
    # Absolute, because the objective may change the working directory.
    return Session.begin(Path(options.journal).absolute(), optimizer, spec, options.reparametrizer, options.force)


def make_pool(objective: Objective, options: RunOptions) -> Pool:
    """The pool that runs the evaluations."""
    if options.executor is not None:
        return Futures(objective, options.executor)
    if options.workers is None and options.time_limit is None:
        return InProcess(objective)
    return Workers(objective, options.workers or 1, options.time_limit)
