"""Whether the backend can run here. Asked often, so it costs little, and initialises nothing."""

from __future__ import annotations

from podium_abacus import runtime

__all__ = ["inactive_reason"]


def inactive_reason() -> str | None:
    """Say in a line why the backend cannot run here, and what to do about it; None if it can."""
    try:
        runtime.library()
    except OSError as error:
        return f"the device's library cannot be opened ({error}): install it, or add its folder to LD_LIBRARY_PATH"
    return None
