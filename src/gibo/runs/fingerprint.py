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
import platform
import sys
import textwrap
from collections.abc import Callable, Mapping
from types import FunctionType, MethodType
from typing import Any

from gibo._checks import shown

LONGEST = 200  # characters of an option's text
INSTALLED = ("site-packages", "dist-packages")  # folders of packages


def fingerprint(objective: Callable[..., Any]) -> dict[str, Any]:
    """The fingerprint of an objective as plain data; see the module's docstring.

    Example:
        >>> def cost(x, gain=2.0):
        ...     return gain * x[0]
        >>> fingerprint(cost)["name"], fingerprint(cost)["options"]
        ('cost', {'gain': 2.0})
    """
    try:
        return _known(objective)
    except Exception:  # an objective may be an object whose attributes raise anything
        return {"name": type(objective).__name__, "source": None, "python": None, "options": {}}


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
    python = ".".join(platform.python_version_tuple()[:2])  # `ast.unparse` depends on it
    known = {name: _plain(value) for name, value in options.items()}
    return {"name": name, "source": _digest(function), "python": python, "options": known}


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


def _function(objective: Any) -> FunctionType | None:
    """The Python function that is called, if there is one."""
    if isinstance(objective, MethodType):
        objective = objective.__func__
    elif not isinstance(objective, FunctionType | type):
        called = getattr(type(objective), "__call__", None)  # noqa: B004  # the function is wanted
        is_python = isinstance(called, FunctionType)
        objective = called if is_python else inspect.getattr_static(objective, "__wrapped__", None)
    return objective if isinstance(objective, FunctionType) else None


def _digest(function: FunctionType | None) -> str | None:
    """A digest of the text of a user's function; None for another one, and where the text is not known."""
    if function is None:
        return None
    top = (function.__module__ or "").partition(".")[0]
    is_installed = any(part in function.__code__.co_filename for part in INSTALLED)
    if top == "gibo" or top in sys.stdlib_module_names or is_installed:
        return None
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):  # no file, or a lambda within a statement
        return None
    found: list[ast.AST] = [tree]
    if function.__name__ == "<lambda>":  # its source is the whole line
        found = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
    if len(found) != 1:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
    return hashlib.sha256(ast.unparse(found[0]).encode(errors="backslashreplace")).hexdigest()[:16]


def _plain(value: Any) -> Any:
    """A value that can be compared later; for other values their type."""
    if isinstance(value, int | None) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return value[:LONGEST] if isinstance(value, str) else f"<{type(value).__name__}>"
