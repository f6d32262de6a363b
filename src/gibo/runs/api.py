"""The front door of runs: `maximize`, `minimize`, `resume`, and `run` for any optimiser."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from types import EllipsisType, NoneType
from typing import Any, Literal, ParamSpec

import numpy as np
import numpy.typing as npt

from gibo._checks import as_flag, as_path, describe, describe_error, finite, instance, shown
from gibo.errors import InputError, JournalError
from gibo.optimizers.base import Optimizer
from gibo.optimizers.gibo import GIBO
from gibo.optimizers.settings import Settings
from gibo.parameters import Parameters
from gibo.runs.fingerprint import fingerprint
from gibo.runs.interrupts import for_run, preparing
from gibo.runs.journal import Journal
from gibo.runs.loop import REMEMBERED, Loop, RunOptions
from gibo.runs.pools import Futures, InProcess, Named, Objective, Pool, asked_for
from gibo.runs.progress import Progress, progress_bar
from gibo.runs.result import Result, Status
from gibo.runs.session import Reparametrizer, Session
from gibo.runs.spec import Naming, RunSpec
from gibo.runs.workers import Workers

Callback = Callable[[Result], bool | None]
P = ParamSpec("P")


@preparing
def maximize(
    objective: Objective,
    x0: npt.ArrayLike | None = None,
    *,
    budget: int,
    parameters: Parameters | None = None,
    data: Iterable[tuple[Any, Any]] = (),
    scale: npt.ArrayLike = 1.0,
    bounds: npt.ArrayLike | None = None,
    seed: int = 0,
    settings: Settings | None = None,
    target: float | None = None,
    least_certainty: float | None = None,
    callback: Callback | None = None,
    progress: bool | Progress = False,
    journal: str | Path | None = None,
    force: bool = False,
    watch: bool | Literal["control"] = False,
    workers: int | None = None,
    executor: Executor | None = None,
    time_limit: float | None = None,
    retries: int = 0,
    penalty: float | None = None,
    quorum: float = 1.0,
    max_failures: int = 10,
    sign: float = 1.0,
) -> Result:
    """Maximise a noisy, expensive objective near x0 with GIBO.

    Args:
        objective: takes a vector (d,) and returns a number, or a `gibo.Outcome`. If it has a parameter named ``seed``,
            it gets one that depends on the run's seed and the query alone; if it has one named ``kind``, it gets what
            the query is for, ``"iterate"`` (the optimiser's guess) or ``"query"`` (near it), so that it can spend more
            on an iterate. An evaluation that raises, or returns something else than a finite number, is recorded as
            failed, is not shown to the model, and the run goes on.
        x0: (d,) where to start.
        parameters: or `gibo.parameters.Parameters`, with names, ranges and kinds: start, scale and bounds are theirs,
            and the objective is called with a keyword argument for each, or, if it takes none of that name, with a
            dictionary. `Result.parameters` has the recommended ones.
        data: what is known already: pairs of a point, a vector or a dictionary by name, and its value. They are told
            before anything is evaluated, and not counted; a journal keeps them.
        budget: how many evaluations may be spent; with a journal, those of earlier starts included.
        scale: by how much a parameter must change to matter, roughly; a number or one per parameter.
        bounds: None, or (lower, upper) as numbers or vectors, or d pairs.
        seed: of all random choices.
        settings: `gibo.Settings`; the defaults need none.
        target: stop once the model believes that the best point's value has reached this.
        least_certainty: stop once the model's certainty that the gradient is not zero is below this (say 0.9) five
            times in a row: then the gradient is lost in its uncertainty.
        callback: called with the `Result` so far after each iteration; the run stops if it returns something true.
        progress: True shows a progress bar, also in a notebook; or an object that has an ``update(standing)``, see
            `gibo.runs.progress`.
        journal: a folder in which every query, value and failure is recorded before the run goes on. If it holds this
            very run, the run is continued; if it holds another one, or one of another objective as far as that can be
            seen (`gibo.runs.fingerprint`), that is an error. See also `resume`.
        force: continue although the objective has changed: the values of both are in the run then.
        watch: True shows the run in the browser while it goes on: a page on this machine alone, whose address is
            written to standard error, until the run ends. It reads the journal, so it needs one. See also `gibo watch`.
            ``"control"``: the page can also pause and stop the run, and so on, for whoever has that address.
        workers: evaluate in this many processes on this machine; None: in this process, one after the other.
        executor: or in any `concurrent.futures.Executor`, such as that of a Dask cluster.
        time_limit: seconds after which an evaluation is ended and counts as failed; its process is replaced.
        retries: how often a failed evaluation is tried again.
        penalty: the value that a failed evaluation is given in the end; None: the model does not see it.
        quorum: the next iteration starts when this share of the queries has arrived, and the rest is used when it
            arrives. Below 1 the result depends on the order of arrival. For evaluations of very uneven durations.
        max_failures: stop after this many failed evaluations in a row, in the order of their ids.
        sign: −1 minimises; see `minimize`.

    Returns:
        A `Result`; also after Ctrl-C, with what was found until then. With workers, the first Ctrl-C lets the running
        evaluations finish, a second one ends them (and raises, if it comes within a second of the first).

    Example:
        >>> import gibo
        >>> result = gibo.maximize(lambda x: -((x - 1.0) ** 2).sum(), [0.0, 0.0], budget=60, scale=0.3)
        >>> result.reason
        'the budget of 60 evaluations is spent'
        >>> bool(abs(result.x - 1.0).max() < 0.1)
        True
    """
    if parameters is not None:
        if not isinstance(parameters, Parameters):
            raise InputError(f"parameters: expected gibo.parameters.Parameters(...), got {describe(parameters)}")
        if x0 is not None or bounds is not None or np.ndim(scale) or scale != 1.0:
            raise InputError("parameters: they have start, scale and bounds; leave x0, scale and bounds out")
        x0, scale, bounds = parameters.x0, parameters.scale, parameters.bounds
    elif x0 is None:
        raise InputError("x0: expected where to start, a vector (d,); or parameters=")
    return run(
        GIBO(x0, scale=scale, bounds=bounds, seed=seed, settings=settings),
        objective,
        parameters=parameters,
        data=data,
        budget=budget,
        target=target,
        least_certainty=least_certainty,
        callback=callback,
        progress=progress,
        journal=journal,
        force=force,
        watch=watch,
        workers=workers,
        executor=executor,
        time_limit=time_limit,
        retries=retries,
        penalty=penalty,
        quorum=quorum,
        max_failures=max_failures,
        sign=sign,
    )


def _turned(maximize: Callable[P, Result]) -> Callable[P, Result]:
    @functools.wraps(maximize, assigned=("__module__", "__annotations__"))  # its signature, for editors and `help`
    def minimize(*args: P.args, **kwargs: P.kwargs) -> Result:
        """Minimise: `maximize` with the objective's sign turned, at the door and back. Values are the objective's own.

        Example:
            >>> import gibo
            >>> gibo.minimize(lambda x: ((x - 1.0) ** 2).sum(), [0.0, 0.0], budget=60, scale=0.3).value < 0.1
            True
        """
        return maximize(*args, **{"sign": -1.0, **kwargs})  # type: ignore[arg-type]  # it has that parameter

    minimize.__qualname__ = "minimize"
    return minimize


minimize = _turned(maximize)


@preparing
def resume(
    journal: str | Path,
    objective: Objective,
    *,
    budget: int | None = None,
    target: float | EllipsisType | None = ...,
    least_certainty: float | EllipsisType | None = ...,
    callback: Callback | None = None,
    progress: bool | Progress = False,
    force: bool = False,
    watch: bool | Literal["control"] = False,
    workers: int | None = None,
    executor: Executor | None = None,
    time_limit: float | EllipsisType | None = ...,
    retries: int | None = None,
    max_failures: int | None = None,
) -> Result:
    """Continue the run in a folder: everything that was told is there, and what was pending is evaluated again.

    From there on the run is what it would have been without the stop, bit for bit on the same machine.

    Args:
        journal: the run's folder.
        objective: the same as before.
        budget, retries, max_failures: those of the last start if None.
        target, least_certainty, time_limit: those of the last start by default; None: none from now on.
        callback, progress, force, watch, workers, executor: see `maximize`.

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
        spec, starts = saved.spec(), saved.starts()
    if spec.training is not None:
        raise InputError(f"{journal}: a run of gibo train; continue it with the same command, gibo train ...")
    options: dict[str, Any] = dict(starts[-1].options) if starts else {}
    given = {
        "target": target,
        "least_certainty": least_certainty,
        "time_limit": time_limit,
        "budget": ... if budget is None else budget,
        "retries": ... if retries is None else retries,
        "max_failures": ... if max_failures is None else max_failures,
    }
    options |= {name: value for name, value in given.items() if value is not ...}
    if options.get("budget") is None:
        raise InputError(f"budget: {journal} has none yet; say how many evaluations may be spent, with budget=n")
    return run(
        spec.fresh_optimizer(),
        objective,
        journal=journal,
        sign=spec.sign,
        penalty=spec.penalty,
        quorum=spec.quorum,
        parameters=spec.naming.parameters,
        callback=callback,
        progress=progress,
        force=force,
        watch=watch,
        workers=workers,
        executor=executor,
        **{name: options[name] for name in REMEMBERED if options.get(name) is not None},
    )


def run(
    optimizer: Optimizer,
    objective: Objective,
    *,
    budget: int,
    target: float | None = None,
    least_certainty: float | None = None,
    callback: Callback | None = None,
    progress: bool | Progress = False,
    journal: str | Path | None = None,
    force: bool = False,
    watch: bool | Literal["control"] = False,
    workers: int | None = None,
    executor: Executor | None = None,
    time_limit: float | None = None,
    retries: int = 0,
    penalty: float | None = None,
    quorum: float = 1.0,
    max_failures: int = 10,
    reparametrizer: Reparametrizer | None = None,
    training: dict[str, Any] | None = None,
    parameters: Parameters | None = None,
    data: Iterable[tuple[Any, Any]] = (),
    sign: float = 1.0,
) -> Result:
    """Run any optimiser on an objective.

    The result does not depend on how many workers there are or on the order in which values arrive, but where `quorum`
    says otherwise, if the objective depends on its arguments alone. (In worker processes the global generators of
    Python and NumPy are seeded for each evaluation; in this process and in executors they are left alone.)

    Args:
        optimizer: a fresh one.
        objective: see `maximize`, as for all that is not named here.
        reparametrizer: learns from the evaluations' info between the iterations; see `gibo.runs.session`.
        training: what the objective is, as plain data, for the journal: it is an error to continue with another one.
        parameters: what the optimiser's vector stands for; the objective gets them by name.
        data: see `maximize`.
        sign: −1 minimises.

    Returns:
        A `Result`; see `maximize`.

    Example:
        >>> import gibo
        >>> opt = gibo.GIBO([0.0], scale=0.3)
        >>> gibo.run(opt, lambda x: -(x[0] - 1.0) ** 2, budget=10).evaluations
        10
    """
    with for_run() as interrupts, ExitStack() as closing:
        if not callable(objective):
            raise InputError(f"objective: expected a function of a vector, got {describe(objective)}")
        instance("optimizer", optimizer, Optimizer, "one such as gibo.GIBO(x0)")
        if finite("sign", sign) not in (1.0, -1.0):
            raise InputError(f"sign: expected 1 or -1, got {shown(sign)}")
        if not isinstance(progress, bool) and not callable(getattr(progress, "update", None)):
            raise InputError(f"progress: expected True, False or an object with an update, got {describe(progress)}")
        if ((isinstance(watch, str) and watch == "control") or as_flag("watch", watch)) and journal is None:
            raise InputError("watch: the page reads the run's journal; name a folder for it, with journal=")
        options = RunOptions(
            budget=budget,
            target=target,
            least_certainty=least_certainty,
            callback=callback,
            workers=workers,
            time_limit=time_limit,
            retries=retries,
            penalty=penalty,
            quorum=quorum,
            max_failures=max_failures,
        )
        if reparametrizer is not None and not all(
            callable(getattr(reparametrizer, name, None)) for name in ("options", "learn")
        ):
            raise InputError(f"reparametrizer: expected one with options and learn, got {describe(reparametrizer)}")
        instance("training", training, (dict, NoneType), "plain data by name")
        if options.quorum < 1.0 and reparametrizer is not None:
            raise InputError("quorum: with a state normaliser, an iteration needs all of its values; leave it at 1")
        if options.quorum < 1.0 and not optimizer.uses_late_values:
            raise InputError(f"quorum: {type(optimizer).__name__} needs all values of an iteration; leave it at 1")
        as_flag("force", force)
        known = None if training is not None or journal is None else fingerprint(objective)
        if parameters is not None:
            objective = Named(objective, parameters)
        wanted = asked_for(objective, reparametrizer)
        naming = None if parameters is None else Naming(list(parameters), parameters)
        pool = make_pool(objective, options, executor)
        closing.callback(pool.close)
        if journal is None:
            session = Session(optimizer, float(sign), reparametrizer, naming=naming, penalty=options.penalty)
        else:
            spec = RunSpec.of(
                optimizer,
                sign=float(sign),
                penalty=options.penalty,
                quorum=options.quorum,
                training=training,
                names=None if naming is None else naming.names,
                parameters=None if parameters is None else parameters.to_plain(),
            )
            session = Session.begin(as_path("journal", journal), optimizer, spec, reparametrizer, force)
        if session.journal is not None:
            closing.callback(session.journal.close)
            changed = session.check_objective(known, force)
            session.journal.begin(options.remembered() | ({} if known is None else {"objective": known}))
            if changed:
                session.journal.acted(("remark", {"text": f"went on with another objective: {changed}"}))
        if not optimizer.log.events:  # a run that goes on was told before
            session.tell_elsewhere(data)
        bar = closing.enter_context(progress_bar(budget)) if progress is True else progress or None
        loop = Loop(session, options, pool, wanted, interrupts, bar)
        closing.callback(loop.control.close)
        if session.journal is not None and watch:
            from gibo.web.watch import page_beside  # here, because few need it

            closing.enter_context(page_beside(session.journal.folder, control=watch == "control"))
        try:
            status, reason = loop.until_done()
        except Exception as error:
            with suppress(JournalError):
                session.end(f"stopped: {describe_error(error)}")
            raise
        try:
            session.end(reason)
        except JournalError as error:  # the result is in hand; if this is news, it is said
            if status is not Status.ERROR:
                status, reason = Status.ERROR, f"{reason}; that cannot be recorded: {error}"
        result = Result.of(session, status, reason)
    if interrupts.count and result.status.is_regular:  # too late to stop anything, but not unheard
        result = replace(result, status=Status.INTERRUPTED, reason=f"{result.reason}; interrupted while closing")
    return result


def make_pool(objective: Objective, options: RunOptions, executor: Executor | None) -> Pool:
    """Where the evaluations are to run."""
    if executor is not None:
        if options.workers is not None:
            raise InputError("workers, executor: give one of them; an executor brings its own workers")
        if options.time_limit is not None:
            raise InputError("time_limit: an executor's evaluations cannot be ended; give workers=n instead")
        if not callable(getattr(executor, "submit", None)):
            raise InputError(f"executor: expected a concurrent.futures.Executor, got {describe(executor)}")
        return Futures(objective, executor)
    if options.workers is None and options.time_limit is None:
        return InProcess(objective)
    return Workers(objective, options.workers or 1, options.time_limit)
