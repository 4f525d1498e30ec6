"""A backend on the host's own memory, which is always active, for tests of several backends: one thread after the other."""

from __future__ import annotations

__all__: list[str] = []
