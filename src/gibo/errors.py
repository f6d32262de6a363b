"""The errors that gibo raises: each says what was expected, what came and what to do."""


class GiboError(Exception):
    """Base of all errors that gibo raises on purpose."""


class InputError(GiboError, ValueError):
    """An argument has the wrong shape, type or range."""


class QueryError(GiboError, KeyError):
    """A query was told that is unknown or was told before."""

    def __str__(self) -> str:  # KeyError would show the message in quotation marks
        return str(self.args[0])


class NumericalError(GiboError, ArithmeticError):
    """A computation met values that are not finite."""


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
