"""Convert settings and states to plain JSON data and back; nothing is ever unpickled.

A class that can be read back derives from `Serializable` and is a frozen dataclass. Its name is saved. When the data
are read, the class is looked up by this name among the defined classes only.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from gibo._checks import as_path, describe_error, shown
from gibo._plugins import without_imports
from gibo.errors import InputError

# Deeper nesting means that `to_plain` did not write the data.
DEEPEST = 50

_CLASSES: dict[str, type[Serializable]] = {}


class Serializable:
    """Base of the dataclasses that `from_plain` can build; a subclass is registered by its name when it is defined."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        register(_CLASSES, cls.__name__, cls)


def register(classes: dict[str, Any], name: str, cls: type) -> None:
    """Register a class by its name; it may replace a user's class, but no class of gibo."""
    known = classes.get(name)
    if known is not None and is_own(known) and not is_own(cls):
        raise InputError(f"{cls.__module__}.{cls.__qualname__}: {name!r} is a name of gibo's own; choose another one")
    classes[name] = cls


def is_own(cls: type) -> bool:
    """Whether a class belongs to gibo."""
    return cls.__module__.partition(".")[0] == "gibo"


def to_plain(value: Any) -> Any:
    """Nested lists, dictionaries, numbers and strings; a dataclass becomes a dictionary with its name as ``"type"``."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        # JSON has no infinities; it keeps finite Python floats bit for bit.
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, np.ndarray):
        return to_plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): to_plain(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"type": type(value).__name__, **fields}
    raise TypeError(f"no plain form for {type(value).__name__}")


def from_plain(data: Any) -> Any:
    """The inverse of `to_plain` for subclasses of `Serializable`; arrays and tuples become lists.

    The data may come from anywhere; invalid data raise an `InputError`.
    """
    with without_imports():
        return _build(data, 0)


def _build(item: Any, depth: int) -> Any:
    if depth > DEEPEST:
        raise InputError(f"saved data: nested deeper than {DEEPEST} levels; not what to_plain gives")
    if isinstance(item, list):
        return [_build(part, depth + 1) for part in item]
    if not isinstance(item, dict):
        return item
    fields = {key: _build(part, depth + 1) for key, part in item.items() if key != "type"}
    if "type" not in item:
        return fields
    name = item["type"]
    if not isinstance(name, str) or name not in _CLASSES:
        raise InputError(
            f"unknown type {shown(name)} in saved data; if it is a class of your own, import the module that defines "
            f"it first. Known are: {', '.join(sorted(_CLASSES))}"
        )
    try:
        return _CLASSES[name](**fields)
    except InputError:
        raise
    except Exception as error:  # a class may raise anything if its fields are wrong
        raise InputError(f"saved {name}: {describe_error(error)}") from None


@contextmanager
def read_file(path: str | os.PathLike[str], parse: Callable[[str], Any], form: str) -> Iterator[Any]:
    """The content of a text file, by a parser such as ``json.loads``; errors begin with the name of the file."""
    path = as_path("path", path)
    try:
        data = parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not readable as {form}: {error}") from None
    try:
        yield data
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def check_plain(name: str, data: Any, depth: int = 0) -> None:
    """Raise if the data are no JSON data or nested too deeply."""
    if depth > DEEPEST:
        raise InputError(f"{name}: nested deeper than {DEEPEST} levels; not what to_plain gives")
    if isinstance(data, list):
        for part in data:
            check_plain(name, part, depth + 1)
    elif isinstance(data, dict):
        for key, part in data.items():
            if not isinstance(key, str):
                raise InputError(f"{name}: expected text as keys, got {shown(key)}")
            check_plain(name, part, depth + 1)
    elif not (data is None or isinstance(data, (str, int, float))):
        raise InputError(f"{name}: expected data as JSON has them, got {type(data).__name__}")


def check_serializable(name: str, value: Serializable) -> None:
    """Raise if saving would lose a part of an object of a user's class."""
    cls = type(value)
    if not dataclasses.is_dataclass(cls) or ("__init__" in vars(cls) and "__dataclass_fields__" not in vars(cls)):
        raise InputError(
            f"{name}: to be saved, {cls.__name__} must be a dataclass; put @dataclass(frozen=True) before it"
        )
    if _CLASSES.get(cls.__name__) is not cls:
        raise InputError(
            f"{name}: {cls.__name__} was defined again since; the new one would be read back, so use that one"
        )
