"""What a page that has the token may do to a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gibo._checks import as_number, as_path, describe
from gibo.errors import InputError, InUseError
from gibo.runs import manual
from gibo.runs.mailbox import post
from gibo.runs.records import LONGEST_TEXT
from gibo.web.snapshot import Reader

ACTIONS = ("pause", "continue", "stop", "mark_failed", "tell", "remark")


class Control:
    """Acts on a run: what a process holds hears of it through its mailbox; what none holds is written here.

    What is asked for is on the disk before a method returns; what cannot be raises a `GiboError`. A running run does
    what it is asked to between two evaluations, so the journal has it somewhat later.

    Args:
        folder: of the run.
    """

    actions = frozenset(ACTIONS)

    def __init__(self, folder: Path | str) -> None:
        self.folder = as_path("folder", folder)

    def pause(self) -> None:
        """Ask nothing more until `continue_`; what is being evaluated is waited for."""
        self._say("paused", "pause")

    def continue_(self) -> None:
        """End a pause."""
        self._say("continued", "continue")

    def stop(self) -> None:
        """End the run after this iteration."""
        self._say("stop", "stop")

    def mark_failed(self, query: int, reason: str) -> None:
        """A pending evaluation has no value."""
        self._do("failed", {"id": query, "reason": reason})

    def tell(self, query: int, value: float) -> None:
        """The value of a pending query, by a person at the bench."""
        self._do("told", {"id": query, "value": value})

    def remark(self, text: str) -> None:
        """Note something down."""
        self._do("remark", {"text": text})

    def _do(self, kind: str, body: dict[str, Any]) -> None:
        try:
            manual.act(self.folder, kind, body)
        except InUseError:
            post(self.folder, kind, body)

    def _say(self, kind: str, name: str) -> None:
        with Reader(self.folder) as reader:
            if reader.standing()["state"] not in ("running", "paused"):
                raise InputError(f"{name}: no process works on this run")
        post(self.folder, kind, {})


def act(control: Control, request: dict[str, Any]) -> None:
    """Do what a request asks for, such as ``{"action": "tell", "id": 3, "value": 1.5}``."""
    action = request.get("action")
    if action not in ACTIONS:
        raise InputError(f"action: expected one of {', '.join(ACTIONS)}, got {describe(action)}")
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
