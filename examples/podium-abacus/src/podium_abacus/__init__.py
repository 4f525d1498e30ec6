"""The backend abacus of podium."""

from __future__ import annotations

__all__: list[str] = []
