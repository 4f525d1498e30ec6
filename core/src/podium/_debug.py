"""The debug switch: synchronise after each launch, name the kernel at fault, check the element types of arrays."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import lru_cache

from podium import _settings, _state

__all__ = ["debugging", "enabled", "set_debug", "start_from_environment"]


def enabled() -> bool:
    """Tell whether debugging is on."""
    return bool(_state.attended() & _state.DEBUG)


def set_debug(on: bool) -> None:
    """Switch debugging on or off for the whole process; PODIUM_DEBUG=1 starts with it on."""
    _state.attend(_state.DEBUG, on)


@contextlib.contextmanager
def debugging() -> Iterator[None]:
    """Debug the launches inside the ``with`` block, of all threads; the state before comes back at its end."""
    before = enabled()
    set_debug(True)
    try:
        yield
    finally:
        set_debug(before)


@lru_cache(maxsize=1)
def start_from_environment() -> None:
    """Switch debugging on if PODIUM_DEBUG asks for it, the first time that a launcher is made.

    Raises `SettingError` if the variable has a value that means nothing.
    """
    if _settings.debug():
        set_debug(True)
