"""What the model said after an update, as plain data: a journal records it and a page shows it.

A belief is in the objective's own sign and the parameters' own units. Its fields are those of
`gibo.optimizers.log.Belief`, with ``low`` and ``high`` for the interval:

    x, value, deviation, low, high       the recommended point, its believed value and that value's 90 % interval
    iterate, gradient, gradient_deviation    the iterate after the update, and the gradient there
    lengthscale, noise                   hyperparameters; noise is a variance
    units                                how the model sees values, in the optimiser's sign
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gibo._checks import as_vector, finite
from gibo._serialize import to_plain
from gibo.errors import InputError
from gibo.optimizers.log import Belief

VECTORS = ("x", "iterate", "gradient", "gradient_deviation", "lengthscale")
NUMBERS = ("value", "deviation", "low", "high", "noise")


class Update(NamedTuple):
    """What the model said after the update of this number, when so many evaluations were told.

    Attributes:
        belief: None if the journal has it already, and for an optimiser without a model.
        views: by their kinds, see `gibo.runs.views`; those that the journal has stay where there are no new ones.
    """

    number: int
    evaluations: int
    belief: dict[str, Any] | None
    views: dict[str, Any]


def belief_to_plain(belief: Belief, sign: float) -> dict[str, Any]:
    """In the objective's own sign: −1 where it is minimised."""
    low, high = sorted(sign * bound for bound in belief.interval)
    own = {"value": sign * belief.value, "low": low, "high": high, "gradient": sign * belief.gradient}
    parts = {name: getattr(belief, name) for name in (*VECTORS, *NUMBERS, "units") if hasattr(belief, name)}
    plain: dict[str, Any] = to_plain({**parts, **own})
    return plain


def checked_belief(body: Any, d: int) -> dict[str, Any]:
    """The same, checked: a file may hold anything."""
    if not isinstance(body, dict) or not isinstance(body.get("units"), dict):
        raise InputError("a belief has names")
    for name in VECTORS:
        as_vector(name, body[name], d)
    for name in NUMBERS:
        finite(name, body[name])
    return body
