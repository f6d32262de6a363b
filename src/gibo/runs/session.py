"""The session of a run: the optimiser, the objective's sign, learning between iterations, and the journal.

A loop, a person or another program asks and tells through the session. Queries and values are on the disk before
anything else happens with them. The optimiser maximises; values outside of the session have the objective's sign. Only
this module changes the sign.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from gibo._checks import check_within, describe
from gibo._linalg import Array
from gibo.errors import InputError, JournalError
from gibo.optimizers.base import Optimizer
from gibo.optimizers.log import Asked, Event, Reparametrized, Told
from gibo.outcome import EXTERNAL, SIMULATED, Evaluation, Query, as_point, checked
from gibo.runs.fingerprint import differences
from gibo.runs.journal import Journal, has_journal
from gibo.runs.legacy import replay
from gibo.runs.records import NewAction
from gibo.runs.spec import OF_OBJECTIVE, ONCE, Naming, RunSpec, parameter_names, take_ungiven
from gibo.runs.views import Update, belief_to_plain, views_of

VIEWS_AGE, VIEWS_SHARE = 1.0, 0.04  # seconds between two drawings of the model, and their share of the run's time


class Reparametrizer(Protocol):
    """The interface of objects that learn from the `info` of evaluations between iterations.

    An example is the normalisation of a policy's states: it is constant during an iteration, and changes after all of
    its episodes. The same behaviour then has other parameters, and the optimiser's data move with it.
    """

    def options(self) -> dict[str, Any]:
        """Keyword arguments for the objective in this iteration; they must be picklable."""

    def learn(self, infos: Sequence[Mapping[str, Any]]) -> Reparametrized | None:
        """Learn from the infos of an iteration's evaluations, by id; returns the change of the parameters, if any."""


class Session:
    """A run; see the module's docstring.

    Args:
        optimizer: a new one, or, without a journal, any.
        sign: 1 to maximise, −1 to minimise.
        reparametrizer: a new object that learns between iterations.
        journal: records everything first; None: no records.
        naming: the naming of the parameters; None: from the journal, or x0, x1, ….
        penalty: the value of a failed evaluation; from the journal if there is one.

    Attributes:
        lock: required to change the run from a thread; the loop holds it except while it waits for evaluations.
        spent: evaluations so far, including earlier starts, without own points of the user and the simulator's.
        failures: the failed ones among them.
        attempts: numbers of failed attempts that were repeated, by query.
        notes: differences of a continued run from one that was not stopped: other versions, removed settings.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        sign: float = 1.0,
        reparametrizer: Reparametrizer | None = None,
        journal: Journal | None = None,
        naming: Naming | None = None,
        penalty: float | None = None,
    ) -> None:
        self.optimizer, self.sign, self.reparametrizer, self.journal = optimizer, sign, reparametrizer, journal
        known = Naming(parameter_names(optimizer.d)) if journal is None else journal.spec().naming
        self.naming = naming or known
        optimizer.rounding = self.naming.rounding
        self.penalty = penalty if journal is None else journal.spec().penalty
        self.lock = threading.RLock()
        self.spent = self.failures = 0
        self.attempts: dict[int, int] = {}
        self.notes: list[str] = []
        self.news: list[str] = []  # notes that are not recorded yet
        self._infos: dict[int, Mapping[str, Any]] = {}  # infos of the present iteration
        self._learnt = optimizer.iteration
        self._recorded = len(optimizer.log.events)
        self._believed = -1  # the last update with a recorded belief
        self._views_due = 0.0

    @classmethod
    def begin(
        cls,
        folder: Path,
        optimizer: Optimizer,
        spec: RunSpec,
        reparametrizer: Reparametrizer | None = None,
        force: bool = False,
    ) -> Session:
        """The run in a folder, new or continued; other settings than before are an error.

        With force, another objective is allowed; the run then mixes values of both.
        """
        if optimizer.evaluations:
            raise InputError(
                f"optimizer: it already has {len(optimizer.evaluations)} values; a journal needs a new one"
            )
        if not has_journal(folder):
            return cls(optimizer, spec.sign, reparametrizer, Journal.create(folder, spec))
        journal = Journal.open(folder)
        try:
            journal.refuse_aborted()
            saved = journal.spec()
            if spec.baseline in (None, ONCE):  # nobody gave one
                optimizer.baseline = saved.baseline
                spec = replace(spec, baseline=saved.baseline)
            if saved.is_search_of(spec):
                saved = replace(saved, arguments=saved.fresh_optimizer().arguments())  # in the form of this version
                take_ungiven(optimizer, saved.arguments)
                spec = replace(spec, arguments=optimizer.arguments())
            changes = spec.differences(saved)
            forceable = changes.keys() <= set(OF_OBJECTIVE)
            differing = "; ".join(list(changes.values())[:3])
            differing += f"; and {len(changes) - 3} more" if len(changes) > 3 else ""
            if differing and not (force and forceable):
                how = "; force=True (--force) mixes the values of both" if forceable else ""
                raise InputError(
                    f"{folder} holds another run: {differing}. Name another folder, or use the old settings{how}"
                )
            session = cls.of(journal, reparametrizer, optimizer)
            if differing:
                journal.change_training(spec.training, f"continued with another objective: {differing}")
            return session
        except BaseException:
            journal.close()
            raise

    @classmethod
    def of(
        cls, journal: Journal, reparametrizer: Reparametrizer | None = None, optimizer: Optimizer | None = None
    ) -> Session:
        """The run of a journal in its present state."""
        spec = journal.spec()
        with journal.explained():
            if optimizer is None:
                optimizer = spec.fresh_optimizer()
            elif spec.given_x0 is not None:
                optimizer.start_at(spec.arguments["x0"])
            session = cls(optimizer, spec.sign, reparametrizer, journal)
            session.attempts = journal.attempts()
            session._believed = journal.last_belief()
            session.news = journal.news()
            session.news += replay(session.optimizer, list(session.as_replayed(journal.events())))
            session._learn_if_over()
            session._recorded = len(session.optimizer.log.events)
        session._count(session.optimizer.evaluations)
        session.notes = [each.body["text"] for each in journal.actions() if each.body.get("by") == "gibo"]
        return session

    def start(self, options: dict[str, Any], objective: dict[str, Any] | None = None, force: bool = False) -> None:
        """Record that this process works on the run, with notes on how it continues, which are printed once.

        Args:
            options: of this start.
            objective: its fingerprint. It must be that of the journal's values, unless `force` is given.
            force: whether another objective is allowed.
        """
        assert self.journal is not None
        changed = ""
        if objective is not None and any(e.query.kind != EXTERNAL for e in self.optimizer.log.valued):
            fingerprints = (start.options.get("objective") for start in reversed(self.journal.starts()))
            changed = differences(next((each for each in fingerprints if each is not None), None), objective)
        if changed and not force:
            raise InputError(
                f"objective: not the one whose values are in {self.journal.folder}: {changed}. Name another folder, or "
                "go on with force=True: then the run has the values of both"
            )
        self.journal.begin(options | ({} if objective is None else {"objective": objective}))
        remarks = [{"text": note, "by": "gibo"} for note in self.news]
        remarks += [{"text": f"continued with another objective: {changed}"}] if changed else []
        if remarks:
            self.journal.acted(*(("remark", remark) for remark in remarks))
        for note in self.news:
            sys.stderr.write(f"gibo: {note}\n")
        self.notes, self.news = [*self.notes, *self.news], []

    # -- asking and telling -------------------------------------------------------------------------------------------

    def ask(self) -> list[Query]:
        """All queries that can run now; a new batch is on the disk before it is returned."""
        self._record()
        self.settle()
        update = self._update()
        queries = self.optimizer.ask()
        self._record(update)
        return queries

    def tell(self, evaluations: Sequence[Evaluation], update: bool = True, actions: Sequence[NewAction] = ()) -> None:
        """Record outcomes in the objective's sign, with people's actions, tell them, and learn from them.

        The optimiser has checked them (`Optimizer.check_outcome`). Without `update`, the update after the last value of
        a batch is left for `settle` or the next `ask`.
        """
        if self.penalty is not None:
            evaluations = [Evaluation(e.query, e.outcome.penalized(self.penalty)) for e in evaluations]
        error = None
        try:
            if self.journal is not None and (evaluations or actions):
                self.journal.told(evaluations, actions)
        except JournalError as lost:  # tell it nevertheless, so that the result has it
            error = lost
        for e in evaluations:
            self.optimizer.receive(e.query, e.outcome.signed(self.sign), update)
            self._recorded = len(self.optimizer.log.events)
            self._count([e])
            if self.reparametrizer is not None:
                self._infos[e.id] = e.outcome.info
                self._learn_if_over()
        if error is not None:
            raise error

    def attempted(self, e: Evaluation) -> None:
        """Record a failed attempt, which will be repeated."""
        self.attempts[e.id] = self.attempts.get(e.id, 0) + 1
        if self.journal is not None:
            self.journal.attempted(e)

    def settle(self) -> None:
        """Make the update that was left for later."""
        self.optimizer.settle()
        if self.reparametrizer is not None:
            self._learn_if_over()

    def tell_elsewhere(self, data: Iterable[tuple[Any, Any]]) -> None:
        """Record and tell own points of the user, as vectors (d,) or by name, with values; all are checked first.

        Before the first `ask`, the search starts at the best of them.
        """
        d, checked_data = self.optimizer.d, []
        for i, item in enumerate(data):
            try:
                point, value = item
                x = self.naming.point(point) if isinstance(point, Mapping) else as_point(point, d)
                within = np.array_equal(x, self.optimizer.clip(x))
                checked_data.append((self.optimizer.evaluated(x) if within else x, checked(value, d)))
            except InputError as error:
                raise InputError(f"data[{i}]: {error}") from None
            except Exception:  # the methods of a foreign object may raise anything
                raise InputError(f"data[{i}]: expected a point and its value, got {describe(item)}") from None
        for x, outcome in checked_data:
            query = self.optimizer.external(x)  # with the next id
            self.optimizer.check_outcome(query, outcome)
            self.tell([Evaluation(query, outcome)])
        self.start_at_best()

    def start_at_best(self) -> None:
        """Start at the best known point within the bounds, or at x0; only before the first `ask`."""
        optimizer = self.optimizer
        if optimizer.log.has_asked:
            return
        valued = [e for e in optimizer.log.valued if np.array_equal(e.x, optimizer.clip(e.x))]
        known = [(e.value, e.x) for e in valued if optimizer.within_limits(e)]
        best = max(known, key=itemgetter(0))[1] if known else None
        if self.journal is not None:
            self.journal.start_at(best)
        if best is not None:
            optimizer.start_at(best)

    def start_at(self, x: Array) -> None:
        """Go on from another start, see `Optimizer.start_at`; recorded first."""
        optimizer = self.optimizer
        if self.reparametrizer is not None:
            raise InputError("start: with normalised states a point has another meaning in each iteration")
        self._record()
        self.settle()
        if not optimizer.log.has_asked:
            check_within("start", x, optimizer.bounds)
            x = optimizer.evaluated(x)
        if self.journal is not None and optimizer.log.has_asked:
            self.journal.started(optimizer.new_start(x), list(optimizer.log.pending))
        elif self.journal is not None:
            self.journal.start_at(x)
        optimizer.start_at(x)
        self._recorded = len(optimizer.log.events)

    def proceed(self) -> None:
        """Continue without the pending queries."""
        if self.journal is not None:
            self.journal.proceeded()
        self.optimizer.proceed()

    def end(self, reason: str) -> None:
        """Record why this process stops working on the run."""
        if self.journal is not None:
            update = self._update(last=True)
            self._record()
            self.journal.end(reason, self.optimizer.log.iterations, update)

    def _count(self, evaluations: Iterable[Evaluation]) -> None:
        for e in evaluations:
            self.spent += e.kind not in (EXTERNAL, SIMULATED)
            self.failures += e.failure is not None

    def _record(self, update: Update | None = None) -> None:
        """Record the optimiser's queries and beliefs, and points that others, such as a callback, told it."""
        events = self.optimizer.log.events
        while self.journal is not None and self._recorded < len(events):
            event = events[self._recorded]
            if isinstance(event, Asked):
                iterations = self.optimizer.log.iterations
                self.journal.asked(event, self.optimizer.iterate, iterations, update)
                self._believed = self._believed if update is None else update.number
            elif isinstance(event, Told) and event.query.kind == EXTERNAL:
                self.journal.told([Evaluation(event.query, event.outcome.signed(self.sign))])
            self._recorded += 1

    def _update(self, last: bool = False) -> Update | None:
        """The model's belief after the last update, for the journal, before the next batch changes the model.

        The model is drawn at most once a second, with at most `VIEWS_SHARE` of the run's time, and at the end.
        """
        number = self.optimizer.iteration - 1
        is_new = number > self._believed
        if self.journal is None or not (is_new or last):
            return None
        belief = self.optimizer.belief() if is_new else None
        plain = None if belief is None else belief_to_plain(belief, self.sign)
        began = time.monotonic()
        drawn = last or began >= self._views_due
        views = views_of(self.optimizer, self.sign, self.naming, drawn)
        if drawn:
            ended = time.monotonic()
            self._views_due = ended + max(VIEWS_AGE, (ended - began) / VIEWS_SHARE)
        return Update(number, len(self.optimizer.log.evaluations), plain, views)

    # -- learning between iterations ----------------------------------------------------------------------------------

    def as_replayed(self, events: Iterable[Event]) -> Iterator[Event]:
        """A journal's events in the optimiser's sign, with the changes that were learnt between iterations."""
        for event in events:  # an iteration begins with a query or with an own point of the user
            query = event.queries[0] if isinstance(event, Asked) else event.query if isinstance(event, Told) else None
            if query is not None and (change := self._learn(query.iteration)) is not None:
                yield change
            if isinstance(event, Told):
                if self.reparametrizer is not None:
                    self._infos[event.query.id] = event.outcome.info
                yield Told(event.query, event.outcome.signed(self.sign))
            else:
                yield event

    def _learn_if_over(self) -> None:
        change = self._learn(self.optimizer.iteration)
        if change is not None:
            self.optimizer.reparametrize(change.transform, change.moves_iterate)
            self._recorded = len(self.optimizer.log.events)

    def _learn(self, iteration: int) -> Reparametrized | None:
        """The change that was learnt before this iteration; None if it is known or changes nothing."""
        if self.reparametrizer is None or iteration <= self._learnt:
            return None
        self._learnt = iteration
        infos, self._infos = [self._infos[i] for i in sorted(self._infos)], {}
        return self.reparametrizer.learn(infos)
