"""How an objective is called: with a vector, or with its parameters by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from gibo._linalg import Array
from gibo.errors import InputError
from gibo.outcome import Query
from gibo.parameters import Parameters

OFFERED = ("seed", "kind")  # of a query, what an objective gets if it has a parameter of that name


class Named:
    """An objective of a vector from one of parameters by name.

    It is called with a keyword argument for each parameter if it takes them, else with a dictionary.

    Args:
        objective: of the parameters.
        parameters: what the vector stands for.

    Example:
        >>> from gibo.parameters import integer
        >>> Named(lambda delay: delay + 1, Parameters(delay=integer(1, 9)))([4.4])
        5
    """

    def __init__(self, objective: Callable[..., Any], parameters: Parameters) -> None:
        self.objective, self.parameters = objective, parameters
        found = _signature(objective) or inspect.signature(lambda **values: None)
        own = {name: p for name, p in found.parameters.items() if p.kind is not p.POSITIONAL_ONLY}
        takes_any = any(p.kind is p.VAR_KEYWORD for p in own.values())
        self.by_keyword = takes_any or any(name in own for name in parameters)
        x = inspect.Parameter("x", inspect.Parameter.POSITIONAL_ONLY)
        extra = [own[name].replace(kind=inspect.Parameter.KEYWORD_ONLY) for name in OFFERED if name in own]
        self.__signature__ = inspect.Signature([x, *extra])
        values = dict.fromkeys(parameters)
        _bind(found, *([] if self.by_keyword else [values]), **(values if self.by_keyword else {}), **_offered(found))

    def __call__(self, x: Array, **options: Any) -> Any:
        values = self.parameters.to_values(x)
        return self.objective(**values, **options) if self.by_keyword else self.objective(values, **options)


def check_call(objective: Callable[..., Any], reparametrizer: Any = None) -> None:
    """That the objective can be called with a vector, before anything is evaluated."""
    found = _signature(objective)
    if found is not None:
        _bind(found, None, **_offered(found), **({} if reparametrizer is None else reparametrizer.options()))


def asked_for(objective: Callable[..., Any], query: Query) -> dict[str, Any]:
    """Of what is offered, that for which the objective has a parameter of that name."""
    found = _signature(objective)
    return {} if found is None else {name: getattr(query, name) for name in _offered(found)}


def _signature(objective: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(objective)
    except Exception:  # builtins may have no signature, and a stranger's object may raise anything
        return None


def _offered(found: inspect.Signature) -> dict[str, None]:
    own = found.parameters
    return {name: None for name in OFFERED if name in own and own[name].kind is not inspect.Parameter.POSITIONAL_ONLY}


def _bind(found: inspect.Signature, /, *args: Any, **kwargs: Any) -> None:
    try:
        found.bind(*args, **kwargs)
    except TypeError as error:
        how = "a vector" if args else f"the keywords {', '.join(kwargs)}"
        raise InputError(f"objective: it is called with {how}, and takes {found}: {error}") from None
