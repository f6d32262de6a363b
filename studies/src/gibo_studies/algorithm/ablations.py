"""The default without each of its rules, or with another constant, on the tasks by which it is chosen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gibo._linalg import Array
from gibo.optimizers.moves import BoundStep, GradientStep
from gibo.optimizers.queries import Informative
from gibo.optimizers.settings import PowerLaw, Settings
from gibo.priors import LogNormal
from gibo_studies.algorithm.study import DEFAULT, AlgorithmStudy, Row, read
from gibo_studies.leaderboard.task import Task
from gibo_studies.leaderboard.tasks import TASKS
from gibo_studies.report import table

FORMER, NO_SCALE_RULE, NO_SURVEY = "former default", "no scale rule", "no survey"
VARIANTS: Mapping[str, Settings] = {
    DEFAULT: Settings(),
    NO_SCALE_RULE: Settings(scale_rule=None),
    "no warp": Settings(warp=False),
    "gradient step instead of the bound's maximum": Settings(move=GradientStep()),
    "bound: β = 0": Settings(move=BoundStep(beta=0.0)),
    "bound: β = 1": Settings(move=BoundStep(beta=1.0)),
    "M = ⌈2√d⌉": Settings(M=PowerLaw(2.0, 0.5)),
    "first iteration no larger": Settings(M_first=1),
    NO_SURVEY: Settings(survey=0),
    "survey of 8 points": Settings(survey=8),
    "along the parameters (Q = I)": Settings(queries=Informative(basis="axes")),
    "noise prior: median 0.3": Settings(noise=LogNormal(0.3, 1.5)),
    "box: δ × 0.67": Settings(delta=PowerLaw(2.5 * 0.67, -0.3)),
    "box: δ × 1.5": Settings(delta=PowerLaw(2.5 * 1.5, -0.3)),
    "lengthscale prior: median 1.5·√d": Settings(lengthscale=PowerLaw(1.5, 0.5)),
    "lengthscale prior: common log-sd 0.7": Settings(shared_log_sd=0.7),
    "window halved": Settings(N_m=PowerLaw(5.0, least=50.0, most=1000.0)),
    "recommend: highest mean, not mean − σ": Settings(caution=0.0),
    "recommend: no rule for the start, also the iterate": Settings(only_evaluated=False),
}
# Where wrong scales are tried, by which factors, and with which variants.
SCALED = (
    "sphere20", "ackley10", "l1-12", "plateau6", "skewed6", "CartPole-v1", "rotated-ellipsoid10", "saturating16",
)  # fmt: skip
FACTORS = (0.1, 10.0)
LONGEST = 120  # budget of the tasks on which all variants run
MARKS = ("N/4", "N/2", "N")


@dataclass(frozen=True)
class Ablations(AlgorithmStudy):
    """Paired with the default by task and trial.

    `former.csv` has rows of the default before, made by commit 9c8dfdf on the same tasks and trials.
    """

    trials: int | None = 3

    def needs(self) -> tuple[str, ...]:
        return ("gymnasium", "mujoco")

    def tasks(self) -> Mapping[str, Task]:
        return TASKS

    def settings(self) -> Mapping[str, Settings]:
        return VARIANTS

    def arms(self, task: Task) -> Iterable[tuple[float, str]]:
        wrong = [(factor, variant) for factor in FACTORS for variant in (DEFAULT, NO_SCALE_RULE)]
        right = [
            (1.0, variant)
            for variant, settings in VARIANTS.items()
            if (task.budget <= LONGEST or variant in (DEFAULT, NO_SCALE_RULE))
            and (task.bounds is not None or settings.survey == Settings.survey)  # the survey is for bounds
        ]
        return [*right, *(wrong if task.name in SCALED else [])]

    def table(self, rows: Sequence[Row]) -> str:
        rows = [*rows, *read("former")]
        texts = [
            "Shares of the possible improvement that the recommended point has after a quarter, a half and all of the\n"
            "budget, in percent: of the default, and paired differences to it ± standard error over tasks.\n"
        ]
        for scale in (1.0, *FACTORS):
            here = [row for row in rows if float(row["scale"]) == scale]
            lines = [
                _line(here, variant) for variant in (*VARIANTS, FORMER) if any(r["variant"] == variant for r in here)
            ]
            texts.append(f"Scale × {scale:g}:\n\n" + table(["variant", "tasks", "runs", *MARKS], lines))
        return "\n".join(texts)


def _line(rows: Sequence[Row], variant: str) -> list[object]:
    """The shares of the default, or paired differences to them; in percent ± the standard error over tasks."""
    own, default = _shares(rows, variant), _shares(rows, DEFAULT)
    by_task: dict[str, list[Array]] = {}
    for key in (key for key in own if key in default):
        by_task.setdefault(key[0], []).append(own[key] if variant == DEFAULT else own[key] - default[key])
    means = np.array([np.mean(by_task[task], axis=0) for task in sorted(by_task)])  # (tasks, looks)
    entries = []
    if variant == DEFAULT:
        entries = [f"{mean:.1f}" for mean in means.mean(axis=0)]
    elif len(means) > 1:
        errors = means.std(axis=0, ddof=1) / len(means) ** 0.5
        entries = [f"{mean:+.1f} ± {error:.1f}" for mean, error in zip(means.mean(axis=0), errors, strict=True)]
    return [variant, len(means), sum(map(len, by_task.values())), *entries]


def _shares(rows: Sequence[Row], variant: str) -> dict[tuple[str, str], Array]:
    """By task and trial: at the three looks, in percent, at least −100."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row["variant"] == variant:
            found.setdefault((row["task"], row["trial"]), []).append(100.0 * max(-1.0, float(row["share"])))
    return {key: np.array(values) for key, values in found.items()}
