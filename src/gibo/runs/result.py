"""The result of a run."""

from __future__ import annotations

import enum
import html
import math
from collections.abc import Iterable, Mapping
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
from gibo.optimizers.log import Asked, Iteration
from gibo.optimizers.model_based import ModelBased
from gibo.outcome import ITERATE, SIMULATED, Best, Evaluation
from gibo.runs.advice import Advice, Facts, Told, remarks
from gibo.runs.session import Session
from gibo.runs.spec import Naming
from gibo.runs.table import Columns, Line, columns_of, data_frame
from gibo.runs.verdict import advise

# Size in pixels and colours of the figure in notebooks.
WIDTH, HEIGHT, LEFT, BOTTOM = 420, 150, 52, 22
LINE, FAILURE, DOT = "#0072B2", "#D55E00", "#9a9a9a"


class Status(enum.Enum):
    """The reason why a run ended, for a program; `Result.reason` has it in words."""

    RUNNING = "running"
    WAITING = "waiting"  # a run by hand waits for values
    BUDGET_SPENT = "budget spent"
    TARGET_REACHED = "target reached"
    GRADIENT_LOST = "gradient lost"  # the gradient is lost in its uncertainty, see `least_certainty`
    CALLBACK = "callback"  # the callback asked to stop
    STOPPED = "stopped"  # by a person on the page of the run
    INTERRUPTED = "interrupted"
    TOO_MANY_FAILURES = "too many failures"
    ERROR = "error"  # a callback, an executor or a disk failed

    @property
    def is_regular(self) -> bool:
        """Whether the run ended regularly."""
        return self in (Status.BUDGET_SPENT, Status.TARGET_REACHED, Status.GRADIENT_LOST, Status.CALLBACK)


@dataclass(frozen=True, eq=False)
class History:
    """A run as arrays.

    For n evaluations: ``x`` (n, d); ``value`` (n,), NaN for a failure; ``iteration`` (n,); ``is_iterate`` (n,), True
    for an evaluation of the optimiser's iterate.

    For t iterations (0 for an optimiser without a model): ``iterate`` (t, d), the start of the step; ``evaluations``
    (t,), their number by then; ``gradient`` (t, d) and ``uncertainty`` (t,), mean and trace of the covariance of the
    gradient's posterior there; ``probability_of_ascent`` (t,) of the step; ``noise`` (t,), the model's noise variance;
    ``certainty`` (t,), the model's probability that the gradient is not zero.
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

    def __repr__(self) -> str:
        return f"History({len(self)} evaluations, {len(self.evaluations)} iterations)"

    def __len__(self) -> int:
        """Number of evaluations, failures included."""
        return len(self.value)


@dataclass(frozen=True, eq=False)
class Result:
    """The result of a run.

    Attributes:
        x: (d,) the recommended point: for GIBO the best point by its model instead of the luckiest value.
        parameters: the same point by name; with `gibo.parameters.Parameters`, the values that the objective gets.
        value: the model's estimate of the objective there, without noise. NaN if there is none yet; `warnings` then has
            the reason.
        interval: the model's 90 % interval (low, high) of this value; None without a model.
        best_seen: the best point by its observed value, noise included; None if no evaluation had a value.
        iterate: (d,) the optimiser's iterate.
        history: all evaluations as arrays; with sources, those of the machine.
        jacobian: posterior of the gradient at the iterate; None for an optimiser without a model.
        status: why the run ended, for a program; see `Status`.
        reason: why the run ended, for a person to read.
        limits: the model's probability that each limit holds at x, by the name of its quantity; empty without limits.
        iterations: number of finished iterations of the optimiser.
        notes: differences of a continued run from one that was not stopped: other versions, removed settings.
        failures: the failed evaluations, in the order of their ids, with the reason in ``failure`` and the place in
            ``outcome.traceback``.
        warnings: problems of the model, such as a fit that was skipped, or the reason why there is no value.
        start: x0 with the model's estimate; None during the run and without a model.
        advice: the verdict, and what to try next: objects with a ``code`` and a ``text``.
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
        """The result so far of a run."""
        optimizer, sign, start = session.optimizer, session.sign, None
        best, seen, jacobian = optimizer.best, optimizer.best_seen, optimizer.jacobian()
        best, x = best and best.signed(sign), optimizer.iterate if best is None else best.x
        if status is not Status.RUNNING:
            with suppress(NumericalError):  # an error here must not lose the result
                start = optimizer.at_start()
        return cls(
            x=x,
            value=np.nan if best is None else best.value,
            interval=None if best is None else best.interval,
            best_seen=seen and seen.signed(sign),
            iterate=optimizer.iterate,
            jacobian=None if jacobian is None else Jacobian(sign * jacobian.mean, jacobian.covariance),
            status=status,
            reason=reason,
            start=start and start.signed(sign),
            limits=optimizer.limits_at(x),
            iterations=optimizer.iteration,
            notes=tuple(session.notes),
            _evaluations=tuple(optimizer.evaluations),
            _steps=tuple(optimizer.log.iterations),
            _sign=sign,
            _naming=session.naming,
            _optimizer=optimizer,
        )

    def __str__(self) -> str:
        """A few lines for a person; the arrays are in the attributes."""
        seen = "none" if self.best_seen is None else f"{self.best_seen.value:.6g}"
        failed = f", {len(self.failures)} of them failed" if self.failures else ""
        simulated = f", {self.simulated} of the simulator" if self.simulated else ""
        value = f"no value ({self._why_no_value})" if np.isnan(self.value) else f"value {self.value:.6g}{self.by_model}"
        lines = [
            printable(self.reason),
            *(printable(advice.text) for advice in self.advice),
            f"{value} at {self._where}",
            *(f"limit of {printable(name)}: holds there with probability {p:.3f}" for name, p in self.limits.items()),
            f"best value seen {seen}; {self.evaluations} evaluations{failed}{simulated}",
        ]
        return "\n".join(lines)

    @property
    def by_model(self) -> str:
        """A remark on the value, for texts; empty for an optimiser without a model."""
        return "" if self.jacobian is None else " by the model"

    @property
    def best(self) -> Best | None:
        """x, value and interval together; None if there is no value."""
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
        """The representation in notebooks."""
        figure = _values_svg(self.history.value, self.history.is_iterate, self.value, self.interval)
        lines = "<br>".join(html.escape(line) for line in printable(str(self), lines=True).splitlines())
        return f'<div style="display:inline-block;font:13px sans-serif">{lines}<br>{figure}</div>'

    def to_dataframe(self, library: str | None = None) -> Any:
        """A data frame with a row per evaluation: of pandas, or of polars if only polars is installed.

        Args:
            library: "pandas" or "polars" to choose one.
        """
        return data_frame(self.columns(), library)

    def columns(self, since: int = 0) -> Columns:
        """The evaluations from a number on as columns by name; see `gibo.runs.table`."""
        return columns_of([Line(e.query, e.outcome) for e in self._told(self._evaluations[since:])], self._naming)

    def _told(self, evaluations: Iterable[Evaluation]) -> list[Evaluation]:
        """The evaluations in the objective's sign."""
        return [Evaluation(e.query, e.outcome.signed(self._sign)) for e in evaluations]

    @property
    def evaluations(self) -> int:
        """Number of evaluations, failures included; with sources, those of the machine."""
        return len(self._on_machine)

    @property
    def simulated(self) -> int:
        """Number of evaluations of the simulator, failures included."""
        return len(self._evaluations) - len(self._on_machine)

    @cached_property
    def _on_machine(self) -> tuple[Evaluation, ...]:
        return tuple(e for e in self._evaluations if e.kind != SIMULATED)

    @cached_property
    def history(self) -> History:
        d, sign, told, steps = len(self.x), self._sign, self._on_machine, self._steps
        counts = np.cumsum([0, *(e.kind != SIMULATED for e in self._evaluations)])
        return History(
            x=np.array([e.x for e in told]).reshape(-1, d),
            value=sign * np.array([np.nan if e.value is None else e.value for e in told]),
            iteration=np.array([e.iteration for e in told], dtype=np.int64),
            is_iterate=np.array([e.kind == ITERATE for e in told], dtype=np.bool_),
            iterate=np.array([step.x for step in steps]).reshape(-1, d),
            evaluations=counts[np.array([step.evaluations for step in steps], dtype=np.int64)],
            gradient=sign * np.array([step.gradient for step in steps]).reshape(-1, d),
            uncertainty=np.array([step.uncertainty for step in steps]),
            probability_of_ascent=np.array([step.probability_of_ascent for step in steps]),
            noise=np.array([step.noise for step in steps]),
            certainty=np.array([step.certainty for step in steps]),
        )

    @cached_property
    def failures(self) -> tuple[Evaluation, ...]:
        return tuple(self._told(e for e in self._evaluations if e.failure is not None))

    @cached_property
    def advice(self) -> list[Advice]:
        o, sign = self._optimizer, self._sign
        lower, upper = o.bounds or (np.full(o.d, -math.inf), np.full(o.d, math.inf))
        asked = [event.queries for event in o.log.events if isinstance(event, Asked)]
        facts = Facts.of(
            [
                Told(
                    e.iteration, e.kind, None if e.value is None else sign * e.value, e.failure, (e.x == o.start).all()
                )
                for e in self._evaluations
            ],
            self._steps,
            o.begun,
            isinstance(o, ModelBased) and o.uses_mean,
            minimize=sign < 0,
            naming=self._naming,
            scale=o.scale.tolist(),
            lower=lower.tolist(),
            upper=upper.tolist(),
            expected=getattr(getattr(getattr(o, "settings", None), "lengthscale", None), "median", None),
            recommended=self.x.tolist(),
            violated=o.violated_at_start() if np.array_equal(self.x, o.start) else (),
            batch=sum(len(queries) for queries in asked if queries[0].iteration == 0),
            iterations=self.iterations,
            by_hand=self.status is Status.WAITING,
            trend=o.trend() if isinstance(o, ModelBased) else None,
        )
        return remarks(facts) if self.status is Status.RUNNING else advise(facts, self.start, self.best)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        lines = [f"value: there is none, because {self._why_no_value}"] if np.isnan(self.value) else []
        lines += [f"iteration {s.number}: {s.warning}" for s in self._steps if s.warning is not None]
        lines += [f"iteration {s.number}: jitter {s.jitter:.1e} was added" for s in self._steps if s.jitter > 0.0]
        return tuple(lines)

    @property
    def _why_no_value(self) -> str:
        """The reason why the value is NaN."""
        if not self._evaluations:
            return "nothing was evaluated"
        if self.best_seen is None:
            return "no evaluation had a value"
        return "the optimiser uses whole batches and none is complete; best_seen has the best value so far"


def _values_svg(
    values: Array, is_iterate: npt.NDArray[np.bool_], believed: float, interval: tuple[float, float] | None
) -> str:
    """An SVG figure: a dot per evaluation, strong at iterates, failures at the foot; a line for the model's value."""
    known = values[np.isfinite(values)].tolist()
    if not known:
        return ""
    levels: list[float] = [*known, *([] if math.isnan(believed) else [believed]), *(interval or ())]
    low, high, n = min(levels), max(levels), len(values)
    right, foot = WIDTH - 8, HEIGHT - BOTTOM
    across = np.round(LEFT + (right - LEFT) * np.arange(n) / max(n - 1, 1), 1).tolist()

    def up(value: float) -> float:
        return round(foot - (foot - 10) * (value - low) / ((high - low) or 1.0), 1)

    def text(x: float, y: float, words: str) -> str:
        style = 'text-anchor="end" font-size="11" font-family="sans-serif" fill="currentColor"'
        return f'<text x="{x}" y="{y}" {style}>{words}</text>'

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" role="img">']
    parts.append(f"<title>values of {n} evaluations</title>{text(right, HEIGHT - 6, f'{n} evaluations')}")
    parts += [text(LEFT - 6, up(value) + 4, f"{value:.4g}") for value in (low, high)]
    if interval is not None:
        top, size = up(interval[1]), max(up(interval[0]) - up(interval[1]), 0.5)
        box = f'width="{right - LEFT}" height="{size:.1f}" fill="{LINE}" opacity="0.15"'
        parts.append(f'<rect x="{LEFT}" y="{top}" {box}/>')
    if not math.isnan(believed):
        parts.append(f'<line x1="{LEFT}" y1="{up(believed)}" x2="{right}" y2="{up(believed)}" stroke="{LINE}"/>')
    for x, value, strong in zip(across, values, is_iterate, strict=True):
        if math.isnan(value):
            parts.append(f'<path d="M{x - 3} {foot}l6 6m0 -6l-6 6" stroke="{FAILURE}"/>')
        else:
            look = f'r="3" fill="{LINE}"' if strong else f'r="2" fill="{DOT}"'
            parts.append(f'<circle cx="{x}" cy="{up(value)}" {look}/>')
    return "".join([*parts, "</svg>"])
