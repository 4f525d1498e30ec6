"""What a command cannot do, and how an error is told in one message."""

from __future__ import annotations

from types import ModuleType

from podium.errors import CompileError

__all__ = ["CommandError", "explain", "need_numpy"]


class CommandError(Exception):
    """A command failed for a reason of its own; `status` is the exit code, 2 for a wrong use of the command line."""

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


def explain(error: BaseException) -> str:
    """Return the text of an error for the user; the log of a compiler only where the text does not quote from it."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror or error}"
    if isinstance(error, CompileError) and not error.diagnostics and error.log.strip() not in str(error):
        return f"{error}\n{error.log.strip()}"
    return str(error) or type(error).__name__


def need_numpy(purpose: str) -> ModuleType:
    """Import numpy. Raises `CommandError` saying what it is needed for, if it is not installed."""
    try:
        import numpy
    except ImportError as error:
        raise CommandError(f"{purpose} needs numpy ({error}): pip install 'podium[demo]'") from None
    return numpy
