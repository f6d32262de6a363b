"""Optimisers with one interface: ask for queries, tell their values."""

from gibo._checks import one_of, shown
from gibo._plugins import is_place, load
from gibo.errors import InputError
from gibo.optimizers.ars import ARS
from gibo.optimizers.base import Optimizer
from gibo.optimizers.cma import CMAES
from gibo.optimizers.gibo import GIBO
from gibo.optimizers.random_search import RandomSearch
from gibo.optimizers.vanilla_bo import VanillaBO

__all__ = [
    "ARS",
    "CMAES",
    "GIBO",
    "Optimizer",
    "RandomSearch",
    "VanillaBO",
    "load_method",
    "method_class",
    "methods",
    "methods_text",
]


def methods() -> dict[str, type[Optimizer]]:
    """The optimisers by the name of their method, including a user's own."""
    kinds = Optimizer.registry.values()
    return {kind.method: kind for kind in kinds if kind.method is not None and "method" in vars(kind)}


def methods_text() -> str:
    """The values that ``--method`` accepts."""
    return f"{', '.join(methods())}, or module:Class of your own"


def method_class(name: str) -> type[Optimizer]:
    """The optimiser of a method, or of a user's class by its name; its module must be loaded."""
    kind = Optimizer.registry.get(name) if isinstance(name, str) else None
    if kind is not None and not kind.__module__.startswith("gibo."):
        return kind
    one_of("method", name, methods(), hint="; an optimiser of your own: --method module:Class")
    return methods()[name]


def load_method(text: str) -> str:
    """The name of a method for `method_class`; for ``module:Class``, written by the user, the module is imported."""
    if not is_place(text):
        return text
    kind = load("method", text)
    if not (isinstance(kind, type) and issubclass(kind, Optimizer)):
        raise InputError(f"method: expected the place of a subclass of gibo.Optimizer, got {shown(text)}")
    return vars(kind).get("method") or kind.__name__
