"""The arguments of an optimiser's constructor as plain data, and an optimiser from them."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple, TypeVar

from gibo._serialize import from_plain, to_plain
from gibo.errors import GiboError, InputError

T = TypeVar("T")


class Bounds(NamedTuple):
    """Bounds in a form that can be read in one way only; see `gibo._checks.as_bounds`."""

    lb: Any
    ub: Any


def arguments_of(optimizer: object) -> dict[str, Any]:
    """What `make` needs to make one like this: each option from the attribute of its name."""
    kind = type(optimizer).__name__
    plain: dict[str, Any] = {}
    for name in option_names(type(optimizer)):
        if not hasattr(optimizer, name):
            raise InputError(f"{kind}: keep the option {name!r} in an attribute of that name, to be saved with it")
        option = getattr(optimizer, name)
        if name == "bounds" and option is not None:
            option = {"lb": option[0], "ub": option[1]}
        try:
            plain[name] = to_plain(option)
        except TypeError as error:
            raise InputError(f"{kind}: the option {name!r} cannot be saved: {error}") from None
    return plain


def make(kind: type[T], arguments: dict[str, Any]) -> T:
    """A fresh optimiser from what `arguments_of` gave; the data may come from anywhere."""
    given = from_plain(arguments)
    try:
        if given.get("bounds") is not None:
            given["bounds"] = Bounds(**given["bounds"])
        return kind(**given)
    except GiboError:
        raise
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise InputError(f"state: the arguments of {kind.__name__}: {error!r:.120}") from error


def option_names(kind: type[Any]) -> list[str]:
    """The parameters of a constructor; where it hands ``**others`` on, also those of the class that it derives from."""
    names: list[str] = []
    for cls in kind.__mro__:
        if "__init__" not in vars(cls):
            continue
        parameters = list(inspect.signature(vars(cls)["__init__"]).parameters.values())[1:]
        names += [p.name for p in parameters if p.kind is not p.VAR_KEYWORD and p.name not in names]
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            break
    return names


def check_number(d: int, most: int | None, name: str) -> None:
    """That an optimiser can cope with this many parameters."""
    if most is not None and d > most:
        raise InputError(
            f"x0: {name} is for hundreds of parameters, at most {most}, got {d}; where they are the weights of images, "
            "give the policy features of the images instead"
        )
