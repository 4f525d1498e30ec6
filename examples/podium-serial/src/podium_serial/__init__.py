"""An example backend of podium: one thread after the other, on the host."""

from __future__ import annotations

__all__: list[str] = []
