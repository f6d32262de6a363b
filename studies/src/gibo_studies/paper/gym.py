"""Policy search on Gymnasium environments: section 4.3 of the paper (figure 6) and its ablations (4.4, figure 7).

A cell is a trial: one training run with its journal, and afterwards one episode of the iterate now and then along the
way, which neither counts nor teaches the policy anything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from gibo._linalg import Array
from gibo.errors import InputError
from gibo.figures.style import pyplot, save
from gibo.optimizers.log import Asked, Told
from gibo.runs.journal import Journal
from gibo.runs.session import Session
from gibo.training.presets import PRESETS
from gibo.training.training import StateNormalizer, Training, train, training_of
from gibo_studies import report
from gibo_studies.study import Record
from gibo_studies.styles import line_style

_PUBLISHED, _OWN = PRESETS["published"], PRESETS["gibo"]


class Comparison(NamedTuple):
    """What a study compares: where to look in its table, the last after the budget, and trainings by their method."""

    marks: tuple[int, ...]
    methods: Mapping[str, Training]


def _against_ars(environment: str, marks: tuple[int, ...], ars: Training, published: bool = False) -> Comparison:
    methods = {"GIBO": _OWN[environment, "gibo"]}
    if published:
        methods["GIBO (published)"] = _PUBLISHED[environment, "gibo"]
    return Comparison(marks, {**methods, "ARS": ars})


def _ablated(environment: str, marks: tuple[int, ...], **more: Training) -> Comparison:
    """Our own settings whole, without normalisation of the gradient, and what else is given."""
    whole = _OWN[environment, "gibo"]
    settings = whole.options["settings"]
    unscaled = replace(settings, move=replace(settings.move, normalization="off"))
    without = replace(whole, options={"settings": unscaled})
    return Comparison(marks, {"GIBO": whole, "without gradient normalisation": without, **more})


_HOPPER, _HOPPER_ARS = _OWN["Hopper-v5", "gibo"], _PUBLISHED["Hopper-v5", "ars"]
# With the standard deviation that divides by n, as these trials were run: steps are 7 % longer.
_LONGER_STEPS = replace(_HOPPER_ARS, options={**_HOPPER_ARS.options, "ddof": 0})
_OTHERS = {
    "without state normalisation": replace(_HOPPER, normalize_states=False),
    "iterate re-expressed": replace(_HOPPER, reexpressed="iterate"),
    "published settings": _PUBLISHED["Hopper-v5", "gibo"],
}
_CARTPOLE = _against_ars("CartPole-v1", (10, 25, 54, 75, 100), _PUBLISHED["CartPole-v1", "ars"], published=True)
_SWIMMER = _against_ars("Swimmer-v5", (200, 500, 1000, 2000), _PUBLISHED["Swimmer-v5", "ars"], published=True)

# By study and environment.
STUDIES: dict[str, dict[str, Comparison]] = {
    "cartpole": {"CartPole-v1": _CARTPOLE},
    "swimmer": {"Swimmer-v5": _SWIMMER},
    "hopper": {"Hopper-v5": _against_ars("Hopper-v5", (500, 1000, 2000, 4000), _LONGER_STEPS)},
    "cheetah": {
        "HalfCheetah-v5": _against_ars("HalfCheetah-v5", (250, 500, 1000, 2000), _OWN["HalfCheetah-v5", "ars"])
    },
    "ablation-gym": {
        "CartPole-v1": _ablated("CartPole-v1", (25, 54, 100)),
        "Swimmer-v5": _ablated("Swimmer-v5", (500, 1000, 2000)),
    },
    "ablation-hopper": {"Hopper-v5": _ablated("Hopper-v5", (500, 1000, 1500, 2000), **_OTHERS)},
}


@dataclass(frozen=True)
class GymStudy(report.CurveStudy):
    """A study by name: its methods, `trials` trials each, in each of its environments."""

    folder: Path  # where the trials' journals are kept; a trial that was stopped goes on where it was
    trials: int = 10
    budget: int | None = None  # episodes per trial; None for the study's own
    methods: tuple[str, ...] = ()

    data: ClassVar[str] = "returns.csv"
    columns: ClassVar[report.Columns] = report.Columns(
        arm=("environment", "method"), repeat="trial", spent="episodes", value="return"
    )
    quick: ClassVar[Mapping[str, Any]] = {"trials": 2, "budget": 60}

    def known_methods(self) -> Collection[str]:
        return dict.fromkeys(method for each in STUDIES[self.name].values() for method in each.methods)

    def needs(self) -> tuple[str, ...]:
        return ("gymnasium",) if self.name == "cartpole" else ("gymnasium", "mujoco")

    def budget_of(self, environment: str) -> int:
        own = STUDIES[self.name][environment].marks[-1]
        return own if self.budget is None else min(own, self.budget)

    def arms(self) -> list[report.Arm]:
        studied = STUDIES[self.name].items()
        return [(environment, name) for environment, each in studied for name in self.methods if name in each.methods]

    def run_cell(self, cell: Mapping[str, Any]) -> Record:
        """Episodes spent, and the return of one more of the iterate then."""
        training = STUDIES[self.name][cell["environment"]].methods[cell["method"]]
        budget = self.budget_of(cell["environment"])
        words = (cell["environment"], *cell["method"].lower().split(), f"{cell['trial']:02d}")
        folder = self.folder / "trials" / "-".join(words)
        result = train(training, folder, budget=budget, seed=self.seed_of(cell["trial"]))
        if result.evaluations < budget:
            raise InputError(f"the trial ended early: {result.reason}")
        curve = learning_curve(folder, report.checkpoints(budget).step)
        return {"cell": dict(cell), "curve": curve}

    def grid(self, arm: report.Arm) -> range:
        return report.checkpoints(self.budget_of(arm[0]))

    def summary(self, curves: report.Curves) -> str:
        text = (
            "Return of one episode of the iterate after so many episodes of training, "
            f"{self.trials} trials: mean ± standard deviation (median).\n"
        )
        for environment in dict.fromkeys(each for each, _ in curves):
            marks = report.reached(STUDIES[self.name][environment].marks, self.budget_of(environment))
            rows = [
                (method, *(report.spread_text(v, 0) for v in report.sample(returns, marks)))
                for (each, method), returns in curves.items()
                if each == environment
            ]
            text += "\n" + report.table((environment, *report.after(marks)), rows)
        return text

    @classmethod
    def figures(cls, out: Path) -> list[Path]:
        """Mean and standard deviation of the return over the episodes (figures 6 and 7); thin: each trial."""
        curves = report.read_curves(out, cls.columns)
        environments = list(dict.fromkeys(environment for environment, _ in curves))
        size = (0.8 + 3.6 * len(environments), 3.2)
        with pyplot() as plt:
            figure, ((*panels,),) = plt.subplots(
                1, len(environments), figsize=size, squeeze=False, layout="constrained"
            )
            lines = {}
            for (environment, method), curve in curves.items():
                axes = panels[environments.index(environment)]
                episodes, mean, sd, style = curve["episodes"], curve["mean"], curve["sd"], line_style(method)
                lines[method] = axes.plot(episodes, mean, **style, label=method)[0]
                axes.fill_between(episodes, mean - sd, mean + sd, color=style["color"], alpha=0.15, linewidth=0)
            for (environment, method), trials in report.read_points(out / "returns.csv", cls.columns).items():
                axes, color = panels[environments.index(environment)], line_style(method)["color"]
                for trial in trials:
                    axes.plot(*zip(*trial, strict=True), color=color, linewidth=0.4, alpha=0.4, zorder=1)
            for axes, environment in zip(panels, environments, strict=True):
                axes.set_title(environment)
                axes.set_xlabel("episodes")
            panels[0].set_ylabel("return, mean ± standard deviation")
            beside = sum(len(name) + 8 for name in lines) < 17 * size[0]  # whether the names fit beside each other
            figure.legend(handles=list(lines.values()), loc="outside upper center", ncols=len(lines) if beside else 1)
            return save(figure, plt, out / "learning")


def learning_curve(folder: Path, every: int) -> list[tuple[int, float]]:
    """Episodes spent and the return of one episode of the iterate then, at most every so many episodes.

    The journal is replayed, so that a trial that was stopped and continued has the same curve.
    """
    with Journal.read(folder) as journal:
        training = training_of(journal)
        with training.task() as task:
            normalizer = training.normalizer(task.architecture)
            curve: list[tuple[int, float]] = []
            for spent, iterate in iterates_of(journal, normalizer):
                if not curve or spent - curve[-1][0] >= every:
                    normalization = None if normalizer is None else normalizer.normalization
                    (episode,) = task.evaluate(iterate, 1, seed=spent, normalization=normalization)
                    curve.append((spent, episode.value))
    return curve


def iterates_of(journal: Journal, normalizer: StateNormalizer | None) -> Iterator[tuple[int, Array]]:
    """The iterates of a journal's run, each with the number of evaluations so far: x0, then one per iteration.

    When one is given, the normaliser has learnt from all evaluations before it.
    """
    spec = journal.spec()
    session = Session(spec.fresh_optimizer(), spec.sign, normalizer)
    yield 0, session.optimizer.iterate
    iterates, events, spent, seen = journal.iterates(), [], 0, 0
    for event in session.as_replayed(journal.events()):
        events.append(event)
        spent += isinstance(event, Told)
        if isinstance(event, Asked) and event.queries[0].iteration > seen:
            seen = event.queries[0].iteration
            yield spent, iterates[event.queries[0].id]
    session.optimizer.replay(events)
    session.settle()
    if session.optimizer.iteration > seen:
        yield spent, session.optimizer.iterate
