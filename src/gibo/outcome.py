"""What an objective may return when a number alone does not say it all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class Outcome:
    """A value with what else was seen in its evaluation.

    Attributes:
        value: the objective's value, a finite number.
        gradient: (d,) an observation of the objective's gradient there, or None.
        gradient_noise: variance of the gradient's noise, a number or one per parameter; needed with a gradient.
        info: whatever else is worth keeping, as data that JSON can hold; a journal records it with the value.

    Example:
        >>> import gibo
        >>> def objective(x):
        ...     return gibo.Outcome(-float(x @ x), info={"steps": 200})
        >>> gibo.maximize(objective, [1.0, 1.0], budget=5).evaluations
        5
    """

    value: float
    gradient: npt.ArrayLike | None = None
    gradient_noise: npt.ArrayLike | None = None
    info: Mapping[str, Any] = field(default_factory=dict)
