"""How far a measurement is, for those who watch it."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Progress", "Unwatched"]


class Progress(Protocol):
    """Told between samples, so that what is shown never falls into one."""

    def begin(self, what: str, steps: int) -> None:
        """Begin with something that has so many steps; what came before has ended."""

    def advance(self) -> None:
        """Tell that a step has been made."""


class Unwatched:
    """Shows nothing."""

    def begin(self, what: str, steps: int) -> None:
        """Show nothing."""

    def advance(self) -> None:
        """Show nothing."""
