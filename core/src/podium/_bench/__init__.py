"""Measuring launches: what ``podium bench`` and the programs in benchmarks/ share, and what the former measures."""

from __future__ import annotations

__all__: list[str] = []
