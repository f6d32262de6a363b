"""How an optimiser spends a study's budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gibo._linalg import Array
from gibo.optimizers.base import Optimizer
from gibo.outcome import Outcome


def iterates(optimizer: Optimizer, evaluate: Callable[[Any, int], Outcome], budget: int) -> Iterator[tuple[int, Array]]:
    """What was spent after each finished iteration, and the iterate then; first of all the start.

    Args:
        optimizer: a fresh one.
        evaluate: from a query and what was spent before it to its outcome. ``info["episodes"]`` says what it
            costs; 1 if nothing does.
        budget: no evaluation begins once this is spent, and an iteration that went beyond it is left out.
    """
    yield 0, optimizer.iterate
    spent = 0
    while spent < budget:
        iteration = optimizer.iteration
        for query in optimizer.ask():
            if spent >= budget:
                break
            outcome = evaluate(query, spent)
            optimizer.tell(query, outcome.value, gradient=outcome.gradient, gradient_noise=outcome.gradient_noise)
            spent += outcome.info.get("episodes", 1)
        if optimizer.iteration > iteration and spent <= budget:
            yield spent, optimizer.iterate
