"""What stops a translation: a reason, and the place in the user's text."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Place", "Refusal"]


@dataclass(frozen=True)
class Place:
    """A place in a file of the user's; line and column count from 1."""

    file: str
    line: int
    column: int = 1


class Refusal(Exception):
    """The text has something that is wrong, or that podium-opencl cannot do. `place` is None until it is known."""

    def __init__(self, reason: str, place: Place | None = None) -> None:
        super().__init__(reason)
        self.reason, self.place = reason, place
