"""The studies: what each is made by, which options it takes, what it needs. A new study is one more entry.

Nothing is imported here, so that the names can be listed at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Entry:
    """A study as the command line knows it.

    Attributes:
        study: its class, whose fields are its options; or where it is, as ``module:name``. See `report.ReportedStudy`.
        figures: draws the figures of a folder from its saved data, and returns their files; or where it is.
        options: of the command line that it takes, fields of its class.
        quick: options of its small version.
        needs: packages, beside those that show progress and draw.
        cells: False if there is nothing to run bit by bit; then `study` is a function that writes its data to a file of
            the study's name, with .json, in a folder.
    """

    study: str | Callable[..., Any]
    figures: str | Callable[[Path], list[Path]]
    options: tuple[str, ...] = ()
    quick: Mapping[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    cells: bool = True


def _no_figures(folder: Path) -> list[Path]:
    return []


def _algorithm(place: str, *needs: str) -> Entry:
    return Entry(f"gibo_studies.algorithm.{place}", _no_figures, ("trials",), {"trials": 1}, needs)


_SYNTHETIC = Entry(
    "gibo_studies.paper.synthetic:SyntheticStudy",
    "gibo_studies.paper.figures.synthetic:figures",
    options=("dimensions", "functions", "budget", "methods"),
    quick={"dimensions": (4, 8), "functions": 3, "budget": 100},
)
_BASELINES = replace(_SYNTHETIC, needs=("cma",))
_GYM = Entry(
    "gibo_studies.paper.gym:GymStudy",
    "gibo_studies.paper.figures.gym:figures",
    options=("trials", "budget", "methods"),
    quick={"trials": 2, "budget": 60},
    needs=("gymnasium",),
)
_MUJOCO = replace(_GYM, needs=("gymnasium", "mujoco"))

STUDIES: dict[str, Entry] = {
    "within-model": _BASELINES,
    "out-of-model": _BASELINES,
    "ablation-normalisation": _SYNTHETIC,
    "ablation-sampling": _SYNTHETIC,
    "stopping": _SYNTHETIC,
    "illustrations": Entry(
        "gibo_studies.paper.illustrations:write_illustrations",
        "gibo_studies.paper.figures.illustrations:figures",
        cells=False,
    ),
    "lqr": Entry(
        "gibo_studies.paper.lqr:LQRStudy",
        "gibo_studies.paper.figures.lqr:figures",
        options=("trials", "budget", "methods"),
        quick={"trials": 4, "budget": 60},
    ),
    "gradients": Entry(
        "gibo_studies.paper.gradients:GradientStudy",
        "gibo_studies.paper.figures.gradients:figures",
        options=("trials", "functions"),
        quick={"trials": 2, "episodes": 40, "functions": 2, "budget": 60},
        needs=("gymnasium",),
    ),
    "cartpole": _GYM,
    "swimmer": _MUJOCO,
    "hopper": _MUJOCO,
    "cheetah": _MUJOCO,
    "ablation-gym": _MUJOCO,
    "ablation-hopper": _MUJOCO,
    "ablations": _algorithm("ablations:Ablations", "gymnasium", "mujoco"),
    "noise": _algorithm("noise:NoiseStudy"),
    "order": _algorithm("order:OrderStudy", "gymnasium", "mujoco"),
    "judge": Entry(
        "gibo_studies.leaderboard.judges.judge:JudgeStudy",
        "gibo_studies.leaderboard.judges.figures:figures",
        options=("judge", "methods", "tasks", "dimensions", "trials"),
    ),
}


def load(place: str | Callable[..., Any]) -> Callable[..., Any]:
    """What an entry names."""
    if not isinstance(place, str):
        return place
    module, name = place.split(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found
