"""Load a class or an object from a user's module by its place, ``module:Name``.

A place is resolved where the user wrote it, on the command line or in a program. A module that a file names is never
imported: `from_plain` and readers of files work within `without_imports`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import ModuleType
from typing import Any

from gibo._checks import describe_error, shown
from gibo.errors import InputError

_from_a_file: ContextVar[bool] = ContextVar("_from_a_file", default=False)


def is_place(text: object) -> bool:
    """Whether a text has the form ``module:Name``."""
    module, colon, name = text.partition(":") if isinstance(text, str) else ("", "", "")
    return bool(colon) and name.isidentifier() and all(part.isidentifier() for part in module.split("."))


def load(option: str, place: str) -> Any:
    """The object at ``module:Name``, which is imported; `option` is where the user wrote it, for the error message."""
    if not is_place(place):
        raise InputError(f"{option}: expected module:Name, such as my_methods:Spiral, got {shown(place)}")
    module, _, name = place.partition(":")
    if _from_a_file.get():
        raise InputError(
            f"{option}: a file must not choose what is imported, got {shown(place)}; import {module} in your program, "
            f"or use gibo --load {module} ..., and write the name alone"
        )
    found = load_module(option, module)
    if not hasattr(found, name):
        raise InputError(f"{option}: the module {module} has no {name}")
    return getattr(found, name)


def load_module(option: str, name: str) -> ModuleType:
    """Import a user's module; `option` is where the user wrote its name."""
    try:
        return importlib.import_module(name)
    except Exception as error:  # it may raise anything
        raise InputError(f"{option}: {name} cannot be imported: {describe_error(error)}") from error


@contextmanager
def without_imports() -> Iterator[None]:
    """In this block `load` refuses every place, because the places come from a file."""
    token = _from_a_file.set(True)
    try:
        yield
    finally:
        _from_a_file.reset(token)
