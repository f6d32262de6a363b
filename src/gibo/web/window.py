"""What a run's model sees, and with which hyperparameters, from the rows of its journal.

A batch is recorded with the hyperparameters that it was planned with. After the last value of it the run fits them
again; until the next batch is there, which is at the end of a run, those of the iteration's record stand for them.
Where a training normalises states, what was told moves with what is learnt of them; so it does here.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from gibo._checks import as_number
from gibo._linalg import Array
from gibo.errors import GiboError
from gibo.optimizers.recommended import worth_keeping
from gibo.optimizers.state import outcome_from_plain, query_from_plain
from gibo.outcome import Evaluation, Outcome
from gibo.policies.architecture import Architecture, with_parameters
from gibo.policies.normalizer import Normalization, Statistics, reexpress
from gibo.runs.spec import RunSpec
from gibo.web.belief import Belief, Believed, Recorded

VALUES = (
    "SELECT q.id, q.iteration, q.kind, q.seed, q.x, e.value, e.gradient, e.gradient_noise FROM evaluations e "
    "JOIN queries q ON q.id = e.query WHERE e.value IS NOT NULL"
)
RECORD = "SELECT number, evaluations, iterate, step, gradient, lengthscale, variance, noise FROM iterations"


class Window:
    """Reads what the model of a run sees, again and again.

    Args:
        spec: of the run.
        belief: how its model is made.
        connection: to its journal.
    """

    def __init__(self, spec: RunSpec, belief: Belief, connection: sqlite3.Connection) -> None:
        self.spec, self.belief, self._connection = spec, belief, connection
        training = spec.training or {}
        moves = training.get("normalize_states") and training.get("reexpressed", "data") != "off"
        self._states = _States(str(training["policy"]), len(spec.arguments["x0"])) if moves else None
        self._iterate_moves = training.get("reexpressed") == "iterate"

    def now(self) -> Believed | None:
        """What is believed at this moment; None before any value."""
        row = self._one("SELECT iteration, iterate, thought FROM batches ORDER BY number DESC LIMIT 1")
        if row is None:
            return None
        self._learn()
        iteration, iterate, memo = row[0], np.array(json.loads(row[1])), json.loads(row[2])
        surrogate, kept = self.belief.surrogate.recall(memo), _ids(memo)
        step = self._one(f"{RECORD} WHERE number = ?", iteration)
        if step is not None:  # made, and nothing was asked since
            window = self._values(iteration, kept)
            recorded = _recorded(step)
            if window and recorded is not None:
                surrogate = self.belief.as_recorded(surrogate, window, recorded)
                if surrogate.settings.remember:
                    (first,) = self._one("SELECT min(query) FROM evaluations WHERE value IS NOT NULL")
                    kept = worth_keeping(surrogate.settings, self.belief.model(surrogate, window), window, first)
            iterate = np.array(json.loads(step[2])) + np.array(json.loads(step[3]))
            if self._iterate_moves:
                iterate = self._moved(iterate, iteration, iteration + 1)
            iteration += 1
        window = self._values(iteration, kept)
        ids = {e.id for e in window}
        rows = self._all(f"{VALUES} ORDER BY e.query LIMIT ?", surrogate.settings.beginning)
        first = [self._evaluation(row, iteration) for row in rows if row[0] not in ids]
        return self.belief.now(surrogate, window, first, iterate, bool(window) and self._failed_since(window))

    def course(self, first: int) -> Iterator[tuple[int, tuple[float, float]]]:
        """Of some iterations from this one on: which one, and mean and sd of its iterate's value after it."""
        self._learn()
        rows = self._all(f"{RECORD} WHERE number >= ? ORDER BY number", first)
        chosen = [rows[i] for i in self.belief.thinned(len(rows))] if rows else []
        marks = ", ".join("?" * len(chosen))
        thoughts = dict(
            self._all(
                f"SELECT iteration, thought FROM batches WHERE iteration IN ({marks}) ORDER BY number DESC",
                *(row[0] + 1 for row in chosen),
            )
        )
        last = self._one("SELECT thought FROM batches ORDER BY number DESC LIMIT 1")
        for row in chosen:
            number, told, x, thought = row[0], row[1], np.array(json.loads(row[2])), thoughts.get(row[0] + 1)
            if thought is not None:
                memo = json.loads(thought)
                surrogate, window = self.belief.surrogate.recall(memo), self._values(number + 1, _ids(memo), told)
                x = self._moved(x, number, number + 1)
            elif (recorded := _recorded(row)) is not None and (window := self._values(number, (), told)):
                before = self.belief.surrogate.recall(json.loads(last[0]))
                surrogate = self.belief.as_recorded(before, window, recorded)
            else:
                continue
            pair = self.belief.at(surrogate, window, x)
            if pair is not None:
                yield number, pair

    # -- rows ---------------------------------------------------------------------------------------------------------

    def _all(self, query: str, *values: Any) -> list[Any]:
        return self._connection.execute(query, values).fetchall()

    def _one(self, query: str, *values: Any) -> Any:
        return self._connection.execute(query, values).fetchone()

    def _values(self, iteration: int, kept: Iterable[int], told: int | None = None) -> list[Evaluation]:
        """The last values by id, of the first evaluations told, after those that are kept; as an iteration sees them.

        In the optimiser's sign.
        """
        size = self.belief.window
        # Of long ago no more rows are looked at than a window of which three quarters failed.
        first, last = (-1, 1 << 60) if told is None else (told - 4 * size, told)
        rows = self._all(
            f"{VALUES} AND e.number >= ? AND e.number < ? ORDER BY e.query DESC LIMIT ?", first, last, size
        )
        older = [i for i in kept if rows and i < rows[-1][0]]
        rows += [row for i in reversed(older) for row in self._all(f"{VALUES} AND q.id = ?", i)]
        return [self._evaluation(row, iteration) for row in reversed(rows)]

    def _evaluation(self, row: Sequence[Any], iteration: int) -> Evaluation:
        names = ("id", "iteration", "kind", "seed", "x", "value", "gradient", "gradient_noise")
        data = dict(zip(names, row, strict=True))
        data["x"] = json.loads(data["x"])
        d = len(data["x"])
        query, outcome = query_from_plain(data, d), Outcome(as_number("value", data["value"]))
        if data["gradient"] is not None:
            more = {name: None if data[name] is None else json.loads(data[name]) for name in names[6:]}
            outcome = outcome_from_plain({"value": data["value"], **more}, d)
        if self._states is not None:
            query = replace(query, x=self._moved(query.x, query.iteration, iteration))
        return Evaluation(query, outcome.signed(self.spec.sign))

    def _failed_since(self, window: list[Evaluation]) -> bool:
        """Whether an evaluation, from the window's first recent one on, has no value."""
        first = window[-self.belief.window :][0].id
        return self._one("SELECT 1 FROM evaluations WHERE query >= ? AND value IS NULL LIMIT 1", first) is not None

    # -- states that are normalised -----------------------------------------------------------------------------------

    def _learn(self) -> None:
        if self._states is not None:
            rows = self._all(
                "SELECT q.iteration, json_extract(e.info, '$.statistics') FROM evaluations e JOIN queries q "
                "ON q.id = e.query WHERE e.number >= ? ORDER BY e.number",
                self._states.rows,
            )
            self._states.learn(rows)

    def _moved(self, x: Array, before: int, after: int) -> Array:
        """A point of one iteration, where another one has the same behaviour."""
        return x if self._states is None or before == after else self._states.moved(x, before, after)


class _States:
    """How the states were normalised in each iteration of a training, from what its episodes told."""

    def __init__(self, policy: str, d: int) -> None:
        self.policy, self.d, self.rows = policy, d, 0
        self._architecture: Architecture | None = None
        self._sum: Statistics | None = None
        self._known: list[Normalization | None] = []  # by iteration; None before anything was seen

    def learn(self, rows: Sequence[tuple[int, str | None]]) -> None:
        for iteration, text in rows:
            while len(self._known) <= iteration:
                self._known.append(self._present)
            if text is not None:
                with suppress(GiboError):
                    seen = Statistics.from_plain(json.loads(text))
                    self._sum = seen if self._sum is None else self._sum.merge(seen)
        self.rows += len(rows)

    @property
    def _present(self) -> Normalization | None:
        return None if self._sum is None else self._sum.normalization

    def moved(self, x: Array, before: int, after: int) -> Array:
        if self._sum is None:
            return x
        if self._architecture is None:
            self._architecture = with_parameters(self.policy, self._sum.k, self.d)
        one, other = (
            (self._known[i] if i < len(self._known) else self._present) or Normalization.identity(self._sum.k)
            for i in (before, after)
        )
        return reexpress(self._architecture, one, other).parameters(x)


def _ids(memo: dict[str, Any]) -> tuple[int, ...]:
    return tuple(i for i in memo.get("kept", ()) if isinstance(i, int))


def _recorded(row: Sequence[Any]) -> Recorded | None:
    """Of a row of `RECORD`; None if its model had no hyperparameters."""
    _, _, iterate, _, gradient, ell, variance, noise = row
    if variance is None or noise is None:
        return None
    x, slope, lengthscale = (np.array(json.loads(text)) for text in (iterate, gradient, ell))
    return Recorded(x, slope, lengthscale, variance, noise)
