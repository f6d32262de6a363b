"""The errors that gibo raises. Each says in one line what was expected, what came and what to do."""

from __future__ import annotations

# Characters of an error's text. It is cut because it may repeat a file's content.
LONGEST_MESSAGE = 1000


class GiboError(Exception):
    """Base of all errors that gibo raises on purpose. Its text is one line without control sequences."""

    def __init__(self, text: str = "") -> None:
        line = printable(text)
        super().__init__(line if len(line) <= LONGEST_MESSAGE else f"{line[: LONGEST_MESSAGE - 2]} …")


class InputError(GiboError, ValueError):
    """An argument has the wrong shape, type or range."""


class QueryError(GiboError, KeyError):
    """A query that is told is unknown or was told before."""

    def __str__(self) -> str:  # KeyError would show the message in quotation marks
        return str(self.args[0])


class NumericalError(GiboError, ArithmeticError):
    """A computation gave values that are not finite."""


class RunError(GiboError, RuntimeError):
    """A run could not continue; its evaluations are kept."""


class JournalError(GiboError, RuntimeError):
    """A run's journal is damaged, foreign, in use or not writable; its content is kept."""


class InUseError(JournalError):
    """Another process holds the run; the run itself is intact."""


class StudyError(GiboError, RuntimeError):
    """A study could not continue; its finished cells are kept."""


class MissingExtraError(GiboError, ImportError):
    """An optional dependency is not installed; the message names the extra."""


def printable(text: str, lines: bool = False) -> str:
    r"""Escape control sequences and characters that hide or reverse text, so that the text is safe to print.

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
    """The error for a package that is not installed; `needs` begins its sentence, such as "a task needs gymnasium"."""
    return MissingExtraError(f"{needs}, which is not installed: pip install 'gibo[{extra}]'")
