"""What can be known of an objective, to notice that a run is continued with another one.

    {"name": "cost", "code": a digest of its instructions or None, "python": which Python's, "options": {"gain": 2.0}}

The digest is of what Python executes, so comments, layout and the place of the file do not matter; functions of the
user's that it calls by their names count as its own. Code of installed packages does not, nor what an object or a
closure holds, which may be a state: only defaults of arguments, arguments of a partial and fields of frozen dataclasses
are options. Where nothing can be known, nothing differs.
"""

from __future__ import annotations

import dataclasses
import dis
import functools
import hashlib
import inspect
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FunctionType, MethodType
from typing import Any

from gibo._checks import shown

LONGEST = 200  # characters of an option's text
INSTALLED = ("site-packages", "dist-packages")


def fingerprint(objective: Callable[..., Any]) -> dict[str, Any]:
    """Of an objective, as plain data; see the module's text.

    Example:
        >>> def cost(x, gain=2.0):
        ...     return gain * x[0]
        >>> fingerprint(cost)["name"], fingerprint(cost)["options"]
        ('cost', {'gain': 2.0})
    """
    try:
        return _known(objective)
    except (AttributeError, TypeError, ValueError, RecursionError):  # an object of many faces is still an objective
        return {"name": type(objective).__name__, "code": None, "python": None, "options": {}}


def _known(objective: Any) -> dict[str, Any]:
    options: dict[str, Any] = {}
    while isinstance(objective, functools.partial):
        options = {**{str(i): a for i, a in enumerate(objective.args)}, **objective.keywords, **options}
        objective = objective.func
    function = _function(objective)
    if function is not None:
        own = inspect.signature(function).parameters
        options = {name: p.default for name, p in own.items() if p.default is not p.empty} | options
    parameters = getattr(type(objective), "__dataclass_params__", None)
    if parameters is not None and parameters.frozen:
        options |= {field.name: getattr(objective, field.name, None) for field in dataclasses.fields(objective)}
    name = getattr(objective, "__name__", None)
    name = name if isinstance(name, str) else type(objective).__name__
    python = f"{sys.implementation.cache_tag}-{sys.flags.optimize}"
    known = {name: _plain(value) for name, value in options.items()}
    return {"name": name, "code": _digest(function), "python": python, "options": known}


def differences(then: Any, now: Mapping[str, Any]) -> str:
    """What has changed since, for a person to read; empty if nothing is known to have."""
    if not isinstance(then, dict) or not isinstance(then.get("options"), dict):
        return ""
    parts = [f"its name was {shown(then['name'])}, now {shown(now['name'])}"] if then.get("name") != now["name"] else []
    if then.get("python") == now["python"] and None not in (then.get("code"), now["code"]) and not parts:
        parts += ["its code is another"] if then["code"] != now["code"] else []
    old, new = then["options"], now["options"]
    for name in [name for name in old | new if old.get(name) != new.get(name)][:3]:
        parts.append(f"{name} was {shown(old.get(name))}, now {shown(new.get(name))}")
    return "; ".join(parts)


def _function(objective: Any) -> FunctionType | None:
    """The one of Python that is called, if there is one."""
    if isinstance(objective, functools.partial):
        return _function(objective.func)
    if isinstance(objective, FunctionType):
        return objective
    if isinstance(objective, MethodType):
        return _function(objective.__func__)
    if isinstance(objective, type):
        return None
    called = getattr(type(objective), "__call__", None)  # noqa: B004  # the function is wanted
    return (
        called if isinstance(called, FunctionType) else _function(inspect.getattr_static(objective, "__wrapped__", int))
    )


def _digest(function: FunctionType | None) -> str | None:
    if function is None or not _is_users(function):
        return None
    text = "\n".join(_instructions(function, {function.__code__}))
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:16]


def _is_users(function: FunctionType) -> bool:
    top = (function.__module__ or "").partition(".")[0]
    installed = any(part in function.__code__.co_filename for part in INSTALLED)
    return top != "gibo" and top not in sys.stdlib_module_names and not installed


def _instructions(function: FunctionType, seen: set[CodeType]) -> Iterator[str]:
    """What a function does, then what the functions do that it knows by name and are the user's."""
    codes, names = [function.__code__], list(function.__code__.co_freevars)
    for code in codes:  # of functions in it, too
        for each in dis.get_instructions(code):
            if isinstance(each.argval, CodeType):
                codes.append(each.argval)
            elif each.opname not in ("RESUME", "NOP"):
                value = each.arg if "FAST" in each.opname else each.argval  # whatever a local variable is called
                value = sorted(map(repr, value)) if isinstance(value, frozenset) else value
                yield f"{each.opname} {value!r}"
        names += code.co_names
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    known = function.__globals__ | {name: cell.cell_contents for name, cell in cells if _is_full(cell)}
    for name in dict.fromkeys(names):
        called = _function(known.get(name, int))
        if called is not None and called.__code__ not in seen and _is_users(called):
            seen.add(called.__code__)
            yield name
            yield from _instructions(called, seen)


def _is_full(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _plain(value: Any) -> Any:
    """A value that can be compared later; of another one, its kind."""
    if isinstance(value, int | None) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return value[:LONGEST] if isinstance(value, str) else f"<{type(value).__name__}>"
