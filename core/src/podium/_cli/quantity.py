"""Quantities as people read them."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["bytes_text", "duration_text", "shape_text"]


def bytes_text(count: int) -> str:
    """Return a number of bytes with a unit, such as ``1.5 MiB``."""
    if count < 1024:
        return f"{count} B"
    size = float(count)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        size /= 1024
        if size < 1024 or unit == "TiB":
            break
    return f"{size:.1f} {unit}"


def duration_text(seconds: float) -> str:
    """Return a time with a unit, such as ``12.3 µs``."""
    for scale, unit in ((1e-6, "µs"), (1e-3, "ms")):
        if seconds < 1000 * scale:
            return f"{seconds / scale:.3g} {unit}" if seconds < 100 * scale else f"{seconds / scale:.0f} {unit}"
    return f"{seconds:.2f} s"


def shape_text(shape: Iterable[int]) -> str:
    """Return lengths along axes, such as ``64x32``."""
    return "x".join(map(str, shape))
