"""What a page that has the token may do to a run.

A `Control` says which of the actions it can do; the page shows those alone, and the server refuses the others.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from gibo._checks import as_number, as_path, describe
from gibo.errors import InputError
from gibo.runs import manual

LONGEST_TEXT = 2000


class Control(Protocol):
    """Acts on a run; each action is recorded before the method returns. What cannot be done raises a `GiboError`."""

    @property
    def actions(self) -> frozenset[str]:
        """Of ``ACTIONS`` those that can be done."""

    def pause(self) -> None:
        """Ask nothing more until `continue_`; what is being evaluated is waited for."""

    def continue_(self) -> None:
        """End a pause."""

    def stop(self) -> None:
        """End the run after this iteration."""

    def mark_failed(self, query: int, reason: str) -> None:
        """A pending evaluation has no value."""

    def tell(self, query: int, value: float) -> None:
        """The value of a pending query, by a person at the bench."""

    def remark(self, text: str) -> None:
        """Note something down."""


ACTIONS = ("pause", "continue", "stop", "mark_failed", "tell", "remark")


class ManualControl:
    """Of a run that no process holds: somebody tells its values.

    Args:
        folder: of the run.
    """

    actions = frozenset({"tell", "mark_failed"})

    def __init__(self, folder: Path | str) -> None:
        self.folder = as_path("folder", folder)

    def pause(self) -> None:
        raise InputError("pause: no process works on this run")

    def continue_(self) -> None:
        raise InputError("continue: no process works on this run")

    def stop(self) -> None:
        raise InputError("stop: no process works on this run")

    def mark_failed(self, query: int, reason: str) -> None:
        manual.tell(self.folder, query, failed=reason)

    def tell(self, query: int, value: float) -> None:
        manual.tell(self.folder, query, value)

    def remark(self, text: str) -> None:
        raise InputError("remark: this run's journal takes none")


def act(control: Control, request: dict[str, Any]) -> None:
    """Do what a request asks for, such as ``{"action": "tell", "id": 3, "value": 1.5}``."""
    action = request.get("action")
    if action not in ACTIONS:
        raise InputError(f"action: expected one of {', '.join(ACTIONS)}, got {describe(action)}")
    if action not in control.actions:
        raise InputError(
            f"{action}: this run cannot do that; it can: {', '.join(sorted(control.actions)) or 'nothing'}"
        )
    if action == "pause":
        control.pause()
    elif action == "continue":
        control.continue_()
    elif action == "stop":
        control.stop()
    elif action == "tell":
        control.tell(_id(request), _number(request))
    elif action == "mark_failed":
        control.mark_failed(_id(request), _text(request, "reason") or "marked as failed by hand")
    else:
        text = _text(request, "text")
        if not text:
            raise InputError("text: a remark needs one")
        control.remark(text)


def _id(request: dict[str, Any]) -> int:
    number = request.get("id")
    if isinstance(number, bool) or not isinstance(number, int):
        raise InputError(f"id: expected the number of a query, got {describe(number)}")
    return number


def _number(request: dict[str, Any]) -> float:
    value = request.get("value")
    if isinstance(value, bool):
        raise InputError(f"value: expected a number, got {value}")
    return as_number("value", value)


def _text(request: dict[str, Any], name: str) -> str:
    text = request.get(name, "")
    if not isinstance(text, str) or len(text) > LONGEST_TEXT:
        raise InputError(f"{name}: expected a text of at most {LONGEST_TEXT} characters, got {describe(text)}")
    return text.strip()
