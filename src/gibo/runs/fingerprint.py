"""A fingerprint of an objective, to detect that a run is continued with another objective.

    {"name": "cost", "source": a digest of its text or None, "python": "3.11", "options": {"gain": 2.0}}

Comments, docstrings, layout, the place of the file and functions that the objective calls do not matter. The source is
None for an objective in an installed package or without source code. Options are the defaults of arguments, the
arguments of a partial and the fields of a frozen dataclass. Unknown parts never differ.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import hashlib
import inspect
import math
import sys
import textwrap
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, cast

from gibo._checks import shown

LONGEST = 200  # characters of an option's text


def fingerprint(objective: Callable[..., Any]) -> dict[str, Any]:
    """The fingerprint of an objective as plain data; see the module's docstring.

    Example:
        >>> def cost(x, gain=2.0):
        ...     return gain * x[0]
        >>> fingerprint(cost)["name"], fingerprint(cost)["options"]
        ('cost', {'gain': 2.0})
    """
    python = f"{sys.version_info.major}.{sys.version_info.minor}"  # `ast.unparse` depends on it
    try:
        options, called = {}, cast(Any, objective)
        for name, parameter in inspect.signature(objective).parameters.items():
            if parameter.default is not parameter.empty:
                options[name] = _plain(parameter.default)
        while isinstance(called, functools.partial):
            options |= {str(i): _plain(argument) for i, argument in enumerate(called.args)}
            called = called.func
        parameters = getattr(type(called), "__dataclass_params__", None)
        if parameters is not None and parameters.frozen:
            options |= {field.name: _plain(getattr(called, field.name)) for field in dataclasses.fields(called)}
        name = getattr(called, "__name__", type(called).__name__)
        return {"name": str(name), "source": _source(called), "python": python, "options": options}
    except Exception:  # an objective may be an object whose attributes raise anything
        return {"name": type(objective).__name__, "source": None, "python": python, "options": {}}


def differences(then: Any, now: Mapping[str, Any]) -> str:
    """The changes since then, for a person to read; empty if none are known."""
    if not isinstance(then, dict) or not isinstance(then.get("options"), dict):
        return ""
    parts = [f"its name was {shown(then['name'])}, now {shown(now['name'])}"] if then.get("name") != now["name"] else []
    old, new = then["options"], now["options"]
    for name in [name for name in old | new if old.get(name) != new.get(name)][:3]:
        parts.append(f"{name} was {shown(old.get(name))}, now {shown(new.get(name))}")
    known = then.get("python") == now["python"] and None not in (then.get("source"), now["source"])
    if known and not parts and then["source"] != now["source"]:  # the source contains the defaults, too
        parts.append("its code has changed")
    return "; ".join(parts)


def _source(objective: Any) -> str | None:
    """A digest of the text of a user's function; None for another one, and where the text is not known."""
    function = inspect.unwrap(getattr(objective, "__func__", objective))
    if not isinstance(function, FunctionType):
        function = type(objective).__call__
    if not isinstance(function, FunctionType):
        return None
    top, file = (function.__module__ or "").partition(".")[0], function.__code__.co_filename
    if top == "gibo" or top in sys.stdlib_module_names or "site-packages" in file or "dist-packages" in file:
        return None
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):  # no file, or a lambda within a statement
        return None
    found: list[ast.AST] = [tree]
    if function.__name__ == "<lambda>":  # its source is the whole line
        found = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
    text = ast.unparse(found[0]).encode(errors="backslashreplace")
    return hashlib.sha256(text).hexdigest()[:16] if len(found) == 1 else None


def _plain(value: Any) -> Any:
    """A value that can be compared later; for other values their type."""
    if isinstance(value, int | None) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return value[:LONGEST] if isinstance(value, str) else f"<{type(value).__name__}>"
