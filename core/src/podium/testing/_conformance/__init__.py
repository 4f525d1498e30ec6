"""The parts of the conformance suite, one module for each area; `podium.testing.conformance` puts them together."""

from __future__ import annotations

__all__: list[str] = []
