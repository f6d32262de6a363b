"""What a run returns."""

from __future__ import annotations

import enum
import html
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gibo._linalg import Array
from gibo.errors import NumericalError, printable
from gibo.gp import Jacobian
from gibo.optimizers.base import Optimizer
from gibo.optimizers.log import Iteration
from gibo.outcome import ITERATE, Best, Evaluation
from gibo.runs.advice import Advice, Facts, remarks
from gibo.runs.session import Session
from gibo.runs.spec import Naming
from gibo.runs.table import Columns, Line, columns_of, data_frame
from gibo.runs.verdict import verdict, with_verdict

# Of the figure that notebooks show, in pixels, and its colours.
WIDTH, HEIGHT, LEFT, BOTTOM = 420, 150, 52, 22
LINE, FAILURE, DOT = "#0072B2", "#D55E00", "#9a9a9a"


class Status(enum.Enum):
    """Why a run ended; `Result.reason` says it in words."""

    RUNNING = "running"
    WAITING = "waiting"  # by hand: for somebody to tell
    BUDGET_SPENT = "budget spent"
    TARGET_REACHED = "target reached"
    GRADIENT_LOST = "gradient lost"  # in its uncertainty: see `least_certainty`
    CALLBACK = "callback"  # it asked to stop
    STOPPED = "stopped"  # by a person, on the page of the run
    INTERRUPTED = "interrupted"
    TOO_MANY_FAILURES = "too many failures"
    ERROR = "error"  # something besides the objective failed: a callback, an executor, a disk

    @property
    def is_regular(self) -> bool:
        """Whether the run ended because it had done what it was asked to do."""
        return self in (Status.BUDGET_SPENT, Status.TARGET_REACHED, Status.GRADIENT_LOST, Status.CALLBACK)


@dataclass(frozen=True, eq=False)
class History:
    """A run as arrays.

    Per evaluation, n of them: ``x`` (n, d); ``value`` (n,), NaN where it failed; ``iteration`` (n,); ``is_iterate``
    (n,), True where the optimiser's iterate itself was evaluated.

    Per iteration, t of them, empty for an optimiser without a model: ``iterate`` (t, d), from where the step was made;
    ``evaluations`` (t,), how many there were by then; ``gradient`` (t, d) and ``uncertainty`` (t,), mean and trace of
    the covariance of the gradient's posterior there; ``probability_of_ascent`` (t,) of the step; ``noise`` (t,), the
    variance that the model believed in; ``certainty`` (t,), how sure it was that the gradient is not zero.
    """

    x: Array
    value: Array
    iteration: npt.NDArray[np.int64]
    is_iterate: npt.NDArray[np.bool_]
    iterate: Array
    evaluations: npt.NDArray[np.int64]
    gradient: Array
    uncertainty: Array
    probability_of_ascent: Array
    noise: Array
    certainty: Array

    @classmethod
    def of(cls, evaluations: Sequence[Evaluation], steps: Sequence[Iteration], d: int, sign: float) -> History:
        """From an optimiser's records, in the objective's own sign."""
        return cls(
            x=np.array([e.x for e in evaluations]).reshape(-1, d),
            value=sign * np.array([np.nan if e.value is None else e.value for e in evaluations]),
            iteration=np.array([e.iteration for e in evaluations], dtype=np.int64),
            is_iterate=np.array([e.kind == ITERATE for e in evaluations], dtype=np.bool_),
            iterate=np.array([step.x for step in steps]).reshape(-1, d),
            evaluations=np.array([step.evaluations for step in steps], dtype=np.int64),
            gradient=sign * np.array([step.gradient for step in steps]).reshape(-1, d),
            uncertainty=np.array([step.uncertainty for step in steps]),
            probability_of_ascent=np.array([step.probability_of_ascent for step in steps]),
            noise=np.array([step.noise for step in steps]),
            certainty=np.array([step.certainty for step in steps]),
        )

    def __repr__(self) -> str:
        return f"History({len(self)} evaluations, {len(self.evaluations)} iterations)"

    def __len__(self) -> int:
        """Number of evaluations, failures included."""
        return len(self.value)


@dataclass(frozen=True, eq=False)
class Result:
    """What a run found.

    Attributes:
        x: (d,) the point that the optimiser recommends: for GIBO the best one by its model, not the luckiest value.
        parameters: the same by name: of a run with `gibo.parameters.Parameters`, the values that the objective gets.
        value: what it believes the objective to be there, noise taken out; NaN if it has no opinion yet, and then
            `warnings` says why.
        interval: (low, high), within which it believes the objective without noise to lie there, with 90 % probability;
            None without a model.
        best_seen: the best point by its observed value, noise included; None if no evaluation had a value.
        iterate: (d,) where the optimiser stands.
        history: everything that was evaluated, as arrays.
        jacobian: posterior of the gradient at the iterate; None for an optimiser without a model.
        status: why the run ended, for a program; see `Status`.
        reason: why the run ended, for a person to read.
        limits: the believed probability that each limit holds at x, by the name of its quantity; none without limits.
        iterations: of the optimiser, that were finished.
        notes: how a continued run differs from one that was not stopped: other versions, settings that are gone.
        failures: the evaluations that failed, by id: ``failure`` says why, ``outcome.traceback`` where.
        warnings: what the model had to do to carry on, such as a fit that was passed over; and why there is no value.
        start: x0 with its believed value; None while the run goes on, and without a model.
        advice: a verdict on what was reached, and what to try next: objects with a ``code`` and a ``text``.
    """

    x: Array
    value: float
    interval: tuple[float, float] | None
    best_seen: Best | None
    iterate: Array
    jacobian: Jacobian | None
    status: Status
    reason: str
    start: Best | None
    limits: Mapping[str, float]
    iterations: int
    notes: tuple[str, ...]
    _evaluations: tuple[Evaluation, ...] = field(repr=False)
    _steps: tuple[Iteration, ...] = field(repr=False)
    _sign: float = field(repr=False)
    _naming: Naming = field(repr=False)
    _optimizer: Optimizer = field(repr=False)

    @classmethod
    def of(cls, session: Session, status: Status, reason: str) -> Result:
        """Where a run is."""
        optimizer, best, start = session.optimizer, session.best, None
        x = optimizer.iterate if best is None else best.x
        if status is not Status.RUNNING:
            with suppress(NumericalError):  # what cannot be worked out must not cost the result
                start = session.at_start
        return cls(
            x=x,
            value=np.nan if best is None else best.value,
            interval=None if best is None else best.interval,
            best_seen=session.best_seen,
            iterate=optimizer.iterate,
            jacobian=session.jacobian,
            status=status,
            reason=reason,
            start=start,
            limits=optimizer.limits_at(x),
            iterations=optimizer.iteration,
            notes=tuple(session.notes),
            _evaluations=tuple(optimizer.evaluations),
            _steps=tuple(optimizer.log.iterations),
            _sign=session.sign,
            _naming=session.naming,
            _optimizer=optimizer,
        )

    def __str__(self) -> str:
        """A few lines for a person; the arrays are in the attributes."""
        seen = "none" if self.best_seen is None else f"{self.best_seen.value:.6g}"
        failed = f", {len(self.failures)} of them failed" if self.failures else ""
        value = f"no value ({self._why_no_value})" if np.isnan(self.value) else f"value {self.value:.6g} by the model"
        lines = [
            printable(self.reason),
            *(printable(advice.text) for advice in self.advice),
            f"{value} at {self._where}",
            *(f"limit of {printable(name)}: holds there with probability {p:.3f}" for name, p in self.limits.items()),
            f"best value seen {seen}; {self.evaluations} evaluations{failed}",
        ]
        return "\n".join(lines)

    @property
    def best(self) -> Best | None:
        """x, value and interval as one; None if there is no value."""
        return None if np.isnan(self.value) else Best(self.x, self.value, self.interval)

    @property
    def parameters(self) -> dict[str, float]:
        return self._naming(self.x)

    @property
    def _where(self) -> str:
        if self._naming.parameters is None:
            return f"x = {np.array2string(self.x, precision=4, threshold=12)}"
        return ", ".join(f"{name} = {value:.4g}" for name, value in self.parameters.items())

    def __repr__(self) -> str:
        x = np.array2string(self.x, precision=4, threshold=12, separator=", ")
        return f"Result(value={self.value:.6g}, x={x}, evaluations={self.evaluations}, status={self.status.name})"

    def _repr_html_(self) -> str:
        """What notebooks show."""
        history = self.history
        return _as_html(str(self), _values_svg(history.value, history.is_iterate, self.value, self.interval))

    def to_dataframe(self, library: str | None = None) -> Any:
        """A data frame with a row for each evaluation: of pandas, or of polars where only that is installed.

        Args:
            library: "pandas" or "polars", to have that one.
        """
        return data_frame(self.columns(), library)

    def columns(self, since: int = 0) -> Columns:
        """The evaluations from a number on, as columns by their names; see `gibo.runs.table`."""
        return columns_of([Line(e.query, e.outcome) for e in self._told(self._evaluations[since:])], self._naming)

    def _told(self, evaluations: Iterable[Evaluation]) -> list[Evaluation]:
        """In the objective's own sign."""
        return [Evaluation(e.query, e.outcome.signed(self._sign)) for e in evaluations]

    @property
    def evaluations(self) -> int:
        """Number of evaluations, failures included."""
        return len(self._evaluations)

    @cached_property
    def history(self) -> History:
        return History.of(self._evaluations, self._steps, len(self.x), self._sign)

    @cached_property
    def failures(self) -> tuple[Evaluation, ...]:
        return tuple(self._told(e for e in self._evaluations if e.failure is not None))

    @cached_property
    def advice(self) -> list[Advice]:
        told = self._told(self._evaluations)
        facts = Facts.of(
            self._optimizer,
            told,
            self._steps,
            minimize=self._sign < 0,
            naming=self._naming,
            recommended=self.x.tolist(),
            iterations=self.iterations,
            by_hand=self.status is Status.WAITING,
        )
        if self.status is Status.RUNNING:
            return remarks(facts)
        return with_verdict(verdict(facts, self.start, self.best), remarks(facts))

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        lines = [f"value: there is none, because {self._why_no_value}"] if np.isnan(self.value) else []
        lines += [f"iteration {s.number}: {s.warning}" for s in self._steps if s.warning is not None]
        lines += [f"iteration {s.number}: jitter {s.jitter:.1e} was added" for s in self._steps if s.jitter > 0.0]
        return tuple(lines)

    @property
    def _why_no_value(self) -> str:
        """For a result whose value is NaN."""
        if not self._evaluations:
            return "nothing was evaluated"
        if self.best_seen is None:
            return "no evaluation had one"
        return "the optimiser judges by whole batches and none is complete; best_seen has the best value told"


def _as_html(text: str, figure: str) -> str:
    """A text of several lines above a figure."""
    lines = "<br>".join(html.escape(line) for line in printable(text, lines=True).splitlines())
    return f'<div style="display:inline-block;font:13px sans-serif">{lines}<br>{figure}</div>'


def _values_svg(
    values: Array, is_iterate: npt.NDArray[np.bool_], believed: float, interval: tuple[float, float] | None
) -> str:
    """Each evaluation a dot, strong ones at the iterates, failures at the foot; the line is the believed value."""
    n, known = len(values), values[np.isfinite(values)]
    if not known.size:
        return ""
    levels: list[float] = [*known.tolist(), *([] if math.isnan(believed) else [believed]), *(interval or ())]
    low, high = min(levels), max(levels)
    span = (high - low) or 1.0

    def across(i: float) -> float:
        return round(LEFT + (WIDTH - LEFT - 8) * i / max(n - 1, 1), 1)

    def up(value: float) -> float:
        return round(HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 10) * (value - low) / span, 1)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" role="img">']
    parts.append(f"<title>values of {n} evaluations</title>")
    style = 'font-size="11" font-family="sans-serif" fill="currentColor"'
    for value in (low, high):
        parts.append(f'<text x="{LEFT - 6}" y="{up(value) + 4}" text-anchor="end" {style}>{value:.4g}</text>')
    parts.append(f'<text x="{WIDTH - 8}" y="{HEIGHT - 6}" text-anchor="end" {style}>{n} evaluations</text>')
    if interval is not None:
        top, foot = up(interval[1]), up(interval[0])
        size = f'width="{WIDTH - LEFT - 8}" height="{max(foot - top, 0.5):.1f}"'
        parts.append(f'<rect x="{LEFT}" y="{top}" {size} fill="{LINE}" opacity="0.15"/>')
    if not math.isnan(believed):
        y = up(believed)
        parts.append(f'<line x1="{LEFT}" y1="{y}" x2="{WIDTH - 8}" y2="{y}" stroke="{LINE}"/>')
    for i, (value, strong) in enumerate(zip(values, is_iterate, strict=True)):
        if math.isnan(value):
            y = HEIGHT - BOTTOM + 3
            parts.append(f'<path d="M{across(i) - 3} {y - 3}l6 6m0 -6l-6 6" stroke="{FAILURE}"/>')
        else:
            look = f'r="3" fill="{LINE}"' if strong else f'r="2" fill="{DOT}"'
            parts.append(f'<circle cx="{across(i)}" cy="{up(value)}" {look}/>')
    return "".join([*parts, "</svg>"])
