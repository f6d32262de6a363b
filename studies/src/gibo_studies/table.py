"""Where each study is. Nothing is imported here, so that the names can be listed at once."""

from __future__ import annotations

from typing import Any

_SYNTHETIC = "gibo_studies.paper.synthetic:SyntheticStudy"
_GYM = "gibo_studies.paper.gym:GymStudy"

# By its name the class of a study (see `gibo_studies.study`), or where it is. A new study is one more entry.
STUDIES: dict[str, str | type[Any]] = {
    "within-model": _SYNTHETIC,
    "out-of-model": _SYNTHETIC,
    "ablation-normalisation": _SYNTHETIC,
    "ablation-sampling": _SYNTHETIC,
    "stopping": _SYNTHETIC,
    "illustrations": "gibo_studies.paper.illustrations:Illustrations",
    "lqr": "gibo_studies.paper.lqr:LQRStudy",
    "gradients": "gibo_studies.paper.gradients:GradientStudy",
    "cartpole": _GYM,
    "swimmer": _GYM,
    "hopper": _GYM,
    "cheetah": _GYM,
    "ablation-gym": _GYM,
    "ablation-hopper": _GYM,
    "ablations": "gibo_studies.algorithm.ablations:Ablations",
    "noise": "gibo_studies.algorithm.noise:NoiseStudy",
    "order": "gibo_studies.algorithm.order:OrderStudy",
    "judge": "gibo_studies.leaderboard.judges.judge:JudgeStudy",
}
