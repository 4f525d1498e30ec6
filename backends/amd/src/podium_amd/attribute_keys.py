"""The launch attributes that are given by name, with their numbers in hipLaunchAttributeID."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["COOPERATIVE", "KEYS", "PRIORITY"]

COOPERATIVE, PRIORITY = 2, 8

KEYS: Mapping[str, int] = MappingProxyType({"priority": PRIORITY})
"""Cooperative launches are a field of LaunchConfig, and not here."""
