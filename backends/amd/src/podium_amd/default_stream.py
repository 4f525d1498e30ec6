"""The stream of launches that name none, and have no array whose library knows one."""

from __future__ import annotations

from podium.backend import option_choice

__all__ = ["LEGACY", "PER_THREAD", "VARIABLE", "default_stream_handle"]

LEGACY, PER_THREAD = 0, 2  # hipStreamPerThread
VARIABLE = "PODIUM_AMD_STREAM"

_HANDLES = {"legacy": LEGACY, "per-thread": PER_THREAD}


def default_stream_handle(name: str | None) -> int:
    """Return the handle of the default stream that is meant: "legacy", "per-thread", or None for the variable's.

    Raises ValueError for another name, `SettingError` if it is the variable's.
    """
    return _HANDLES[option_choice("default_stream", name, VARIABLE, _HANDLES)]
