"""The errors that gibo raises: each says what was expected, what came and what to do, in one line."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

# An error's text is cut to so many characters: it may repeat a file's content.
LONGEST_MESSAGE = 1000


class GiboError(Exception):
    """Base of all errors that gibo raises on purpose. Its text is one line without control sequences."""

    def __init__(self, text: str = "") -> None:
        line = printable(text)
        super().__init__(line if len(line) <= LONGEST_MESSAGE else f"{line[: LONGEST_MESSAGE - 2]} …")


class InputError(GiboError, ValueError):
    """An argument has the wrong shape, type or range."""


class QueryError(GiboError, KeyError):
    """A told query is unknown, or was told before."""

    def __str__(self) -> str:  # KeyError would show the message in quotation marks
        return str(self.args[0])


class NumericalError(GiboError, ArithmeticError):
    """A computation gave values that are not finite."""


class RunError(GiboError, RuntimeError):
    """A run could not go on; what was evaluated is kept."""


class JournalError(GiboError, RuntimeError):
    """A run's journal is damaged, foreign, in use or cannot be written; what it holds is kept."""


class InUseError(JournalError):
    """Another process holds the run; nothing is wrong with it."""


class StudyError(GiboError, RuntimeError):
    """A study could not go on; what it has finished is kept."""


class MissingExtraError(GiboError, ImportError):
    """An optional dependency is needed and not installed; the message names the extra."""


def short_traceback(function: Callable[P, T]) -> Callable[P, T]:
    """For functions that users call: the traceback of a `GiboError` ends where they called, not deep inside gibo."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except GiboError as error:
            raise error.with_traceback(None) from error.__cause__

    return called


def printable(text: str, lines: bool = False) -> str:
    r"""A text that is safe to print: control sequences, and characters that hide or turn text, are escaped.

    Args:
        text: from anywhere.
        lines: whether line ends and tabs stay as they are.

    Example:
        >>> printable("gain\x1b[2J")
        'gain\\x1b[2J'
    """
    kept = "\n\t" if lines else ""
    return "".join(
        c if c.isprintable() or c in kept else c.encode("unicode_escape", "surrogatepass").decode() for c in text
    )


def missing_extra(needs: str, extra: str) -> MissingExtraError:
    """The error for a package that is not installed; its command works wherever gibo itself was installed from.

    Args:
        needs: who needs what, such as "a task needs gymnasium".
        extra: of gibo, which has the package.
    """
    return MissingExtraError(
        f"{needs}, which is not installed: pip install {_packages(extra)} (gibo's extra {extra!r})"
    )


def _packages(extra: str) -> str:
    """The packages of an extra: gibo may be installed from a clone, a file or an index."""
    import re  # imported here: slow to load, and seldom needed
    from importlib.metadata import PackageNotFoundError, requires

    try:
        lines = requires("gibo") or []
    except PackageNotFoundError:  # a clone that is only on the path
        return f"'.[{extra}]' in the folder of gibo"
    found = []
    for line in lines:
        requirement, _, condition = (part.strip() for part in line.partition(";"))
        if re.search(rf"extra == ['\"]{extra}['\"]", condition):
            others = re.fullmatch(r"gibo\[(.*)\]", requirement)
            found += [_packages(name) for name in others[1].split(",")] if others else [f"'{requirement}'"]
    return " ".join(dict.fromkeys(found)) or f"'gibo[{extra}]'"
