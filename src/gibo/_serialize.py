"""Settings and states as plain data that JSON can hold, and back; nothing is ever unpickled."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from gibo.errors import InputError


def to_plain(value: Any) -> Any:
    """Nested lists, dictionaries, numbers and strings; a dataclass becomes a dictionary with its name as ``"type"``."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        # JSON has no infinities; Python floats survive it bit for bit.
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


def from_plain(data: Any, types: Iterable[type]) -> Any:
    """The inverse of `to_plain` for the given dataclasses; arrays and tuples come back as lists."""
    known = {cls.__name__: cls for cls in types}

    def build(item: Any) -> Any:
        if isinstance(item, list):
            return [build(part) for part in item]
        if not isinstance(item, dict):
            return item
        fields = {key: build(part) for key, part in item.items() if key != "type"}
        if "type" not in item:
            return fields
        if not isinstance(item["type"], str) or item["type"] not in known:
            raise InputError(f"unknown type {item['type']!r} in saved data; expected one of {sorted(known)}")
        try:
            return known[item["type"]](**fields)
        except TypeError as error:
            raise InputError(f"saved {item['type']}: {error}") from None

    return build(data)
