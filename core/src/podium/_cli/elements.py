"""The elements of an array as text, the middle of long axes left out."""

from __future__ import annotations

from typing import Any

__all__ = ["elements_text"]

_EDGE = 3
_WHOLE = 8


def elements_text(values: Any, indent: int = 0) -> str:
    """Return nested lists of numbers as text; of an axis with more than eight only the first and last three."""
    if not isinstance(values, list):
        return f"{values:.7g}" if isinstance(values, float) else str(values)
    shown = [elements_text(value, indent + 1) for value in (values[:_EDGE] if len(values) > _WHOLE else values)]
    if len(values) > _WHOLE:
        shown += ["...", *(elements_text(value, indent + 1) for value in values[-_EDGE:])]
    nested = bool(values) and isinstance(values[0], list)
    separator = ",\n" + " " * (indent + 1) if nested else ", "
    return f"[{separator.join(shown)}]"
